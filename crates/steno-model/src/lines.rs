//! Splits input into lines at `\n`, with a limit on the length of a line.
//!
//! Only the byte `\n` ends a line; text may contain U+2028 and similar characters.

use std::io::{self, BufRead};

/// Maximum length of a line for parsing it as a record.
pub const LINE_LIMIT: usize = 64 << 20;

/// A line, or a piece of a line that exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Line number, counted from 1.
    pub number: u64,
    /// The bytes, without the `\n`.
    pub bytes: Vec<u8>,
    /// How the line or piece ended.
    pub end: LineEnd,
    /// Whether it continues a piece that the limit ended.
    pub continues: bool,
}

/// A [`Line`] without its bytes.
pub struct Piece {
    /// Line number, counted from 1.
    pub number: u64,
    /// How the line or piece ended.
    pub end: LineEnd,
    continues: bool,
}

impl Piece {
    /// Combines it with its bytes.
    pub fn with(self, bytes: Vec<u8>) -> Line {
        Line { number: self.number, bytes, end: self.end, continues: self.continues }
    }
}

impl Line {
    /// Whether this is a complete line, not a piece.
    pub fn is_whole(&self) -> bool {
        !self.continues && self.end != LineEnd::Limit
    }
}

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// `\n`.
    Newline,
    /// The end of the input.
    Input,
    /// The limit. The next piece belongs to the same line.
    Limit,
}

/// Reads a stream line by line.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    number: u64,
    limit: usize,
    within: bool,
}

impl<R: BufRead> Lines<R> {
    /// Reads lines of at most [`LINE_LIMIT`] bytes.
    pub fn new(input: R) -> Self {
        Self::with_limit(input, LINE_LIMIT)
    }

    /// Reads lines, in pieces of at most `limit` bytes.
    pub fn with_limit(input: R, limit: usize) -> Self {
        Self { input, number: 0, limit, within: false }
    }

    /// The underlying input.
    pub fn get_ref(&self) -> &R {
        &self.input
    }

    /// Passes the next line to `take` without copying it; `None` if the input's buffer does not contain the whole
    /// line.
    pub fn in_place<T>(&mut self, take: impl FnOnce(u64, &[u8]) -> T) -> Option<T> {
        let buffer = self.input.fill_buf().ok().filter(|_| !self.within)?;
        let window = &buffer[..buffer.len().min(self.limit)];
        let length = memchr::memchr(b'\n', window)?;
        self.number += 1;
        let taken = take(self.number, &window[..length]);
        self.input.consume(length + 1);
        Some(taken)
    }

    /// Reads the next line or piece.
    pub fn read(&mut self) -> io::Result<Option<Line>> {
        let mut bytes = Vec::new();
        let piece = self.read_into(&mut bytes)?;
        Ok(piece.map(|piece| piece.with(bytes)))
    }

    /// Reads the next line or piece into the buffer `bytes`, which is cleared first.
    pub fn read_into(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Piece>> {
        bytes.clear();
        let end = self.collect(bytes)?;
        if end == LineEnd::Input && bytes.is_empty() && !self.within {
            return Ok(None);
        }
        if !self.within {
            self.number += 1;
        }
        let continues = std::mem::replace(&mut self.within, end == LineEnd::Limit);
        Ok(Some(Piece { number: self.number, end, continues }))
    }

    fn collect(&mut self, bytes: &mut Vec<u8>) -> io::Result<LineEnd> {
        loop {
            let buffer = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if buffer.is_empty() {
                return Ok(LineEnd::Input);
            }
            let room = self.limit - bytes.len();
            let window = &buffer[..buffer.len().min(room)];
            if let Some(at) = memchr::memchr(b'\n', window) {
                bytes.extend_from_slice(&window[..at]);
                self.input.consume(at + 1);
                return Ok(LineEnd::Newline);
            }
            bytes.extend_from_slice(window);
            let taken = window.len();
            self.input.consume(taken);
            if bytes.len() == self.limit {
                return Ok(LineEnd::Limit);
            }
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8], limit: usize) -> Vec<(u64, String, LineEnd)> {
        Lines::with_limit(input, limit)
            .map(|line| line.unwrap())
            .map(|line| (line.number, String::from_utf8_lossy(&line.bytes).into_owned(), line.end))
            .collect()
    }

    #[test]
    fn only_the_newline_byte_ends_a_line() {
        let got = lines("a\u{2028}b\r\n\nlast".as_bytes(), 100);
        assert_eq!(
            got,
            [
                (1, "a\u{2028}b\r".to_owned(), LineEnd::Newline),
                (2, String::new(), LineEnd::Newline),
                (3, "last".to_owned(), LineEnd::Input)
            ]
        );
    }

    #[test]
    fn a_long_line_comes_in_pieces_under_one_number() {
        let got = lines(b"abcdefg\nh\n", 3);
        let numbers: Vec<_> =
            got.iter().map(|(number, text, _)| (*number, text.as_str())).collect();
        assert_eq!(numbers, [(1, "abc"), (1, "def"), (1, "g"), (2, "h")]);
        let whole: Vec<bool> = Lines::with_limit(b"abcdefg\nh\n".as_slice(), 3)
            .map(|line| line.unwrap().is_whole())
            .collect();
        assert_eq!(whole, [false, false, false, true]);
    }
}
