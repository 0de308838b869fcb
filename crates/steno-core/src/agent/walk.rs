//! Walks over JSON of any size and parses only the values that a caller requests.
//!
//! The walker looks only at quotes, brackets and commas. Other errors in a value show when it is parsed.

mod course;
mod line;
mod parts;

pub(crate) use self::line::{LineWalks, OneLine, begins_with_whole_line};
pub(crate) use self::parts::Parts;

use std::io::{self, BufRead};
use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;

use self::course::Course;
use super::repair;
use crate::durable::{FileError, OnPath};
use crate::lines::LINE_LIMIT;
use crate::problem::Problem;
use steno_vault::Source;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A forward-only position in JSON input.
pub(crate) struct Walk<R> {
    input: R,
    at: u64,
    /// Longest value to parse, in bytes.
    limit: usize,
}

/// Processes a value. It must consume the value.
type Step<'a, R> = &'a mut dyn FnMut(&mut Walk<R>) -> io::Result<()>;

/// Processes the value of a field, given its name.
type FieldStep<'a, R> = &'a mut dyn FnMut(&mut Walk<R>, &str) -> io::Result<()>;

impl Walk<Box<dyn BufRead>> {
    /// Walks over the document in `source`. The inner error says why it is malformed.
    pub(crate) fn over(
        source: &Source,
        step: Step<'_, Box<dyn BufRead>>,
    ) -> Result<Result<(), Problem>, FileError> {
        let mut walk = Walk::new(source.open()?, 0);
        judged(step(&mut walk).and_then(|()| walk.end()), source.path())
    }

    /// Walks again over a document that was well-formed before.
    pub(crate) fn again(
        source: &Source,
        step: Step<'_, Box<dyn BufRead>>,
    ) -> Result<(), FileError> {
        let passed = Self::over(source, step)?;
        passed.map_err(|problem| malformed(problem.reason)).on("read", source.path())
    }
}

impl<R: BufRead> Walk<R> {
    /// Starts at `input`. `at` is the file offset of its first byte.
    pub(crate) fn new(input: R, at: u64) -> Self {
        Self { input, at, limit: LINE_LIMIT }
    }

    /// The first byte of the next value. `None` at the end.
    pub(crate) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffered = filled(&mut self.input)?;
            let mark = if self.at == 0 && buffered.starts_with(BYTE_ORDER_MARK) { 3 } else { 0 };
            let blank =
                buffered[mark..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let (count, next) = (mark + blank, buffered.get(mark + blank).copied());
            let is_ended = buffered.is_empty();
            self.advance(count);
            if next.is_some() || is_ended {
                return Ok(next);
            }
        }
    }

    /// The offset of the next value.
    pub(crate) fn start(&mut self) -> io::Result<u64> {
        self.peek().map(|_| self.at)
    }

    /// The current offset.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Passes each field of the next object to `step`. Any other value is skipped.
    pub(crate) fn fields(&mut self, step: FieldStep<'_, R>) -> io::Result<()> {
        self.inside([b'{', b'}'], &mut |walk| {
            let name: String = walk.value()?.map_err(malformed)?;
            if walk.peek()? != Some(b':') {
                return Err(walk.lost());
            }
            walk.advance(1);
            step(walk, &name)
        })
    }

    /// Passes each item of the next list to `step`. Any other value is skipped.
    pub(crate) fn items(&mut self, step: Step<'_, R>) -> io::Result<()> {
        self.inside([b'[', b']'], step)
    }

    fn inside(&mut self, [open, close]: [u8; 2], step: Step<'_, R>) -> io::Result<()> {
        if self.peek()? != Some(open) {
            return self.pass();
        }
        self.advance(1);
        if self.peek()? == Some(close) {
            self.advance(1);
            return Ok(());
        }
        loop {
            step(self)?;
            match self.peek()? {
                Some(b',') => self.advance(1),
                Some(end) if end == close => break,
                _ => return Err(self.lost()),
            }
        }
        self.advance(1);
        Ok(())
    }

    /// Skips the next value.
    pub(crate) fn pass(&mut self) -> io::Result<()> {
        self.course(&mut |_| {})?;
        Ok(())
    }

    /// Skips the next value and returns its byte range.
    pub(crate) fn place(&mut self) -> io::Result<Range<u64>> {
        self.course(&mut |_| {})
    }

    /// Parses the next value. The inner error says why it cannot be parsed.
    pub(crate) fn value<T: DeserializeOwned>(&mut self) -> io::Result<Result<T, String>> {
        let (mut bytes, limit) = (Vec::new(), self.limit);
        let range = self.course(&mut |piece| {
            let room = limit - bytes.len();
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        })?;
        if range.end - range.start > limit as u64 {
            return Ok(Err(format!("longer than {limit} bytes")));
        }
        Ok(repair::parse(&bytes))
    }

    /// Passes the bytes of the next value to `take`, in chunks.
    fn course(&mut self, take: &mut dyn FnMut(&[u8])) -> io::Result<Range<u64>> {
        self.peek()?;
        let (start, mut course) = (self.at, Course::default());
        loop {
            let buffered = filled(&mut self.input)?;
            let (count, is_ended) = match buffered {
                [] => (0, course.is_scalar()),
                buffered => course.over(buffered),
            };
            take(&buffered[..count]);
            let is_stuck = count == 0 && (buffered.is_empty() || self.at == start);
            self.advance(count);
            if is_ended && self.at > start {
                return Ok(start..self.at);
            }
            if is_stuck {
                return Err(self.lost());
            }
        }
    }

    /// Checks that nothing but white space follows.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(self.lost()),
        }
    }

    fn advance(&mut self, count: usize) {
        self.input.consume(count);
        self.at += count as u64;
    }

    fn lost(&mut self) -> io::Error {
        let at = self.at;
        match self.peek() {
            Ok(None) => malformed(format!("not JSON: cut off at byte {at}")),
            _ => malformed(format!("not JSON: unexpected character at byte {at}")),
        }
    }
}

/// The buffered input. Empty at the end.
fn filled(input: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(error) = input.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    input.fill_buf()
}

/// An error for bytes read successfully but malformed.
pub(crate) fn malformed(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Separates a malformed document, which is a problem, from a failure to read the file.
pub(crate) fn judged<T>(
    result: io::Result<T>,
    path: &Path,
) -> Result<Result<T, Problem>, FileError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Ok(Err(Problem::of(path, error)))
        }
        result => result.on("read", path).map(Ok),
    }
}

#[cfg(test)]
mod tests;
