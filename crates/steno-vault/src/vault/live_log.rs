//! A live log: plain JSON Lines to which records are appended, such as a running recording or the journal.
//!
//! # Durability
//! [`LiveLogTail::write`] returns when the bytes are in the file, [`LiveLog::sync`] when they are on disk.
//!
//! # Integrity
//! Each line starts with a hash over the previous line's hash and its own body, so a changed, missing or added line
//! is detected. The head file holds the last length and hash known to be on disk, so a log cut at a line end is
//! detected too.
//!
//! # Locking
//! Lines are written under an exclusive lock on the session's lock file. After locking, a writer first reads what
//! other processes wrote, and cuts off a torn line of a killed process: nothing acknowledged it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::log_head::{LogHead, LogHeadFile};
use super::log_scan::scan_log;
use crate::line_hash::LineHash;
use steno_cipher::{StoreFile, StoreOptions, store_fs};
use steno_model::durable::{self, FileError, OnPath};

/// A live log, shared by threads and processes.
#[derive(Debug)]
pub(crate) struct LiveLog {
    path: PathBuf,
    file: StoreFile,
    lock_file: File,
    state: Mutex<LiveLogState>,
    /// The offset up to which the file is on disk.
    durable: AtomicU64,
    /// A write or sync failed, so the file's content is uncertain.
    has_failed: AtomicBool,
}

#[derive(Debug)]
struct LiveLogState {
    /// End of the file at the last check, always after a complete line.
    end: LogHead,
    /// The head file, used only under the lock.
    head: StoreFile,
    /// Whether the log was read since it was opened.
    was_read: bool,
}

/// The files of a live log.
pub(crate) struct LiveLogPaths<'a> {
    pub(crate) log: &'a Path,
    pub(crate) head: &'a Path,
    pub(crate) lock: &'a Path,
}

impl LiveLog {
    /// Opens or creates a log. Its first line follows the hash `before`.
    pub(crate) fn open(paths: &LiveLogPaths<'_>, before: LineHash) -> Result<Self, FileError> {
        let path = paths.log;
        let new = !store_fs::exists(path);
        // The head file is created first and synced, so that no log exists without one.
        let head = LogHead::open_file(paths.head)?;
        if new {
            store_fs::sync_dir(durable::parent_folder(path))?;
        }
        let file = StoreOptions::appending().open(path).on("open", path)?;
        if new {
            store_fs::sync_dir(durable::parent_folder(path))?;
        }
        let lock = open_lock_file(paths.lock)?;
        let state =
            LiveLogState { end: LogHead { length: 0, line_hash: before }, head, was_read: false };
        Ok(Self {
            path: path.to_owned(),
            file,
            lock_file: lock,
            state: Mutex::new(state),
            durable: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Skips the part that the head file covers, for callers that only append.
    pub(crate) fn skip_to_head(&self) -> Result<(), FileError> {
        let mut state = self.state();
        self.lock_file.lock().on("lock", &self.path)?;
        let head = LogHeadFile::read_from(&mut state.head).ok().and_then(|head| head.last);
        let is_intact = head.map_or(Ok(false), |head| self.ends_line_at(head.length));
        self.lock_file.unlock().on("unlock", &self.path)?;
        if let Some(head) = head.filter(|_| is_intact.is_ok_and(|is_intact| is_intact)) {
            state.end = head;
        }
        Ok(())
    }

    /// Whether a line ends at this offset. Otherwise the log was cut or changed, and must be scanned before it grows:
    /// a record appended to a line without its newline would be lost with that line.
    fn ends_line_at(&self, offset: u64) -> io::Result<bool> {
        let Some(last) = offset.checked_sub(1) else { return Ok(true) };
        let (mut file, mut byte) = (&self.file, [0]);
        file.seek(SeekFrom::Start(last))?;
        Ok(file.read(&mut byte)? == 1 && byte == *b"\n")
    }

    /// Takes the lock, and calls `take` with each line written since the last time.
    pub(crate) fn lock_tail(
        &self,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<LiveLogTail<'_>, FileError> {
        let state = self.state();
        self.check_not_failed()?;
        self.lock_file.lock().on("lock", &self.path)?;
        let last_hash = state.end.line_hash;
        let mut tail = LiveLogTail {
            log: self,
            state,
            last_hash,
            pending: Vec::new(),
            cut_bytes: 0,
            lost_bytes: 0,
        };
        tail.catch_up(take)?;
        Ok(tail)
    }

    /// Syncs everything appended so far.
    pub(crate) fn sync(&self) -> Result<(), FileError> {
        let end = self.state().end;
        if self.durable.load(Ordering::Acquire) >= end.length {
            return Ok(());
        }
        self.check_not_failed()?;
        let result = self.file.sync_data().on("sync", &self.path);
        self.has_failed.fetch_or(result.is_err(), Ordering::AcqRel);
        result?;
        self.durable.fetch_max(end.length, Ordering::AcqRel);
        self.append_durable_head(end)
    }

    /// Whether the path still refers to this file.
    pub(crate) fn is_in_place(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let (own, current) =
                (self.file.file_on_disk().metadata(), store_fs::metadata(&self.path));
            matches!((own, current), (Ok(own), Ok(current)) if own.ino() == current.ino())
        }
        #[cfg(not(unix))]
        store_fs::exists(&self.path)
    }

    /// Returns an error if an earlier write or sync failed.
    fn check_not_failed(&self) -> Result<(), FileError> {
        if self.has_failed.load(Ordering::Acquire) {
            return Err(io::Error::other("an earlier write to it failed")).on("write", &self.path);
        }
        Ok(())
    }

    /// Appends the synced end to the head file.
    ///
    /// The state lock is held, because threads share one lock file.
    fn append_durable_head(&self, end: LogHead) -> Result<(), FileError> {
        let mut state = self.state();
        self.lock_file.lock().on("lock", &self.path)?;
        // Only another process can have written a greater length.
        let is_alone = self.file.length().is_ok_and(|length| length == state.end.length);
        let known = if is_alone { None } else { LogHeadFile::read_from(&mut state.head).ok() };
        let is_new =
            known.and_then(|known| known.last).is_none_or(|known| known.length < end.length);
        let result = if is_new { end.append_to(&state.head) } else { Ok(()) };
        self.lock_file.unlock().on("unlock", &self.path)?;
        result.on("write the head of", &self.path)
    }

    fn state(&self) -> MutexGuard<'_, LiveLogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens or creates a lock file.
pub(crate) fn open_lock_file(path: &Path) -> Result<File, FileError> {
    durable::private_options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(store_fs::physical_path(path))
        .on("open", path)
}

/// The end of a live log, held under the lock.
#[derive(Debug)]
pub(crate) struct LiveLogTail<'a> {
    log: &'a LiveLog,
    state: MutexGuard<'a, LiveLogState>,
    last_hash: LineHash,
    pending: Vec<u8>,
    cut_bytes: u64,
    lost_bytes: u64,
}

impl LiveLogTail<'_> {
    /// Number of bytes cut off from a torn record.
    pub(crate) fn bytes_cut(&self) -> u64 {
        self.cut_bytes
    }

    /// Number of missing bytes, all known to have been on disk.
    pub(crate) fn bytes_lost(&self) -> u64 {
        self.lost_bytes
    }

    /// Adds a record to what [`LiveLogTail::write`] writes. `body` is the line's JSON object without its opening brace.
    ///
    /// Returns the hash of the line.
    pub(crate) fn append(&mut self, body: &[u8]) -> LineHash {
        self.last_hash = self.last_hash.append_line(body, &mut self.pending);
        self.last_hash
    }

    /// Writes all appended records with one call. Without this call nothing is written.
    pub(crate) fn write(mut self) -> Result<LogHead, FileError> {
        if let Err(error) = (&self.log.file).write_all(&self.pending) {
            // A full disk must not leave half a record.
            let _ = self.log.file.set_len(self.state.end.length);
            self.log.has_failed.store(true, Ordering::Release);
            return Err(error).on("write", &self.log.path);
        }
        self.state.end.length += self.pending.len() as u64;
        self.state.end.line_hash = self.last_hash;
        Ok(self.state.end)
    }

    /// Reads new lines, and cuts off the remains of an interrupted write.
    fn catch_up(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<(), FileError> {
        let path = &self.log.path;
        let size = self.log.file.length().on("read", path)?;
        if size < self.state.end.length {
            return Err(io::Error::other("the log was cut while it was open")).on("read", path);
        }
        let is_first = !std::mem::replace(&mut self.state.was_read, true);
        if size == self.state.end.length && !is_first {
            return Ok(());
        }
        let known = self.read_durable_head(is_first)?;
        let durable = known.map_or(0, |known| known.length);
        let mut file = &self.log.file;
        file.seek(SeekFrom::Start(self.state.end.length)).on("read", path)?;
        let mut input = BufReader::with_capacity(256 << 10, file);
        let scan = scan_log(&mut input, self.state.end, durable, &mut |line| take(line.bytes));
        let scan = scan.on("read", path)?;
        self.cut_bytes = scan.interrupted;
        self.state.end = scan.end;
        self.last_hash = scan.end.line_hash;
        if scan.interrupted > 0 {
            self.log.file.set_len(scan.end.length).on("write", path)?;
        }
        if scan.lacks_newline {
            // The newline keeps the next record separate; this line is read as damaged.
            (&self.log.file).write_all(b"\n").on("write", path)?;
            self.state.end.length += 1;
        }
        if is_first {
            self.rewrite_unsynced(durable)?;
        }
        if let Some(known) = known.filter(|known| known.length > size) {
            self.lost_bytes = known.length - self.state.end.length;
            LogHead::clear_file(&self.state.head).on("write the head of", path)?;
            self.state.end.append_to(&self.state.head).on("write the head of", path)?;
        }
        Ok(())
    }

    /// Reads the head file. The first time, removes the remains of an interrupted write from it.
    fn read_durable_head(&mut self, is_first: bool) -> Result<Option<LogHead>, FileError> {
        let path = &self.log.path;
        let head = match LogHeadFile::read_from(&mut self.state.head) {
            // Recording continues after damage. Readers and `verify` report it.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(None),
            other => other.on("read the head of", path)?,
        };
        if head.is_interrupted && is_first {
            LogHead::clear_file(&self.state.head).on("write the head of", path)?;
            if let Some(last) = head.last {
                last.append_to(&self.state.head).on("write the head of", path)?;
            }
        }
        Ok(head.last)
    }

    /// Writes everything after `durable` again, and syncs it.
    ///
    /// After a failed sync, the kernel may hold pages that it will never write.
    fn rewrite_unsynced(&mut self, durable: u64) -> Result<(), FileError> {
        let (path, end) = (&self.log.path, self.state.end);
        if end.length <= durable {
            return Ok(());
        }
        store_fs::rewrite_from(&self.log.file, path, durable).on("write", path)?;
        self.log.durable.fetch_max(end.length, Ordering::AcqRel);
        end.append_to(&self.state.head).on("write the head of", path)
    }
}

impl Drop for LiveLogTail<'_> {
    fn drop(&mut self) {
        // Closing the file releases the lock too, and `drop` cannot report an error.
        let _ = self.log.lock_file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::line_hash::FIRST_LINE_HASH;

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
            let paths = LiveLogPaths { log: &self.log, head: &self.head, lock: &self.lock };
            LiveLog::open(&paths, FIRST_LINE_HASH).unwrap()
        }
    }

    fn append(log: &LiveLog, body: &str) {
        let mut tail = log.lock_tail(&mut |_| ()).unwrap();
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
        let mut hash = FIRST_LINE_HASH;
        let text = fs::read(&bench.log).unwrap();
        let lines: Vec<_> =
            text.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 3);
        for line in lines {
            let (stated, body) = LineHash::split_line(line).unwrap();
            assert_eq!(stated, hash.next_hash(body));
            hash = stated;
        }
        let head = LogHeadFile::read(&bench.head).unwrap();
        assert_eq!(head.last.unwrap().length, text.len() as u64);
    }

    #[test]
    fn a_torn_tail_is_cut_off() {
        let bench = Bench::new();
        append(&bench.open(), "\"n\":1}");
        let whole = fs::read(&bench.log).unwrap();
        fs::write(&bench.log, [whole.as_slice(), b"{\"sum\":\"12"].concat()).unwrap();
        let log = bench.open();
        let mut lines = 0;
        let tail = log.lock_tail(&mut |_| lines += 1).unwrap();
        assert_eq!(tail.bytes_cut(), 10);
        assert_eq!(lines, 1);
        drop(tail);
        assert_eq!(fs::read(&bench.log).unwrap(), whole);
    }
}
