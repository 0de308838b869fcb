//! A sealed file: one source's bytes, compressed frame by frame, that only ever grows.
//!
//! # Layout
//! A header, then for each frame its header and its zstd data, then a trailer with the place of each frame.
//!
//! # Crashes
//! Growing overwrites the trailer with new frames and writes a new trailer after them, so a crash costs at most
//! the frames being added: without a whole trailer the file is scanned, and what follows the last whole frame
//! is dropped by the next writer. Kept frames are never overwritten; merging small ones makes a new file.
//!
//! # Locking
//! None here: the session's lock is held by whoever writes. Readers need no lock.

use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::frame::{self, FRAME_SIZE, FileHeader, FrameHeader, Hash, Moved, Trailer};
use crate::durable::{self, FileError, OnPath};
use crate::problem::Problem;

/// Problems that a reader finds while others hold it.
pub(crate) type Problems = Arc<Mutex<Vec<Problem>>>;

/// Small frames at the end of a file before they are merged into one.
const SMALL_FRAMES: usize = 32;

/// A sealed file opened for reading.
#[derive(Debug)]
pub struct Sealed {
    path: PathBuf,
    file: File,
    header: FileHeader,
    frames: Vec<(u64, u64)>,
    length: u64,
    /// The chain before the first frame, and after the last.
    chains: [Hash; 2],
    modified: Option<i64>,
    moved: Option<Moved>,
    /// Where the next frame goes: the end of the last whole one.
    end: u64,
    /// Bytes after `end` that are no trailer.
    torn: Option<u64>,
    /// Whole frames stand after one that is not: no interrupted write leaves that.
    damaged: bool,
}

impl Sealed {
    /// Opens a file; one without a whole trailer is scanned up to its last whole frame.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let mut file = File::open(path).on("open", path)?;
        let size = file.metadata().on("read", path)?.len();
        let (header, begin): (FileHeader, u64) = frame::read_header(&mut file).on("read", path)?;
        check_version(&header).on("read", path)?;
        let (_, chain) = frame::begin(&header);
        let mut sealed = Self {
            path: path.to_owned(),
            file,
            header,
            frames: Vec::new(),
            length: 0,
            chains: [chain; 2],
            modified: None,
            moved: None,
            end: begin,
            torn: None,
            damaged: false,
        };
        match frame::read_end(&mut sealed.file, size).on("read", path)? {
            Some((at, trailer)) => {
                sealed.frames = trailer.frames;
                sealed.length = trailer.length;
                sealed.chains[1] = trailer.chain;
                sealed.modified = trailer.modified;
                sealed.note_move(trailer.moved);
                sealed.end = at;
            }
            None => sealed.scan(size).on("read", path)?,
        }
        Ok(sealed)
    }

    /// Whose bytes these are, and where the source stood last.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The file itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes of the source are kept.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// When the source was last changed, as far as that is known.
    pub fn modified(&self) -> Option<SystemTime> {
        let nanos = self.modified?;
        let distance = Duration::from_nanos(nanos.unsigned_abs());
        if nanos < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
    }

    /// Bytes of an unfinished write at the end, if there are any.
    pub fn torn(&self) -> Option<u64> {
        self.torn
    }

    /// How many frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The bytes of the frame that holds the source's byte `offset`, and where in the source they begin.
    pub fn frame_at(&mut self, offset: u64) -> Result<Option<(u64, Vec<u8>)>, FileError> {
        if offset >= self.length {
            return Ok(None);
        }
        let index = self.frames.partition_point(|(_, begin)| *begin <= offset) - 1;
        let raw = self.frame(index).on("read", &self.path.clone())?;
        Ok(Some((self.frames[index].1, raw)))
    }

    /// All kept bytes from the source's byte `offset` on.
    pub fn reader(self, offset: u64) -> impl BufRead + 'static {
        let next = self.frames.partition_point(|(_, begin)| *begin <= offset).saturating_sub(1);
        let skip = self.frames.get(next).map_or(0, |(_, begin)| offset - begin);
        let skip = skip as usize;
        FrameReader { sealed: self, next, buffer: Vec::new(), position: 0, skip, damage: None }
    }

    /// All kept bytes but those of damaged frames, which are reported.
    pub(crate) fn lenient_reader(self, problems: Problems) -> impl BufRead + 'static {
        let damage = Some(problems);
        FrameReader { sealed: self, next: 0, buffer: Vec::new(), position: 0, skip: 0, damage }
    }

    /// The decompressed bytes of a frame; zstd checks them against their checksum.
    fn frame(&mut self, index: usize) -> io::Result<Vec<u8>> {
        let (header, data) = self.frame_data(index)?;
        frame::unpack(&header, &data)
    }

    fn frame_data(&mut self, index: usize) -> io::Result<(FrameHeader, Vec<u8>)> {
        self.file.seek(SeekFrom::Start(self.frames[index].0))?;
        let (header, _) = frame::read_header::<FrameHeader>(&mut self.file)?;
        let data = read_data(&mut self.file, &header)?;
        Ok((header, data))
    }

    /// The header of a frame, without its data.
    pub(crate) fn frame_header(&mut self, index: usize) -> Result<FrameHeader, FileError> {
        let path = self.path.clone();
        self.file.seek(SeekFrom::Start(self.frames[index].0)).on("read", &path)?;
        Ok(frame::read_header(&mut self.file).on("read", &path)?.0)
    }

    /// Finds the frames of a file whose trailer is not whole.
    fn scan(&mut self, size: u64) -> io::Result<()> {
        loop {
            self.file.seek(SeekFrom::Start(self.end))?;
            let Ok((header, header_size)) = frame::read_header::<FrameHeader>(&mut self.file)
            else {
                break;
            };
            let Ok(data) = read_data(&mut self.file, &header) else {
                break;
            };
            if header.offset != self.length
                || frame::link(self.chains[1], &header, &data) != header.chain
            {
                break;
            }
            self.frames.push((self.end, header.offset));
            self.length += header.length;
            self.chains[1] = header.chain;
            self.note_move(header.moved);
            self.end += header_size + header.stored;
        }
        self.torn = Some(size.saturating_sub(self.end));
        self.file.seek(SeekFrom::Start(self.end))?;
        let mut rest = Vec::new();
        (&self.file).take(size.saturating_sub(self.end)).read_to_end(&mut rest)?;
        self.damaged = frame::holds_frames(&rest);
        Ok(())
    }
}

/// The header says where the source stood first; what is known from later on counts.
impl Sealed {
    fn note_move(&mut self, moved: Option<Moved>) {
        if let Some(Moved { path, root }) = &moved {
            self.header.path.clone_from(path);
            self.header.root.clone_from(root);
            self.moved = moved;
        }
    }
}

fn check_version(header: &FileHeader) -> io::Result<()> {
    if header.version == frame::VERSION {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "vault file of version {}, this steno reads version {}; a newer steno can read it",
            header.version,
            frame::VERSION
        ),
    ))
}

fn read_data(input: &mut impl Read, header: &FrameHeader) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    input.take(header.stored).read_to_end(&mut data)?;
    if data.len() as u64 == header.stored {
        Ok(data)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

struct FrameReader {
    sealed: Sealed,
    next: usize,
    buffer: Vec<u8>,
    position: usize,
    skip: usize,
    damage: Option<Problems>,
}

impl FrameReader {
    fn next_frame(&mut self) -> io::Result<Vec<u8>> {
        let (index, at) = (self.next, self.sealed.frames[self.next].0);
        self.next += 1;
        match (self.sealed.frame(index), &self.damage) {
            (Err(error), Some(problems)) => {
                let problem =
                    Problem::of(&self.sealed.path, format!("damaged frame at byte {at}: {error}"));
                problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
                Ok(Vec::new())
            }
            (result, _) => result,
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
        while self.position == self.buffer.len() && self.next < self.sealed.frames.len() {
            self.buffer = self.next_frame()?;
            self.position = std::mem::take(&mut self.skip).min(self.buffer.len());
        }
        Ok(&self.buffer[self.position..])
    }

    fn consume(&mut self, count: usize) {
        self.position += count;
    }
}

/// A sealed file opened for growing; the caller holds the session's lock.
#[derive(Debug)]
pub(crate) struct SealedWriter {
    sealed: Sealed,
    pending: Vec<u8>,
    /// Where the source was found, until a frame says so.
    moved: Option<Moved>,
    /// The trailer no longer says what is kept.
    unfinished: bool,
}

impl SealedWriter {
    /// Makes a new file.
    pub(crate) fn create(path: &Path, header: &FileHeader) -> Result<Self, FileError> {
        let (mut bytes, chain) = frame::begin(header);
        let trailer = Trailer { frames: Vec::new(), length: 0, chain, modified: None, moved: None };
        bytes.extend(frame::end(&trailer));
        durable::write_atomic(path, &bytes)?;
        Self::open(path)
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
        let mut writer = Self { sealed, pending: Vec::new(), moved: None, unfinished: false };
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

    /// Notes when the source was last changed.
    pub(crate) fn set_modified(&mut self, modified: Option<SystemTime>) {
        let nanos = modified.and_then(nanoseconds);
        if nanos.is_some() && nanos != self.sealed.modified {
            self.sealed.modified = nanos;
            self.unfinished = true;
        }
    }

    /// Notes where the source was found.
    pub(crate) fn set_place(&mut self, path: &Path, root: &Path) {
        let [path, root] = [path, root].map(|path| path.to_string_lossy().into_owned());
        let header = &self.sealed.header;
        self.moved = (header.path != path || header.root != root).then_some(Moved { path, root });
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
        self.sealed.file.sync_data().on("sync", &self.sealed.path)
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
        let (length, modified) = (offset + raw.len() as u64, self.sealed.modified);
        let trailer = Trailer { frames, length, chain: packed.header.chain, modified, moved };
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
        Trailer {
            frames: self.frames.clone(),
            length: self.length,
            chain: self.chains[1],
            modified: self.modified,
            moved: self.moved.clone(),
        }
    }

    fn append(&mut self, packed: &frame::Packed) {
        self.frames.push((self.end, packed.header.offset));
        self.length += packed.header.length;
        self.chains[1] = packed.header.chain;
        self.note_move(packed.header.moved.clone());
        self.end += packed.bytes.len() as u64;
    }
}

/// Nanoseconds since the Unix epoch, negative before it.
fn nanoseconds(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).ok(),
        Err(before) => i64::try_from(before.duration().as_nanos()).ok().map(|nanos| -nanos),
    }
}

fn write_at(file: &mut File, at: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn header() -> FileHeader {
        FileHeader {
            steno: frame::Tag::Vault,
            version: frame::VERSION,
            agent: "test".into(),
            session: "s".into(),
            name: "log.jsonl".into(),
            path: "/tmp/log.jsonl".into(),
            root: "/tmp".into(),
            generation: 0,
            gone: false,
            key: None,
            form: frame::Form::Bytes,
        }
    }

    fn content(path: &Path) -> Vec<u8> {
        let mut bytes = Vec::new();
        Sealed::open(path).unwrap().reader(0).read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn grow(path: &Path, pieces: &[&[u8]]) {
        let mut writer = if path.exists() {
            SealedWriter::open(path)
        } else {
            SealedWriter::create(path, &header())
        }
        .unwrap();
        for piece in pieces {
            writer.push(piece).unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn what_was_kept_comes_back_and_zstd_agrees() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.zst");
        let line = [b"x".repeat(1000), b"\n".to_vec()].concat();
        let pieces: Vec<&[u8]> = (0..3000).map(|_| line.as_slice()).collect();
        grow(&path, &pieces);
        assert_eq!(content(&path), line.repeat(3000));
        assert_eq!(Sealed::open(&path).unwrap().frame_count(), 3);
        let plain = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(plain, line.repeat(3000));
        let (begin, frame) = Sealed::open(&path).unwrap().frame_at(2_500_000).unwrap().unwrap();
        assert!(begin <= 2_500_000 && 2_500_000 < begin + frame.len() as u64);
        let mut tail = Vec::new();
        Sealed::open(&path).unwrap().reader(2_999_000).read_to_end(&mut tail).unwrap();
        assert_eq!(tail, &line.repeat(3000)[2_999_000..]);
    }

    #[test]
    fn small_growth_is_merged_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.zst");
        let mut expected = Vec::new();
        for round in 0..100 {
            let line = format!("line {round}\n");
            grow(&path, &[line.as_bytes()]);
            expected.extend(line.into_bytes());
        }
        assert_eq!(content(&path), expected);
        assert!(Sealed::open(&path).unwrap().frame_count() <= SMALL_FRAMES + 1);
    }

    #[test]
    fn cut_anywhere_whole_frames_survive_and_growth_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.zst");
        grow(&path, &[b"one\n"]);
        let one = fs::metadata(&path).unwrap().len();
        grow(&path, &[b"two\n"]);
        let whole = fs::read(&path).unwrap();
        let head = frame::begin(&header()).0.len();
        for cut in head..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let kept = content(&path);
            assert!(b"one\ntwo\n".starts_with(&kept), "cut at {cut}");
            assert!(cut < one as usize || !kept.is_empty(), "cut at {cut}");
            assert!(Sealed::open(&path).unwrap().torn().is_some());
            grow(&path, &[b"three\n"]);
            assert_eq!(content(&path), [kept, b"three\n".to_vec()].concat(), "cut at {cut}");
            assert!(Sealed::open(&path).unwrap().torn().is_none());
        }
    }

    /// Notes that the source was found at `path`, without anything new in it.
    fn move_to(path: &Path, place: &str) {
        let mut writer = SealedWriter::open(path).unwrap();
        writer.set_place(place.as_ref(), "/root".as_ref());
        assert!(writer.has_news());
        writer.finish().unwrap();
        writer.set_place(place.as_ref(), "/root".as_ref());
        assert!(!writer.has_news());
    }

    fn place(path: &Path) -> String {
        Sealed::open(path).unwrap().header().path.clone()
    }

    #[test]
    fn the_last_place_is_known_after_growth_merging_and_cuts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.zst");
        grow(&path, &[b"one\n"]);
        move_to(&path, "/new/log.jsonl");
        let moved = fs::metadata(&path).unwrap().len();
        assert_eq!(place(&path), "/new/log.jsonl");
        grow(&path, &[b"two\n"]);
        let whole = fs::read(&path).unwrap();
        for cut in moved as usize..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(place(&path), "/new/log.jsonl", "cut at {cut}");
            grow(&path, &[b"three\n"]);
            assert_eq!(place(&path), "/new/log.jsonl", "cut at {cut}");
        }
        let mut expected = content(&path);
        for round in 0..100 {
            move_to(&path, &format!("/{round}"));
            grow(&path, &[b"more\n"]);
            expected.extend(b"more\n");
            assert_eq!(place(&path), format!("/{round}"));
        }
        assert_eq!(content(&path), expected);
        assert!(Sealed::open(&path).unwrap().frame_count() <= SMALL_FRAMES + 2);
        let plain = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(plain, expected);
    }
}
