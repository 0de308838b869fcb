//! A live log: plain JSON Lines, appended record by record while a session runs.
//!
//! # Durability
//! [`Tail::write`] returns after the bytes are in the file, [`LiveLog::sync`] after they are on disk.
//!
//! # Integrity
//! Each line begins with the sum of itself and of the line before it, so a changed, missing or added line shows.
//! A small file beside the log holds the length and sum that were last known to be on disk, so that a log cut at
//! a line's end shows too.
//!
//! # Locking
//! Lines are written under an exclusive lock on the session's lock file; whoever gets the lock first takes in what other
//! processes have written meanwhile. What a killed process left half written is cut off then: nobody was told
//! that it is safe.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::head::Head;
use crate::durable::{self, FileError, OnPath};

/// The sum before the first line.
pub(crate) const FIRST_SUM: Sum = Sum([b'0'; Sum::WIDTH]);

/// A line's sum: 128 bits of blake3 over the sum before it and the line's body, in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sum([u8; Sum::WIDTH]);

impl Sum {
    const WIDTH: usize = 32;
    pub(crate) const PREFIX: &[u8] = b"{\"sum\":\"";
    const SUFFIX: &[u8] = b"\",";

    /// The sum of a line whose body follows `self`.
    pub(crate) fn next(&self, body: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(body);
        let hex = hasher.finalize().to_hex();
        let mut sum = [0; Self::WIDTH];
        sum.copy_from_slice(&hex.as_bytes()[..Self::WIDTH]);
        Self(sum)
    }

    /// The sum that a line states, and the body after it.
    pub(crate) fn split(line: &[u8]) -> Option<(Self, &[u8])> {
        let rest = line.strip_prefix(Self::PREFIX)?;
        let (sum, rest) = rest.split_at_checked(Self::WIDTH)?;
        let body = rest.strip_prefix(Self::SUFFIX)?;
        Some((Self(sum.try_into().ok()?), body))
    }

    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or("?")
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.as_bytes().try_into().ok().map(Self)
    }
}

/// A live log, shared by threads of this process and by other processes.
#[derive(Debug)]
pub(crate) struct LiveLog {
    path: PathBuf,
    file: File,
    lock: File,
    state: Mutex<State>,
    /// Up to where the file is on disk.
    durable: AtomicU64,
    /// A write or sync failed: what the file holds and what we think it holds may differ.
    failed: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// Where the file ended when we last looked, always after a whole line.
    end: u64,
    /// The sum of the line that ends there.
    sum: Sum,
    /// Where it is written down what is on disk; touched under the lock only.
    head: File,
}

/// The files of a live log.
pub(crate) struct LivePaths<'a> {
    pub(crate) log: &'a Path,
    pub(crate) head: &'a Path,
    pub(crate) lock: &'a Path,
}

impl LiveLog {
    /// Opens or makes a log whose first line follows `before`.
    pub(crate) fn open(paths: &LivePaths<'_>, before: Sum) -> Result<Self, FileError> {
        let path = paths.log;
        // Before the log itself, so that no log is ever without one.
        let head = Head::open(paths.head)?;
        let new = !path.exists();
        let file = durable::private_options()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .on("open", path)?;
        if new {
            durable::sync_dir(durable::parent(path))?;
        }
        let lock = open_lock(paths.lock)?;
        let state = State { end: 0, sum: before, head };
        Ok(Self {
            path: path.to_owned(),
            file,
            lock,
            state: Mutex::new(state),
            durable: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        })
    }

    /// Takes the lock, and takes in what was written since we last had it.
    pub(crate) fn lock(&self) -> Result<Tail<'_>, FileError> {
        let state = self.state();
        self.check()?;
        self.lock.lock().on("lock", &self.path)?;
        let sum = state.sum;
        let mut tail =
            Tail { log: self, state, sum, pending: Vec::new(), news: Vec::new(), cut: 0, lost: 0 };
        tail.catch_up()?;
        Ok(tail)
    }

    /// Returns after everything that was appended is on disk.
    pub(crate) fn sync(&self) -> Result<(), FileError> {
        let state = self.state();
        let (end, sum) = (state.end, state.sum);
        drop(state);
        if self.durable.load(Ordering::Acquire) >= end {
            return Ok(());
        }
        self.check()?;
        let result = self.file.sync_data().on("sync", &self.path);
        self.failed.fetch_or(result.is_err(), Ordering::AcqRel);
        result?;
        self.durable.fetch_max(end, Ordering::AcqRel);
        self.note_durable(Head { length: end, sum })
    }

    /// Refuses to go on after a failure.
    fn check(&self) -> Result<(), FileError> {
        if self.failed.load(Ordering::Acquire) {
            return Err(io::Error::other("an earlier write to it failed")).on("write", &self.path);
        }
        Ok(())
    }

    /// Writes down, next to the log, what is known to be on disk.
    ///
    /// The state is held meanwhile: threads share one lock file, which knows no owners among them.
    fn note_durable(&self, head: Head) -> Result<(), FileError> {
        let mut state = self.state();
        self.lock.lock().on("lock", &self.path)?;
        // Only where others have written may a greater length have been noted.
        let alone = self.file.metadata().is_ok_and(|metadata| metadata.len() == state.end);
        let result =
            if alone { head.replace(&mut state.head) } else { head.advance(&mut state.head) };
        self.lock.unlock().on("unlock", &self.path)?;
        result.on("write the head of", &self.path)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a session's lock file.
pub(crate) fn open_lock(path: &Path) -> Result<File, FileError> {
    durable::private_options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)
        .on("open", path)
}

/// The end of a live log, held under the lock.
#[derive(Debug)]
pub(crate) struct Tail<'a> {
    log: &'a LiveLog,
    state: MutexGuard<'a, State>,
    sum: Sum,
    pending: Vec<u8>,
    news: Vec<Vec<u8>>,
    cut: u64,
    lost: u64,
}

impl Tail<'_> {
    /// Whole lines that others wrote since we last had the lock (all lines, the first time).
    pub(crate) fn take_news(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.news)
    }

    /// How many bytes of an unfinished record were cut off.
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    /// How many bytes are missing that were known to be on disk.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Adds a record to what [`Tail::write`] writes; `body` is the line's JSON object without its opening brace.
    ///
    /// Gives the line's sum.
    pub(crate) fn append(&mut self, body: &[u8]) -> Sum {
        let sum = self.sum.next(body);
        for part in [Sum::PREFIX, &sum.0, Sum::SUFFIX, body, b"\n"] {
            self.pending.extend_from_slice(part);
        }
        self.sum = sum;
        sum
    }

    /// Writes what was appended, in one piece. Without this, nothing is written.
    pub(crate) fn write(mut self) -> Result<(), FileError> {
        if let Err(error) = (&self.log.file).write_all(&self.pending) {
            // A full disk must not leave half a record behind.
            let _ = self.log.file.set_len(self.state.end);
            self.log.failed.store(true, Ordering::Release);
            return Err(error).on("write", &self.log.path);
        }
        self.state.end += self.pending.len() as u64;
        self.state.sum = self.sum;
        Ok(())
    }

    fn catch_up(&mut self) -> Result<(), FileError> {
        let path = &self.log.path;
        let size = self.log.file.metadata().on("read", path)?.len();
        if size < self.state.end {
            return Err(io::Error::other("the log was cut while it was open")).on("read", path);
        }
        if size == self.state.end {
            return Ok(());
        }
        let mut file = &self.log.file;
        let mut added = Vec::new();
        file.seek(SeekFrom::Start(self.state.end)).on("read", path)?;
        file.take(size - self.state.end).read_to_end(&mut added).on("read", path)?;
        let known = Head::read_from(&mut self.state.head).ok().flatten();
        let healed = heal(&self.log.file, self.state.end, &mut added, known).on("write", path)?;
        self.cut = healed.cut;
        let whole = added.len();
        for line in added.split_inclusive(|byte| *byte == b'\n') {
            let line = &line[..line.len() - 1];
            if let Some((sum, _)) = Sum::split(line) {
                self.state.sum = sum;
            }
            self.news.push(line.to_vec());
        }
        self.state.end += whole as u64;
        self.sum = self.state.sum;
        if let Some(known) = known.filter(|known| known.length > size) {
            self.lost = known.length - self.state.end;
            let head = Head { length: self.state.end, sum: self.sum };
            head.replace(&mut self.state.head).on("write the head of", path)?;
        }
        Ok(())
    }
}

/// What was done to a log that ended in the middle of a line.
pub(crate) struct Healed {
    /// Bytes that were cut off.
    pub(crate) cut: u64,
}

/// Makes a log end with a line; `added` are its bytes from `begin` on.
///
/// Half a line that nobody was told of is cut off. One that was known to be on disk has lost only its newline: it
/// gets one, so that it is read as a damaged record and nothing is glued to it.
pub(crate) fn heal(
    file: &File,
    begin: u64,
    added: &mut Vec<u8>,
    known: Option<Head>,
) -> io::Result<Healed> {
    let whole = memchr::memrchr(b'\n', added).map_or(0, |at| at + 1);
    let torn = (added.len() - whole) as u64;
    let (line, size) = (begin + whole as u64, begin + added.len() as u64);
    if torn == 0 {
        return Ok(Healed { cut: 0 });
    }
    if known.is_some_and(|known| line < known.length && known.length <= size) {
        let mut file = file;
        file.seek(SeekFrom::End(0))?;
        file.write_all(b"\n")?;
        added.push(b'\n');
        return Ok(Healed { cut: 0 });
    }
    file.set_len(line)?;
    added.truncate(whole);
    Ok(Healed { cut: torn })
}

impl Drop for Tail<'_> {
    fn drop(&mut self) {
        // Closing the file would release it too; there is nobody to tell.
        let _ = self.log.lock.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Bench {
        _dir: tempfile::TempDir,
        log: PathBuf,
        head: PathBuf,
        lock: PathBuf,
    }

    impl Bench {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            Self { log: at("log"), head: at("head"), lock: at("lock"), _dir: dir }
        }

        fn open(&self) -> LiveLog {
            let paths = LivePaths { log: &self.log, head: &self.head, lock: &self.lock };
            LiveLog::open(&paths, FIRST_SUM).unwrap()
        }
    }

    fn append(log: &LiveLog, body: &str) {
        let mut tail = log.lock().unwrap();
        tail.append(body.as_bytes());
        tail.write().unwrap();
    }

    #[test]
    fn two_writers_see_each_other() {
        let bench = Bench::new();
        let (one, two) = (bench.open(), bench.open());
        append(&one, "\"n\":1}");
        append(&two, "\"n\":2}");
        append(&one, "\"n\":3}");
        one.sync().unwrap();
        let mut sum = FIRST_SUM;
        let text = fs::read(&bench.log).unwrap();
        let lines: Vec<_> =
            text.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 3);
        for line in lines {
            let (stated, body) = Sum::split(line).unwrap();
            assert_eq!(stated, sum.next(body));
            sum = stated;
        }
        assert_eq!(Head::read(&bench.head).unwrap().unwrap().length, text.len() as u64);
    }

    #[test]
    fn a_torn_tail_is_cut_and_told() {
        let bench = Bench::new();
        append(&bench.open(), "\"n\":1}");
        let whole = fs::read(&bench.log).unwrap();
        fs::write(&bench.log, [whole.as_slice(), b"{\"sum\":\"12"].concat()).unwrap();
        let log = bench.open();
        let mut tail = log.lock().unwrap();
        assert_eq!(tail.cut(), 10);
        assert_eq!(tail.take_news().len(), 1);
        drop(tail);
        assert_eq!(fs::read(&bench.log).unwrap(), whole);
    }
}
