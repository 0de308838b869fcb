//! A line that is being typed.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Text and the place in it where the next letter goes.
#[derive(Debug, Default)]
pub(crate) struct Line {
    text: String,
    at: usize,
}

impl Line {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.at = 0;
    }

    /// Columns before the cursor.
    pub(crate) fn column(&self) -> usize {
        self.text[..self.at].width()
    }

    /// Puts text in; of several lines only the first, and nothing that a terminal would obey.
    pub(crate) fn insert(&mut self, text: &str) {
        let line = text.trim_start().lines().next().unwrap_or_default();
        let plain: String = line.chars().filter(|c| !c.is_control()).collect();
        self.text.insert_str(self.at, &plain);
        self.at += plain.len();
    }

    /// Does what a key says; whether the text has changed.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let before = self.text.len();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.at = 0,
            KeyCode::Char('e') if control => self.at = self.text.len(),
            KeyCode::Char('u') if control => self.cut(0),
            KeyCode::Char('w') if control => self.cut(self.word()),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.text.insert(self.at, c);
                self.at += c.len_utf8();
            }
            KeyCode::Backspace => self.cut(self.before()),
            KeyCode::Delete => drop(self.text.drain(self.at..self.after())),
            KeyCode::Left => self.at = self.before(),
            KeyCode::Right => self.at = self.after(),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            _ => {}
        }
        self.text.len() != before
    }

    /// Removes what is between `from` and the cursor.
    fn cut(&mut self, from: usize) {
        self.text.drain(from..self.at);
        self.at = from;
    }

    fn before(&self) -> usize {
        let last = self.text[..self.at].graphemes(true).next_back();
        self.at - last.map_or(0, str::len)
    }

    fn after(&self) -> usize {
        let next = self.text[self.at..].graphemes(true).next();
        self.at + next.map_or(0, str::len)
    }

    /// Where the word before the cursor begins.
    fn word(&self) -> usize {
        let trimmed = self.text[..self.at].trim_end();
        trimmed
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + trimmed[at..].chars().next().map_or(0, char::len_utf8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(line: &mut Line, code: KeyCode) {
        line.key(KeyEvent::new(code, KeyModifiers::NONE));
    }

    fn control(line: &mut Line, c: char) {
        line.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    }

    #[test]
    fn letters_go_in_and_out_as_they_are_seen() {
        let mut line = Line::default();
        line.insert("né 日本 👩‍👩‍👧");
        assert_eq!(line.column(), 10);
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
        let mut line = Line::default();
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
