//! Walks over JSON Lines of any length. No line is held in memory, and a bad line affects only itself.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use super::{Walk, filled, judged};
use crate::durable::{FileError, OnPath};
use crate::problem::Problem;
use steno_vault::Source;

/// The lines of a file.
pub(crate) struct LineWalks<'s> {
    source: &'s Source,
    line: OneLine,
    /// Byte range of the last line, with its ending.
    pub(crate) place: Range<u64>,
    /// Its number, starting with 1.
    pub(crate) number: u64,
}

impl<'s> LineWalks<'s> {
    pub(crate) fn of(source: &'s Source) -> Result<Self, FileError> {
        Ok(Self { source, line: OneLine { input: source.open()? }, place: 0..0, number: 0 })
    }

    /// Walks over the next non-blank line with `take`. The inner error says why the line is malformed. `None`
    /// at the end.
    pub(crate) fn next<T>(
        &mut self,
        mut take: impl FnMut(&mut Walk<&mut OneLine>) -> io::Result<T>,
    ) -> Result<Option<Result<T, Problem>>, FileError> {
        let path = self.source.path();
        loop {
            if filled(&mut self.line.input).on("read", path)?.is_empty() {
                return Ok(None);
            }
            self.number += 1;
            let mut walk = Walk::new(&mut self.line, self.place.end);
            let taken = match walk.peek().on("read", path)? {
                None => None,
                Some(_) => {
                    let taken = take(&mut walk).and_then(|taken| walk.end().map(|()| taken));
                    Some(judged(taken, path)?)
                }
            };
            self.place = self.place.end..rest(walk).on("read", path)?;
            if let Some(taken) = taken {
                let line = Some(self.number);
                return Ok(Some(taken.map_err(|problem| Problem { line, ..problem })));
            }
        }
    }
}

/// Whether the first line is a complete JSON value.
pub(crate) fn begins_with_whole_line(source: &Source) -> Result<bool, FileError> {
    let mut walk = Walk::new(OneLine { input: source.open()? }, 0);
    let passed = walk.pass().and_then(|()| walk.end());
    judged(passed, source.path()).map(|passed| passed.is_ok())
}

/// Skips the rest of a line with its ending, and returns the offset after it.
fn rest(mut walk: Walk<&mut OneLine>) -> io::Result<u64> {
    loop {
        let count = filled(&mut walk.input)?.len();
        walk.advance(count);
        if count == 0 {
            break;
        }
    }
    let ending = usize::from(!filled(&mut walk.input.input)?.is_empty());
    walk.input.input.consume(ending);
    Ok(walk.at + ending as u64)
}

/// A reader that ends at the end of the line.
pub(crate) struct OneLine {
    input: Box<dyn BufRead>,
}

impl Read for OneLine {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut buffered = self.fill_buf()?;
        let count = buffered.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for OneLine {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let buffered = self.input.fill_buf()?;
        let end = memchr::memchr(b'\n', buffered).unwrap_or(buffered.len());
        Ok(&buffered[..end])
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
    }
}
