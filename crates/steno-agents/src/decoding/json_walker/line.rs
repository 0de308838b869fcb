//! Walks over JSON Lines of any length. No line is held in memory, and a bad line affects only itself.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use super::{JsonWalker, fill_input, split_problem};
use steno_model::durable::{FileError, OnPath};
use steno_model::problem::Problem;
use steno_vault::SessionFile;

/// The lines of a file.
pub(crate) struct JsonLineWalker<'s> {
    source: &'s SessionFile,
    line: SingleLineReader,
    /// Byte range of the last line, with its ending.
    pub(crate) range: Range<u64>,
    /// Its number, starting with 1.
    pub(crate) number: u64,
}

impl<'s> JsonLineWalker<'s> {
    pub(crate) fn open(source: &'s SessionFile) -> Result<Self, FileError> {
        Ok(Self {
            source,
            line: SingleLineReader { input: source.open()? },
            range: 0..0,
            number: 0,
        })
    }

    /// Walks over the next non-blank line with `take`. The inner error says why the line is malformed. `None`
    /// at the end.
    pub(crate) fn walk_next<T>(
        &mut self,
        mut take: impl FnMut(&mut JsonWalker<&mut SingleLineReader>) -> io::Result<T>,
    ) -> Result<Option<Result<T, Problem>>, FileError> {
        let path = self.source.path();
        loop {
            if fill_input(&mut self.line.input).on("read", path)?.is_empty() {
                return Ok(None);
            }
            self.number += 1;
            let mut walk = JsonWalker::new(&mut self.line, self.range.end);
            let taken = match walk.peek().on("read", path)? {
                None => None,
                Some(_) => {
                    let taken = take(&mut walk).and_then(|taken| walk.expect_end().map(|()| taken));
                    Some(split_problem(taken, path)?)
                }
            };
            self.range = self.range.end..skip_rest(walk).on("read", path)?;
            if let Some(taken) = taken {
                let line = Some(self.number);
                return Ok(Some(taken.map_err(|problem| Problem { line, ..problem })));
            }
        }
    }
}

/// Whether the first line is a complete JSON value.
pub(crate) fn starts_with_whole_line(source: &SessionFile) -> Result<bool, FileError> {
    let mut walk = JsonWalker::new(SingleLineReader { input: source.open()? }, 0);
    let passed = walk.skip_value().and_then(|()| walk.expect_end());
    split_problem(passed, source.path()).map(|passed| passed.is_ok())
}

/// Skips the rest of a line with its ending, and returns the offset after it.
fn skip_rest(mut walk: JsonWalker<&mut SingleLineReader>) -> io::Result<u64> {
    loop {
        let count = fill_input(&mut walk.input)?.len();
        walk.advance(count);
        if count == 0 {
            break;
        }
    }
    let ending = usize::from(!fill_input(&mut walk.input.input)?.is_empty());
    walk.input.input.consume(ending);
    Ok(walk.offset + ending as u64)
}

/// A reader that ends at the end of the line.
pub(crate) struct SingleLineReader {
    input: Box<dyn BufRead>,
}

impl Read for SingleLineReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut buffered = self.fill_buf()?;
        let count = buffered.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for SingleLineReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let buffered = self.input.fill_buf()?;
        let end = memchr::memchr(b'\n', buffered).unwrap_or(buffered.len());
        Ok(&buffered[..end])
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
    }
}
