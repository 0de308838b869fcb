//! The head file of a live log: how much of the log is known to be on disk.
//!
//! A line is appended after each sync of the log. The head file itself is not synced, so it may lag behind the log
//! but never runs ahead. It is cleared at [`MAX_HEAD_FILE_SIZE`]. Because it is append-only, a write interrupted by a
//! power failure leaves a torn last line or zeros, which a flipped bit cannot imitate.

use std::io::{self, Read, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::frame::damage_error;
use super::log_scan::has_zero_bytes;
use crate::line_hash::LineHash;
use steno_cipher::{StoreFile, StoreOptions, store_fs};
use steno_model::durable::{FileError, OnPath};

/// The size at which the file is cleared. Clearing costs one sync per about five hundred lines.
const MAX_HEAD_FILE_SIZE: u64 = 64 << 10;

/// The size of every line.
const HEAD_LINE_SIZE: usize = 116;

/// A position in a log up to which it is known to be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogHead {
    /// The log's length.
    pub(crate) length: u64,
    /// The hash of the last line before this position.
    pub(crate) line_hash: LineHash,
}

/// The content of a head file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogHeadFile {
    /// Its last complete line.
    pub(crate) last: Option<LogHead>,
    /// Whether an interrupted write left bytes after it.
    pub(crate) is_interrupted: bool,
}

#[derive(Serialize, Deserialize)]
struct HeadLine {
    check: String,
    sum: String,
    length: u64,
}

impl LogHead {
    /// Opens or creates a head file.
    pub(crate) fn open_file(path: &Path) -> Result<StoreFile, FileError> {
        StoreOptions::appending().open(path).on("open", path)
    }

    /// Appends a line.
    pub(crate) fn append_to(&self, mut file: &StoreFile) -> io::Result<()> {
        if file.length()? >= MAX_HEAD_FILE_SIZE {
            Self::clear_file(file)?;
        }
        file.write_all(self.format_line().as_bytes())
    }

    /// Clears and syncs the file. Without the sync, a later line could mix with an old one.
    pub(crate) fn clear_file(file: &StoreFile) -> io::Result<()> {
        file.set_len(0)?;
        file.sync_data()
    }

    fn format_line(&self) -> String {
        let (sum, length) = (self.line_hash.as_str(), self.length);
        let check = self.line_hash.next_hash(&length.to_le_bytes());
        format!("{{\"check\":\"{}\",\"sum\":\"{sum}\",\"length\":{length:>20}}}\n", check.as_str())
    }

    fn parse_line(line: &[u8]) -> Option<Self> {
        let wire: HeadLine = serde_json::from_slice(line).ok()?;
        let head = LogHead { length: wire.length, line_hash: LineHash::parse(&wire.sum)? };
        (head.format_line().as_bytes() == line).then_some(head)
    }
}

impl LogHeadFile {
    /// Reads a head file. A missing file is empty.
    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        match store_fs::open(path) {
            Ok(mut file) => Self::read_from(&mut file).on("read", path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).on("read", path),
        }
    }

    /// Reads an open head file. Fails if it was changed; an interrupted write is not an error.
    pub(crate) fn read_from(file: &mut StoreFile) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.take(2 * MAX_HEAD_FILE_SIZE).read_to_end(&mut bytes)?;
        let mut read = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match LogHead::parse_line(line) {
                Some(head) => read.last = Some(head),
                None if is_torn_line(line) || has_zero_bytes(line) => read.is_interrupted = true,
                None if Self::parse_after_torn_line(line).is_some() => {
                    read = Self { last: Self::parse_after_torn_line(line), is_interrupted: true };
                }
                None => return Err(damage_error("damaged head file")),
            }
        }
        Ok(read)
    }
}

impl LogHeadFile {
    /// Parses a line that follows a torn one without a newline between them. Two complete lines with a changed
    /// newline are longer.
    fn parse_after_torn_line(line: &[u8]) -> Option<LogHead> {
        let half = line
            .len()
            .checked_sub(HEAD_LINE_SIZE)
            .filter(|half| (1..HEAD_LINE_SIZE).contains(half))?;
        LogHead::parse_line(&line[half..])
    }
}

/// Whether bytes are the beginning of a line, followed by nothing or only by zeros.
fn is_torn_line(bytes: &[u8]) -> bool {
    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    !bytes.ends_with(b"\n") && written < HEAD_LINE_SIZE
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::line_hash::FIRST_LINE_HASH;

    fn file_of(heads: u64) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("head");
        let file = LogHead::open_file(&path).unwrap();
        for length in 0..heads {
            LogHead { length, line_hash: FIRST_LINE_HASH.next_hash(&length.to_le_bytes()) }
                .append_to(&file)
                .unwrap();
        }
        (dir, path)
    }

    #[test]
    fn the_last_line_counts_and_the_file_stays_small() {
        assert_eq!(
            LogHead { length: u64::MAX, line_hash: FIRST_LINE_HASH }.format_line().len(),
            HEAD_LINE_SIZE
        );
        for heads in [1, 2, 30, 36, 37, 38, 200] {
            let (_dir, path) = file_of(heads);
            let read = LogHeadFile::read(&path).unwrap();
            assert_eq!(read.last.unwrap().length, heads - 1);
            assert!(!read.is_interrupted);
            assert!(
                fs::metadata(&path).unwrap().len() < MAX_HEAD_FILE_SIZE + HEAD_LINE_SIZE as u64
            );
        }
    }

    #[test]
    fn an_interrupted_write_is_not_damage() {
        let (_dir, path) = file_of(3);
        let whole = fs::read(&path).unwrap();
        let line = whole.len() / 3;
        for cut in 1..line {
            let kept = &whole[..whole.len() - cut];
            for state in
                [kept.to_vec(), [kept, &vec![0; cut]].concat(), [kept, &[0; 4000]].concat()]
            {
                fs::write(&path, &state).unwrap();
                let read =
                    LogHeadFile::read(&path).unwrap_or_else(|error| panic!("{cut}: {error:?}"));
                assert_eq!(read.last.unwrap().length, 1, "{cut}");
            }
        }
    }

    #[test]
    fn a_line_after_a_half_written_one_counts() {
        let (_dir, path) = file_of(3);
        let whole = fs::read(&path).unwrap();
        for cut in 1..HEAD_LINE_SIZE {
            let state = [&whole[..HEAD_LINE_SIZE * 2 - cut], &whole[HEAD_LINE_SIZE * 2..]].concat();
            fs::write(&path, &state).unwrap();
            let read = LogHeadFile::read(&path).unwrap_or_else(|error| panic!("{cut}: {error:?}"));
            assert_eq!((read.last.unwrap().length, read.is_interrupted), (2, true), "{cut}");
        }
    }

    #[test]
    fn every_flipped_bit_is_damage() {
        let (_dir, path) = file_of(2);
        let whole = fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            assert!(LogHeadFile::read(&path).is_err(), "bit {bit}");
        }
    }
}
