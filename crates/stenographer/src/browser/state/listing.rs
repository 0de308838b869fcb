//! Keys on the list screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use steno_model::Transcript;

use super::{BrowserEffect, BrowserState, ListView};
use crate::browser::preview::{MAX_PREVIEW_ENTRIES, PreviewContent, SessionPreview};
use crate::browser::reader::SessionReader;
use crate::browser::{SessionName, WorkerRequest, layout};

impl BrowserState {
    pub(super) fn handle_list_key(&mut self, key: KeyEvent) -> Option<BrowserEffect> {
        if self.handle_move_key(key) {
            return None;
        }
        match key.code {
            KeyCode::Enter => self.open_selected(),
            KeyCode::Esc if self.opening.take().is_some() => None,
            KeyCode::Tab => {
                self.view = if self.view == ListView::Sessions {
                    ListView::Hits
                } else {
                    ListView::Sessions
                };
                self.is_typing = true;
                None
            }
            KeyCode::Esc if self.is_typing => {
                self.is_typing = false;
                None
            }
            _ if self.is_typing => {
                let has_changed = self.active_input().handle_key(key);
                if has_changed { self.apply_input() } else { None }
            }
            KeyCode::Esc => self.step_back(),
            KeyCode::F(5) => {
                self.background_work = Some("looking for sessions".to_owned());
                self.preview = None;
                Some(BrowserEffect::Sync)
            }
            KeyCode::Char(letter) => self.handle_list_letter(letter),
            _ => None,
        }
    }

    fn handle_list_letter(&mut self, letter: char) -> Option<BrowserEffect> {
        match letter {
            'q' => return Some(BrowserEffect::Quit),
            '/' => self.start_typing(ListView::Sessions),
            's' => self.start_typing(ListView::Hits),
            'r' => return self.selected_name().map(BrowserEffect::Resume),
            'e' => return self.selected_name().map(|name| self.request_export(name)),
            _ => {}
        }
        None
    }

    fn start_typing(&mut self, view: ListView) {
        self.view = view;
        self.is_typing = true;
    }

    /// Goes one step back: out of the search, out of the filter, out of the program.
    fn step_back(&mut self) -> Option<BrowserEffect> {
        if self.view == ListView::Hits {
            self.view = ListView::Sessions;
        } else if !self.sessions.filter.is_empty() {
            self.sessions.filter.clear();
            self.sessions.apply_filter();
        } else {
            return Some(BrowserEffect::Quit);
        }
        None
    }

    /// Moves the selection if the key is a movement key. Letters are not while the user types.
    fn handle_move_key(&mut self, key: KeyEvent) -> bool {
        let rows = usize::from(layout::list_layout(self.area).body.height);
        let page = match self.view {
            ListView::Sessions => rows,
            ListView::Hits => rows / layout::HIT_ROWS,
        };
        let page = isize::try_from(page.max(1)).unwrap_or(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let by = match key.code {
            KeyCode::Up => -1,
            KeyCode::Down => 1,
            KeyCode::PageUp => -page,
            KeyCode::PageDown => page,
            KeyCode::Char('p') if control => -1,
            KeyCode::Char('n') if control => 1,
            _ if self.is_typing => return false,
            KeyCode::Char('k') => -1,
            KeyCode::Char('j') => 1,
            KeyCode::Char(' ') => page,
            KeyCode::Home | KeyCode::Char('g') => isize::MIN,
            KeyCode::End | KeyCode::Char('G') => isize::MAX,
            _ => return false,
        };
        match self.view {
            ListView::Sessions => self.sessions.selection.move_by(by),
            ListView::Hits => self.search.selection.move_by(by),
        }
        true
    }

    /// Returns the selected session.
    fn selected_name(&self) -> Option<SessionName> {
        match self.view {
            ListView::Sessions => self.sessions.selected_session().map(SessionName::from_listed),
            ListView::Hits => self.search.selected_hit().map(|found| SessionName {
                agent: found.hit.agent.clone(),
                id: found.hit.session.clone(),
            }),
        }
    }

    fn open_selected(&mut self) -> Option<BrowserEffect> {
        let name = self.selected_name()?;
        let entry = match self.view {
            ListView::Sessions => None,
            ListView::Hits => {
                self.search.selected_hit().and_then(|found| found.hit.number.try_into().ok())
            }
        };
        self.is_typing = false;
        self.opening = Some((name.clone(), entry));
        Some(BrowserEffect::Request(WorkerRequest::Read(name)))
    }

    pub(super) fn request_export(&mut self, name: SessionName) -> BrowserEffect {
        self.is_exporting = true;
        BrowserEffect::Request(WorkerRequest::Export(name))
    }

    /// Requests the selected session for the preview, if there is one and it is not shown yet.
    pub(super) fn request_preview(&mut self) -> Option<BrowserEffect> {
        let parts = layout::list_layout(self.area);
        let is_shown = self.view == ListView::Sessions && self.reader.is_none();
        if !is_shown || layout::split_preview(parts).1.is_none() {
            return None;
        }
        let listed = self.sessions.selected_session()?;
        let name = SessionName::from_listed(listed);
        if self.preview.as_ref().is_some_and(|preview| preview.name == name) {
            return None;
        }
        let reason = match &listed.problem {
            Some(problem) => Some(format!("cannot be read: {problem}")),
            None if listed.session.totals.entries > MAX_PREVIEW_ENTRIES => {
                Some("too long for a preview; press Enter to open it".to_owned())
            }
            None => None,
        };
        let (content, is_read) = match reason {
            Some(reason) => (PreviewContent::Unavailable(reason), false),
            None => (PreviewContent::Reading, true),
        };
        self.preview = Some(SessionPreview { name: name.clone(), content });
        is_read.then_some(BrowserEffect::Request(WorkerRequest::Preview(name)))
    }

    /// Shows a session beside the list, unless another one is selected by now.
    pub(super) fn show_preview(&mut self, name: &SessionName, read: Result<Transcript, String>) {
        let Some(preview) = self.preview.as_mut().filter(|preview| preview.name == *name) else {
            return;
        };
        preview.content = match read {
            Ok(transcript) => {
                let reader = SessionReader::new(transcript, self.zone.clone());
                PreviewContent::Read(Box::new(reader))
            }
            Err(error) => PreviewContent::Unavailable(error),
        };
    }

    /// Shows a session that was read, unless the user no longer wants it.
    pub(super) fn show_opened(&mut self, name: &SessionName, read: Result<Transcript, String>) {
        let Some((_, entry)) = self.opening.take_if(|(wanted, _)| wanted == name) else { return };
        match read {
            Ok(transcript) => {
                self.find.clear();
                let mut reader = SessionReader::new(transcript, self.zone.clone());
                reader.find = entry.and_then(|_| self.search.parse_query());
                let reader = self.reader.insert(reader);
                let (width, height) = layout::reader_pane_size(self.area);
                reader.resize(width, height);
                if let Some(entry) = entry {
                    reader.go_to_entry(entry);
                }
            }
            Err(trouble) => self.notice = Some(trouble),
        }
    }
}
