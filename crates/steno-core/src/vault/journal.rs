//! The vault's journal: one chained line for every change of a kept file.
//!
//! # What it is for
//! A sealed file holds what its last line in the journal says: so many bytes, and this end of its chain. Whatever is
//! missing, shorter or other than that is found by comparing. A file that no line names is never read.
//!
//! # Durability
//! The content of a file is on disk before its line is written. The change is acknowledged once the line is on disk. What
//! an interrupted change left behind is not acknowledged: the next writer of that session replaces it.
//!
//! # Compatibility
//! Vaults of version 0.1 have no journal. They are read by their folders, and the first writer begins a journal with
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

/// The journal's name, inside the vault.
pub(crate) const JOURNAL: &str = "journal.jsonl";
/// What is known of the journal to be on disk.
pub(crate) const JOURNAL_HEAD: &str = "journal.jsonl.head";
/// Held by whoever writes the journal.
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
    /// How many bytes it holds: of a sealed file those of its source, of a log its own.
    pub(crate) length: u64,
    /// The size of a sealed file; what follows was never acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    /// The end of its chain; unknown for a log that has just begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileState {
    /// A sealed file holds exactly this.
    Kept,
    /// A log holds at least this.
    Open,
    /// A sealed file was found damaged or missing, and its source was kept anew as the next generation.
    Replaced,
    /// A log is sealed, and was removed.
    Removed,
    /// The journal was lost. This one begins with what was found in the vault.
    Restarted,
}

/// What the journal says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedFile {
    pub(crate) state: FileState,
    pub(crate) length: u64,
    pub(crate) size: Option<u64>,
    pub(crate) link: Option<JournalLink>,
}

/// The end of a file's chain. Held as bytes, because a store may have very many files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalLink {
    /// That of a sealed file.
    Chain(Hash),
    /// That of a log: the sum of its last line.
    LogSum(Sum),
}

impl JournalLink {
    fn parse(text: String) -> Option<Self> {
        match Sum::parse(&text) {
            Some(sum) => Some(Self::LogSum(sum)),
            None => Hash::try_from(text).ok().map(Self::Chain),
        }
    }
}

impl From<JournalLink> for String {
    fn from(link: JournalLink) -> Self {
        match link {
            JournalLink::Chain(hash) => hash.into(),
            JournalLink::LogSum(sum) => sum.as_str().to_owned(),
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

    /// The sum of a log's last line.
    pub(crate) fn log_sum(&self) -> Option<Sum> {
        match self.link {
            Some(JournalLink::LogSum(sum)) => Some(sum),
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
    /// The journal of the vault at `root`; nothing is opened yet.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), cache: Mutex::default(), log: Mutex::new(None) }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.root.join(JOURNAL)
    }

    /// The files of a session; nothing for a vault without a journal.
    pub(crate) fn files_of(&self, session: &str) -> Result<Option<SessionFiles>, FileError> {
        lock(&self.cache).files_of(&self.path(), session)
    }

    /// Gives every session that the journal names to `take`, with its files.
    pub(crate) fn each_session(
        &self,
        take: &mut dyn FnMut(&str, &SessionFiles),
    ) -> Result<(), FileError> {
        lock(&self.cache).each_session(&self.path(), take)
    }

    /// How many lines of the journal are not as they were written.
    pub(crate) fn damaged_lines(&self) -> Result<u64, FileError> {
        lock(&self.cache).damaged_lines(&self.path())
    }

    /// How many bytes are missing at the end of the journal, going by its head.
    pub(crate) fn missing_end(&self) -> Result<Option<u64>, FileError> {
        let size = stamp(&self.path()).map_or(0, |stamp| stamp.size);
        let head = match HeadFile::read(&self.root.join(JOURNAL_HEAD)) {
            Err(error) if error.source.raw_os_error().is_some() => return Err(error),
            other => other.ok().and_then(|head| head.last),
        };
        let missing = head.map_or(0, |head| head.length).saturating_sub(size);
        Ok((missing > 0).then_some(missing))
    }

    /// Has the journal read anew by whoever asks next.
    pub(crate) fn forget_cache(&self) {
        *lock(&self.cache) = JournalCache::default();
    }

    /// Every session that the journal names.
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
        // Only a log that has not failed is used again.
        *open = Some(log);
        Ok(())
    }

    /// Begins the journal, if there is none yet, with what the vault holds.
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
        let (mut bytes, mut sum) = (Vec::new(), FIRST_SUM);
        for line in adopt::lines_of_vault(&self.root)? {
            sum = sum.append_line(&body(&line), &mut bytes);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let head_path = self.root.join(JOURNAL_HEAD);
        let head = Head::open(&head_path)?;
        Head::clear(&head).on("write", &head_path)?;
        durable::sync_dir(&self.root)?;
        durable::write_atomic(&self.path(), &bytes)?;
        let end = Head { length: bytes.len() as u64, sum };
        end.append_to(&head).on("write", &head_path)
    }

    fn open_log(&self) -> Result<LiveLog, FileError> {
        self.begin()?;
        let [log, head, lock] =
            [JOURNAL, JOURNAL_HEAD, JOURNAL_LOCK].map(|name| self.root.join(name));
        let log = LiveLog::open(&LivePaths { log: &log, head: &head, lock: &lock }, FIRST_SUM)?;
        log.skip_to_head()?;
        // What an interrupted write left is replaced by lines that may be just as long.
        self.forget_cache();
        Ok(log)
    }

    /// The length of the journal, and the sum of its last line; nothing if there is no journal.
    pub(crate) fn end(&self) -> Result<Option<Head>, FileError> {
        Ok(self.state()?.map(|state| state.end))
    }
}

/// What a line says after its sum.
fn body(line: &JournalLine) -> Vec<u8> {
    serde_json::to_vec(line).expect("a line has string keys")[1..].to_vec()
}

/// The line of the journal that a line of the log holds.
fn parse(line: &[u8]) -> Option<JournalLine> {
    let (_, body) = Sum::split(line)?;
    serde_json::from_slice(&[b"{", body].concat()).ok()
}

/// Gives each line of the journal after `start` to `take`: its bytes, and whether it follows the line before it.
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
        let sum = Sum::split(line.bytes).map_or(start.sum, |(sum, _)| sum);
        let length = line.offset + line.bytes.len() as u64 + 1;
        take(line.bytes, line.is_chained, Head { length, sum });
    });
    scan.on("read", path)
}

/// What tells whether the journal has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct JournalStamp {
    file: u64,
    size: u64,
    /// Lines may take the place of as many bytes that an interrupted write left.
    modified: Option<SystemTime>,
}

/// The journal's stamp; nothing if there is none yet.
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
