//! A sealed file: the compressed bytes of one session file. It only grows.
//!
//! # Layout
//! A header, then a header and zstd data for each frame, then a trailer with the offset of each frame. When the file
//! grows, more frames and a trailer for all frames follow the old trailer.
//!
//! # Crashes
//! The vault's journal lists the size of the file. Readers ignore what follows it, and the next writer cuts it off:
//! it was never acknowledged. Listed bytes are never overwritten. A new file, such as one with merged frames, is
//! written beside the old one (`NAME.zst.new`) and renamed after it is listed.
//!
//! # Locking
//! None here. Writers hold the session's lock. Readers need no lock.

mod chain;
mod limit;
mod masking;
mod writer;

#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::frame::{
    self, FileMove, FrameHeader, HexHash, NextFrame, SealedFileHeader, SealedTrailer,
};
use super::journal::ListedFile;
use crate::attributes::FileAttributes;
use steno_cipher::{StoreFile, store_fs};
use steno_model::durable::{FileError, OnPath};
use steno_model::problem::Problem;

pub(crate) use self::masking::{ByteEdit, MaskCollector, MaskSummary};
pub(crate) use self::writer::{REPLACEMENT_SUFFIX, SealedWriter, WrittenFile, replacement_path};

/// A longer frame is not kept in memory after it was read.
const MAX_SPARE_FRAME: usize = 2 * frame::FRAME_SIZE;

/// Memory that is reserved for the data of a frame because its header says so. The header may be damaged.
const MAX_RESERVED_DATA: usize = 16 << 20;

/// Problems that a reader collects while other parts share the list.
pub type SharedProblems = Arc<Mutex<Vec<Problem>>>;

/// A reference to a sealed file: its path, and its journal listing if there is one.
#[derive(Clone, Debug)]
pub(crate) struct SealedFileRef {
    pub(crate) path: PathBuf,
    pub(crate) listed: Option<ListedFile>,
}

impl SealedFileRef {
    /// Opens the file up to its listed size.
    ///
    /// Bytes after that were never acknowledged. A shorter file, or one with another chain end, is damaged. A
    /// listed file that was not renamed yet is read at its temporary name.
    pub(crate) fn open(&self) -> Result<SealedFile, FileError> {
        let first = self.open_at(&self.path);
        let is_replaced = first.as_ref().is_err_and(|error| error.source.raw_os_error().is_none());
        let is_missing = first.as_ref().is_err_and(FileError::is_missing);
        if self.listed.is_some() && (is_replaced || is_missing) {
            return self.open_at(&replacement_path(&self.path)).or(first);
        }
        first
    }

    fn open_at(&self, path: &Path) -> Result<SealedFile, FileError> {
        let mut sealed = SealedFile::open(path)?;
        sealed.path.clone_from(&self.path);
        let Some(listed) = &self.listed else { return Ok(sealed) };
        // A file that could not be read when the journal was created has no chain end.
        if let Some(chain) = listed.chain_end() {
            let size = listed.size.unwrap_or(u64::MAX);
            sealed.limit_to_listing(size, listed.length, chain).on("read", &self.path)?;
        }
        sealed.listed = Some(listed.clone());
        Ok(sealed)
    }

    /// Completes an interrupted rename of a listed file.
    pub(crate) fn finish_rename(&self) -> Result<(), FileError> {
        let new = replacement_path(&self.path);
        if self.listed.is_none() || !store_fs::exists(&new) {
            return Ok(());
        }
        match (self.open_at(&self.path), self.open_at(&new)) {
            (Err(_), Ok(_)) => store_fs::rename(&new, &self.path).on("replace", &self.path),
            (Ok(_), _) => store_fs::remove_file(&new),
            (Err(_), Err(_)) => Ok(()),
        }
    }
}

/// An open sealed file.
#[derive(Debug)]
pub struct SealedFile {
    path: PathBuf,
    listed: Option<ListedFile>,
    file: StoreFile,
    header: SealedFileHeader,
    frames: Vec<(u64, u64)>,
    length: u64,
    /// The start and the end of the chain.
    chains: [HexHash; 2],
    attributes: FileAttributes,
    moved: Option<FileMove>,
    /// Offset for the next frame.
    append_offset: u64,
    /// Bytes after `append_offset` without a complete trailer.
    torn_bytes: Option<u64>,
    /// Intact frames follow a damaged one, which no interrupted write can cause.
    is_damaged: bool,
}

/// The end of a file header: its offset, and the chain that starts there.
struct HeaderEnd {
    offset: u64,
    chain: HexHash,
}

impl SealedFile {
    /// Opens a file. Without a complete trailer, scans it up to its last intact frame.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let mut file = store_fs::open(path).on("open", path)?;
        let size = file.length().on("read", path)?;
        let (header, offset): (SealedFileHeader, u64) =
            frame::read_header(&mut file).on("read", path)?;
        check_version(&header).on("read", path)?;
        let (_, chain) = frame::encode_file_header(&header);
        let mut sealed = Self::from_header(path, file, header, HeaderEnd { offset, chain });
        match frame::read_trailer(&mut sealed.file, size).on("read", path)? {
            Some((_, trailer)) => sealed.apply_trailer(size, trailer),
            None => sealed.scan_frames(size).on("read", path)?,
        }
        Ok(sealed)
    }

    fn apply_trailer(&mut self, end: u64, trailer: SealedTrailer) {
        self.attributes = trailer.file_attributes();
        self.frames = trailer.frames;
        self.length = trailer.length;
        self.chains[1] = trailer.chain;
        self.apply_move(trailer.moved);
        self.append_offset = end;
    }

    /// A file with nothing but its header.
    fn from_header(path: &Path, file: StoreFile, header: SealedFileHeader, end: HeaderEnd) -> Self {
        Self {
            path: path.to_owned(),
            listed: None,
            file,
            header,
            frames: Vec::new(),
            length: 0,
            chains: [end.chain; 2],
            attributes: FileAttributes::default(),
            moved: None,
            append_offset: end.offset,
            torn_bytes: None,
            is_damaged: false,
        }
    }

    /// The header, with the last known location of the session file.
    pub fn header(&self) -> &SealedFileHeader {
        &self.header
    }

    /// The path of the sealed file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A reference for opening the file again.
    pub(crate) fn file_ref(&self) -> SealedFileRef {
        SealedFileRef { path: self.path.clone(), listed: self.listed.clone() }
    }

    /// The format version.
    pub(crate) fn version(&self) -> u32 {
        self.header.version
    }

    /// The size of the file; `None` if it does not end with a complete trailer.
    pub(crate) fn complete_size(&self) -> Option<u64> {
        self.torn_bytes.is_none().then_some(self.append_offset)
    }

    /// The kept length, and the end of the chain over it.
    pub(crate) fn chain_end(&self) -> (u64, HexHash) {
        (self.length, self.chains[1])
    }

    /// The length of the longest frame, which is in memory while it is read.
    pub(crate) fn longest_frame(&self) -> u64 {
        let begins = self.frames.iter().map(|(_, begin)| *begin);
        let ends = begins.clone().skip(1).chain([self.length]);
        begins.zip(ends).map(|(begin, end)| end.saturating_sub(begin)).max().unwrap_or(0)
    }

    /// The kept length of the session file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The modification time of the session file, if known.
    pub fn modified(&self) -> Option<SystemTime> {
        self.attributes.modified_time()
    }

    /// The file system attributes of the session file.
    pub(crate) fn attributes(&self) -> FileAttributes {
        self.attributes
    }

    /// Bytes of an interrupted write at the end, if any.
    pub fn torn_bytes(&self) -> Option<u64> {
        self.torn_bytes
    }

    /// Number of frames.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The frame that contains byte `offset` of the session file, and the offset of its first byte.
    pub fn frame_at(&mut self, offset: u64) -> Result<Option<(u64, Vec<u8>)>, FileError> {
        if offset >= self.length {
            return Ok(None);
        }
        let index = self.frames.partition_point(|(_, begin)| *begin <= offset) - 1;
        let raw = self.read_frame(index).on("read", &self.path.clone())?;
        Ok(Some((self.frames[index].1, raw)))
    }

    /// Reads the kept bytes from `offset` on.
    pub fn reader_from(self, offset: u64) -> impl BufRead + 'static {
        let next = self.frames.partition_point(|(_, begin)| *begin <= offset).saturating_sub(1);
        let skip = self.frames.get(next).map_or(0, |(_, begin)| offset - begin);
        let skip = skip as usize;
        FrameReader {
            sealed: self,
            next_index: next,
            buffer: Vec::new(),
            position: 0,
            skip,
            problems: None,
        }
    }

    /// Reads the kept bytes without frames that cannot be unpacked; one with a wrong hash is returned. All damaged frames
    /// are reported as problems.
    pub(crate) fn lenient_reader(self, problems: SharedProblems) -> impl BufRead + 'static {
        let damage = Some(problems);
        FrameReader {
            sealed: self,
            next_index: 0,
            buffer: Vec::new(),
            position: 0,
            skip: 0,
            problems: damage,
        }
    }

    /// Decompresses a frame up to the kept length, and compares it with the hashes in its header.
    fn read_frame(&mut self, index: usize) -> io::Result<Vec<u8>> {
        let unpacked = self.unpack_frame(index)?;
        unpacked.checked?;
        Ok(unpacked.bytes)
    }

    /// Decompresses a frame up to the kept length. zstd verifies its checksum.
    fn unpack_frame(&mut self, index: usize) -> io::Result<UnpackedFrame> {
        let (header, data) = self.read_frame_data(index)?;
        let mut bytes = frame::unpack_frame(&header, &data)?;
        let checked = header.check_frame_content(&bytes);
        let kept = self.length.saturating_sub(self.frames[index].1);
        bytes.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        Ok(UnpackedFrame { bytes, checked })
    }

    fn read_frame_data(&mut self, index: usize) -> io::Result<(FrameHeader, Vec<u8>)> {
        self.file.seek(SeekFrom::Start(self.frames[index].0))?;
        let (header, _) = frame::read_header::<FrameHeader>(&mut self.file)?;
        let data = read_stored_data(&mut self.file, &header)?;
        Ok((header, data))
    }

    /// The header of a frame, without its data.
    pub(crate) fn frame_header(&mut self, index: usize) -> Result<FrameHeader, FileError> {
        let path = self.path.clone();
        self.read_frame_header(index).on("read", &path)
    }

    fn read_frame_header(&mut self, index: usize) -> io::Result<FrameHeader> {
        self.file.seek(SeekFrom::Start(self.frames[index].0))?;
        Ok(frame::read_header(&mut self.file)?.0)
    }

    /// Finds the frames of a file without a complete trailer.
    fn scan_frames(&mut self, size: u64) -> io::Result<()> {
        loop {
            self.file.seek(SeekFrom::Start(self.append_offset))?;
            let Some(next) = frame::none_if_damaged(frame::read_next_header(&mut self.file))?
            else {
                break;
            };
            let (header, header_size) = match next {
                NextFrame::Frame(header, size) => (*header, size),
                NextFrame::Trailer(size) => {
                    self.append_offset += size;
                    continue;
                }
            };
            let data = frame::none_if_damaged(read_stored_data(&mut self.file, &header))?;
            let Some(data) = data else { break };
            if header.offset != self.length || header.check_link(self.chains[1], &data).is_err() {
                break;
            }
            self.frames.push((self.append_offset, header.offset));
            self.length += header.length;
            self.chains[1] = header.chain;
            self.apply_move(header.last_move().cloned());
            self.append_offset += header_size + header.stored;
        }
        self.torn_bytes = Some(size.saturating_sub(self.append_offset));
        self.file.seek(SeekFrom::Start(self.append_offset))?;
        let mut rest = Vec::new();
        (&self.file).take(size.saturating_sub(self.append_offset)).read_to_end(&mut rest)?;
        self.is_damaged = frame::contains_frames(&rest);
        Ok(())
    }

    /// Updates the location in the header, which has the first one.
    fn apply_move(&mut self, moved: Option<FileMove>) {
        if let Some(FileMove { path, root, bytes }) = &moved {
            self.header.path.clone_from(path);
            self.header.root.clone_from(root);
            self.header.bytes.clone_from(bytes);
            self.moved = moved;
        }
    }
}

fn check_version(header: &SealedFileHeader) -> io::Result<()> {
    if (1..=frame::FORMAT_VERSION).contains(&header.version) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "vault file of version {}, this steno reads versions up to {}; a newer steno can read it",
            header.version,
            frame::FORMAT_VERSION
        ),
    ))
}

fn read_stored_data(input: &mut impl Read, header: &FrameHeader) -> io::Result<Vec<u8>> {
    let expected = usize::try_from(header.stored).unwrap_or(usize::MAX);
    let mut data = Vec::with_capacity(expected.min(MAX_RESERVED_DATA));
    input.take(header.stored).read_to_end(&mut data)?;
    if data.len() as u64 == header.stored {
        Ok(data)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// The bytes of a frame.
struct UnpackedFrame {
    bytes: Vec<u8>,
    /// Whether they have the hashes that the frame's header states.
    checked: io::Result<()>,
}

struct FrameReader {
    sealed: SealedFile,
    next_index: usize,
    buffer: Vec<u8>,
    position: usize,
    skip: usize,
    problems: Option<SharedProblems>,
}

impl FrameReader {
    fn next_frame(&mut self) -> io::Result<Vec<u8>> {
        let index = self.next_index;
        self.next_index += 1;
        let Some(problems) = self.problems.clone() else { return self.sealed.read_frame(index) };
        match self.sealed.unpack_frame(index) {
            // An I/O error of the system is not damage: the bytes may be intact.
            Err(error) if error.raw_os_error().is_some() => Err(error),
            Err(error) => {
                self.report_damage(index, &error, &problems);
                Ok(Vec::new())
            }
            Ok(UnpackedFrame { bytes, checked }) => {
                // Perhaps only the header was changed.
                if let Err(error) = checked {
                    self.report_damage(index, &error, &problems);
                }
                Ok(bytes)
            }
        }
    }

    fn report_damage(&self, index: usize, error: &io::Error, problems: &SharedProblems) {
        let at = self.sealed.frames[index].0;
        let reason = format!("damaged frame at byte {at}: {error}");
        let problem = Problem::damage_in_file(&self.sealed.path, reason);
        let mut problems = problems.lock().unwrap_or_else(PoisonError::into_inner);
        // A second read of the file finds the same problem again.
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

impl Read for FrameReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut available = self.fill_buf()?;
        let count = available.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for FrameReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.position == self.buffer.len() && self.next_index < self.sealed.frames.len() {
            self.buffer = self.next_frame()?;
            self.position = std::mem::take(&mut self.skip).min(self.buffer.len());
        }
        Ok(&self.buffer[self.position..])
    }

    fn consume(&mut self, count: usize) {
        self.position += count;
        // The reader may now work long with what it has read.
        if self.position == self.buffer.len() && self.buffer.len() > MAX_SPARE_FRAME {
            (self.buffer, self.position) = (Vec::new(), 0);
        }
    }
}
