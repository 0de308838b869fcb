//! Keys while a session is read.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Effect, State};
use crate::browser::Name;
use crate::browser::finder;
use crate::browser::folds::Group;
use crate::browser::reader::{Jump, Reader};

impl State {
    pub(super) fn reading_key(&mut self, key: KeyEvent) -> Option<Effect> {
        if self.typing {
            self.finding_key(key);
            return None;
        }
        let reader = self.reader.as_mut()?;
        if moves(reader, key) {
            return None;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') | KeyCode::Left | KeyCode::Backspace => {
                self.reader = None;
            }
            KeyCode::Enter | KeyCode::Char(' ') => reader.fold(),
            KeyCode::Tab => self.jump(Jump::Entry, true),
            KeyCode::BackTab => self.jump(Jump::Entry, false),
            KeyCode::Char(letter) => return self.reading_letter(letter),
            _ => {}
        }
        None
    }

    fn reading_letter(&mut self, letter: char) -> Option<Effect> {
        match letter {
            'o' => self.reader.as_mut()?.fold_all(Group::Tools),
            't' => self.reader.as_mut()?.fold_all(Group::Thoughts),
            '/' => self.typing = true,
            'r' => return self.name().map(Effect::Resume),
            'e' => return self.name().map(|name| self.export(name)),
            letter => {
                // The same letter goes back when it is a capital.
                let to = jump(letter.to_ascii_lowercase())?;
                self.jump(to, letter.is_lowercase());
            }
        }
        None
    }

    /// A key while a text is typed that is to be found in the session.
    fn finding_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.find.clear();
                self.look_for();
            }
            _ => {
                if self.find.key(key) {
                    self.look_for();
                }
            }
        }
    }

    /// Looks for what was typed, from the cursor on.
    pub(super) fn look_for(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        reader.find = finder::in_session(self.find.text()).ok();
        if reader.find.is_some() && !reader.first_match() {
            self.notice = Some("no match".to_owned());
        }
    }

    fn jump(&mut self, to: Jump, forward: bool) {
        let Some(reader) = &mut self.reader else { return };
        if !reader.jump(to, forward) {
            let which = if forward { "no further" } else { "no earlier" };
            self.notice = Some(format!("{which} {}", to.noun()));
        }
    }

    fn name(&self) -> Option<Name> {
        let session = &self.reader.as_ref()?.transcript.session;
        Some(Name { agent: session.agent.clone(), id: session.id.clone() })
    }
}

/// What a letter jumps to.
fn jump(letter: char) -> Option<Jump> {
    Some(match letter {
        'x' => Jump::Error,
        'c' => Jump::Compaction,
        'a' => Jump::Subagent,
        'u' => Jump::Prompt,
        'n' => Jump::Match,
        _ => return None,
    })
}

/// Moves in the session, if the key says so.
fn moves(reader: &mut Reader, key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('d') if control => reader.page(true, 2),
        KeyCode::Char('u') if control => reader.page(false, 2),
        KeyCode::Char('f') if control => reader.page(true, 1),
        KeyCode::Char('b') if control => reader.page(false, 1),
        KeyCode::Down | KeyCode::Char('j') => reader.step(1),
        KeyCode::Up | KeyCode::Char('k') => reader.step(-1),
        KeyCode::PageDown => reader.page(true, 1),
        KeyCode::PageUp => reader.page(false, 1),
        KeyCode::Home | KeyCode::Char('g') => reader.edge(false),
        KeyCode::End | KeyCode::Char('G') => reader.edge(true),
        _ => return false,
    }
    true
}
