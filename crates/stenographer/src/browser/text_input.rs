//! A single-line text input.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Text with a cursor.
#[derive(Debug, Default)]
pub(crate) struct TextInput {
    text: String,
    cursor: usize,
}

impl TextInput {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
    }

    /// Returns the cursor's column.
    pub(crate) fn cursor_column(&self) -> usize {
        self.text[..self.cursor].width()
    }

    /// Inserts text: only the first line, without control characters.
    pub(crate) fn insert(&mut self, text: &str) {
        let line = text.trim_start().lines().next().unwrap_or_default();
        let plain: String = line.chars().filter(|c| !c.is_control()).collect();
        self.text.insert_str(self.cursor, &plain);
        self.cursor += plain.len();
    }

    /// Handles a key. Returns whether the text changed.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> bool {
        let before = self.text.len();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Char('u') if control => self.delete_back_to(0),
            KeyCode::Char('w') if control => self.delete_back_to(self.word_start()),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.text.insert(self.cursor, c);
                self.cursor += c.len_utf8();
            }
            KeyCode::Backspace => self.delete_back_to(self.previous_boundary()),
            KeyCode::Delete => drop(self.text.drain(self.cursor..self.next_boundary())),
            KeyCode::Left => self.cursor = self.previous_boundary(),
            KeyCode::Right => self.cursor = self.next_boundary(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => {}
        }
        self.text.len() != before
    }

    /// Deletes the text between `from` and the cursor.
    fn delete_back_to(&mut self, from: usize) {
        self.text.drain(from..self.cursor);
        self.cursor = from;
    }

    fn previous_boundary(&self) -> usize {
        let last = self.text[..self.cursor].graphemes(true).next_back();
        self.cursor - last.map_or(0, str::len)
    }

    fn next_boundary(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    /// Returns the start of the word before the cursor.
    fn word_start(&self) -> usize {
        let trimmed = self.text[..self.cursor].trim_end();
        trimmed
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + trimmed[at..].chars().next().map_or(0, char::len_utf8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(line: &mut TextInput, code: KeyCode) {
        line.handle_key(KeyEvent::new(code, KeyModifiers::NONE));
    }

    fn control(line: &mut TextInput, c: char) {
        line.handle_key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    }

    #[test]
    fn letters_are_inserted_and_deleted_by_grapheme() {
        let mut line = TextInput::default();
        line.insert("né 日本 👩‍👩‍👧");
        assert_eq!(line.cursor_column(), 10);
        press(&mut line, KeyCode::Backspace);
        press(&mut line, KeyCode::Left);
        press(&mut line, KeyCode::Backspace);
        assert_eq!(line.text(), "né 日 ");
        press(&mut line, KeyCode::Delete);
        assert_eq!(line.text(), "né 日");
        press(&mut line, KeyCode::Home);
        press(&mut line, KeyCode::Char('x'));
        assert_eq!(line.text(), "xné 日");
    }

    #[test]
    fn words_and_lines_are_cut() {
        let mut line = TextInput::default();
        line.insert("fix the\u{3000}login");
        control(&mut line, 'w');
        assert_eq!(line.text(), "fix the\u{3000}");
        control(&mut line, 'w');
        assert_eq!(line.text(), "fix ");
        control(&mut line, 'u');
        assert!(line.is_empty());
        line.insert("\npasted\x1b[2J\nmore");
        assert_eq!(line.text(), "pasted[2J");
    }
}
