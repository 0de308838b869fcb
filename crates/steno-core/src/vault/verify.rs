//! Checks every byte of a vault: nothing was changed, is missing or was added.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::frame::{self, FileHeader, Form, FrameHeader, Trailer};
use super::head::Head;
use super::live::{FIRST_SUM, Sum, open_lock};
use super::manifest::MANIFEST;
use super::notes::NOTES;
use super::recorder::RECORD;
use super::sealed::Sealed;
use super::{SessionDir, Vault, entries, file_name, kept_file};
use crate::durable::{self, FileError, OnPath};
use crate::session::SessionId;

/// What was found in a vault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Sessions looked at.
    pub sessions: u64,
    /// Files that hold records, sealed or live.
    pub files: u64,
    /// Bytes of sources that are whole.
    pub bytes: u64,
    /// Bytes of records that killed recorders left half written; the next recorder cuts them off.
    pub unfinished: u64,
    /// What is not as it was written.
    pub damage: Vec<Damage>,
}

/// A place where a file is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The first byte that cannot be vouched for.
    pub offset: u64,
    /// What is wrong.
    pub reason: String,
}

impl Vault {
    /// Checks everything that is kept, telling `progress` of each session first.
    pub fn verify(&self, progress: &mut dyn FnMut(&SessionDir)) -> Result<Report, FileError> {
        let mut report = Report::default();
        let sessions = self.sessions()?;
        report.strays(self.root())?;
        for session in &sessions {
            progress(session);
            report.session(session)?;
        }
        Ok(report)
    }
}

impl SessionDir {
    /// Checks one session.
    pub fn verify(&self) -> Result<Report, FileError> {
        let mut report = Report::default();
        report.session(self)?;
        Ok(report)
    }
}

impl Report {
    fn damage(&mut self, path: &Path, offset: u64, reason: impl Into<String>) {
        self.damage.push(Damage { path: path.to_owned(), offset, reason: reason.into() });
    }

    /// Finds what stands beside the sessions' folders.
    fn strays(&mut self, root: &Path) -> Result<(), FileError> {
        let is_folder =
            |path: &Path, name: &str| path.is_dir() && name.parse::<SessionId>().is_ok();
        for agent in entries(root)? {
            let dir = root.join(&agent);
            if !is_folder(&dir, &agent) {
                self.damage(&dir, 0, "not a file of the vault");
                continue;
            }
            for name in entries(&dir)? {
                let path = dir.join(&name);
                if !is_folder(&path, &name) {
                    self.damage(&path, 0, "not a file of the vault");
                }
            }
        }
        Ok(())
    }

    fn session(&mut self, dir: &SessionDir) -> Result<(), FileError> {
        // Nobody writes while we look; where no lock can be made, nobody can write either.
        let lock = open_lock(&dir.lock_path()).ok();
        if let Some(lock) = &lock {
            lock.lock().on("lock", &dir.lock_path())?;
        }
        self.sessions += 1;
        for name in entries(dir.path())? {
            let path = dir.path().join(&name);
            if durable::is_leftover(&path) {
                continue;
            }
            if name == MANIFEST {
                self.listed(dir, &path)?;
            } else if kept_file(&name).is_some() {
                self.sealed(dir, &path, &name)?;
            } else if [dir.lock_path(), dir.users_path()].contains(&path) {
                self.empty(&path)?;
            } else if name.starts_with(NOTES) {
                self.notes(dir, &path)?;
            } else if let Some(base) = lone_head(dir, &name)? {
                self.lone_head(dir, base, &path);
            } else if !self.live(dir, &path)? {
                self.damage(&path, 0, "not a file of the vault");
            }
        }
        Ok(())
    }

    /// Finds sealed files that the session's list names and that are not there.
    fn listed(&mut self, dir: &SessionDir, path: &Path) -> Result<(), FileError> {
        match dir.listed_files() {
            Ok(names) => {
                for missing in
                    names.iter().map(|name| dir.path().join(name)).filter(|path| !path.exists())
                {
                    self.damage(&missing, 0, "the file is missing");
                }
            }
            Err(error) => self.damage(path, 0, error.source.to_string()),
        }
        Ok(())
    }

    fn empty(&mut self, path: &Path) -> Result<(), FileError> {
        if fs::metadata(path).on("read", path)?.len() > 0 {
            self.damage(path, 0, "a lock file that is not empty");
        }
        Ok(())
    }

    fn sealed(&mut self, dir: &SessionDir, path: &Path, name: &str) -> Result<(), FileError> {
        self.files += 1;
        let mut input = BufReader::new(File::open(path).on("open", path)?);
        match check_sealed(&mut input, dir, name) {
            Ok(length) => self.bytes += length,
            Err(Stop { offset, error }) => {
                self.damage(path, offset, error.to_string());
                return Ok(());
            }
        }
        let sealed = Sealed::open(path)?;
        if sealed.header().form == Form::Pointer
            && let Err(error) = dir.pointed_to(&sealed)
        {
            self.damage(path, 0, error.source.to_string());
        }
        Ok(())
    }

    /// Checks a live log or its head; says whether the file is one.
    fn live(&mut self, dir: &SessionDir, path: &Path) -> Result<bool, FileError> {
        for (base, log) in dir.live_logs()? {
            let (_, head_path) = dir.live_paths(base);
            if path == log {
                self.lines((path, &head_path), last_sealed_sum(dir, base))?;
                return Ok(true);
            }
            if path == head_path {
                self.head(path);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn head(&mut self, path: &Path) {
        if Head::read(path).is_err() {
            self.damage(path, 0, "damaged head");
        }
    }

    /// Checks the log of notes or its head.
    fn notes(&mut self, dir: &SessionDir, path: &Path) -> Result<(), FileError> {
        let (log, head) = dir.notes_paths();
        if path == log {
            return self.lines((path, &head), Some(FIRST_SUM));
        }
        if path != head {
            self.damage(path, 0, "not a file of the vault");
        } else if log.exists() {
            self.head(path);
        } else if Head::read(path).ok().flatten().is_some_and(|head| head.length > 0) {
            self.damage(&log, 0, "the file is missing");
        }
        Ok(())
    }

    /// Checks a head whose log is not there: a recorder ended before it was removed, or the log was.
    fn lone_head(&mut self, dir: &SessionDir, base: u64, path: &Path) {
        let length = Head::read(path).ok().flatten().map_or(0, |head| head.length);
        let sealed = Sealed::open(&dir.record_path()).map_or(0, |sealed| sealed.length());
        if base + length > sealed {
            self.damage(&path.with_extension(""), 0, "the file is missing");
        }
    }

    /// Checks a log, which stands beside its head, and whose first line follows this sum.
    fn lines(
        &mut self,
        (path, head_path): (&Path, &Path),
        mut sum: Option<Sum>,
    ) -> Result<(), FileError> {
        self.files += 1;
        let bytes = fs::read(path).on("read", path)?;
        if !head_path.exists() {
            self.damage(head_path, 0, "the file is missing");
        }
        let head = Head::read(head_path).ok().flatten();
        let safe = head.map_or(0, |head| head.length);
        let mut offset = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !line.ends_with(b"\n") && offset >= safe {
                // A recorder was killed in the middle of it; nobody was told that it is safe.
                self.unfinished += line.len() as u64;
                break;
            }
            match check_line(line, sum) {
                Ok(stated) => sum = Some(stated),
                Err(reason) => {
                    self.damage(path, offset, reason);
                    sum = Sum::split(line).map(|(stated, _)| stated);
                }
            }
            offset += line.len() as u64;
            if head
                .is_some_and(|head| head.length == offset && sum.is_some_and(|sum| sum != head.sum))
            {
                self.damage(path, offset, "another end than its head says");
            }
        }
        self.bytes += offset;
        if offset < safe {
            self.damage(path, offset, format!("{} bytes are missing at the end", safe - offset));
        }
        Ok(())
    }
}

/// Where the log of a head begins, if the log itself is not there.
fn lone_head(dir: &SessionDir, name: &str) -> Result<Option<u64>, FileError> {
    let base = name.strip_prefix(RECORD).and_then(|rest| rest.strip_prefix(".live."));
    let base = base.and_then(|rest| rest.strip_suffix(".head")).and_then(|base| base.parse().ok());
    Ok(base.filter(|base| !dir.live_paths(*base).0.exists()))
}

/// The sum that a live log's first line follows; nothing when that cannot be told.
fn last_sealed_sum(dir: &SessionDir, base: u64) -> Option<Sum> {
    if base == 0 {
        return Some(FIRST_SUM);
    }
    let mut sealed = Sealed::open(&dir.record_path()).ok()?;
    let (begin, frame) = sealed.frame_at(base - 1).ok()??;
    let sealed = frame.get(..usize::try_from(base - begin).ok()?)?.strip_suffix(b"\n")?;
    let line = sealed.rsplit(|byte| *byte == b'\n').next()?;
    Sum::split(line).map(|(sum, _)| sum)
}

fn check_line(line: &[u8], before: Option<Sum>) -> Result<Sum, &'static str> {
    let line = line.strip_suffix(b"\n").ok_or("an unfinished record")?;
    let (stated, body) = Sum::split(line).ok_or("a line that is not a record")?;
    match before {
        Some(before) if before.next(body) != stated => {
            Err("a record that was changed, or one missing before it")
        }
        _ => Ok(stated),
    }
}

/// Where checking a file stopped.
struct Stop {
    offset: u64,
    error: io::Error,
}

/// Walks a sealed file from its first to its last byte; gives how many bytes of the source it holds.
fn check_sealed(input: &mut impl Read, dir: &SessionDir, name: &str) -> Result<u64, Stop> {
    let mut at = 0;
    let stop = |offset| move |error| Stop { offset, error };
    let (header, size): (FileHeader, u64) = frame::read_header(input).map_err(stop(at))?;
    check_header(&header, dir, name).map_err(stop(at))?;
    let (_, chain) = frame::begin(&header);
    let mut trailer = Trailer::empty(chain);
    at += size;
    let mut rest = Vec::new();
    // Our own records have sums inside, too.
    let mut sum = (header.name == RECORD && name.starts_with(RECORD)).then_some(FIRST_SUM);
    loop {
        let begin = at;
        let mut copy = Copying { input: &mut *input, copied: Vec::new() };
        let Ok((header, size)) = frame::read_header::<FrameHeader>(&mut copy) else {
            rest.append(&mut copy.copied);
            break;
        };
        let raw = check_frame(input, &header, &trailer).map_err(stop(begin))?;
        if let Some(sum) = &mut sum {
            *sum = check_lines(&raw, *sum).map_err(stop(begin))?;
        }
        trailer.frames.push((begin, header.offset));
        trailer.length += header.length;
        trailer.chain = header.chain;
        trailer.moved = header.moved.or(trailer.moved);
        at += size + header.stored;
    }
    input.read_to_end(&mut rest).map_err(stop(at))?;
    let trailer = trailer.with(frame::stated(&rest).unwrap_or_default());
    if rest == frame::end(&trailer) {
        Ok(trailer.length)
    } else {
        Err(stop(at)(frame::damaged("neither a frame nor the end of the file, or bytes after it")))
    }
}

/// Makes sure that a file belongs where it stands.
pub(super) fn check_header(header: &FileHeader, dir: &SessionDir, name: &str) -> io::Result<()> {
    let here = (header.agent.as_str(), header.session.as_str()) == (dir.agent(), dir.id().as_str());
    let kept = kept_file(name);
    let own = kept == Some((RECORD.to_owned(), 0)) && header.name == RECORD;
    let named = own || kept == Some((file_name(&header.name), header.generation));
    if here && named { Ok(()) } else { Err(frame::damaged("a file of another session or name")) }
}

fn check_lines(lines: &[u8], mut sum: Sum) -> io::Result<Sum> {
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        sum = check_line(line, Some(sum)).map_err(frame::damaged)?;
    }
    Ok(sum)
}

fn check_frame(
    input: &mut impl Read,
    header: &FrameHeader,
    before: &Trailer,
) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    input.take(header.stored).read_to_end(&mut data)?;
    if data.len() as u64 != header.stored {
        return Err(frame::damaged("the frame is cut off"));
    }
    if header.offset != before.length || frame::link(before.chain, header, &data) != header.chain {
        return Err(frame::damaged("the frame was changed, or one is missing before it"));
    }
    let raw = frame::unpack(header, &data)?;
    if blake3::hash(&raw) != header.blake3.0 {
        return Err(frame::damaged("the frame holds other bytes than were kept"));
    }
    Ok(raw)
}

/// Remembers what was read, for when it turns out to be something else.
struct Copying<R> {
    input: R,
    copied: Vec<u8>,
}

impl<R: Read> Read for Copying<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.copied.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}
