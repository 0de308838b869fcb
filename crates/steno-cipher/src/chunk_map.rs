//! Where the chunks of an encrypted file are.
//!
//! A chunk is `length (4) | nonce (12) | ciphertext | tag (16) | length (4) | end (8)`, where `end` is the offset after it
//! in the plain file. Chunks can be walked from both sides, so a changed length costs only its own chunk. An incomplete
//! chunk at the end is what an interrupted write leaves: it is not part of the file.

use std::fs::File;
use std::ops::Range;
use std::{io, iter};

/// Bytes before the ciphertext.
pub(crate) const CHUNK_HEAD_BYTES: usize = 4 + 12;

/// Bytes of length and end after the tag.
const CHUNK_TAIL_BYTES: usize = 4 + 8;

/// Bytes of a chunk without its ciphertext.
pub(crate) const CHUNK_OVERHEAD: u64 = (CHUNK_HEAD_BYTES + 16 + CHUNK_TAIL_BYTES) as u64;

/// The largest number of plain bytes in a chunk.
pub(crate) const MAX_CHUNK_BYTES: usize = 256 << 10;

/// The unit of which a disk writes all or nothing.
const SECTOR_BYTES: u64 = 512;

/// A chunk of an encrypted file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileChunk {
    /// Offset of its first byte in the plain file.
    pub(crate) start: u64,
    /// Number of plain bytes.
    pub(crate) length: u64,
    /// Offset in the encrypted file.
    pub(crate) at: u64,
    /// Number of bytes in the encrypted file.
    pub(crate) size: u64,
    /// Whether its lengths were changed, so that its bytes are unknown.
    pub(crate) is_damaged: bool,
}

impl FileChunk {
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Whether a power failure left a sector of the chunk unwritten: it has zeros where the chunk has none.
    pub(crate) fn has_unwritten_sector(&self, file: &File) -> io::Result<bool> {
        let length = u32::try_from(self.length).unwrap_or(u32::MAX);
        let (head, tail) = frame_chunk(length, self.end());
        let mut bytes = vec![0; usize::try_from(self.size).unwrap_or_default()];
        // Nonce, ciphertext and tag are taken as never zero.
        let mut written = vec![true; bytes.len()];
        for (is_written, byte) in written.iter_mut().zip(head) {
            *is_written = byte != 0;
        }
        for (is_written, byte) in written.iter_mut().rev().zip(tail.iter().rev()) {
            *is_written = *byte != 0;
        }
        read_at(file, &mut bytes, self.at)?;
        let first = ((SECTOR_BYTES - self.at % SECTOR_BYTES) as usize).min(bytes.len());
        let is_unwritten = |range: Range<usize>| {
            bytes[range.clone()].iter().all(|byte| *byte == 0) && written[range].contains(&true)
        };
        let rest = (first..bytes.len()).step_by(SECTOR_BYTES as usize);
        let rest = rest.map(|begin| begin..bytes.len().min(begin + SECTOR_BYTES as usize));
        Ok(iter::once(0..first).chain(rest).any(is_unwritten))
    }
}

/// The chunks of a file, as far as they were looked at.
#[derive(Debug)]
pub(crate) struct ChunkMap {
    pub(crate) chunks: Vec<FileChunk>,
    /// The end of the last chunk in the encrypted file.
    pub(crate) end: u64,
    header_end: u64,
    /// The size of the encrypted file when it was scanned.
    scanned_size: u64,
}

impl ChunkMap {
    pub(crate) fn new(header_end: u64) -> Self {
        Self { chunks: Vec::new(), end: header_end, header_end, scanned_size: header_end }
    }

    /// The length of the plain file.
    pub(crate) fn plain_length(&self) -> u64 {
        self.chunks.last().map_or(0, FileChunk::end)
    }

    /// The chunk with the byte at `offset` of the plain file.
    pub(crate) fn find(&self, offset: u64) -> Option<usize> {
        let index = self.chunks.partition_point(|chunk| chunk.end() <= offset);
        (index < self.chunks.len()).then_some(index)
    }

    /// Looks at what was written or cut off since the last time. Returns whether chunks are gone.
    pub(crate) fn refresh(&mut self, file: &File) -> io::Result<bool> {
        let size = file.metadata()?.len();
        let is_cut = size < self.end;
        if is_cut {
            *self = Self::new(self.header_end);
        }
        if size != self.scanned_size {
            self.scan(file, size)?;
            self.scanned_size = size;
        }
        Ok(is_cut)
    }

    /// Notes a chunk that was written at the end.
    pub(crate) fn push(&mut self, length: u64) {
        let (start, at, size) = (self.plain_length(), self.end, length + CHUNK_OVERHEAD);
        self.chunks.push(FileChunk { start, length, at, size, is_damaged: false });
        self.end = at + size;
        self.scanned_size = self.end;
    }

    /// Notes that the file was cut off before the chunk of this index.
    pub(crate) fn truncate(&mut self, index: usize) {
        if let Some(first) = self.chunks.get(index) {
            self.end = first.at;
        }
        self.chunks.truncate(index);
        self.scanned_size = self.end;
    }

    fn scan(&mut self, file: &File, size: u64) -> io::Result<()> {
        while self.end < size {
            let Some(chunk) = self.next_chunk(file, size)? else { return Ok(()) };
            self.end = chunk.at + chunk.size;
            self.chunks.push(chunk);
        }
        Ok(())
    }

    /// The chunk after the last one; `None` if the rest is an interrupted write.
    fn next_chunk(&self, file: &File, size: u64) -> io::Result<Option<FileChunk>> {
        let (at, start) = (self.end, self.plain_length());
        let whole = |length, is_damaged| {
            let size = length + CHUNK_OVERHEAD;
            FileChunk { start, length, at, size, is_damaged }
        };
        let stated = read_length(file, at)?.filter(|length| at + length + CHUNK_OVERHEAD <= size);
        if let Some(length) = stated {
            let end = at + length + CHUNK_OVERHEAD;
            let tail = ChunkTail::read_before(file, end)?;
            if tail.length == length && tail.end == start + length {
                return Ok(Some(whole(length, false)));
            }
            let is_last = end == size && !tail.is_zero();
            if is_last || starts_chunk(file, end, size, start + length)? {
                return Ok(Some(whole(length, true)));
            }
        }
        // The first length was changed, or the tail and what follows it.
        let Some((next_at, next_start)) = first_chunk_from_end(file, at, size)? else {
            return Ok(None);
        };
        let (least, most) = (at + CHUNK_OVERHEAD, next_at.saturating_sub(at));
        let is_after = next_at >= least && (1..=most).contains(&next_start.saturating_sub(start));
        Ok(is_after.then(|| {
            let (length, size) = (next_start - start, next_at - at);
            FileChunk { start, length, at, size, is_damaged: true }
        }))
    }
}

/// The length of the plain file, from the last chunk alone; `None` if it is not complete.
pub(crate) fn length_from_end(file: &File, size: u64) -> io::Result<Option<u64>> {
    let Some(at) = size.checked_sub(CHUNK_OVERHEAD) else { return Ok(None) };
    let tail = ChunkTail::read_before(file, size)?;
    let Some(at) = at.checked_sub(tail.length).filter(|_| tail.is_possible()) else {
        return Ok(None);
    };
    Ok((read_length(file, at)? == Some(tail.length)).then_some(tail.end))
}

/// The place and plain offset of the first chunk that can be reached from the end of the file. If the last chunk is the
/// one at `at`, with a changed first length, that is the end of the file.
fn first_chunk_from_end(file: &File, at: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    let (mut end, mut found) = (size, None);
    loop {
        if end < at + CHUNK_OVERHEAD {
            return Ok(found);
        }
        let tail = ChunkTail::read_before(file, end)?;
        let begin = end.checked_sub(CHUNK_OVERHEAD + tail.length).filter(|_| tail.is_possible());
        let Some(begin) = begin.filter(|begin| *begin >= at) else { return Ok(found) };
        if begin == at {
            return Ok(Some(found.unwrap_or((end, tail.end))));
        }
        if read_length(file, begin)? != Some(tail.length) {
            return Ok(found);
        }
        found = Some((begin, tail.end - tail.length));
        end = begin;
    }
}

/// Whether a chunk of the plain offset `start` begins at `at`.
fn starts_chunk(file: &File, at: u64, size: u64, start: u64) -> io::Result<bool> {
    let Some(length) = read_length(file, at)? else { return Ok(false) };
    let end = at + length + CHUNK_OVERHEAD;
    Ok(end <= size && ChunkTail::read_before(file, end)?.end == start + length)
}

fn read_length(file: &File, at: u64) -> io::Result<Option<u64>> {
    let mut bytes = [0; 4];
    if read_at(file, &mut bytes, at)? < bytes.len() {
        return Ok(None);
    }
    let length = u64::from(u32::from_le_bytes(bytes));
    Ok((1..=MAX_CHUNK_BYTES as u64).contains(&length).then_some(length))
}

/// The end of a chunk.
struct ChunkTail {
    length: u64,
    end: u64,
}

impl ChunkTail {
    fn read_before(file: &File, end: u64) -> io::Result<Self> {
        let mut bytes = [0; CHUNK_TAIL_BYTES];
        read_at(file, &mut bytes, end.saturating_sub(CHUNK_TAIL_BYTES as u64))?;
        let (length, end) = bytes.split_at(4);
        let length = u32::from_le_bytes(*length.first_chunk().unwrap_or(&[0; 4]));
        let end = u64::from_le_bytes(*end.first_chunk().unwrap_or(&[0; 8]));
        Ok(Self { length: u64::from(length), end })
    }

    /// Whether a power failure left the end of the file without its bytes.
    fn is_zero(&self) -> bool {
        (self.length, self.end) == (0, 0)
    }

    fn is_possible(&self) -> bool {
        (1..=MAX_CHUNK_BYTES as u64).contains(&self.length) && self.end >= self.length
    }
}

/// Head and tail of a chunk that ends at `end` of the plain file, without its nonce.
pub(crate) fn frame_chunk(length: u32, end: u64) -> ([u8; 4], [u8; CHUNK_TAIL_BYTES]) {
    let mut tail = [0; CHUNK_TAIL_BYTES];
    tail[..4].copy_from_slice(&length.to_le_bytes());
    tail[4..].copy_from_slice(&end.to_le_bytes());
    (length.to_le_bytes(), tail)
}

/// Reads up to the end of the file. Returns the number of bytes.
pub(crate) fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < out.len() {
        let read = match read_some_at(file, &mut out[count..], offset + count as u64) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if read == 0 {
            break;
        }
        count += read;
    }
    Ok(count)
}

#[cfg(unix)]
fn read_some_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, offset)
}

#[cfg(windows)]
fn read_some_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, offset)
}

/// Writes all bytes at an offset.
#[cfg(unix)]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Writes all bytes at an offset.
#[cfg(windows)]
pub(crate) fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        (bytes, offset) = (&bytes[written..], offset + written as u64);
    }
    Ok(())
}
