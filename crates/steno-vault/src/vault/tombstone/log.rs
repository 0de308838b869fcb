//! The log of tombstones.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{FileSeal, Tombstone};
use crate::line_hash::{FIRST_LINE_HASH, LineHash, LineHashChain};
use crate::vault::frame::HexHash;
use crate::vault::live_log::{LiveLog, LiveLogPaths};
use crate::vault::log_head::{LogHead, LogHeadFile};
use crate::vault::text_mask::ForgottenTexts;
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};
use steno_model::timestamp::Timestamp;

/// The file name of the log in the vault.
pub(crate) const FORGOTTEN_FILE: &str = "forgotten.jsonl";
/// The head file of the log.
pub(crate) const FORGOTTEN_HEAD_FILE: &str = "forgotten.jsonl.head";
/// The lock file of its writers.
pub(crate) const FORGOTTEN_LOCK_FILE: &str = ".forgotten.lock";

/// A line of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TombstoneLine {
    /// A removal was decided.
    Forgotten(Tombstone),
    /// A removal is complete.
    Done(CompletedRemoval),
}

/// The end of a removal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CompletedRemoval {
    id: Uuid,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    seals: Vec<FileSeal>,
}

/// The content of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct TombstoneState {
    /// All tombstones, in order.
    pub(crate) tombstones: Vec<Tombstone>,
    /// Ids of the complete removals.
    completed: HashSet<Uuid>,
    /// The last seal of each file, by session and file name.
    pub(crate) seals: BTreeMap<(String, String), HexHash>,
    /// Numbers of the lines that cannot be read.
    pub(crate) damaged_lines: Vec<u64>,
    /// The whole sessions that were removed.
    sessions: HashMap<String, usize>,
}

impl TombstoneState {
    fn read(path: &Path) -> Result<Self, FileError> {
        let text = match store_fs::read(path) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Vec::new()
            }
            other => other.on("read", path)?,
        };
        let (mut state, mut chain) = (Self::default(), LineHashChain::START);
        for (number, line) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
            // A line without a newline was never acknowledged.
            let Some(line) = line.strip_suffix(b"\n") else { break };
            let (is_chained, parsed) = (chain.check(line), parse_line(line));
            if !is_chained || parsed.is_none() {
                state.damaged_lines.push(number);
            }
            // What was forgotten must not come back because of damage elsewhere in the log.
            parsed.into_iter().for_each(|line| state.apply_line(line));
        }
        Ok(state)
    }

    fn apply_line(&mut self, line: TombstoneLine) {
        match line {
            TombstoneLine::Forgotten(tombstone) => {
                if tombstone.is_whole_session() {
                    self.sessions.insert(tombstone.session.clone(), self.tombstones.len());
                }
                self.tombstones.push(tombstone);
            }
            TombstoneLine::Done(CompletedRemoval { id, seals, .. }) => {
                self.completed.insert(id);
                let session = self.tombstones.iter().find(|tombstone| tombstone.id == id);
                let Some(session) = session.map(|tombstone| &tombstone.session) else { return };
                for FileSeal { file, seal } in seals {
                    self.seals.insert((session.clone(), file), seal);
                }
            }
        }
    }

    /// The tombstone of a whole session.
    pub(crate) fn of_session(&self, session: &str) -> Option<&Tombstone> {
        self.sessions.get(session).map(|index| &self.tombstones[*index])
    }

    /// The tombstones of removals that were interrupted. A damaged log does not show that.
    pub(crate) fn unfinished(&self) -> Vec<Tombstone> {
        if !self.damaged_lines.is_empty() {
            return Vec::new();
        }
        let open = self.tombstones.iter().filter(|one| !self.completed.contains(&one.id));
        open.cloned().collect()
    }

    /// The masked ranges of a file, over all its tombstones.
    pub(crate) fn masked_ranges(&self, session: &str, file: &str) -> Vec<(u64, u64)> {
        let own = self.tombstones.iter().filter(|tombstone| tombstone.session == session);
        let files = own.filter_map(Tombstone::parts).flat_map(|parts| &parts.files);
        let ranges = files.filter(|masked| masked.file == file).flat_map(|masked| &masked.ranges);
        crate::vault::frame::merge_ranges(ranges.copied().collect())
    }
}

/// Fails if lines are missing at the end of the log: a new line would hide that.
fn check_not_shortened(log: &Path, head: &Path) -> Result<(), FileError> {
    let size = store_fs::file_length(log).unwrap_or(0);
    let known = LogHeadFile::read(head)?.last.map_or(0, |head| head.length);
    if known > size {
        let error = io::Error::new(io::ErrorKind::InvalidData, "tombstones are missing at its end");
        return Err(error).on("write", log);
    }
    Ok(())
}

fn parse_line(line: &[u8]) -> Option<TombstoneLine> {
    let (_, body) = LineHash::split_line(line)?;
    serde_json::from_slice(&[b"{", body].concat()).ok()
}

/// The log of tombstones of one vault, with a cache of its content.
#[derive(Debug)]
pub(crate) struct TombstoneLog {
    root: PathBuf,
    cache: Mutex<Option<CachedTombstones>>,
}

/// The content of the log when it had this stamp.
#[derive(Debug)]
struct CachedTombstones {
    stamp: LogStamp,
    state: Arc<TombstoneState>,
    texts: Arc<ForgottenTexts>,
}

/// Detects changes of the log.
type LogStamp = Option<(u64, Option<SystemTime>)>;

impl TombstoneLog {
    /// Creates a handle for the log of the vault at `root`. Opens no file.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), cache: Mutex::new(None) }
    }

    /// The path of the log.
    pub(crate) fn path(&self) -> PathBuf {
        self.root.join(FORGOTTEN_FILE)
    }

    /// The content of the log; empty if there is none.
    pub(crate) fn read(&self) -> Result<Arc<TombstoneState>, FileError> {
        self.read_cached(|cached| Arc::clone(&cached.state))
    }

    /// The texts that must not be kept again.
    pub(crate) fn read_texts(&self) -> Result<Arc<ForgottenTexts>, FileError> {
        self.read_cached(|cached| Arc::clone(&cached.texts))
    }

    fn read_cached<T>(&self, take: impl Fn(&CachedTombstones) -> T) -> Result<T, FileError> {
        let path = self.path();
        let stamp = store_fs::metadata(&path).ok().map(|file| (file.len(), file.modified().ok()));
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cache {
            Some(cached) if cached.stamp == stamp => Ok(take(cached)),
            _ => {
                let state = Arc::new(TombstoneState::read(&path)?);
                let texts = Arc::new(ForgottenTexts::load(&self.root, &state)?);
                Ok(take(cache.insert(CachedTombstones { stamp, state, texts })))
            }
        }
    }

    /// Appends tombstones. They are on disk when this returns.
    pub(crate) fn append_tombstones(&self, all: &[Tombstone]) -> Result<LogHead, FileError> {
        self.append_lines(all.iter().cloned().map(TombstoneLine::Forgotten))
    }

    /// Notes that a removal is complete.
    pub(crate) fn append_completion(
        &self,
        id: Uuid,
        at: Timestamp,
        seals: Vec<FileSeal>,
    ) -> Result<LogHead, FileError> {
        self.append_lines([TombstoneLine::Done(CompletedRemoval { id, at, seals })])
    }

    fn append_lines(
        &self,
        lines: impl IntoIterator<Item = TombstoneLine>,
    ) -> Result<LogHead, FileError> {
        let [log, head, lock] = [FORGOTTEN_FILE, FORGOTTEN_HEAD_FILE, FORGOTTEN_LOCK_FILE]
            .map(|name| self.root.join(name));
        check_not_shortened(&log, &head)?;
        let paths = LiveLogPaths { log: &log, head: &head, lock: &lock };
        let log = LiveLog::open(&paths, FIRST_LINE_HASH)?;
        let mut tail = log.lock_tail(&mut |_| ())?;
        for line in lines {
            let body = serde_json::to_vec(&line).expect("a line has string keys");
            tail.append(&body[1..]);
        }
        let end = tail.write()?;
        log.sync()?;
        *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(end)
    }
}
