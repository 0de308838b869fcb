//! Splits input into lines at `\n`, with a limit on the length of a line.
//!
//! Only the byte `\n` ends a line; text may contain U+2028 and similar characters.

use std::io::{self, BufRead};

/// Maximum length of a line for parsing it as a record.
pub const MAX_LINE_LENGTH: usize = 64 << 20;

/// From this length on, a line gets all the room that it may need.
const LARGE_LINE_LENGTH: usize = 4 << 20;

/// Makes room for a line of the maximum length, of which `line` has the beginning. A buffer that grows step by step leaves
/// its smaller predecessors in memory for a while; room that is never written to is none.
pub fn reserve_line(line: &mut Vec<u8>) {
    line.reserve_exact(MAX_LINE_LENGTH.saturating_sub(line.len()));
}

/// A line, or a piece of a line that exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub struct InputLine {
    /// Line number, counted from 1.
    pub number: u64,
    /// The bytes, without the `\n`.
    pub bytes: Vec<u8>,
    /// How the line or piece ended.
    pub end: LineEnd,
    /// Whether it continues a piece that the limit ended.
    pub is_continuation: bool,
}

/// A [`InputLine`] without its bytes.
pub struct LinePiece {
    /// Line number, counted from 1.
    pub number: u64,
    /// How the line or piece ended.
    pub end: LineEnd,
    is_continuation: bool,
}

impl LinePiece {
    /// Combines it with its bytes.
    pub fn with_bytes(self, bytes: Vec<u8>) -> InputLine {
        InputLine {
            number: self.number,
            bytes,
            end: self.end,
            is_continuation: self.is_continuation,
        }
    }
}

impl InputLine {
    /// Whether this is a complete line, not a piece.
    pub fn is_whole(&self) -> bool {
        !self.is_continuation && self.end != LineEnd::Limit
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
pub struct LineReader<R> {
    input: R,
    number: u64,
    limit: usize,
    is_within_line: bool,
}

impl<R: BufRead> LineReader<R> {
    /// Reads lines of at most [`MAX_LINE_LENGTH`] bytes.
    pub fn new(input: R) -> Self {
        Self::with_limit(input, MAX_LINE_LENGTH)
    }

    /// Reads lines, in pieces of at most `limit` bytes.
    pub fn with_limit(input: R, limit: usize) -> Self {
        Self { input, number: 0, limit, is_within_line: false }
    }

    /// The underlying input.
    pub fn get_ref(&self) -> &R {
        &self.input
    }

    /// Passes the next line to `take` without copying it; `None` if the input's buffer does not contain the whole
    /// line.
    pub fn take_in_place<T>(&mut self, take: impl FnOnce(u64, &[u8]) -> T) -> Option<T> {
        let buffer = self.input.fill_buf().ok().filter(|_| !self.is_within_line)?;
        let window = &buffer[..buffer.len().min(self.limit)];
        let length = memchr::memchr(b'\n', window)?;
        self.number += 1;
        let taken = take(self.number, &window[..length]);
        self.input.consume(length + 1);
        Some(taken)
    }

    /// Reads the next line or piece.
    pub fn read_line(&mut self) -> io::Result<Option<InputLine>> {
        let mut bytes = Vec::new();
        let piece = self.read_into(&mut bytes)?;
        Ok(piece.map(|piece| piece.with_bytes(bytes)))
    }

    /// Reads the next line or piece into the buffer `bytes`, which is cleared first.
    pub fn read_into(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<LinePiece>> {
        bytes.clear();
        let end = self.collect_line(bytes)?;
        if end == LineEnd::Input && bytes.is_empty() && !self.is_within_line {
            return Ok(None);
        }
        if !self.is_within_line {
            self.number += 1;
        }
        let continues = std::mem::replace(&mut self.is_within_line, end == LineEnd::Limit);
        Ok(Some(LinePiece { number: self.number, end, is_continuation: continues }))
    }

    fn collect_line(&mut self, bytes: &mut Vec<u8>) -> io::Result<LineEnd> {
        loop {
            let buffer = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if buffer.is_empty() {
                return Ok(LineEnd::Input);
            }
            if bytes.len() >= LARGE_LINE_LENGTH {
                reserve_line(bytes);
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

impl<R: BufRead> Iterator for LineReader<R> {
    type Item = io::Result<InputLine>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_line().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8], limit: usize) -> Vec<(u64, String, LineEnd)> {
        LineReader::with_limit(input, limit)
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
        let whole: Vec<bool> = LineReader::with_limit(b"abcdefg\nh\n".as_slice(), 3)
            .map(|line| line.unwrap().is_whole())
            .collect();
        assert_eq!(whole, [false, false, false, true]);
    }
}
