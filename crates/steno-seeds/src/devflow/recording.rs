//! Records runs into a store: start, turns, end, and recovery after the recorder died.

use std::path::Path;

use super::decode::DecodedRun;
use super::encode::RunFileShape;
use super::error::RunStoreError;
use super::journal::{self, JournalRecord, RunJournal};
use super::run::{DevflowRun, RunMetadata, RunTurn, TurnToolCall};
use super::run_id::RunId;
use super::store::RunStore;
use super::{archive, folder};
use steno_model::durable::{self, FileError, OnPath};
use steno_model::json::Object;
use steno_model::problem::Problem;
use steno_model::session::SessionStatus;

/// Error text of a run after its recorder died.
const ABANDONED_ERROR: &str = "the recorder stopped without ending the run";

/// File name of a journal with lines that could not be parsed.
const DAMAGED_JOURNAL_FILE: &str = "journal-damaged.jsonl";

/// A run that this process records.
#[derive(Debug)]
pub(super) struct RunRecording {
    pub(super) run: DevflowRun,
    journal: RunJournal,
}

/// The parameters of a new run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewRun {
    /// The flow's name.
    pub flow: String,
    /// The run's subject, such as a ticket; eight random hex digits if absent.
    pub identifier: Option<String>,
    /// The flow's node, if only one runs.
    pub node: Option<String>,
    /// The flow's input.
    pub input: Object,
}

impl RunStore {
    /// Starts a run under a new name.
    pub fn start_run(&self, new: &NewRun) -> Result<RunId, RunStoreError> {
        let now = self.clock.now();
        loop {
            let identifier = new.identifier.clone().unwrap_or_else(random_identifier);
            let id = RunId::first_free(now, &new.flow, &identifier, |id| self.is_taken(id));
            let id: RunId = id.as_str().parse()?;
            match self.start_run_as(&id, new) {
                // Another process has taken the name meanwhile.
                Err(RunStoreError::AlreadyExists(_)) => {}
                other => return other.map(|()| id),
            }
        }
    }

    /// Starts a run under a given name.
    pub fn start_run_as(&self, id: &RunId, new: &NewRun) -> Result<(), RunStoreError> {
        if archive::find_archive(&self.base, id).is_some() {
            return Err(RunStoreError::AlreadyExists(id.clone()));
        }
        let folder = self.run_folder(id);
        let run = journal::new_run(RunMetadata {
            run_id: id.to_string(),
            flow_id: new.flow.clone(),
            node_id: new.node.clone().unwrap_or_default(),
            input: new.input.clone(),
            started_at: Some(self.clock.now()),
            status: SessionStatus::Running.as_str().to_owned(),
            ..RunMetadata::default()
        });
        durable::create_private_dir(&folder)?;
        let Some(journal) = RunJournal::create(&folder, &run.metadata)? else {
            return Err(RunStoreError::AlreadyExists(id.clone()));
        };
        if folder::run_bundle(&folder).files.len() > 1 {
            durable::remove_file(journal.path())?;
            return Err(RunStoreError::AlreadyExists(id.clone()));
        }
        folder::save_metadata(&folder, &run, RunFileShape::Shipped)?;
        durable::sync_dir(&self.runs_folder())?;
        durable::sync_dir(&self.base)?;
        self.active().insert(id.clone(), RunRecording { run, journal });
        Ok(())
    }

    /// Records a turn, and returns its number. A turn without a time gets the current one.
    pub fn record_turn(&self, id: &RunId, mut turn: RunTurn) -> Result<u64, RunStoreError> {
        turn.timestamp.get_or_insert_with(|| self.clock.now());
        let mut number = 0;
        self.append_record(id, |run| {
            number = run.turns.len() as u64 + 1;
            turn.id = number;
            Ok(JournalRecord::Turn(turn))
        })?;
        Ok(number)
    }

    /// Records a tool call with its output or error in the last turn.
    pub fn record_tool_call(&self, id: &RunId, call: TurnToolCall) -> Result<(), RunStoreError> {
        self.append_record(id, |run| match run.turns.last() {
            Some(_) => Ok(JournalRecord::ToolCall(call)),
            None => Err(RunStoreError::NoTurns(id.clone())),
        })
    }

    /// Adds to the run's cost.
    pub fn add_cost(&self, id: &RunId, dollars: f64) -> Result<(), RunStoreError> {
        self.append_record(id, |run| cost_record(run.metadata.total_cost + dollars))
    }

    /// Sets the run's cost.
    pub fn set_cost(&self, id: &RunId, dollars: f64) -> Result<(), RunStoreError> {
        self.append_record(id, |_| cost_record(dollars))
    }

    /// Ends a run as completed.
    pub fn complete_run(&self, id: &RunId) -> Result<(), RunStoreError> {
        self.end_run(id, SessionStatus::Completed, "")
    }

    /// Ends a run as failed.
    pub fn fail_run(&self, id: &RunId, error: &str) -> Result<(), RunStoreError> {
        self.end_run(id, SessionStatus::Failed, error)
    }

    /// Ends a run as canceled.
    pub fn cancel_run(&self, id: &RunId) -> Result<(), RunStoreError> {
        self.end_run(id, SessionStatus::Canceled, "")
    }

    /// Calls `act` with a run that this process records.
    fn with_recording<T>(
        &self,
        id: &RunId,
        act: impl FnOnce(&mut RunRecording) -> T,
    ) -> Result<T, RunStoreError> {
        if let Some(recording) = self.active().get_mut(id) {
            return Ok(act(recording));
        }
        let ended =
            folder::load_metadata(&self.run_folder(id)).is_ok_and(|meta| !meta.is_running());
        Err(if ended {
            RunStoreError::AlreadyEnded(id.clone())
        } else {
            RunStoreError::NotStarted(id.clone())
        })
    }

    /// Appends a record that depends on the current state of the run.
    fn append_record(
        &self,
        id: &RunId,
        make: impl FnOnce(&DevflowRun) -> Result<JournalRecord, RunStoreError>,
    ) -> Result<(), RunStoreError> {
        self.with_recording(id, |recording| {
            if !recording.run.metadata.is_running() {
                return Err(RunStoreError::AlreadyEnded(id.clone()));
            }
            let record = make(&recording.run)?;
            recording.write_record(record)
        })?
    }

    /// Ends a run. If its files could not be written, it can be ended again.
    fn end_run(&self, id: &RunId, status: SessionStatus, error: &str) -> Result<(), RunStoreError> {
        let (now, folder) = (self.clock.now(), self.run_folder(id));
        self.with_recording(id, |recording| {
            if recording.run.metadata.is_running() {
                let mut ended = recording.run.metadata.clone();
                ended.end_run(status, now, error);
                recording.write_record(JournalRecord::End(ended))?;
            }
            folder::save_run(&folder, &recording.run, RunFileShape::Shipped)?;
            durable::remove_file(recording.journal.path())?;
            Ok::<_, RunStoreError>(())
        })??;
        self.active().remove(id);
        self.update_index();
        Ok(())
    }

    fn is_taken(&self, id: &RunId) -> bool {
        self.run_folder(id).exists() || archive::find_archive(&self.base, id).is_some()
    }
}

impl RunRecording {
    /// Appends a record to the journal, then applies it to the run in memory.
    fn write_record(&mut self, record: JournalRecord) -> Result<(), RunStoreError> {
        self.journal.append(&record)?;
        journal::apply_record(&mut self.run, record);
        Ok(())
    }
}

/// Ends the run in a folder if its recorder died, and returns records that could not be parsed as problems; `None` if
/// a process is recording it.
pub(super) fn recover_run(folder: &Path) -> Result<Option<Vec<Problem>>, FileError> {
    let Some(journal) = RunJournal::take_over(folder)? else {
        return Ok(None);
    };
    let path = journal.path();
    let bytes = std::fs::read(path).on("read", path)?;
    let replayed = match journal::replay_journal(path, &bytes) {
        Ok(replayed) => replayed,
        Err(problem) => return Ok(Some(vec![problem])),
    };
    let DecodedRun { mut run, problems } = replayed.decoded;
    if !replayed.has_ended {
        end_abandoned_run(&mut run);
    }
    folder::save_run(folder, &run, RunFileShape::Shipped)?;
    if problems.is_empty() {
        durable::remove_file(path)?;
    } else {
        // Lines that could not be parsed must not be lost.
        std::fs::rename(path, folder.join(DAMAGED_JOURNAL_FILE)).on("rename", path)?;
        durable::sync_dir(folder)?;
    }
    Ok(Some(problems))
}

/// Ends a run after its recorder died: it failed at the time of its last record.
pub(super) fn end_abandoned_run(run: &mut DevflowRun) {
    let last = run.turns.iter().rev().find_map(|turn| turn.timestamp);
    if let Some(at) = last.or(run.metadata.started_at) {
        run.metadata.end_run(SessionStatus::Failed, at, ABANDONED_ERROR);
    }
}

fn cost_record(dollars: f64) -> Result<JournalRecord, RunStoreError> {
    if dollars.is_finite() {
        Ok(JournalRecord::Cost(dollars))
    } else {
        Err(RunStoreError::Cost(dollars))
    }
}

/// Generates an identifier of eight hex digits.
fn random_identifier() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    id[..8].to_owned()
}
