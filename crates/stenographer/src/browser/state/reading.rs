//! Keys while a session is open.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use steno_vault::notes::Note;

use super::{BrowserEffect, BrowserState};
use crate::browser::entry_folds::FoldGroup;
use crate::browser::reader::{JumpTarget, SessionReader};
use crate::browser::search_pane;
use crate::browser::{SessionGrowth, SessionName, WorkerRequest};
use crate::ui::count_noun;

impl BrowserState {
    pub(super) fn handle_reader_key(&mut self, key: KeyEvent) -> Option<BrowserEffect> {
        if self.is_typing && self.is_noting {
            return self.handle_note_key(key);
        }
        if self.is_typing {
            self.handle_find_key(key);
            return None;
        }
        let reader = self.reader.as_mut()?;
        if handle_move_key(reader, key) {
            return None;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') | KeyCode::Left | KeyCode::Backspace => {
                self.reader = None;
            }
            KeyCode::Enter | KeyCode::Char(' ') => reader.toggle_fold(),
            KeyCode::Tab => self.jump_to(JumpTarget::Entry, true),
            KeyCode::BackTab => self.jump_to(JumpTarget::Entry, false),
            KeyCode::Char(letter) => return self.handle_reader_letter(letter),
            _ => {}
        }
        None
    }

    fn handle_reader_letter(&mut self, letter: char) -> Option<BrowserEffect> {
        match letter {
            'o' => self.reader.as_mut()?.toggle_group(FoldGroup::Tools),
            't' => self.reader.as_mut()?.toggle_group(FoldGroup::Thoughts),
            '/' => self.is_typing = true,
            'a' => (self.is_typing, self.is_noting) = (true, true),
            'p' => self.jump_to(JumpTarget::Prompt, false),
            'r' => return self.open_session_name().map(BrowserEffect::Resume),
            'e' => return self.open_session_name().map(|name| self.request_export(name)),
            letter => {
                // An upper-case letter jumps backwards.
                let to = jump_target(letter.to_ascii_lowercase())?;
                self.jump_to(to, letter.is_lowercase());
            }
        }
        None
    }

    /// Handles a key while the user types a note on the entry at the cursor.
    fn handle_note_key(&mut self, key: KeyEvent) -> Option<BrowserEffect> {
        if !matches!(key.code, KeyCode::Enter | KeyCode::Esc) {
            self.note.handle_key(key);
            return None;
        }
        (self.is_typing, self.is_noting) = (false, false);
        let text = self.note.text().trim().to_owned();
        self.note.clear();
        if key.code == KeyCode::Esc || text.is_empty() {
            return None;
        }
        let name = self.open_session_name()?;
        let reader = self.reader.as_ref()?;
        let entry = reader.transcript.entries.get(reader.cursor().entry)?.entry_id;
        self.is_saving_note = true;
        Some(BrowserEffect::Request(WorkerRequest::AddNote(name, entry, text)))
    }

    /// Shows that a note was written, or why not.
    pub(super) fn show_note(&mut self, added: Result<Note, String>) {
        self.is_saving_note = false;
        self.notice = Some(match added {
            Ok(note) => {
                let open = self.reader.as_mut();
                open.into_iter().for_each(|reader| reader.transcript.notes.push(note.clone()));
                "note added".to_owned()
            }
            Err(error) => error,
        });
    }

    /// Handles a key while the user types a text to find.
    fn handle_find_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.find.clear();
                self.find_in_session();
            }
            _ => {
                if self.find.handle_key(key) {
                    self.find_in_session();
                }
            }
        }
    }

    /// Searches the session for the typed text, starting at the cursor.
    pub(super) fn find_in_session(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        reader.find = search_pane::parse_find_query(self.find.text()).ok();
        if reader.find.is_some() && !reader.go_to_first_match() {
            self.notice = Some("no match".to_owned());
        }
    }

    fn jump_to(&mut self, to: JumpTarget, forward: bool) {
        let Some(reader) = &mut self.reader else { return };
        if !reader.jump_to(to, forward) {
            let which = if forward { "no further" } else { "no earlier" };
            self.notice = Some(format!("{which} {}", to.noun()));
        }
    }

    /// Whether the open session is running, so that it may get new entries.
    pub(crate) fn is_session_running(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.is_running)
    }

    /// Requests the new entries of the open session, if it is running and nobody looks for them yet.
    pub(crate) fn request_growth(&mut self) -> Option<WorkerRequest> {
        if self.is_following || !self.is_session_running() {
            return None;
        }
        let (name, size) = (self.open_session_name()?, self.reader.as_ref()?.stored_size);
        self.is_following = true;
        Some(WorkerRequest::Follow(name, size))
    }

    /// Shows the new entries of the open session, unless another one is open by now.
    pub(super) fn show_growth(
        &mut self,
        name: &SessionName,
        growth: Result<SessionGrowth, String>,
    ) {
        self.is_following = false;
        let is_open = self.open_session_name().is_some_and(|open| open == *name);
        let Some(reader) = self.reader.as_mut().filter(|_| is_open) else { return };
        match growth {
            Ok(growth) => {
                reader.stored_size = Some(growth.size);
                let added = growth.transcript.map_or(0, |grown| reader.update_transcript(grown));
                if added > 0 && !reader.is_at_end() {
                    let entries = count_noun(added as u64, "new entry");
                    self.notice = Some(format!("{entries}; G goes to the end"));
                }
            }
            Err(error) => {
                self.notice = Some(error);
                self.stop_following();
            }
        }
    }

    /// Leaves the open session as it is, after an error.
    pub(super) fn stop_following(&mut self) {
        self.is_following = false;
        if let Some(reader) = &mut self.reader {
            reader.is_running = false;
        }
    }

    fn open_session_name(&self) -> Option<SessionName> {
        let session = &self.reader.as_ref()?.transcript.session;
        Some(SessionName { agent: session.agent.clone(), id: session.id.clone() })
    }
}

/// Returns the target of a jump key.
fn jump_target(letter: char) -> Option<JumpTarget> {
    Some(match letter {
        'x' => JumpTarget::Error,
        'c' => JumpTarget::Compaction,
        's' => JumpTarget::Subagent,
        'n' | 'u' => JumpTarget::Prompt,
        'm' => JumpTarget::Match,
        _ => return None,
    })
}

/// Moves the cursor if the key is a movement key.
fn handle_move_key(reader: &mut SessionReader, key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('d') if control => reader.move_page(true, 2),
        KeyCode::Char('u') if control => reader.move_page(false, 2),
        KeyCode::Char('f') if control => reader.move_page(true, 1),
        KeyCode::Char('b') if control => reader.move_page(false, 1),
        KeyCode::Down | KeyCode::Char('j') => reader.move_by(1),
        KeyCode::Up | KeyCode::Char('k') => reader.move_by(-1),
        KeyCode::PageDown => reader.move_page(true, 1),
        KeyCode::PageUp => reader.move_page(false, 1),
        KeyCode::Home | KeyCode::Char('g') => reader.move_to_edge(false),
        KeyCode::End | KeyCode::Char('G') => reader.move_to_edge(true),
        _ => return false,
    }
    true
}
