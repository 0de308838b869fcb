//! Keys while a list is shown.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use steno_core::Transcript;

use super::{Effect, State, View};
use crate::browser::layout;
use crate::browser::reader::Reader;
use crate::browser::{Ask, Name};

impl State {
    pub(super) fn listing_key(&mut self, key: KeyEvent) -> Option<Effect> {
        if self.moves(key) {
            return None;
        }
        match key.code {
            KeyCode::Enter => self.open(),
            KeyCode::Esc if self.opening.take().is_some() => None,
            KeyCode::Tab => {
                self.view = if self.view == View::Sessions { View::Hits } else { View::Sessions };
                self.typing = true;
                None
            }
            KeyCode::Esc if self.typing => {
                self.typing = false;
                None
            }
            _ if self.typing => {
                let has_changed = self.line().key(key);
                if has_changed { self.typed() } else { None }
            }
            KeyCode::Esc => self.leave(),
            KeyCode::F(5) => {
                self.working = Some("looking for sessions".to_owned());
                Some(Effect::Ask(Ask::List))
            }
            KeyCode::Char(letter) => self.listing_letter(letter),
            _ => None,
        }
    }

    fn listing_letter(&mut self, letter: char) -> Option<Effect> {
        match letter {
            'q' => return Some(Effect::Quit),
            '/' => self.type_into(self.view),
            's' => self.type_into(View::Hits),
            'r' => return self.chosen().map(Effect::Resume),
            'e' => return self.chosen().map(|name| self.export(name)),
            _ => {}
        }
        None
    }

    fn type_into(&mut self, view: View) {
        self.view = view;
        self.typing = true;
    }

    /// Steps back: out of the search, out of the filter, out of the program.
    fn leave(&mut self) -> Option<Effect> {
        if self.view == View::Hits {
            self.view = View::Sessions;
        } else if !self.sessions.filter.is_empty() {
            self.sessions.filter.clear();
            self.sessions.refilter();
        } else {
            return Some(Effect::Quit);
        }
        None
    }

    /// Moves in the list, if the key says so. Letters do not while they are typed.
    fn moves(&mut self, key: KeyEvent) -> bool {
        let rows = usize::from(layout::list(self.area).body.height);
        let page = match self.view {
            View::Sessions => rows,
            View::Hits => rows / layout::HIT_ROWS,
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
            _ if self.typing => return false,
            KeyCode::Char('k') => -1,
            KeyCode::Char('j') => 1,
            KeyCode::Char(' ') => page,
            KeyCode::Home | KeyCode::Char('g') => isize::MIN,
            KeyCode::End | KeyCode::Char('G') => isize::MAX,
            _ => return false,
        };
        match self.view {
            View::Sessions => self.sessions.choice.step(by),
            View::Hits => self.finder.choice.step(by),
        }
        true
    }

    /// The chosen session.
    fn chosen(&self) -> Option<Name> {
        match self.view {
            View::Sessions => self.sessions.chosen().map(Name::of),
            View::Hits => self.finder.chosen().map(|found| Name {
                agent: found.hit.agent.clone(),
                id: found.hit.session.clone(),
            }),
        }
    }

    fn open(&mut self) -> Option<Effect> {
        let name = self.chosen()?;
        let entry = match self.view {
            View::Sessions => None,
            View::Hits => self.finder.chosen().and_then(|found| found.hit.number.try_into().ok()),
        };
        self.typing = false;
        self.opening = Some((name.clone(), entry));
        Some(Effect::Ask(Ask::Read(name)))
    }

    pub(super) fn export(&mut self, name: Name) -> Effect {
        self.writing = true;
        Effect::Ask(Ask::Export(name))
    }

    /// Shows a session that was read, unless it is not wanted any more.
    pub(super) fn opened(&mut self, name: &Name, read: Result<Transcript, String>) {
        let Some((_, entry)) = self.opening.take_if(|(wanted, _)| wanted == name) else { return };
        match read {
            Ok(transcript) => {
                self.find.clear();
                let mut reader = Reader::new(transcript, self.zone.clone());
                reader.find = entry.and_then(|_| self.finder.query());
                let reader = self.reader.insert(reader);
                reader.resize(layout::pane(self.area));
                if let Some(entry) = entry {
                    reader.open_at(entry);
                }
            }
            Err(trouble) => self.notice = Some(trouble),
        }
    }
}
