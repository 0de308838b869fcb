//! Growing a sealed file: frames go where the trailer stood, and a new trailer after them.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::TempPath;

use super::Sealed;
use crate::durable::{self, FileError, OnPath};
use crate::vault::attributes::Attributes;
use crate::vault::frame::{self, FRAME_SIZE, FileHeader, Moved, Trailer};

/// Small frames at the end of a file before they are merged into one.
pub(super) const SMALL_FRAMES: usize = 32;

/// A sealed file opened for growing; the caller holds the session's lock.
#[derive(Debug)]
pub(crate) struct SealedWriter {
    sealed: Sealed,
    pending: Vec<u8>,
    /// Where the source was found, until a frame says so.
    moved: Option<Moved>,
    /// The trailer no longer says what is kept.
    unfinished: bool,
    /// A new file stands under another name until it is whole.
    new: Option<TempPath>,
}

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
    /// Makes a new file, which nobody sees before [`SealedWriter::sync`].
    pub(crate) fn create(path: &Path, header: &FileHeader) -> Result<Self, FileError> {
        let (bytes, chain) = frame::begin(header);
        let (mut file, new) = durable::temporary(path)?.into_parts();
        file.write_all(&bytes).on("write", path)?;
        let sealed = Sealed::begun(path, file, header.clone(), (bytes.len() as u64, chain));
        Ok(Self { sealed, pending: SPARE.take(), moved: None, unfinished: true, new: Some(new) })
    }

    /// Opens a file, and drops what an interrupted write left at its end.
    ///
    /// A file that is damaged before its end is refused: growing it would destroy what follows the damage.
    pub(crate) fn open(path: &Path) -> Result<Self, FileError> {
        let mut sealed = Sealed::open(path)?;
        if sealed.damaged {
            return Err(frame::damaged("damaged before its end; left as it is")).on("grow", path);
        }
        sealed.file = File::options().read(true).write(true).open(path).on("open", path)?;
        let mut writer =
            Self { sealed, pending: SPARE.take(), moved: None, unfinished: false, new: None };
        if writer.sealed.torn.is_some() {
            writer.finish()?;
        }
        Ok(writer)
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

    /// Adds a piece that began in `torn`, which is empty then.
    pub(crate) fn push_line(&mut self, torn: &mut Vec<u8>, rest: &[u8]) -> Result<(), FileError> {
        self.pending.append(torn);
        self.push(rest)
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

    /// Writes what is pending and the trailer. Durable only after [`SealedWriter::sync`].
    pub(crate) fn finish(&mut self) -> Result<(), FileError> {
        if self.has_pending() && self.small_frames() >= SMALL_FRAMES {
            return self.merge();
        }
        self.cut()?;
        let sealed = &mut self.sealed;
        let trailer = frame::end(&sealed.trailer());
        write_at(&mut sealed.file, sealed.end, &trailer).on("write", &sealed.path)?;
        let size = sealed.end + trailer.len() as u64;
        sealed.file.set_len(size).on("write", &sealed.path)?;
        sealed.torn = None;
        self.unfinished = false;
        Ok(())
    }

    /// Returns after everything is on disk.
    pub(crate) fn sync(&mut self) -> Result<(), FileError> {
        let is_new = self.sync_content()?;
        if is_new { durable::sync_dir(durable::parent(&self.sealed.path)) } else { Ok(()) }
    }

    /// Returns after the content is on disk; whether the file is new, so that its name may not be yet.
    pub(crate) fn sync_content(&mut self) -> Result<bool, FileError> {
        let path = &self.sealed.path;
        self.sealed.file.sync_data().on("sync", path)?;
        let Some(new) = self.new.take() else { return Ok(false) };
        new.persist(path).map_err(|error| error.error).on("replace", path)?;
        Ok(true)
    }

    fn cut(&mut self) -> Result<(), FileError> {
        if !self.has_pending() {
            return Ok(());
        }
        let sealed = &mut self.sealed;
        let packed =
            frame::pack(sealed.chains[1], sealed.length, &self.pending, self.moved.clone())
                .on("compress", &sealed.path)?;
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

    /// Writes the file anew with its small last frames and the pending bytes as one, and puts it in place.
    fn merge(&mut self) -> Result<(), FileError> {
        let path = self.sealed.path.clone();
        let keep = self.sealed.frames.len() - self.small_frames();
        let mut raw = Vec::new();
        for index in keep..self.sealed.frames.len() {
            raw.extend(self.sealed.frame(index).on("read", &path)?);
        }
        raw.append(&mut self.pending);
        let chain = match keep.checked_sub(1) {
            Some(last) => self.sealed.frame_header(last)?.chain,
            None => self.sealed.chains[0],
        };
        let (start, offset) = self.sealed.frames[keep];
        // Frames that go may have told of a move.
        let moved = self.moved.take().or_else(|| self.sealed.moved.clone());
        let packed = frame::pack(chain, offset, &raw, moved.clone()).on("compress", &path)?;
        let mut frames = self.sealed.frames[..keep].to_vec();
        frames.push((start, offset));
        let (length, chain) = (offset + raw.len() as u64, packed.header.chain);
        let trailer = Trailer { frames, length, moved, ..Trailer::empty(chain) };
        let trailer = trailer.with(self.sealed.attributes);
        let old = &mut self.sealed.file;
        durable::replace_atomic(&path, |new| {
            old.seek(SeekFrom::Start(0))?;
            io::copy(&mut old.take(start), new)?;
            new.write_all(&packed.bytes)?;
            new.write_all(&frame::end(&trailer))
        })?;
        *self = Self::open(&path)?;
        Ok(())
    }
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
        self.note_move(packed.header.moved.clone());
        self.end += packed.bytes.len() as u64;
    }
}

fn write_at(file: &mut File, at: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}
