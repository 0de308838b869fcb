//! A file reader for callers that often need only the first bytes. It records read failures per thread.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use steno_model::durable::FileError;

/// Reads a small block first, for callers that check only the beginning, then large blocks.
///
/// Failures are recorded, because format detection may treat a read error as "not this format".
pub(super) struct FileReader {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    has_read: bool,
    position: usize,
    filled: usize,
}

impl FileReader {
    const FIRST_READ_SIZE: usize = 8 << 10;
    const READ_SIZE: usize = 128 << 10;

    pub(super) fn open_at(path: &Path, at: u64) -> io::Result<Self> {
        let open = || {
            let mut file = File::open(path)?;
            if at > 0 {
                file.seek(SeekFrom::Start(at))?;
            }
            Ok(file)
        };
        let file = open().inspect_err(|error| note_failure("open", path, error))?;
        let (path, buffer) = (path.to_owned(), SPARE_BUFFER.take());
        Ok(Self { path, file, buffer, has_read: false, position: 0, filled: 0 })
    }

    fn read_once(&mut self, size: usize) -> io::Result<usize> {
        loop {
            match self.file.read(&mut self.buffer[..size]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    note_failure("read", &self.path, &error);
                    return Err(error);
                }
                read => return read,
            }
        }
    }
}

/// Takes the failures to open or read files on this thread since the last call. A missing file is not a failure.
pub fn take_read_failures() -> Vec<FileError> {
    READ_FAILURES.take()
}

fn note_failure(action: &'static str, path: &Path, error: &io::Error) {
    if let Some(code) = error.raw_os_error()
        && error.kind() != io::ErrorKind::NotFound
    {
        let source = io::Error::from_raw_os_error(code);
        let failure = FileError { action, path: path.to_owned(), source };
        READ_FAILURES.with_borrow_mut(|failures| failures.push(failure));
    }
}

thread_local! {
    static READ_FAILURES: RefCell<Vec<FileError>> = const { RefCell::new(Vec::new()) };
    /// The buffer of the last reader, reused by the next. Most readers live only briefly.
    static SPARE_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Drop for FileReader {
    fn drop(&mut self) {
        SPARE_BUFFER.set(std::mem::take(&mut self.buffer));
    }
}

impl Read for FileReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut available = self.fill_buf()?;
        let count = available.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for FileReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position == self.filled {
            let size = if self.has_read { Self::READ_SIZE } else { Self::FIRST_READ_SIZE };
            if self.buffer.len() < size {
                self.buffer.resize(size, 0);
            }
            (self.position, self.filled, self.has_read) = (0, 0, true);
            self.filled = self.read_once(size)?;
        }
        Ok(&self.buffer[self.position..self.filled])
    }

    fn consume(&mut self, count: usize) {
        self.position = (self.position + count).min(self.filled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_to_read_is_noted_once() {
        let dir = tempfile::tempdir().unwrap();
        take_read_failures();
        assert!(FileReader::open_at(&dir.path().join("nothing"), 0).is_err());
        assert!(take_read_failures().is_empty(), "a file that is not there is no failure");
        let mut folder = FileReader::open_at(dir.path(), 0).unwrap();
        assert!(folder.fill_buf().is_err());
        let failures = take_read_failures();
        assert_eq!((failures.len(), failures[0].action), (1, "read"));
        assert_eq!(failures[0].path, dir.path());
        assert!(take_read_failures().is_empty());
    }

    #[test]
    fn a_file_is_read_whole_in_pieces_of_any_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| n as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let mut read = Vec::new();
        let mut input = FileReader::open_at(&path, 0).unwrap();
        for size in (1..).map(|n| n * 7) {
            let mut piece = vec![0; size];
            match input.read(&mut piece).unwrap() {
                0 => break,
                count => read.extend_from_slice(&piece[..count]),
            }
        }
        assert!(read == bytes);
    }
}
