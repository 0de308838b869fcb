//! The head file of a live log: how much of the log is known to be on disk.
//!
//! A line is appended after each sync of the log. The head file itself is not synced, so it may lag behind the log
//! but never runs ahead. It is cleared at [`MAX_SIZE`]. Because it is append-only, a write interrupted by a power
//! failure leaves a torn last line or zeros, which a flipped bit cannot imitate.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::frame::damaged;
use super::live::Sum;
use super::log_scan::has_hole;
use crate::durable::{self, FileError, OnPath};

/// The size at which the file is cleared. Clearing costs one sync per about five hundred lines.
const MAX_SIZE: u64 = 64 << 10;

/// The size of every line.
const LINE_SIZE: usize = 116;

/// A position in a log up to which it is known to be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The log's length.
    pub(crate) length: u64,
    /// The hash of the last line before this position.
    pub(crate) sum: Sum,
}

/// The content of a head file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadFile {
    /// Its last complete line.
    pub(crate) last: Option<Head>,
    /// Whether an interrupted write left bytes after it.
    pub(crate) is_interrupted: bool,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    check: String,
    sum: String,
    length: u64,
}

impl Head {
    /// Opens or creates a head file.
    pub(crate) fn open(path: &Path) -> Result<File, FileError> {
        let mut options = durable::private_options();
        options.create(true).read(true).append(true).open(path).on("open", path)
    }

    /// Appends a line.
    pub(crate) fn append_to(&self, mut file: &File) -> io::Result<()> {
        if file.metadata()?.len() >= MAX_SIZE {
            Self::clear(file)?;
        }
        file.write_all(self.print().as_bytes())
    }

    /// Clears and syncs the file. Without the sync, a later line could mix with an old one.
    pub(crate) fn clear(file: &File) -> io::Result<()> {
        file.set_len(0)?;
        file.sync_data()
    }

    fn print(&self) -> String {
        let (sum, length) = (self.sum.as_str(), self.length);
        let check = self.sum.next(&length.to_le_bytes());
        format!("{{\"check\":\"{}\",\"sum\":\"{sum}\",\"length\":{length:>20}}}\n", check.as_str())
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let wire: Wire = serde_json::from_slice(line).ok()?;
        let head = Head { length: wire.length, sum: Sum::parse(&wire.sum)? };
        (head.print().as_bytes() == line).then_some(head)
    }
}

impl HeadFile {
    /// Reads a head file. A missing file is empty.
    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        match File::open(path) {
            Ok(mut file) => Self::read_from(&mut file).on("read", path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).on("read", path),
        }
    }

    /// Reads an open head file. Fails if it was changed; an interrupted write is not an error.
    pub(crate) fn read_from(file: &mut File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.take(2 * MAX_SIZE).read_to_end(&mut bytes)?;
        let mut read = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match Head::parse(line) {
                Some(head) => read.last = Some(head),
                None if is_cut_short(line) || has_hole(line) => read.is_interrupted = true,
                None if Self::after_half_a_line(line).is_some() => {
                    read = Self { last: Self::after_half_a_line(line), is_interrupted: true };
                }
                None => return Err(damaged("damaged head file")),
            }
        }
        Ok(read)
    }
}

impl HeadFile {
    /// Parses a line that follows a torn one without a newline between them. Two complete lines with a changed
    /// newline are longer.
    fn after_half_a_line(line: &[u8]) -> Option<Head> {
        let half =
            line.len().checked_sub(LINE_SIZE).filter(|half| (1..LINE_SIZE).contains(half))?;
        Head::parse(&line[half..])
    }
}

/// Whether bytes are the beginning of a line, followed by nothing or only by zeros.
fn is_cut_short(bytes: &[u8]) -> bool {
    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    !bytes.ends_with(b"\n") && written < LINE_SIZE
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::live::FIRST_SUM;
    use super::*;

    fn file_of(heads: u64) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("head");
        let file = Head::open(&path).unwrap();
        for length in 0..heads {
            Head { length, sum: FIRST_SUM.next(&length.to_le_bytes()) }.append_to(&file).unwrap();
        }
        (dir, path)
    }

    #[test]
    fn the_last_line_counts_and_the_file_stays_small() {
        assert_eq!(Head { length: u64::MAX, sum: FIRST_SUM }.print().len(), LINE_SIZE);
        for heads in [1, 2, 30, 36, 37, 38, 200] {
            let (_dir, path) = file_of(heads);
            let read = HeadFile::read(&path).unwrap();
            assert_eq!(read.last.unwrap().length, heads - 1);
            assert!(!read.is_interrupted);
            assert!(fs::metadata(&path).unwrap().len() < MAX_SIZE + LINE_SIZE as u64);
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
                let read = HeadFile::read(&path).unwrap_or_else(|error| panic!("{cut}: {error:?}"));
                assert_eq!(read.last.unwrap().length, 1, "{cut}");
            }
        }
    }

    #[test]
    fn a_line_after_a_half_written_one_counts() {
        let (_dir, path) = file_of(3);
        let whole = fs::read(&path).unwrap();
        for cut in 1..LINE_SIZE {
            let state = [&whole[..LINE_SIZE * 2 - cut], &whole[LINE_SIZE * 2..]].concat();
            fs::write(&path, &state).unwrap();
            let read = HeadFile::read(&path).unwrap_or_else(|error| panic!("{cut}: {error:?}"));
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
            assert!(HeadFile::read(&path).is_err(), "bit {bit}");
        }
    }
}
