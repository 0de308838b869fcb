//! Presents records of a session as the file that they were lines of, for the readers of agents' files.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::SessionDir;
use super::log_scan::has_zero_bytes;
use super::record;
use super::recorder::RECORD_FILE;
use super::sealed::{SealedFile, SharedProblems};
use crate::line_hash::LineHashChain;
use crate::{SessionBundle, SessionFile};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};

/// Minimum distance between checkpoints, in bytes of records.
const CHECKPOINT_DISTANCE: u64 = 256 << 10;

/// A location between two lines of a recording.
#[derive(Clone, Copy, Debug)]
pub struct LineLocation {
    /// The offset of the next line.
    pub position: u64,
    /// Number of lines before.
    pub number: u64,
    chain: LineHashChain,
}

impl LineLocation {
    /// The location before the first line.
    pub const START: Self = Self { position: 0, number: 0, chain: LineHashChain::START };

    /// Checks the hash of a line that starts at `position`, and advances past it. Returns whether the hash is right.
    pub fn check_and_pass(&mut self, line: &[u8], position: u64) -> bool {
        self.position = position + line.len() as u64 + 1;
        self.number += 1;
        self.chain.check(line)
    }
}

/// The lines that recorders wrote, sealed or not.
pub struct RecordLines {
    parts: VecDeque<RecordPart>,
}

struct RecordPart {
    path: Arc<Path>,
    input: Box<dyn BufRead>,
    /// The offset of the next byte in the recording.
    position: u64,
    /// The live log that this part is; `None` for the sealed part.
    log: Option<LiveLogPart>,
}

struct LiveLogPart {
    dir: SessionDir,
    /// The offset of the log's first byte in the recording.
    base: u64,
}

impl RecordPart {
    /// Whether the byte at `position` was known to be on disk. Reads the head file of a log.
    fn is_durable(&self) -> Result<bool, FileError> {
        let Some(LiveLogPart { dir, base }) = &self.log else { return Ok(true) };
        Ok(self.position < base.saturating_add(dir.durable_log_length(&self.path)?))
    }
}

impl RecordLines {
    /// Opens the recording of a session at an offset. Skips damage and adds it to `problems`.
    pub fn open(dir: &SessionDir, at: u64, problems: &SharedProblems) -> Result<Self, FileError> {
        // Open live logs before the sealed file: if one is sealed and removed meanwhile, its sealed part is found
        // twice and skipped once, instead of being missed.
        let mut logs = Vec::new();
        for (base, path) in dir.live_logs()? {
            match store_fs::open(&path) {
                Ok(file) => logs.push((base, path, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).on("open", &path),
            }
        }
        let mut parts = VecDeque::new();
        let mut length = 0;
        if dir.has_sealed_record()? {
            let sealed = dir.open_sealed(RECORD_FILE, 0)?;
            length = sealed.length();
            if at < length {
                let path = Arc::from(dir.sealed_record_path());
                let input =
                    open_sealed_part(sealed, at, problems).on("read", &dir.sealed_record_path())?;
                parts.push_back(RecordPart { path, input, position: at, log: None });
            }
        }
        for (base, path, mut file) in logs {
            let position = at.max(length).max(base);
            file.seek(SeekFrom::Start(position - base)).on("read", &path)?;
            let input = Box::new(BufReader::new(file));
            let log = Some(LiveLogPart { dir: dir.clone(), base });
            parts.push_back(RecordPart { path: Arc::from(path), input, position, log });
        }
        Ok(Self { parts })
    }

    /// Reads the next line into `line`, without its newline. Returns its file and offset, or `None` at the end. Its hash is
    /// not checked.
    pub fn read_line(&mut self, line: &mut Vec<u8>) -> Result<Option<(Arc<Path>, u64)>, FileError> {
        while let Some(part) = self.parts.front_mut() {
            line.clear();
            part.input.read_until(b'\n', line).on("read", &part.path)?;
            // A line without a newline is still being written. The next recorder cuts it off, with any pages that
            // never reached the disk. Zeros in a line that did reach it are damage.
            if line.pop() == Some(b'\n') && (!has_zero_bytes(line) || part.is_durable()?) {
                let position = part.position;
                part.position += line.len() as u64 + 1;
                return Ok(Some((Arc::clone(&part.path), position)));
            }
            self.parts.pop_front();
        }
        Ok(None)
    }
}

/// The bytes of a sealed recording from offset `at` on. Skips frames that cannot be unpacked; all damage is added to
/// `problems`.
fn open_sealed_part(
    sealed: SealedFile,
    at: u64,
    problems: &SharedProblems,
) -> io::Result<Box<dyn BufRead>> {
    let is_whole = problems.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
    if at > 0 && is_whole {
        return Ok(Box::new(sealed.reader_from(at)));
    }
    // Skipped frames shift the bytes after them, so offsets are counted from the start.
    let mut input = sealed.lenient_reader(Arc::clone(problems));
    io::copy(&mut input.by_ref().take(at), &mut io::sink())?;
    Ok(Box::new(input))
}

/// The log of a session's records.
#[derive(Clone, Debug)]
pub struct RecordedLog {
    /// The session.
    pub dir: SessionDir,
    /// Damage found so far.
    pub problems: SharedProblems,
}

/// Consecutive records of a session.
#[derive(Clone, Debug)]
pub struct RecordedFile {
    dir: SessionDir,
    begin: LineLocation,
    /// The numbers of their lines.
    lines: Range<u64>,
    /// The file name. Some readers use its extension to distinguish documents from lines.
    name: &'static str,
    /// Whether it ends at the next start of a recorder, unless that follows the first record.
    is_one_recording: bool,
    /// Damage found in the log. With damage, offsets are found by reading from the start.
    problems: SharedProblems,
}

impl RecordedFile {
    /// The records from `begin` on, up to the line of number `end`.
    pub fn lines(log: &RecordedLog, begin: LineLocation, end: u64) -> Self {
        let (dir, problems) = (log.dir.clone(), Arc::clone(&log.problems));
        let (lines, name) = (begin.number..end, "record.jsonl");
        Self { dir, begin, lines, name, is_one_recording: false, problems }
    }

    /// The records from `begin` on that one recorder wrote. After a single record, the next recorder's are included.
    pub fn recording(log: &RecordedLog, begin: LineLocation) -> Self {
        Self { is_one_recording: true, ..Self::lines(log, begin, u64::MAX) }
    }

    /// The one record at `begin`, as a document.
    pub fn document(log: &RecordedLog, begin: LineLocation) -> Self {
        Self { name: "record.json", ..Self::lines(log, begin, begin.number + 1) }
    }

    /// The records as a bundle for a reader.
    pub fn to_bundle(&self) -> SessionBundle {
        let path = self.dir.path().join(self.name);
        SessionBundle::new(&path, vec![self.to_source(path.clone())])
    }

    fn to_source(&self, path: PathBuf) -> SessionFile {
        let file = self.clone();
        let first = Checkpoint { offset: 0, place: self.begin };
        let checkpoints = Arc::new(Mutex::new(vec![first]));
        SessionFile::with_opener(self.name, path, move |at| {
            let known = checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
            let index = known.partition_point(|point| point.offset <= at).saturating_sub(1);
            let Checkpoint { offset, place } = known[index];
            drop(known);
            let lines = RecordLines::open(&file.dir, place.position, &file.problems);
            let mut input = RecordedBytes {
                lines: lines.map_err(io::Error::other)?,
                place,
                range: file.lines.clone(),
                is_one_recording: file.is_one_recording,
                count: 0,
                line: Vec::new(),
                record: Vec::new(),
                consumed: 0,
                offset,
                checkpoints: Arc::clone(&checkpoints),
            };
            io::copy(&mut input.by_ref().take(at - offset), &mut io::sink())?;
            Ok(Box::new(input))
        })
    }
}

/// The location of a record, for reading from an offset.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    /// Bytes of records before it.
    offset: u64,
    place: LineLocation,
}

/// The bytes of records, each as one line.
struct RecordedBytes {
    lines: RecordLines,
    place: LineLocation,
    range: Range<u64>,
    is_one_recording: bool,
    /// Number of records read.
    count: usize,
    line: Vec<u8>,
    /// The current record, and how many bytes of it were consumed.
    record: Vec<u8>,
    consumed: usize,
    /// Bytes of records up to the end of the current one.
    offset: u64,
    checkpoints: Arc<Mutex<Vec<Checkpoint>>>,
}

impl RecordedBytes {
    /// Reads the next record. `record` is empty at the end.
    fn read_record(&mut self) -> io::Result<()> {
        self.record.clear();
        self.consumed = 0;
        while self.place.number < self.range.end {
            let place = self.place;
            let line = self.lines.read_line(&mut self.line).map_err(io::Error::other)?;
            let Some((_, position)) = line else { break };
            let place = LineLocation { position, ..place };
            // Damaged lines are reported where the log itself is read.
            if !self.place.check_and_pass(&self.line, position) || place.number < self.range.start {
                continue;
            }
            if self.is_one_recording && self.count > 1 && record::holds_opening(&self.line) {
                self.range.end = place.number;
            }
            let Some(json) = record::json_of(&self.line) else { continue };
            self.record.extend_from_slice(&json);
            self.record.push(b'\n');
            self.note_checkpoint(place);
            self.offset += self.record.len() as u64;
            self.count += 1;
            break;
        }
        Ok(())
    }

    fn note_checkpoint(&self, place: LineLocation) {
        let mut known = self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known.last().map_or(0, |point| point.offset);
        if self.offset >= last + CHECKPOINT_DISTANCE {
            known.push(Checkpoint { offset: self.offset, place });
        }
    }
}

impl Read for RecordedBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buffer.len());
        buffer[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for RecordedBytes {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.consumed == self.record.len() {
            self.read_record()?;
        }
        Ok(&self.record[self.consumed..])
    }

    fn consume(&mut self, count: usize) {
        self.consumed += count;
    }
}
