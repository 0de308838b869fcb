//! The small file beside a live log: how much of it was last known to be on disk.
//!
//! It is written after the log was synced and never synced itself, so it may lag behind, but never run ahead.

use std::fs::File;
#[cfg(not(unix))]
use std::io::Write;
use std::io::{self, Read, Seek};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::frame::damaged;
use super::live::Sum;
use crate::durable::{self, FileError, OnPath};

/// What is known to be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The log's length.
    pub(crate) length: u64,
    /// The sum of the line that ends there.
    pub(crate) sum: Sum,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    check: String,
    sum: String,
    length: u64,
}

impl Head {
    /// Reads a head; one that is not there or still empty tells nothing.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, FileError> {
        match File::open(path) {
            Ok(mut file) => Self::read_from(&mut file).on("read", path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).on("read", path),
        }
    }

    /// Opens or makes the file of a head.
    pub(crate) fn open(path: &Path) -> Result<File, FileError> {
        let mut options = durable::private_options();
        options.create(true).truncate(false).read(true).write(true).open(path).on("open", path)
    }

    /// Writes the head, unless another process has already noted a greater length.
    pub(crate) fn advance(&self, file: &mut File) -> io::Result<()> {
        if let Ok(Some(known)) = Self::read_from(file)
            && known.length >= self.length
        {
            return Ok(());
        }
        self.replace(file)
    }

    /// Writes the head, whatever was noted before.
    pub(crate) fn replace(&self, file: &mut File) -> io::Result<()> {
        let text = self.print();
        // One call instead of two: this is done once per sync.
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_all_at(file, text.as_bytes(), 0);
        #[cfg(not(unix))]
        {
            file.rewind()?;
            file.write_all(text.as_bytes())
        }
    }

    /// Reads an open head.
    pub(crate) fn read_from(file: &mut File) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        Self::parse(&bytes).ok_or_else(|| damaged("damaged head")).map(Some)
    }

    /// One line of constant width, so that a newer head covers an older one whole.
    fn print(&self) -> String {
        let (sum, length) = (self.sum.as_str(), self.length);
        let check = self.sum.next(&length.to_le_bytes());
        format!("{{\"check\":\"{}\",\"sum\":\"{sum}\",\"length\":{length:>20}}}\n", check.as_str())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let wire: Wire = serde_json::from_slice(bytes).ok()?;
        let head = Head { length: wire.length, sum: Sum::parse(&wire.sum)? };
        (head.print().as_bytes() == bytes).then_some(head)
    }
}
