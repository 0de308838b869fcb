//! The store: records, lists, loads and removes runs in `BASE/runs`.
//!
//! # Durability
//! A turn is on disk when `record_turn` returns: it is in the run's journal, which becomes `transcript.json` when the
//! run ends. A run is read as failed after its recorder died, and is ended as failed when the store is next opened
//! for writing.
//!
//! # Locking
//! Threads can share one store, and several processes can use one folder. The recorder of a run holds a lock on its
//! journal, and no other process changes a run that is being recorded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::decode::DecodedRun;
use super::error::{RunStoreError, file_problem};
use super::recording::{RunRecording, end_abandoned_run, recover_run};
use super::run::RunMetadata;
use super::run_id::RunId;
use super::search::TokenRange;
use super::{folder, index, journal};
use steno_model::durable::{self, OnPath};
use steno_model::problem::Problem;
use steno_model::timestamp::{Clock, Timestamp};

/// Folder of the runs in the store.
pub(super) const RUNS_FOLDER: &str = "runs";

/// The runs of one `.devflow` folder.
#[derive(Debug)]
pub struct RunStore {
    pub(super) base: PathBuf,
    pub(super) clock: Clock,
    active: Mutex<HashMap<RunId, RunRecording>>,
    problems: Vec<Problem>,
}

/// The listed runs, and those that could not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunList {
    /// The runs, newest first.
    pub runs: Vec<RunMetadata>,
    /// Runs that could not be read.
    pub problems: Vec<Problem>,
}

/// Which runs to list; all by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFilter {
    /// Runs of this flow.
    pub flow: Option<String>,
    /// Runs with this status.
    pub status: Option<String>,
    /// Runs that started at this time or later.
    pub after: Option<Timestamp>,
    /// Runs that started at this time or earlier.
    pub before: Option<Timestamp>,
    /// Runs with a number of prompt tokens in this range.
    pub tokens_in: TokenRange,
    /// Runs with a number of output tokens in this range.
    pub tokens_out: TokenRange,
    /// Maximum number of runs; the newest are listed.
    pub limit: Option<usize>,
}

impl RunStore {
    /// Opens the store in `base`, and ends runs after their recorder died.
    ///
    /// Nothing is created before the first run. [`RunStore::problems`] returns the runs that could not be recovered.
    pub fn open(base: &Path, clock: Clock) -> Result<Self, RunStoreError> {
        let mut store = Self::open_read_only(base, clock);
        store.problems = store.recover_runs()?;
        Ok(store)
    }

    /// Opens the store in `base` for reading. Opening changes nothing; later calls still can.
    pub fn open_read_only(base: &Path, clock: Clock) -> Self {
        Self { base: base.to_owned(), clock, active: Mutex::default(), problems: Vec::new() }
    }

    /// Ends runs after their recorder died, and returns those that could not be ended as problems.
    fn recover_runs(&self) -> Result<Vec<Problem>, RunStoreError> {
        let mut problems = Vec::new();
        let mut has_changed = false;
        for id in index::list_run_ids(&self.runs_folder())? {
            let folder = self.run_folder(&id);
            if !folder.join(journal::JOURNAL_FILE).exists() {
                continue;
            }
            match recover_run(&folder) {
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

    /// Runs that could not be recovered when the store was opened.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The folder of a run, which may not exist.
    pub fn run_folder(&self, id: &RunId) -> PathBuf {
        self.runs_folder().join(id.as_str())
    }

    /// Loads a run, or what has been recorded of it so far.
    pub fn load_run(&self, id: &RunId) -> Result<DecodedRun, RunStoreError> {
        if let Some(recording) = self.active().get(id) {
            let run = recording.run.clone();
            return Ok(DecodedRun { run, problems: Vec::new() });
        }
        let folder = self.run_folder(id);
        // Checked before reading: when a recorder is gone, only recovery changes the run.
        let is_abandoned = journal::is_abandoned(&folder)?;
        let bundle = folder::run_bundle(&folder);
        if bundle.files.is_empty() {
            return Err(RunStoreError::NotFound(id.clone()));
        }
        let mut decoded = folder::load_run(&bundle)
            .map_err(|error| RunStoreError::from_format_error(id.clone(), error))?;
        if is_abandoned && decoded.run.metadata.is_running() {
            end_abandoned_run(&mut decoded.run);
        }
        Ok(decoded)
    }

    /// Loads the metadata of a run.
    pub fn load_metadata(&self, id: &RunId) -> Result<RunMetadata, RunStoreError> {
        let folder = self.run_folder(id);
        let stored = folder.join(folder::METADATA_FILE).exists();
        let recorded =
            self.active().contains_key(id) || folder.join(journal::JOURNAL_FILE).exists();
        let mut meta = if recorded || !stored {
            let DecodedRun { run, .. } = self.load_run(id)?;
            let turn_count = Some(run.turn_count());
            RunMetadata { turn_count, ..run.metadata }
        } else {
            let unreadable = |error| RunStoreError::from_format_error(id.clone(), error);
            folder::load_metadata(&folder).map_err(unreadable)?
        };
        // devflow writes the transcript first, so a crash may leave the metadata of a running run.
        if meta.is_running()
            && !recorded
            && let Ok(DecodedRun { run, .. }) = self.load_run(id)
        {
            let turn_count = Some(run.turn_count());
            meta = RunMetadata { turn_count, ..run.metadata };
        }
        // The folder's name identifies the run, whatever the file states.
        meta.run_id = id.to_string();
        Ok(meta)
    }

    /// Lists the runs that match a filter, newest first. Runs that cannot be read are skipped.
    pub fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunMetadata>, RunStoreError> {
        Ok(self.list_runs_with_problems(filter)?.runs)
    }

    /// Lists the runs that match a filter, and returns runs that cannot be read as problems.
    ///
    /// Each run is read from its own files, so changes by other programs are seen.
    pub fn list_runs_with_problems(&self, filter: &RunFilter) -> Result<RunList, RunStoreError> {
        let mut list = RunList::default();
        for id in index::list_run_ids(&self.runs_folder())? {
            match self.load_metadata(&id) {
                Ok(meta) if filter.matches_run(&meta) => list.runs.push(meta),
                // A folder without a run's files, such as one created for artifacts.
                Ok(_) | Err(RunStoreError::NotFound(_)) => {}
                Err(error) => list.problems.push(error.problem(&self.run_folder(&id))),
            }
        }
        let key = |run: &RunMetadata| (run.started_at.map(|at| at.instant()), run.run_id.clone());
        list.runs.sort_by_cached_key(|run| std::cmp::Reverse(key(run)));
        list.runs.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(list)
    }

    /// Removes a run. A missing run is fine; one that another process records is an error.
    pub fn delete_run(&self, id: &RunId) -> Result<(), RunStoreError> {
        self.delete_without_index(id)?;
        self.update_index();
        Ok(())
    }

    /// Like [`RunStore::delete_run`], but does not update the index.
    pub(super) fn delete_without_index(&self, id: &RunId) -> Result<(), RunStoreError> {
        self.active().remove(id);
        let folder = self.run_folder(id);
        self.refuse_recording(id)?;
        match std::fs::remove_dir_all(&folder).on("remove", &folder) {
            Err(error) if error.is_missing() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(()) => Ok(durable::sync_dir(&self.runs_folder())?),
        }
    }

    /// The runs that this process records.
    pub fn active_runs(&self) -> Vec<RunId> {
        let mut ids: Vec<_> = self.active().keys().cloned().collect();
        ids.sort();
        ids
    }

    /// Whether any process records the run.
    pub fn is_recording(&self, id: &RunId) -> Result<bool, RunStoreError> {
        Ok(self.active().contains_key(id) || journal::is_live(&self.run_folder(id))?)
    }

    pub(super) fn refuse_recording(&self, id: &RunId) -> Result<(), RunStoreError> {
        if self.is_recording(id)? {
            return Err(RunStoreError::Recording(id.clone()));
        }
        Ok(())
    }

    pub(super) fn runs_folder(&self) -> PathBuf {
        self.base.join(RUNS_FOLDER)
    }

    /// Rewrites `index.json`. No reader depends on it, so a failure does not fail the operation that changed the
    /// runs.
    pub(super) fn update_index(&self) {
        if self.runs_folder().is_dir()
            && let Ok(runs) = self.list_runs(&RunFilter::default())
        {
            let _ = index::write_index(&self.runs_folder(), &runs, self.clock.now());
        }
    }

    pub(super) fn active(&self) -> MutexGuard<'_, HashMap<RunId, RunRecording>> {
        // A thread that panicked left the map in a consistent state.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunFilter {
    fn matches_run(&self, run: &RunMetadata) -> bool {
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
