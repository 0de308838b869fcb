//! Reads byte ranges of a file in any order.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use steno_model::durable::{FileError, OnPath};
use steno_vault::SessionFile;

/// Gap, in bytes, to read over instead of reopening the file.
const MAX_SKIPPED_BYTES: u64 = 256 << 10;

/// A file to read byte ranges from. Ascending ranges share one open file.
pub(crate) struct RangeReader<'s> {
    source: &'s SessionFile,
    input: Option<Box<dyn BufRead>>,
    offset: u64,
}

impl<'s> RangeReader<'s> {
    pub(crate) fn new(source: &'s SessionFile) -> Self {
        Self { source, input: None, offset: 0 }
    }

    /// The bytes of `range`. Fewer if the file has become shorter.
    pub(crate) fn read(&mut self, range: &Range<u64>) -> Result<Vec<u8>, FileError> {
        let ahead =
            range.start.checked_sub(self.offset).filter(|ahead| *ahead <= MAX_SKIPPED_BYTES);
        let mut input = match (self.input.take(), ahead) {
            (Some(mut input), Some(ahead)) => {
                let passed = io::copy(&mut input.by_ref().take(ahead), &mut io::sink());
                passed.on("read", self.source.path())?;
                input
            }
            _ => self.source.open_at(range.start)?,
        };
        let mut bytes = Vec::new();
        let part = input.by_ref().take(range.end - range.start).read_to_end(&mut bytes);
        part.on("read", self.source.path())?;
        (self.input, self.offset) = (Some(input), range.end);
        Ok(bytes)
    }
}
