//! Walks over JSON of any size and parses only the values that a caller requests.
//!
//! The walker looks only at quotes, brackets and commas. Other errors in a value show when it is parsed.
//!
//! It exists to bound memory: reading a document of 90 MB record by record takes 10 MB, 0.05 of what `serde_json` takes
//! for the whole document, and 1.4 of its CPU time, because the document is walked twice (`json_passes` in the benches of
//! `steno-store`).

mod line;
mod range_reader;
mod value_scanner;

pub(crate) use self::line::{JsonLineWalker, SingleLineReader, starts_with_whole_line};
pub(crate) use self::range_reader::RangeReader;

use std::io::{self, BufRead};
use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;

use self::value_scanner::JsonValueScanner;
use crate::decoding::json_repair;
use steno_model::durable::{FileError, OnPath};
use steno_model::lines::MAX_LINE_LENGTH;
use steno_model::problem::Problem;
use steno_vault::SessionFile;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A forward-only position in JSON input.
pub struct JsonWalker<R> {
    input: R,
    offset: u64,
    /// Longest value to parse, in bytes.
    max_value_bytes: usize,
}

/// Processes a value. It must consume the value.
type WalkStep<'a, R> = &'a mut dyn FnMut(&mut JsonWalker<R>) -> io::Result<()>;

/// Processes the value of a field, given its name.
pub(crate) type FieldStep<'a, R> = &'a mut dyn FnMut(&mut JsonWalker<R>, &str) -> io::Result<()>;

impl JsonWalker<Box<dyn BufRead>> {
    /// Walks over the document in `source`. The inner error says why it is malformed.
    pub fn walk_document(
        source: &SessionFile,
        step: WalkStep<'_, Box<dyn BufRead>>,
    ) -> Result<Result<(), Problem>, FileError> {
        let mut walk = JsonWalker::new(source.open()?, 0);
        split_problem(step(&mut walk).and_then(|()| walk.expect_end()), source.path())
    }

    /// Walks again over a document that was well-formed before.
    pub fn rewalk_document(
        source: &SessionFile,
        step: WalkStep<'_, Box<dyn BufRead>>,
    ) -> Result<(), FileError> {
        let passed = Self::walk_document(source, step)?;
        passed.map_err(|problem| malformed_error(problem.reason)).on("read", source.path())
    }
}

impl<R: BufRead> JsonWalker<R> {
    /// Starts at `input`. `at` is the file offset of its first byte.
    pub(crate) fn new(input: R, at: u64) -> Self {
        Self { input, offset: at, max_value_bytes: MAX_LINE_LENGTH }
    }

    /// The first byte of the next value. `None` at the end.
    pub fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffered = fill_input(&mut self.input)?;
            let mark =
                if self.offset == 0 && buffered.starts_with(BYTE_ORDER_MARK) { 3 } else { 0 };
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
    pub(crate) fn next_start(&mut self) -> io::Result<u64> {
        self.peek().map(|_| self.offset)
    }

    /// The current offset.
    pub(crate) fn position(&self) -> u64 {
        self.offset
    }

    /// Passes each field of the next object to `step`. Any other value is skipped.
    pub fn for_each_field(&mut self, step: FieldStep<'_, R>) -> io::Result<()> {
        self.for_each_member([b'{', b'}'], &mut |walk| {
            let name: String = walk.read_value()?.map_err(malformed_error)?;
            if walk.peek()? != Some(b':') {
                return Err(walk.syntax_error());
            }
            walk.advance(1);
            step(walk, &name)
        })
    }

    /// Passes each item of the next list to `step`. Any other value is skipped.
    pub fn for_each_item(&mut self, step: WalkStep<'_, R>) -> io::Result<()> {
        self.for_each_member([b'[', b']'], step)
    }

    fn for_each_member(&mut self, [open, close]: [u8; 2], step: WalkStep<'_, R>) -> io::Result<()> {
        if self.peek()? != Some(open) {
            return self.skip_value();
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
                _ => return Err(self.syntax_error()),
            }
        }
        self.advance(1);
        Ok(())
    }

    /// Skips the next value.
    pub fn skip_value(&mut self) -> io::Result<()> {
        self.scan_value(&mut |_| {})?;
        Ok(())
    }

    /// Skips the next value and returns its byte range.
    pub(crate) fn value_range(&mut self) -> io::Result<Range<u64>> {
        self.scan_value(&mut |_| {})
    }

    /// Parses the next value. The inner error says why it cannot be parsed.
    pub fn read_value<T: DeserializeOwned>(&mut self) -> io::Result<Result<T, String>> {
        let (mut bytes, limit) = (Vec::new(), self.max_value_bytes);
        let range = self.scan_value(&mut |piece| {
            let room = limit - bytes.len();
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        })?;
        if range.end - range.start > limit as u64 {
            return Ok(Err(format!("longer than {limit} bytes")));
        }
        Ok(json_repair::parse_lenient(&bytes))
    }

    /// Passes the bytes of the next value to `take`, in chunks.
    fn scan_value(&mut self, take: &mut dyn FnMut(&[u8])) -> io::Result<Range<u64>> {
        self.peek()?;
        let (start, mut course) = (self.offset, JsonValueScanner::default());
        loop {
            let buffered = fill_input(&mut self.input)?;
            let (count, is_ended) = match buffered {
                [] => (0, course.is_scalar()),
                buffered => course.scan_bytes(buffered),
            };
            take(&buffered[..count]);
            let is_stuck = count == 0 && (buffered.is_empty() || self.offset == start);
            self.advance(count);
            if is_ended && self.offset > start {
                return Ok(start..self.offset);
            }
            if is_stuck {
                return Err(self.syntax_error());
            }
        }
    }

    /// Checks that nothing but white space follows.
    pub(crate) fn expect_end(&mut self) -> io::Result<()> {
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(self.syntax_error()),
        }
    }

    fn advance(&mut self, count: usize) {
        self.input.consume(count);
        self.offset += count as u64;
    }

    fn syntax_error(&mut self) -> io::Error {
        let at = self.offset;
        match self.peek() {
            Ok(None) => malformed_error(format!("not JSON: cut off at byte {at}")),
            _ => malformed_error(format!("not JSON: unexpected character at byte {at}")),
        }
    }
}

/// The buffered input. Empty at the end.
fn fill_input(input: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(error) = input.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    input.fill_buf()
}

/// An error for bytes read successfully but malformed.
pub fn malformed_error(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Separates a malformed document, which is a problem, from a failure to read the file.
pub(crate) fn split_problem<T>(
    result: io::Result<T>,
    path: &Path,
) -> Result<Result<T, Problem>, FileError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Ok(Err(Problem::for_file(path, error)))
        }
        result => result.on("read", path).map(Ok),
    }
}

#[cfg(test)]
mod tests;
