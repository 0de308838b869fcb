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

mod adoption;
mod state;

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use self::state::JournalCache;
pub(crate) use self::state::{JournalState, ListedFiles};
use super::frame::HexHash;
use super::live_log::{LiveLog, LiveLogPaths, open_lock_file};
use super::log_head::LogHead;
use super::log_scan::{LogScan, scan_log};
use super::tombstone::TombstoneLog;
use crate::line_hash::{FIRST_LINE_HASH, LineHash};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};

/// The journal's file name in the vault.
pub(crate) const JOURNAL_FILE: &str = "journal.jsonl";
/// The journal's head file.
pub(crate) const JOURNAL_HEAD_FILE: &str = "journal.jsonl.head";
/// The lock file of journal writers.
pub(crate) const JOURNAL_LOCK_FILE: &str = ".journal.lock";

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
    Chain(HexHash),
    /// The hash of a log's last line.
    LogHash(LineHash),
}

impl JournalLink {
    fn parse_link(text: String) -> Option<Self> {
        match LineHash::parse(&text) {
            Some(hash) => Some(Self::LogHash(hash)),
            None => HexHash::try_from(text).ok().map(Self::Chain),
        }
    }
}

impl From<JournalLink> for String {
    fn from(link: JournalLink) -> Self {
        match link {
            JournalLink::Chain(hash) => hash.into(),
            JournalLink::LogHash(hash) => hash.as_str().to_owned(),
        }
    }
}

impl ListedFile {
    /// The end of a sealed file's chain.
    pub(crate) fn chain_end(&self) -> Option<HexHash> {
        match self.link {
            Some(JournalLink::Chain(hash)) => Some(hash),
            _ => None,
        }
    }

    /// The hash of a log's last line.
    pub(crate) fn log_hash(&self) -> Option<LineHash> {
        match self.link {
            Some(JournalLink::LogHash(hash)) => Some(hash),
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
    /// What was forgotten.
    pub(crate) tombstones: TombstoneLog,
}

impl Journal {
    /// Creates a handle for the journal of the vault at `root`. Opens no file.
    pub(crate) fn new(root: &Path) -> Self {
        let (cache, tombstones) = (Mutex::default(), TombstoneLog::new(root));
        Self { root: root.to_owned(), cache, log: Mutex::new(None), tombstones }
    }

    /// The journal's path.
    pub(crate) fn path(&self) -> PathBuf {
        self.root.join(JOURNAL_FILE)
    }

    /// Whether there is a journal.
    pub(crate) fn exists(&self) -> bool {
        read_stamp(&self.path()).is_some()
    }

    /// The files of a session; `None` for a vault without a journal.
    pub(crate) fn files_of_session(&self, session: &str) -> Result<Option<ListedFiles>, FileError> {
        lock_ignoring_poison(&self.cache).files_of_session(&self.path(), session)
    }

    /// Calls `take` with every session in the journal and its files.
    pub(crate) fn for_each_session(
        &self,
        take: &mut dyn FnMut(&str, &ListedFiles),
    ) -> Result<(), FileError> {
        lock_ignoring_poison(&self.cache).for_each_session(&self.path(), take)
    }

    /// Number of damaged journal lines.
    pub(crate) fn count_damaged_lines(&self) -> Result<u64, FileError> {
        lock_ignoring_poison(&self.cache).count_damaged_lines(&self.path())
    }

    /// Clears the cache, so that the next access reads the journal again.
    pub(crate) fn clear_cache(&self) {
        *lock_ignoring_poison(&self.cache) = JournalCache::default();
    }

    /// Reads the whole journal.
    pub(crate) fn read_state(&self) -> Result<Option<JournalState>, FileError> {
        JournalState::read(&self.path())
    }

    /// Appends lines. They are on disk when this returns.
    pub(crate) fn append_lines(&self, lines: &[JournalLine]) -> Result<(), FileError> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut open = lock_ignoring_poison(&self.log);
        let log = match open.take().filter(|log| log.is_in_place()) {
            Some(log) => log,
            None => self.open_log()?,
        };
        let mut tail = log.lock_tail(&mut |_| ())?;
        // The store may have been encrypted or decrypted while this waited for the lock.
        store_fs::check_is_current(&self.root)?;
        for line in lines {
            tail.append(&encode_line_body(line));
        }
        tail.write()?;
        log.sync()?;
        // A failed log is not reused.
        *open = Some(log);
        Ok(())
    }

    /// Creates the journal from the vault's files, unless it exists.
    pub(crate) fn create_if_absent(&self) -> Result<(), FileError> {
        if self.exists() {
            return Ok(());
        }
        store_fs::create_private_dir(&self.root)?;
        let lock_path = self.root.join(JOURNAL_LOCK_FILE);
        let lock = open_lock_file(&lock_path)?;
        lock.lock().on("lock", &lock_path)?;
        if self.exists() {
            return Ok(());
        }
        let (mut bytes, mut hash) = (Vec::new(), FIRST_LINE_HASH);
        for line in adoption::adopt_vault(&self.root)? {
            hash = hash.append_line(&encode_line_body(&line), &mut bytes);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let head_path = self.root.join(JOURNAL_HEAD_FILE);
        let head = LogHead::open_file(&head_path)?;
        LogHead::clear_file(&head).on("write", &head_path)?;
        store_fs::sync_dir(&self.root)?;
        store_fs::write_atomic(&self.path(), &bytes)?;
        let end = LogHead { length: bytes.len() as u64, line_hash: hash };
        end.append_to(&head).on("write", &head_path)
    }

    fn open_log(&self) -> Result<LiveLog, FileError> {
        self.create_if_absent()?;
        let [log, head, lock] =
            [JOURNAL_FILE, JOURNAL_HEAD_FILE, JOURNAL_LOCK_FILE].map(|name| self.root.join(name));
        let log =
            LiveLog::open(&LiveLogPaths { log: &log, head: &head, lock: &lock }, FIRST_LINE_HASH)?;
        log.skip_to_head()?;
        // New lines replace the remains of an interrupted write and may have the same length.
        self.clear_cache();
        Ok(log)
    }

    /// The end of the journal; `None` if there is no journal.
    pub(crate) fn read_end(&self) -> Result<Option<LogHead>, FileError> {
        Ok(self.read_state()?.map(|state| state.end))
    }
}

/// The part of a line after its hash.
fn encode_line_body(line: &JournalLine) -> Vec<u8> {
    serde_json::to_vec(line).expect("a line has string keys")[1..].to_vec()
}

/// Parses a line of the log.
fn parse_journal_line(line: &[u8]) -> Option<JournalLine> {
    let (_, body) = LineHash::split_line(line)?;
    serde_json::from_slice(&[b"{", body].concat()).ok()
}

/// Calls `take` with each line after `start`: its bytes, whether it follows the chain, and its end.
fn scan_journal(
    path: &Path,
    start: LogHead,
    take: &mut dyn FnMut(&[u8], bool, LogHead),
) -> Result<LogScan, FileError> {
    use std::io::{Seek, SeekFrom};
    let mut file = store_fs::open(path).on("open", path)?;
    file.seek(SeekFrom::Start(start.length)).on("read", path)?;
    let mut input = BufReader::with_capacity(256 << 10, file);
    let scan = scan_log(&mut input, start, start.length, &mut |line| {
        let hash = LineHash::split_line(line.bytes).map_or(start.line_hash, |(hash, _)| hash);
        let length = line.offset + line.bytes.len() as u64 + 1;
        take(line.bytes, line.is_chained, LogHead { length, line_hash: hash });
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
fn read_stamp(path: &Path) -> Option<JournalStamp> {
    let metadata = store_fs::metadata(path).ok()?;
    let size = store_fs::file_length(path).ok().filter(|size| *size > 0)?;
    #[cfg(unix)]
    let file = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let file = 0;
    Some(JournalStamp { file, size, modified: metadata.modified().ok() })
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
