//! Growing a sealed file: frames go after its trailer, and a new trailer after them.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{KeptFile, Sealed};
use crate::durable::{self, FileError, OnPath};
use crate::lines::LINE_LIMIT;
use crate::vault::frame::{
    self, FRAME_SIZE, FileHeader, FrameContent, FramePiece, Hash, Moved, Trailer,
};
use steno_vault::attributes::Attributes;

/// Small frames at the end of a file before they are merged into one.
pub(super) const SMALL_FRAMES: usize = 32;

/// A sealed file opened for growing; the caller holds the session's lock.
///
/// What is added counts once the file was synced and the journal lists it.
#[derive(Debug)]
pub(crate) struct SealedWriter {
    sealed: Sealed,
    pending: Vec<u8>,
    /// Where the source was found, until a frame says so.
    moved: Option<Moved>,
    /// The trailer no longer says what is kept.
    unfinished: bool,
    /// Whether the bytes go into a file beside the one that is listed.
    is_new: bool,
}

/// What a writer has written, for the journal.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    /// Where the file belongs.
    pub(crate) path: PathBuf,
    /// Whether it is still beside that, as [`new_path`] says.
    pub(crate) is_new: bool,
    pub(crate) length: u64,
    pub(crate) size: u64,
    pub(crate) chain: Hash,
}

impl WrittenFile {
    /// Where its bytes are now.
    pub(crate) fn current_path(&self) -> PathBuf {
        if self.is_new { new_path(&self.path) } else { self.path.clone() }
    }

    /// Opens what was written.
    pub(crate) fn reopen(&self) -> Result<Sealed, FileError> {
        Sealed::open(&self.current_path())
    }
}

/// Where a file that will replace `path` is written.
pub(crate) fn new_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(NEW_SUFFIX);
    PathBuf::from(name)
}

/// What the name of a file that the journal does not list yet has at its end.
pub(crate) const NEW_SUFFIX: &str = ".new";

thread_local! {
    /// The room of the last writer, for the next one.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Drop for SealedWriter {
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.pending);
        if room.capacity() <= 4 * FRAME_SIZE {
            room.clear();
            SPARE.set(room);
        }
    }
}

impl SealedWriter {
    /// Makes a new file, which nobody reads before the journal lists it.
    pub(crate) fn create(path: &Path, header: &FileHeader) -> Result<Self, FileError> {
        let (bytes, chain) = frame::begin(header);
        let mut file = create_new(path)?;
        file.write_all(&bytes).on("write", path)?;
        let sealed = Sealed::begun(path, file, header.clone(), (bytes.len() as u64, chain));
        let (pending, moved) = (SPARE.take(), None);
        Ok(Self { sealed, pending, moved, unfinished: true, is_new: true })
    }

    /// Opens a listed file. What an interrupted write left after its listed end is cut off.
    ///
    /// A file of version 1 is written anew. One that is damaged is refused.
    pub(crate) fn open(kept: &KeptFile) -> Result<Self, FileError> {
        let path = &kept.path;
        kept.settle()?;
        let mut sealed = kept.open()?;
        if sealed.version() < frame::VERSION || sealed.whole_size().is_none() {
            return Self::upgrade(sealed);
        }
        sealed.file = File::options().read(true).write(true).open(path).on("open", path)?;
        let pending = SPARE.take();
        Ok(Self { sealed, pending, moved: None, unfinished: false, is_new: false })
    }

    /// Goes on in a new file of the current version that holds what an older one does.
    fn upgrade(mut sealed: Sealed) -> Result<Self, FileError> {
        sealed.check_all()?;
        let path = sealed.path.clone();
        let (version, upgraded) = (frame::VERSION, Some(sealed.end()));
        let header = FileHeader { version, upgraded, ..sealed.header.clone() };
        let mut writer = Self::create(&path, &header)?;
        writer.sealed.attributes = sealed.attributes;
        let mut input = sealed.reader(0);
        loop {
            let bytes = input.fill_buf().on("read", &path)?;
            if bytes.is_empty() {
                // Whoever goes on compares with what is in frames.
                writer.cut()?;
                return Ok(writer);
            }
            let size = bytes.len();
            writer.push_lines(bytes)?;
            input.consume(size);
        }
    }

    /// What is kept so far.
    pub(crate) fn sealed(&mut self) -> &mut Sealed {
        &mut self.sealed
    }

    /// Adds bytes of the source; a frame is written whenever enough of them have come.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), FileError> {
        self.pending.extend_from_slice(piece);
        if self.pending.len() >= FRAME_SIZE { self.cut() } else { Ok(()) }
    }

    /// Adds bytes of a source of lines: a frame that is full ends with a line, where there is one.
    pub(crate) fn push_lines(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let is_full = self.pending.len() + bytes.len() >= FRAME_SIZE;
        let line_end = memchr::memrchr(b'\n', bytes).filter(|_| is_full).map(|at| at + 1);
        match line_end {
            Some(end) => {
                self.push(&bytes[..end])?;
                self.pending.extend_from_slice(&bytes[end..]);
                Ok(())
            }
            // A line that is longer than many frames need not wait for its end.
            None if is_full && self.pending.len() < LINE_LIMIT => {
                self.pending.extend_from_slice(bytes);
                Ok(())
            }
            None => self.push(bytes),
        }
    }

    /// Notes what the file system says of the source.
    pub(crate) fn set_attributes(&mut self, attributes: Attributes) {
        let attributes = attributes.or(self.sealed.attributes);
        if attributes != self.sealed.attributes {
            self.sealed.attributes = attributes;
            self.unfinished = true;
        }
    }

    /// Notes where the source was found.
    pub(crate) fn set_place(&mut self, path: &Path, root: &Path) {
        let moved = Moved::to(path, root);
        self.moved = (!moved.is_told_by(&self.sealed.header)).then_some(moved);
    }

    /// Whether anything was added since the last trailer.
    pub(crate) fn has_news(&self) -> bool {
        self.has_pending() || self.unfinished
    }

    fn has_pending(&self) -> bool {
        !self.pending.is_empty() || self.moved.is_some()
    }

    /// Writes what is pending and the trailer. On disk only after the file was synced.
    pub(crate) fn finish(&mut self) -> Result<WrittenFile, FileError> {
        let is_merging = self.has_pending() && self.small_frames() >= SMALL_FRAMES;
        if is_merging {
            self.merge()?;
        }
        self.cut()?;
        let sealed = &mut self.sealed;
        let trailer = frame::end(&sealed.trailer());
        sealed.file.set_len(sealed.end).on("write", &sealed.path)?;
        write_at(&mut sealed.file, sealed.end, &trailer).on("write", &sealed.path)?;
        sealed.end += trailer.len() as u64;
        self.unfinished = false;
        let (path, (length, chain)) = (sealed.path.clone(), sealed.end());
        Ok(WrittenFile { path, is_new: self.is_new, length, size: sealed.end, chain })
    }

    fn cut(&mut self) -> Result<(), FileError> {
        if !self.has_pending() {
            return Ok(());
        }
        let sealed = &mut self.sealed;
        let pieces = vec![FramePiece::new(&self.pending, self.moved.clone())];
        let content = FrameContent { offset: sealed.length, raw: &self.pending, pieces };
        let packed = frame::pack(sealed.chains[1], content).on("compress", &sealed.path)?;
        write_at(&mut sealed.file, sealed.end, &packed.bytes).on("write", &sealed.path)?;
        sealed.append(&packed);
        self.pending.clear();
        self.moved = None;
        self.unfinished = true;
        Ok(())
    }

    fn small_frames(&self) -> usize {
        let ends =
            self.sealed.frames.iter().skip(1).map(|(_, begin)| *begin).chain([self.sealed.length]);
        let lengths: Vec<u64> =
            self.sealed.frames.iter().zip(ends).map(|((_, begin), end)| end - begin).collect();
        lengths.iter().rev().take_while(|length| **length < FRAME_SIZE as u64 / 2).count()
    }

    /// Goes on in a new file that has the small last frames as one. Every link of the chain stays as it is.
    fn merge(&mut self) -> Result<(), FileError> {
        let path = self.sealed.path.clone();
        let keep = self.sealed.frames.len() - self.small_frames();
        let (mut raw, mut pieces) = (Vec::new(), Vec::new());
        for index in keep..self.sealed.frames.len() {
            raw.extend(self.sealed.frame(index).on("read", &path)?);
            pieces.extend(self.sealed.frame_header(index)?.pieces);
        }
        let chain = match keep.checked_sub(1) {
            Some(last) => self.sealed.frame_header(last)?.chain,
            None => self.sealed.chains[0],
        };
        let (start, offset) = self.sealed.frames[keep];
        let content = FrameContent { offset, raw: &raw, pieces };
        let packed = frame::pack(chain, content).on("compress", &path)?;
        if packed.header.chain != self.sealed.chains[1] {
            return Err(frame::damaged("its frames are not as they were written"))
                .on("merge", &path);
        }
        let mut new = create_new(&path)?;
        let old = &mut self.sealed.file;
        old.seek(SeekFrom::Start(0)).on("read", &path)?;
        let old: &mut dyn Read = &mut old.take(start);
        io::copy(old, &mut new).on("write", &path)?;
        new.write_all(&packed.bytes).on("write", &path)?;
        self.sealed.frames.truncate(keep);
        self.sealed.frames.push((start, offset));
        self.sealed.end = start + packed.bytes.len() as u64;
        self.sealed.file = new;
        self.is_new = true;
        Ok(())
    }
}

fn create_new(path: &Path) -> Result<File, FileError> {
    let path = new_path(path);
    let mut options = durable::private_options();
    options.read(true).write(true).create(true).truncate(true).open(&path).on("write", &path)
}

impl Sealed {
    fn trailer(&self) -> Trailer {
        let (frames, length, moved) = (self.frames.clone(), self.length, self.moved.clone());
        let trailer = Trailer { frames, length, moved, ..Trailer::empty(self.chains[1]) };
        trailer.with(self.attributes)
    }

    fn append(&mut self, packed: &frame::Packed) {
        self.frames.push((self.end, packed.header.offset));
        self.length += packed.header.length;
        self.chains[1] = packed.header.chain;
        self.note_move(packed.header.last_move().cloned());
        self.end += packed.bytes.len() as u64;
    }
}

fn write_at(file: &mut File, at: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}
