//! Records runs into a store: start, turns, end, and recovery after the recorder died.

use std::path::Path;

use super::decode::Decoded;
use super::encode::Shape;
use super::error::StoreError;
use super::journal::{self, Journal, Record};
use super::run::{Run, RunMeta, ToolCall, Turn};
use super::run_id::RunId;
use super::store::Store;
use super::{archive, folder};
use crate::durable::{self, FileError, OnPath};
use crate::json::Object;
use crate::problem::Problem;
use crate::session::Status;

/// Error text of a run after its recorder died.
const ABANDONED: &str = "the recorder stopped without ending the run";

/// File name of a journal with lines that could not be parsed.
const DAMAGED: &str = "journal-damaged.jsonl";

/// A run that this process records.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) run: Run,
    journal: Journal,
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

impl Store {
    /// Starts a run under a new name.
    pub fn start(&self, new: &NewRun) -> Result<RunId, StoreError> {
        let now = self.clock.now();
        loop {
            let identifier = new.identifier.clone().unwrap_or_else(random_identifier);
            let id = RunId::fresh(now, &new.flow, &identifier, |id| self.is_taken(id));
            let id: RunId = id.as_str().parse()?;
            match self.start_as(&id, new) {
                // Another process has taken the name meanwhile.
                Err(StoreError::AlreadyExists(_)) => {}
                other => return other.map(|()| id),
            }
        }
    }

    /// Starts a run under a given name.
    pub fn start_as(&self, id: &RunId, new: &NewRun) -> Result<(), StoreError> {
        if archive::find(&self.base, id).is_some() {
            return Err(StoreError::AlreadyExists(id.clone()));
        }
        let folder = self.folder(id);
        let run = journal::begun(RunMeta {
            run_id: id.to_string(),
            flow_id: new.flow.clone(),
            node_id: new.node.clone().unwrap_or_default(),
            input: new.input.clone(),
            started_at: Some(self.clock.now()),
            status: Status::Running.as_str().to_owned(),
            ..RunMeta::default()
        });
        durable::create_private_dir(&folder)?;
        let Some(journal) = Journal::create(&folder, &run.metadata)? else {
            return Err(StoreError::AlreadyExists(id.clone()));
        };
        if folder::bundle(&folder).sources.len() > 1 {
            durable::remove_file(journal.path())?;
            return Err(StoreError::AlreadyExists(id.clone()));
        }
        folder::save_metadata(&folder, &run, Shape::Shipped)?;
        durable::sync_dir(&self.runs())?;
        durable::sync_dir(&self.base)?;
        self.active().insert(id.clone(), Recording { run, journal });
        Ok(())
    }

    /// Records a turn, and returns its number. A turn without a time gets the current one.
    pub fn record_turn(&self, id: &RunId, mut turn: Turn) -> Result<u64, StoreError> {
        turn.timestamp.get_or_insert_with(|| self.clock.now());
        let mut number = 0;
        self.record(id, |run| {
            number = run.turns.len() as u64 + 1;
            turn.id = number;
            Ok(Record::Turn(turn))
        })?;
        Ok(number)
    }

    /// Records a tool call with its output or error in the last turn.
    pub fn record_tool_call(&self, id: &RunId, call: ToolCall) -> Result<(), StoreError> {
        self.record(id, |run| match run.turns.last() {
            Some(_) => Ok(Record::ToolCall(call)),
            None => Err(StoreError::NoTurns(id.clone())),
        })
    }

    /// Adds to the run's cost.
    pub fn add_cost(&self, id: &RunId, dollars: f64) -> Result<(), StoreError> {
        self.record(id, |run| cost(run.metadata.total_cost + dollars))
    }

    /// Sets the run's cost.
    pub fn set_cost(&self, id: &RunId, dollars: f64) -> Result<(), StoreError> {
        self.record(id, |_| cost(dollars))
    }

    /// Ends a run as completed.
    pub fn complete(&self, id: &RunId) -> Result<(), StoreError> {
        self.end(id, Status::Completed, "")
    }

    /// Ends a run as failed.
    pub fn fail(&self, id: &RunId, error: &str) -> Result<(), StoreError> {
        self.end(id, Status::Failed, error)
    }

    /// Ends a run as canceled.
    pub fn cancel(&self, id: &RunId) -> Result<(), StoreError> {
        self.end(id, Status::Canceled, "")
    }

    /// Calls `act` with a run that this process records.
    fn with<T>(&self, id: &RunId, act: impl FnOnce(&mut Recording) -> T) -> Result<T, StoreError> {
        if let Some(recording) = self.active().get_mut(id) {
            return Ok(act(recording));
        }
        let ended = folder::load_metadata(&self.folder(id)).is_ok_and(|meta| !meta.is_running());
        Err(if ended {
            StoreError::AlreadyEnded(id.clone())
        } else {
            StoreError::NotStarted(id.clone())
        })
    }

    /// Appends a record that depends on the current state of the run.
    fn record(
        &self,
        id: &RunId,
        make: impl FnOnce(&Run) -> Result<Record, StoreError>,
    ) -> Result<(), StoreError> {
        self.with(id, |recording| {
            if !recording.run.metadata.is_running() {
                return Err(StoreError::AlreadyEnded(id.clone()));
            }
            let record = make(&recording.run)?;
            recording.write(record)
        })?
    }

    /// Ends a run. If its files could not be written, it can be ended again.
    fn end(&self, id: &RunId, status: Status, error: &str) -> Result<(), StoreError> {
        let (now, folder) = (self.clock.now(), self.folder(id));
        self.with(id, |recording| {
            if recording.run.metadata.is_running() {
                let mut ended = recording.run.metadata.clone();
                ended.end(status, now, error);
                recording.write(Record::End(ended))?;
            }
            folder::save(&folder, &recording.run, Shape::Shipped)?;
            durable::remove_file(recording.journal.path())?;
            Ok::<_, StoreError>(())
        })??;
        self.active().remove(id);
        self.update_index();
        Ok(())
    }

    fn is_taken(&self, id: &RunId) -> bool {
        self.folder(id).exists() || archive::find(&self.base, id).is_some()
    }
}

impl Recording {
    /// Appends a record to the journal, then applies it to the run in memory.
    fn write(&mut self, record: Record) -> Result<(), StoreError> {
        self.journal.append(&record)?;
        journal::apply(&mut self.run, record);
        Ok(())
    }
}

/// Ends the run in a folder if its recorder died, and returns records that could not be parsed as problems; `None` if
/// a process is recording it.
pub(super) fn recover(folder: &Path) -> Result<Option<Vec<Problem>>, FileError> {
    let Some(journal) = Journal::take_over(folder)? else {
        return Ok(None);
    };
    let path = journal.path();
    let bytes = std::fs::read(path).on("read", path)?;
    let replayed = match journal::replay(path, &bytes) {
        Ok(replayed) => replayed,
        Err(problem) => return Ok(Some(vec![problem])),
    };
    let Decoded { mut run, problems } = replayed.decoded;
    if !replayed.ended {
        end_abandoned(&mut run);
    }
    folder::save(folder, &run, Shape::Shipped)?;
    if problems.is_empty() {
        durable::remove_file(path)?;
    } else {
        // Lines that could not be parsed must not be lost.
        std::fs::rename(path, folder.join(DAMAGED)).on("rename", path)?;
        durable::sync_dir(folder)?;
    }
    Ok(Some(problems))
}

/// Ends a run after its recorder died: it failed at the time of its last record.
pub(super) fn end_abandoned(run: &mut Run) {
    let last = run.turns.iter().rev().find_map(|turn| turn.timestamp);
    if let Some(at) = last.or(run.metadata.started_at) {
        run.metadata.end(Status::Failed, at, ABANDONED);
    }
}

fn cost(dollars: f64) -> Result<Record, StoreError> {
    if dollars.is_finite() { Ok(Record::Cost(dollars)) } else { Err(StoreError::Cost(dollars)) }
}

/// Generates an identifier of eight hex digits.
fn random_identifier() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    id[..8].to_owned()
}
