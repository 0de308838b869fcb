//! Where the copies of one session are while it is pushed: one after the other in memory, or in one file without a name if
//! they are large. So neither memory nor the number of open files grows with the session.

use std::cell::RefCell;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

use tempfile::SpooledTempFile;

/// Larger copies are on disk.
const MAX_MEMORY_BYTES: usize = 2 << 20;

/// The copies of one session.
#[derive(Clone, Debug)]
pub struct CopySpace {
    file: Rc<RefCell<SpooledTempFile>>,
}

/// One copy.
#[derive(Debug)]
pub(crate) struct CopyContent {
    space: CopySpace,
    start: u64,
    length: u64,
}

impl Default for CopySpace {
    fn default() -> Self {
        Self { file: Rc::new(RefCell::new(SpooledTempFile::new(MAX_MEMORY_BYTES))) }
    }
}

impl CopySpace {
    /// Adds what `write` writes as a copy.
    pub(crate) fn add_copy(
        &self,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<CopyContent> {
        let mut file = self.file.borrow_mut();
        let start = file.seek(SeekFrom::End(0))?;
        write(&mut *file)?;
        let length = file.stream_position()? - start;
        Ok(CopyContent { space: self.clone(), start, length })
    }
}

impl CopyContent {
    /// The number of bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The bytes from an offset on.
    pub(crate) fn read_from(&self, offset: u64) -> impl Read {
        CopyReader { content: self, at: offset }
    }
}

struct CopyReader<'a> {
    content: &'a CopyContent,
    at: u64,
}

impl Read for CopyReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let CopyContent { space, start, length } = self.content;
        let mut file = space.file.borrow_mut();
        file.seek(SeekFrom::Start(start + self.at))?;
        let read = (&mut *file).take(length.saturating_sub(self.at)).read(out)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_in_one_file_are_read_in_any_order() {
        let space = CopySpace::default();
        let texts = [vec![b'a'; 100], Vec::new(), vec![b'b'; MAX_MEMORY_BYTES], b"last".to_vec()];
        let copies: Vec<CopyContent> = texts
            .iter()
            .map(|text| space.add_copy(&mut |file| file.write_all(text)).unwrap())
            .collect();
        for (copy, text) in copies.iter().zip(&texts).rev() {
            let mut found = Vec::new();
            copy.read_from(0).read_to_end(&mut found).unwrap();
            assert!(found == *text && copy.length() == text.len() as u64);
        }
        let (mut first, mut last) = (copies[0].read_from(98), copies[3].read_from(2));
        let mut pair = [0; 2];
        last.read_exact(&mut pair).unwrap();
        assert_eq!(&pair, b"st");
        first.read_exact(&mut pair).unwrap();
        assert_eq!(&pair, b"aa", "readers do not move each other");
        assert_eq!(first.read(&mut pair).unwrap(), 0, "a copy ends where the next one starts");
        assert_eq!(copies[0].read_from(200).read(&mut pair).unwrap(), 0);
    }
}
