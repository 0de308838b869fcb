//! The process that works in a thread: one at a time, identified by `.meta/worker.json`.
//!
//! The worker holds a system lock on that file, which ends with its process, and truncates the file when it is done.
//! A file with content and without a lock therefore belongs to a worker that was killed, and states what it left
//! unfinished.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::commit::has_real_folders;
use super::error::ThreadError;
use super::id::LeslieId;
use super::store::ThreadStore;
use crate::leslie::is_user_prompt;
use steno_model::durable::{FileError, OnPath, create_private_dir, parent_folder, private_options};
use steno_model::json::JsonStyle;
use steno_model::session::Transcript;
use steno_model::timestamp::Timestamp;

/// Path of the worker file in a thread's folder.
const WORKER_FILE: &str = ".meta/worker.json";

/// Number of attempts to take a lock before the thread counts as busy, and the delay between them.
const MAX_LOCK_TRIES: usize = 20;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(25);

/// The state that a worker stores in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerState {
    /// The process id; 0 if unknown.
    #[serde(default)]
    pub pid: u32,
    /// When it started.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// Number of prompts that it is going to send.
    #[serde(default)]
    pub prompts_planned: usize,
    /// Number of prompts that were answered.
    #[serde(default)]
    pub turns_ended: usize,
}

/// The right to work in a thread, released when dropped or when the process ends.
#[derive(Debug)]
pub struct ThreadWorker {
    file: File,
    path: PathBuf,
    /// The state of this worker.
    state: WorkerState,
    /// The state that an earlier, killed worker left.
    killed: Option<WorkerState>,
}

impl ThreadStore {
    /// Starts work in a thread as the process `pid`. If another process works in it, waits or returns an error.
    pub fn begin_work(
        &self,
        id: &LeslieId,
        pid: u32,
        is_waiting: bool,
    ) -> Result<ThreadWorker, ThreadError> {
        let (file, path) = self.open_worker_file(id)?;
        if is_waiting {
            file.lock().on("lock", &path)?;
        } else if !try_lock_with_retries(&file, &path)? {
            let worker = read_state(&file).unwrap_or_default();
            return Err(ThreadError::Busy { thread: id.to_string(), worker });
        }
        let state = WorkerState { pid, since: Some(self.now()), ..WorkerState::default() };
        Ok(ThreadWorker { killed: read_state(&file), file, path, state })
    }

    /// Takes over from a killed worker, to finish its work; `None` if there is none.
    pub fn take_over_killed(&self, id: &LeslieId) -> Result<Option<ThreadWorker>, ThreadError> {
        let path = self.thread_folder(id)?.join(WORKER_FILE);
        if fs::symlink_metadata(&path).map_or(0, |data| data.len()) == 0 {
            return Ok(None);
        }
        let (file, path) = self.open_worker_file(id)?;
        if !try_lock(&file, &path)? {
            return Ok(None);
        }
        let (killed, state) = (read_state(&file), WorkerState::default());
        Ok(killed.map(|killed| ThreadWorker { killed: Some(killed), file, path, state }))
    }

    /// Returns the state of the process that works in the thread; `None` if there is none.
    pub fn worker(&self, id: &LeslieId) -> Result<Option<WorkerState>, ThreadError> {
        let path = self.thread_folder(id)?.join(WORKER_FILE);
        let Ok(file) = File::open(&path) else { return Ok(None) };
        if try_lock(&file, &path)? {
            return Ok(None);
        }
        Ok(Some(read_state(&file).unwrap_or_default()))
    }

    fn open_worker_file(&self, id: &LeslieId) -> Result<(File, PathBuf), ThreadError> {
        let folder = self.thread_folder(id)?;
        let path = folder.join(WORKER_FILE);
        let is_link = fs::symlink_metadata(&path).is_ok_and(|data| !data.is_file());
        if is_link || !has_real_folders(&folder, ".meta") {
            return Err(ThreadError::NotAFolder(path));
        }
        create_private_dir(parent_folder(&path))?;
        let mut options = private_options();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        Ok((file.on("open", &path)?, path))
    }
}

impl WorkerState {
    /// Removes the units that this worker did not start.
    ///
    /// Its units are those since it started, and at least as many as it completed, in case the clock was set back. If
    /// its start is unknown, all units count as its own.
    pub fn retain_own_units(&self, transcript: &mut Transcript) {
        let entries = &transcript.entries;
        let prompts: Vec<usize> =
            (0..entries.len()).filter(|at| is_user_prompt(&entries[*at])).collect();
        let is_own = |at: &&usize| match (self.since, entries[**at].created_at) {
            (Some(since), Some(at)) => at.instant() >= since.instant(),
            (None, _) => true,
            (Some(_), None) => false,
        };
        let by_time = prompts.iter().find(is_own).copied();
        let counted = prompts.len().saturating_sub(self.turns_ended);
        let by_count = prompts.get(counted).copied();
        let begin = by_time.into_iter().chain(by_count).min().unwrap_or(entries.len());
        transcript.entries.drain(..begin);
    }
}

impl ThreadWorker {
    /// The state that an earlier, killed worker left. Finish its work before [`ThreadWorker::record_progress`]
    /// overwrites the state.
    pub fn killed(&self) -> Option<&WorkerState> {
        self.killed.as_ref()
    }

    /// The state of this worker.
    pub fn state(&self) -> &WorkerState {
        &self.state
    }

    /// Changes the state and writes it durably.
    pub fn record_progress(
        &mut self,
        change: impl FnOnce(&mut WorkerState),
    ) -> Result<(), FileError> {
        change(&mut self.state);
        self.killed = None;
        let text = JsonStyle::PRETTY.print(&self.state) + "\n";
        self.write_file(text.as_bytes())
    }

    /// Ends the work and clears the file.
    pub fn finish(mut self) -> Result<(), FileError> {
        self.write_file(b"")
    }

    fn write_file(&mut self, text: &[u8]) -> Result<(), FileError> {
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(text));
        written.on("write", &self.path)?;
        self.file.set_len(text.len() as u64).on("write", &self.path)?;
        self.file.sync_all().on("sync", &self.path)
    }
}

impl fmt::Display for WorkerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            0 => f.write_str("another process works in it")?,
            pid => write!(f, "process {pid} works in it")?,
        }
        self.since.map_or(Ok(()), |since| write!(f, " since {since}"))
    }
}

/// Like [`try_lock`], with retries: a process that only inspects the thread holds the lock for a moment.
fn try_lock_with_retries(file: &File, path: &Path) -> Result<bool, FileError> {
    for _ in 0..MAX_LOCK_TRIES {
        if try_lock(file, path)? {
            return Ok(true);
        }
        sleep(LOCK_RETRY_DELAY);
    }
    try_lock(file, path)
}

/// Tries to take the lock, and returns whether it was taken. On a file system without locks it always succeeds.
fn try_lock(file: &File, path: &Path) -> Result<bool, FileError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(true),
        Err(TryLockError::Error(error)) => Err(error).on("lock", path),
    }
}

/// Reads the state in the file; `None` if it is empty. A partially written state gives the default.
fn read_state(mut file: &File) -> Option<WorkerState> {
    let mut text = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut text));
    let is_empty = read.is_err() || text.trim_ascii().is_empty();
    (!is_empty).then(|| serde_json::from_slice(&text).unwrap_or_default())
}
