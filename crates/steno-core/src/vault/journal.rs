//! The vault's journal: one hash-chained line for every change of a kept file.
//!
//! # Purpose
//! The last journal line of a sealed file states its length and the end of its hash chain. A comparison finds files
//! that are missing, shorter or different. A file without a journal line is never read.
//!
//! # Durability
//! A file's content is on disk before its line is written. The change is acknowledged once the line is on disk. The
//! next writer of the session replaces the remains of an interrupted change.
//!
//! # Compatibility
//! Vaults of version 0.1 have no journal. Readers list their folders, and the first writer creates a journal from
//! what it finds there.

mod adopt;
mod state;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use self::state::JournalCache;
pub(crate) use self::state::{JournalState, SessionFiles};
use super::frame::Hash;
use super::head::{Head, HeadFile};
use super::live::{FIRST_SUM, LiveLog, LivePaths, Sum, open_lock};
use super::log_scan::{LogScan, scan_log};
use crate::durable::{self, FileError, OnPath};

/// The journal's file name in the vault.
pub(crate) const JOURNAL: &str = "journal.jsonl";
/// The journal's head file.
pub(crate) const JOURNAL_HEAD: &str = "journal.jsonl.head";
/// The lock file of journal writers.
pub(crate) const JOURNAL_LOCK: &str = ".journal.lock";

/// A change of a kept file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalLine {
    /// `AGENT/ID`.
    pub(crate) session: String,
    /// The file's name in the session's folder.
    pub(crate) file: String,
    pub(crate) state: FileState,
    /// Length in bytes: of the session file for a sealed file, of the log itself for a log.
    pub(crate) length: u64,
    /// The size of a sealed file. Bytes after it were never acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    /// The end of the hash chain; absent for a new log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
}

/// The state of a kept file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileState {
    /// A sealed file has exactly this content.
    Kept,
    /// A log has at least this content.
    Open,
    /// A sealed file was found damaged or missing, and its session file was kept again as the next generation.
    Replaced,
    /// A log was sealed and removed.
    Removed,
    /// The journal was lost. This one starts with the files found in the vault.
    Restarted,
}

/// A file as the journal lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedFile {
    pub(crate) state: FileState,
    pub(crate) length: u64,
    pub(crate) size: Option<u64>,
    pub(crate) link: Option<JournalLink>,
}

/// The end of a file's hash chain, in binary form because a store may have very many files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalLink {
    /// The chain of a sealed file.
    Chain(Hash),
    /// The hash of a log's last line.
    LogSum(Sum),
}

impl JournalLink {
    fn parse(text: String) -> Option<Self> {
        match Sum::parse(&text) {
            Some(hash) => Some(Self::LogSum(hash)),
            None => Hash::try_from(text).ok().map(Self::Chain),
        }
    }
}

impl From<JournalLink> for String {
    fn from(link: JournalLink) -> Self {
        match link {
            JournalLink::Chain(hash) => hash.into(),
            JournalLink::LogSum(hash) => hash.as_str().to_owned(),
        }
    }
}

impl ListedFile {
    /// The end of a sealed file's chain.
    pub(crate) fn chain(&self) -> Option<Hash> {
        match self.link {
            Some(JournalLink::Chain(hash)) => Some(hash),
            _ => None,
        }
    }

    /// The hash of a log's last line.
    pub(crate) fn log_sum(&self) -> Option<Sum> {
        match self.link {
            Some(JournalLink::LogSum(hash)) => Some(hash),
            _ => None,
        }
    }
}

/// The journal of one vault.
#[derive(Debug)]
pub(crate) struct Journal {
    root: PathBuf,
    cache: Mutex<JournalCache>,
    log: Mutex<Option<LiveLog>>,
}

impl Journal {
    /// Creates a handle for the journal of the vault at `root`. Opens no file.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), cache: Mutex::default(), log: Mutex::new(None) }
    }

    /// The journal's path.
    pub(crate) fn path(&self) -> PathBuf {
        self.root.join(JOURNAL)
    }

    /// The files of a session; `None` for a vault without a journal.
    pub(crate) fn files_of(&self, session: &str) -> Result<Option<SessionFiles>, FileError> {
        lock(&self.cache).files_of(&self.path(), session)
    }

    /// Calls `take` with every session in the journal and its files.
    pub(crate) fn each_session(
        &self,
        take: &mut dyn FnMut(&str, &SessionFiles),
    ) -> Result<(), FileError> {
        lock(&self.cache).each_session(&self.path(), take)
    }

    /// Number of damaged journal lines.
    pub(crate) fn damaged_lines(&self) -> Result<u64, FileError> {
        lock(&self.cache).damaged_lines(&self.path())
    }

    /// Number of bytes missing at the end of the journal, according to its head file.
    pub(crate) fn missing_end(&self) -> Result<Option<u64>, FileError> {
        let size = stamp(&self.path()).map_or(0, |stamp| stamp.size);
        let head = match HeadFile::read(&self.root.join(JOURNAL_HEAD)) {
            Err(error) if error.source.raw_os_error().is_some() => return Err(error),
            other => other.ok().and_then(|head| head.last),
        };
        let missing = head.map_or(0, |head| head.length).saturating_sub(size);
        Ok((missing > 0).then_some(missing))
    }

    /// Clears the cache, so that the next access reads the journal again.
    pub(crate) fn forget_cache(&self) {
        *lock(&self.cache) = JournalCache::default();
    }

    /// Reads the whole journal.
    pub(crate) fn state(&self) -> Result<Option<JournalState>, FileError> {
        JournalState::read(&self.path())
    }

    /// Appends lines. They are on disk when this returns.
    pub(crate) fn append(&self, lines: &[JournalLine]) -> Result<(), FileError> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut open = lock(&self.log);
        let log = match open.take().filter(|log| log.is_in_place()) {
            Some(log) => log,
            None => self.open_log()?,
        };
        let mut tail = log.lock(&mut |_| ())?;
        for line in lines {
            tail.append(&body(line));
        }
        tail.write()?;
        log.sync()?;
        // A failed log is not reused.
        *open = Some(log);
        Ok(())
    }

    /// Creates the journal from the vault's files, unless it exists.
    pub(crate) fn begin(&self) -> Result<(), FileError> {
        if stamp(&self.path()).is_some() {
            return Ok(());
        }
        durable::create_private_dir(&self.root)?;
        let lock_path = self.root.join(JOURNAL_LOCK);
        let lock = open_lock(&lock_path)?;
        lock.lock().on("lock", &lock_path)?;
        if stamp(&self.path()).is_some() {
            return Ok(());
        }
        let (mut bytes, mut hash) = (Vec::new(), FIRST_SUM);
        for line in adopt::lines_of_vault(&self.root)? {
            hash = hash.append_line(&body(&line), &mut bytes);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let head_path = self.root.join(JOURNAL_HEAD);
        let head = Head::open(&head_path)?;
        Head::clear(&head).on("write", &head_path)?;
        durable::sync_dir(&self.root)?;
        durable::write_atomic(&self.path(), &bytes)?;
        let end = Head { length: bytes.len() as u64, sum: hash };
        end.append_to(&head).on("write", &head_path)
    }

    fn open_log(&self) -> Result<LiveLog, FileError> {
        self.begin()?;
        let [log, head, lock] =
            [JOURNAL, JOURNAL_HEAD, JOURNAL_LOCK].map(|name| self.root.join(name));
        let log = LiveLog::open(&LivePaths { log: &log, head: &head, lock: &lock }, FIRST_SUM)?;
        log.skip_to_head()?;
        // New lines replace the remains of an interrupted write and may have the same length.
        self.forget_cache();
        Ok(log)
    }

    /// The end of the journal; `None` if there is no journal.
    pub(crate) fn end(&self) -> Result<Option<Head>, FileError> {
        Ok(self.state()?.map(|state| state.end))
    }
}

/// The part of a line after its hash.
fn body(line: &JournalLine) -> Vec<u8> {
    serde_json::to_vec(line).expect("a line has string keys")[1..].to_vec()
}

/// Parses a line of the log.
fn parse(line: &[u8]) -> Option<JournalLine> {
    let (_, body) = Sum::split(line)?;
    serde_json::from_slice(&[b"{", body].concat()).ok()
}

/// Calls `take` with each line after `start`: its bytes, whether it follows the chain, and its end.
fn scan(
    path: &Path,
    start: Head,
    take: &mut dyn FnMut(&[u8], bool, Head),
) -> Result<LogScan, FileError> {
    use std::io::{Seek, SeekFrom};
    let mut file = File::open(path).on("open", path)?;
    file.seek(SeekFrom::Start(start.length)).on("read", path)?;
    let mut input = BufReader::with_capacity(256 << 10, file);
    let scan = scan_log(&mut input, start, start.length, &mut |line| {
        let hash = Sum::split(line.bytes).map_or(start.sum, |(hash, _)| hash);
        let length = line.offset + line.bytes.len() as u64 + 1;
        take(line.bytes, line.is_chained, Head { length, sum: hash });
    });
    scan.on("read", path)
}

/// Detects changes of the journal file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct JournalStamp {
    file: u64,
    size: u64,
    /// New lines may replace an equal number of bytes from an interrupted write.
    modified: Option<SystemTime>,
}

/// The stamp of the journal; `None` if it does not exist yet.
fn stamp(path: &Path) -> Option<JournalStamp> {
    let metadata = fs::metadata(path).ok().filter(|metadata| metadata.len() > 0)?;
    #[cfg(unix)]
    let file = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let file = 0;
    Some(JournalStamp { file, size: metadata.len(), modified: metadata.modified().ok() })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
