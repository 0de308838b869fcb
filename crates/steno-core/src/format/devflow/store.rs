//! The store: runs are recorded, found, loaded and removed under `BASE/runs`.
//!
//! # Durability
//! A turn is on disk when `record_turn` returns: it stands in the run's journal, which becomes
//! `transcript.json` when the run ends. A run whose recorder died reads as failed, and is ended as
//! failed when the store is next opened for writing.
//!
//! # Locking
//! One store can be shared by threads, and several processes can use one folder: the recorder of a
//! run holds a lock on its journal, and nobody touches a run that is being recorded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::decode::Decoded;
use super::error::{StoreError, file_problem};
use super::folder;
use super::index;
use super::journal;
use super::recording::{Recording, end_abandoned, recover};
use super::run::RunMeta;
use super::run_id::RunId;
use super::search::TokenRange;
use crate::durable::{self, OnPath};
use crate::problem::Problem;
use crate::timestamp::{Clock, Timestamp};

/// The folder of the runs below the store's own.
pub(super) const RUNS: &str = "runs";

/// The runs of one `.devflow` folder.
#[derive(Debug)]
pub struct Store {
    pub(super) base: PathBuf,
    pub(super) clock: Clock,
    active: Mutex<HashMap<RunId, Recording>>,
    problems: Vec<Problem>,
}

/// The runs that were listed, and those that could not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunList {
    /// The runs, newest first.
    pub runs: Vec<RunMeta>,
    /// Why runs are missing from the list.
    pub problems: Vec<Problem>,
}

/// Which runs are listed; the default is all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Runs of this flow.
    pub flow: Option<String>,
    /// Runs with this status.
    pub status: Option<String>,
    /// Runs that started then or later.
    pub after: Option<Timestamp>,
    /// Runs that started then or earlier.
    pub before: Option<Timestamp>,
    /// Runs with so many prompt tokens.
    pub tokens_in: TokenRange,
    /// Runs with so many answer tokens.
    pub tokens_out: TokenRange,
    /// At most so many, the newest.
    pub limit: Option<usize>,
}

impl Store {
    /// Opens the store under `base` and ends the runs whose recorder died.
    ///
    /// Nothing is created before the first run. A run that cannot be recovered is told by
    /// [`Store::problems`].
    pub fn open(base: &Path, clock: Clock) -> Result<Self, StoreError> {
        let mut store = Self::open_read_only(base, clock);
        store.problems = store.recover()?;
        Ok(store)
    }

    /// Opens the store under `base` for reading: nothing in it is changed, unless by a later call
    /// that is there to change it.
    pub fn open_read_only(base: &Path, clock: Clock) -> Self {
        Self { base: base.to_owned(), clock, active: Mutex::default(), problems: Vec::new() }
    }

    /// Ends the runs whose recorder died, and returns why some could not be ended.
    fn recover(&self) -> Result<Vec<Problem>, StoreError> {
        let mut problems = Vec::new();
        let mut has_changed = false;
        for id in index::run_names(&self.runs())? {
            let folder = self.folder(&id);
            if !folder.join(journal::NAME).exists() {
                continue;
            }
            match recover(&folder) {
                Ok(Some(unread)) => {
                    has_changed = true;
                    problems.extend(unread);
                }
                Ok(None) => {}
                Err(error) => problems.push(file_problem(&error)),
            }
        }
        if has_changed {
            self.update_index();
        }
        Ok(problems)
    }

    /// The folder that holds `runs/`.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// What was wrong with runs that should have been recovered.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The folder of a run, whether it exists or not.
    pub fn folder(&self, id: &RunId) -> PathBuf {
        self.runs().join(id.as_str())
    }

    /// Loads a run, as far as it is recorded.
    pub fn load(&self, id: &RunId) -> Result<Decoded, StoreError> {
        if let Some(recording) = self.active().get(id) {
            let run = recording.run.clone();
            return Ok(Decoded { run, problems: Vec::new() });
        }
        let folder = self.folder(id);
        // Asked before reading: once a recorder is gone, nobody but `recover` changes the run.
        let is_abandoned = journal::is_abandoned(&folder)?;
        let bundle = folder::bundle(&folder);
        if bundle.sources.is_empty() {
            return Err(StoreError::NotFound(id.clone()));
        }
        let mut decoded =
            folder::load(&bundle).map_err(|error| StoreError::unreadable(id.clone(), error))?;
        if is_abandoned && decoded.run.metadata.is_running() {
            end_abandoned(&mut decoded.run);
        }
        Ok(decoded)
    }

    /// Loads what is known about a run as a whole.
    pub fn load_metadata(&self, id: &RunId) -> Result<RunMeta, StoreError> {
        let folder = self.folder(id);
        let stored = folder.join(folder::METADATA).exists();
        let recorded = self.active().contains_key(id) || folder.join(journal::NAME).exists();
        let mut meta = if recorded || !stored {
            let Decoded { run, .. } = self.load(id)?;
            let turn_count = Some(run.turn_count());
            RunMeta { turn_count, ..run.metadata }
        } else {
            let unreadable = |error| StoreError::unreadable(id.clone(), error);
            folder::load_metadata(&folder).map_err(unreadable)?
        };
        // devflow writes the transcript first: a crash in between leaves metadata of a running run.
        if meta.is_running()
            && !recorded
            && let Ok(Decoded { run, .. }) = self.load(id)
        {
            let turn_count = Some(run.turn_count());
            meta = RunMeta { turn_count, ..run.metadata };
        }
        // Whatever the file says, this is the name under which the run is found.
        meta.run_id = id.to_string();
        Ok(meta)
    }

    /// The runs that a filter lets through, newest first; those that cannot be read are left out.
    pub fn list(&self, filter: &Filter) -> Result<Vec<RunMeta>, StoreError> {
        Ok(self.list_all(filter)?.runs)
    }

    /// The runs that a filter lets through, and why others could not be read.
    ///
    /// Every run is read from its own files: what other programs changed is seen.
    pub fn list_all(&self, filter: &Filter) -> Result<RunList, StoreError> {
        let mut list = RunList::default();
        for id in index::run_names(&self.runs())? {
            match self.load_metadata(&id) {
                Ok(meta) if filter.lets(&meta) => list.runs.push(meta),
                // A folder without a run's files, such as one that was made for artifacts.
                Ok(_) | Err(StoreError::NotFound(_)) => {}
                Err(error) => list.problems.push(error.problem(&self.folder(&id))),
            }
        }
        let key = |run: &RunMeta| (run.started_at.map(|at| at.instant()), run.run_id.clone());
        list.runs.sort_by_cached_key(|run| std::cmp::Reverse(key(run)));
        list.runs.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(list)
    }

    /// Removes a run; one that does not exist is fine, one that another process records is not.
    pub fn delete(&self, id: &RunId) -> Result<(), StoreError> {
        self.delete_run(id)?;
        self.update_index();
        Ok(())
    }

    /// As [`Store::delete`], but leaves the index to the caller.
    pub(super) fn delete_run(&self, id: &RunId) -> Result<(), StoreError> {
        self.active().remove(id);
        let folder = self.folder(id);
        self.refuse_recording(id)?;
        match std::fs::remove_dir_all(&folder).on("remove", &folder) {
            Err(error) if error.is_missing() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(()) => Ok(durable::sync_dir(&self.runs())?),
        }
    }

    /// The runs that this process records.
    pub fn active_runs(&self) -> Vec<RunId> {
        let mut ids: Vec<_> = self.active().keys().cloned().collect();
        ids.sort();
        ids
    }

    /// Whether anybody records the run.
    pub fn is_recording(&self, id: &RunId) -> Result<bool, StoreError> {
        Ok(self.active().contains_key(id) || journal::is_live(&self.folder(id))?)
    }

    pub(super) fn refuse_recording(&self, id: &RunId) -> Result<(), StoreError> {
        if self.is_recording(id)? {
            return Err(StoreError::Recording(id.clone()));
        }
        Ok(())
    }

    pub(super) fn runs(&self) -> PathBuf {
        self.base.join(RUNS)
    }

    /// Writes `index.json` anew. Nobody depends on it, so a failure is not one of the operation
    /// that changed the runs.
    pub(super) fn update_index(&self) {
        if self.runs().is_dir()
            && let Ok(runs) = self.list(&Filter::default())
        {
            let _ = index::write_index(&self.runs(), &runs, self.clock.now());
        }
    }

    pub(super) fn active(&self) -> MutexGuard<'_, HashMap<RunId, Recording>> {
        // A thread that panicked left the map as it was before its own call.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Filter {
    fn lets(&self, run: &RunMeta) -> bool {
        let started = run.started_at.map(|at| at.instant());
        let flow = self.flow.as_ref().is_none_or(|flow| *flow == run.flow_id);
        let status = self.status.as_ref().is_none_or(|status| *status == run.status);
        let after = self.after.is_none_or(|at| started >= Some(at.instant()));
        let before =
            self.before.is_none_or(|at| started.is_none_or(|started| started <= at.instant()));
        let tokens = self.tokens_in.contains(run.total_tokens_in)
            && self.tokens_out.contains(run.total_tokens_out);
        flow && status && after && before && tokens
    }
}
