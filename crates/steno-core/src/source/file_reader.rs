//! Reads a file from a byte on, for those who may want only a little of it.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::path::Path;

/// Reads little of a file first, for those who only look how it begins, then much at once.
pub(super) struct FileReader {
    file: File,
    buffer: Vec<u8>,
    is_begun: bool,
    position: usize,
    filled: usize,
}

impl FileReader {
    const FIRST: usize = 8 << 10;
    const THEN: usize = 128 << 10;

    pub(super) fn open_at(path: &Path, at: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if at > 0 {
            file.seek(SeekFrom::Start(at))?;
        }
        let buffer = SPARE.take();
        Ok(Self { file, buffer, is_begun: false, position: 0, filled: 0 })
    }
}

thread_local! {
    /// The room of the last reader, for the next one: most are open for a moment only.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Drop for FileReader {
    fn drop(&mut self) {
        SPARE.set(std::mem::take(&mut self.buffer));
    }
}

impl Read for FileReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut there = self.fill_buf()?;
        let count = there.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for FileReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position == self.filled {
            let size = if self.is_begun { Self::THEN } else { Self::FIRST };
            if self.buffer.len() < size {
                self.buffer.resize(size, 0);
            }
            (self.position, self.filled, self.is_begun) = (0, 0, true);
            self.filled = self.file.read(&mut self.buffer[..size])?;
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
