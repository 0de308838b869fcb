//! Appends to a sealed file: new frames after its trailer, then a new trailer.

use std::cell::Cell;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{HeaderEnd, SealedFile, SealedFileRef};
use crate::attributes::FileAttributes;
use crate::vault::frame::{
    self, FRAME_SIZE, FileMove, FrameContent, FramePiece, HexHash, SealedFileHeader, SealedTrailer,
};
use steno_cipher::{StoreFile, StoreOptions};
use steno_model::durable::{FileError, OnPath};
use steno_model::lines::MAX_LINE_LENGTH;

/// Number of small frames at the end of a file that triggers merging.
pub(super) const MAX_SMALL_FRAMES: usize = 32;

/// A sealed file opened for appending. The caller holds the session's lock.
///
/// New bytes count after the file is synced and the journal lists it.
#[derive(Debug)]
pub(crate) struct SealedWriter {
    sealed: SealedFile,
    pending: Vec<u8>,
    /// A new location of the session file that no frame records yet.
    moved: Option<FileMove>,
    /// Whether the trailer is outdated.
    needs_trailer: bool,
    /// Whether the bytes go into a replacement beside the listed file.
    is_new: bool,
}

/// A written file, for the journal.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    /// The final path.
    pub(crate) path: PathBuf,
    /// Whether it still has the temporary name of [`replacement_path`]: it is new, or was written anew.
    pub(crate) is_new: bool,
    pub(crate) length: u64,
    pub(crate) size: u64,
    pub(crate) chain: HexHash,
}

impl WrittenFile {
    /// The current path of its bytes.
    pub(crate) fn current_path(&self) -> PathBuf {
        if self.is_new { replacement_path(&self.path) } else { self.path.clone() }
    }

    /// Opens the written file.
    pub(crate) fn reopen(&self) -> Result<SealedFile, FileError> {
        SealedFile::open(&self.current_path())
    }
}

/// The temporary name of a file that will replace `path`.
pub(crate) fn replacement_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(REPLACEMENT_SUFFIX);
    PathBuf::from(name)
}

/// The suffix of files that the journal does not list yet.
pub(crate) const REPLACEMENT_SUFFIX: &str = ".new";

thread_local! {
    /// The buffer of the last writer, reused by the next.
    static SPARE_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Drop for SealedWriter {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.pending);
        if buffer.capacity() <= 4 * FRAME_SIZE {
            buffer.clear();
            SPARE_BUFFER.set(buffer);
        }
    }
}

impl SealedWriter {
    /// Creates a new file. Nothing reads it before the journal lists it.
    pub(crate) fn create(path: &Path, header: &SealedFileHeader) -> Result<Self, FileError> {
        let (bytes, chain) = frame::encode_file_header(header);
        let mut file = create_replacement(path)?;
        file.write_all(&bytes).on("write", path)?;
        let sealed = SealedFile::from_header(
            path,
            file,
            header.clone(),
            HeaderEnd { offset: bytes.len() as u64, chain },
        );
        let (pending, moved) = (SPARE_BUFFER.take(), None);
        Ok(Self { sealed, pending, moved, needs_trailer: true, is_new: true })
    }

    /// Opens a listed file. Bytes after its listed end are written over, and cut off by [`Self::finish`].
    ///
    /// Rewrites a file of version 1. Fails if the file is damaged.
    pub(crate) fn open(kept: &SealedFileRef) -> Result<Self, FileError> {
        let path = &kept.path;
        kept.finish_rename()?;
        let mut sealed = kept.open()?;
        if Self::needs_upgrade(&sealed) {
            return Self::upgrade_file(sealed);
        }
        sealed.file = StoreOptions::writing().open(path).on("open", path)?;
        let pending = SPARE_BUFFER.take();
        Ok(Self { sealed, pending, moved: None, needs_trailer: false, is_new: false })
    }

    /// Copies an older file into a new one of the current version.
    fn upgrade_file(mut sealed: SealedFile) -> Result<Self, FileError> {
        sealed.check_chain()?;
        let path = sealed.path.clone();
        let (version, upgraded) = (frame::FORMAT_VERSION, Some(sealed.chain_end()));
        let header = SealedFileHeader { version, upgraded, ..sealed.header.clone() };
        let mut writer = Self::create(&path, &header)?;
        writer.sealed.attributes = sealed.attributes;
        let mut input = sealed.reader_from(0);
        loop {
            let bytes = input.fill_buf().on("read", &path)?;
            if bytes.is_empty() {
                // Callers compare with complete frames.
                writer.write_pending_frame()?;
                return Ok(writer);
            }
            let size = bytes.len();
            writer.push_lines(bytes)?;
            input.consume(size);
        }
    }

    /// Whether a file must be rewritten before it can be changed: it is of version 1, or its end was never completed.
    pub(crate) fn needs_upgrade(sealed: &SealedFile) -> bool {
        sealed.version() < frame::FORMAT_VERSION || sealed.complete_size().is_none()
    }

    /// The file as written so far.
    pub(crate) fn sealed(&mut self) -> &mut SealedFile {
        &mut self.sealed
    }

    /// How many bytes are buffered.
    pub(crate) fn pending_length(&self) -> usize {
        self.pending.len()
    }

    /// Adds bytes. Writes a frame when enough are buffered.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), FileError> {
        self.pending.extend_from_slice(piece);
        if self.pending.len() >= FRAME_SIZE { self.write_pending_frame() } else { Ok(()) }
    }

    /// Adds bytes of a line-based file: a full frame ends at a line end where possible.
    pub(crate) fn push_lines(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let is_full = self.pending.len() + bytes.len() >= FRAME_SIZE;
        let line_end = memchr::memrchr(b'\n', bytes).filter(|_| is_full).map(|at| at + 1);
        match line_end {
            Some(end) => {
                self.push(&bytes[..end])?;
                self.pending.extend_from_slice(&bytes[end..]);
                Ok(())
            }
            // A line longer than many frames is split.
            None if is_full && self.pending.len() < MAX_LINE_LENGTH => {
                self.pending.extend_from_slice(bytes);
                Ok(())
            }
            None => self.push(bytes),
        }
    }

    /// Sets the file system attributes of the session file.
    pub(crate) fn set_attributes(&mut self, attributes: FileAttributes) {
        let attributes = attributes.or(self.sealed.attributes);
        if attributes != self.sealed.attributes {
            self.sealed.attributes = attributes;
            self.needs_trailer = true;
        }
    }

    /// Sets the current location of the session file.
    pub(crate) fn set_location(&mut self, path: &Path, root: &Path) {
        let moved = FileMove::from_paths(path, root);
        self.moved = (!moved.matches_header(&self.sealed.header)).then_some(moved);
    }

    /// Whether anything changed since the last trailer.
    pub(crate) fn has_changes(&self) -> bool {
        self.has_pending() || self.needs_trailer
    }

    fn has_pending(&self) -> bool {
        !self.pending.is_empty() || self.moved.is_some()
    }

    /// Writes the buffered bytes and the trailer. Does not sync.
    pub(crate) fn finish(&mut self) -> Result<WrittenFile, FileError> {
        let is_merging = self.has_pending() && self.count_small_frames() >= MAX_SMALL_FRAMES;
        if is_merging {
            self.merge_small_frames()?;
        }
        self.write_pending_frame()?;
        let sealed = &mut self.sealed;
        let trailer = frame::encode_trailer(&sealed.build_trailer());
        sealed.file.set_len(sealed.append_offset).on("write", &sealed.path)?;
        write_at(&mut sealed.file, sealed.append_offset, &trailer).on("write", &sealed.path)?;
        sealed.append_offset += trailer.len() as u64;
        self.needs_trailer = false;
        let (path, (length, chain)) = (sealed.path.clone(), sealed.chain_end());
        Ok(WrittenFile { path, is_new: self.is_new, length, size: sealed.append_offset, chain })
    }

    fn write_pending_frame(&mut self) -> Result<(), FileError> {
        if !self.has_pending() {
            return Ok(());
        }
        let sealed = &mut self.sealed;
        let pieces = vec![FramePiece::new(&self.pending, self.moved.clone())];
        let content = FrameContent { offset: sealed.length, raw: &self.pending, pieces };
        let packed = frame::pack_frame(sealed.chains[1], content).on("compress", &sealed.path)?;
        write_at(&mut sealed.file, sealed.append_offset, &packed.bytes)
            .on("write", &sealed.path)?;
        sealed.append_packed_frame(&packed);
        self.pending.clear();
        self.moved = None;
        self.needs_trailer = true;
        Ok(())
    }

    fn count_small_frames(&self) -> usize {
        let ends =
            self.sealed.frames.iter().skip(1).map(|(_, begin)| *begin).chain([self.sealed.length]);
        let lengths: Vec<u64> =
            self.sealed.frames.iter().zip(ends).map(|((_, begin), end)| end - begin).collect();
        lengths.iter().rev().take_while(|length| **length < FRAME_SIZE as u64 / 2).count()
    }

    /// Copies the file with its small last frames merged into one. All links of the chain stay the same.
    fn merge_small_frames(&mut self) -> Result<(), FileError> {
        let path = self.sealed.path.clone();
        let keep = self.sealed.frames.len() - self.count_small_frames();
        let (mut raw, mut pieces) = (Vec::new(), Vec::new());
        for index in keep..self.sealed.frames.len() {
            raw.extend(self.sealed.read_frame(index).on("read", &path)?);
            pieces.extend(self.sealed.frame_header(index)?.pieces);
        }
        let chain = match keep.checked_sub(1) {
            Some(last) => self.sealed.frame_header(last)?.chain,
            None => self.sealed.chains[0],
        };
        let (start, offset) = self.sealed.frames[keep];
        let content = FrameContent { offset, raw: &raw, pieces };
        let packed = frame::pack_frame(chain, content).on("compress", &path)?;
        if packed.header.chain != self.sealed.chains[1] {
            return Err(frame::damage_error("its frames were changed")).on("merge", &path);
        }
        let mut new = create_replacement(&path)?;
        let old = &mut self.sealed.file;
        old.seek(SeekFrom::Start(0)).on("read", &path)?;
        let old: &mut dyn Read = &mut old.take(start);
        io::copy(old, &mut new).on("write", &path)?;
        new.write_all(&packed.bytes).on("write", &path)?;
        self.sealed.frames.truncate(keep);
        self.sealed.frames.push((start, offset));
        self.sealed.append_offset = start + packed.bytes.len() as u64;
        self.sealed.file = new;
        self.is_new = true;
        Ok(())
    }
}

pub(super) fn create_replacement(path: &Path) -> Result<StoreFile, FileError> {
    let path = replacement_path(path);
    StoreOptions::replacing().open(&path).on("write", &path)
}

impl SealedFile {
    pub(super) fn build_trailer(&self) -> SealedTrailer {
        let (frames, length, moved) = (self.frames.clone(), self.length, self.moved.clone());
        let trailer = SealedTrailer {
            frames,
            length,
            moved,
            ..SealedTrailer::without_frames(self.chains[1])
        };
        trailer.with_attributes(self.attributes)
    }

    fn append_packed_frame(&mut self, packed: &frame::PackedFrame) {
        self.frames.push((self.append_offset, packed.header.offset));
        self.length += packed.header.length;
        self.chains[1] = packed.header.chain;
        self.apply_move(packed.header.last_move().cloned());
        self.append_offset += packed.bytes.len() as u64;
    }
}

fn write_at(file: &mut StoreFile, at: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}
