//! The journal of a run during recording: one JSON line per record, on disk before the call returns.
//!
//! The recorder holds a lock on the file. A journal without a lock belongs to a recorder that is gone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::decode::DecodedRun;
use super::encode::{RunFileShape, float_value};
use super::fields::LenientFields;
use super::run::{DevflowRun, RunMetadata, RunTurn, TurnToolCall};
use steno_model::durable::{FileError, OnPath, parent_folder, sync_dir};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::lines::{LineEnd, LineReader};
use steno_model::problem::{Problem, json_error_reason};

/// The journal's file name.
pub(super) const JOURNAL_FILE: &str = "journal.jsonl";

/// One line of a journal.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JournalRecord {
    /// The run started.
    Start(RunMetadata),
    /// A turn.
    Turn(RunTurn),
    /// A tool call in the last turn.
    ToolCall(TurnToolCall),
    /// The total cost so far.
    Cost(f64),
    /// The run ended.
    End(RunMetadata),
}

/// A journal that this process writes. No other process can take it over.
#[derive(Debug)]
pub(super) struct RunJournal {
    path: PathBuf,
    file: File,
    /// Whether the last write may have left a partial line.
    is_torn: bool,
}

/// A run rebuilt from its journal.
#[derive(Debug)]
pub(super) struct ReplayedRun {
    pub(super) decoded: DecodedRun,
    /// Whether the journal has the end of the run.
    pub(super) has_ended: bool,
}

impl RunJournal {
    /// Creates the journal of a run in its folder; `None` if there is one already.
    ///
    /// The file gets its name only after its first line is written and its lock is held, so that no process mistakes
    /// it for a run without a recorder.
    pub(super) fn create(folder: &Path, meta: &RunMetadata) -> Result<Option<Self>, FileError> {
        let path = folder.join(JOURNAL_FILE);
        let mut temp = tempfile::Builder::new()
            .prefix(".steno-")
            .suffix(".tmp")
            .tempfile_in(folder)
            .on("write", &path)?;
        temp.as_file().lock().on("lock", &path)?;
        let line = JournalRecord::Start(meta.clone()).to_line();
        temp.write_all(line.as_bytes()).on("write", &path)?;
        temp.as_file().sync_all().on("sync", &path)?;
        let file = match temp.persist_noclobber(&path) {
            Ok(file) => file,
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Ok(None);
            }
            Err(error) => return Err(error.error).on("create", &path),
        };
        sync_dir(parent_folder(&path))?;
        Ok(Some(Self::new(path, file)))
    }

    /// Takes over the journal of a recorder that is gone; `None` if a process still records, or has just finished.
    pub(super) fn take_over(folder: &Path) -> Result<Option<Self>, FileError> {
        let path = folder.join(JOURNAL_FILE);
        let opened = OpenOptions::new().read(true).append(true).open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).on("open", &path),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error).on("lock", &path),
        }
        // Between opening and locking, the recorder may have finished the run and removed the file.
        Ok(path.exists().then(|| Self::new(path, file)))
    }

    /// Appends one record durably.
    pub(super) fn append(&mut self, record: &JournalRecord) -> Result<(), FileError> {
        let mut line = record.to_line();
        if self.is_torn {
            line.insert(0, '\n');
        }
        self.is_torn = true;
        self.file.write_all(line.as_bytes()).on("write", &self.path)?;
        self.is_torn = false;
        self.file.sync_data().on("sync", &self.path)
    }

    fn new(path: PathBuf, file: File) -> Self {
        Self { path, file, is_torn: false }
    }

    /// The journal's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a process is recording into this folder.
pub(super) fn is_live(folder: &Path) -> Result<bool, FileError> {
    Ok(read_lock_state(folder)? == Some(true))
}

/// Whether the recorder of the run in this folder is gone.
pub(super) fn is_abandoned(folder: &Path) -> Result<bool, FileError> {
    Ok(read_lock_state(folder)? == Some(false))
}

/// Whether a process holds the journal's lock; `None` if there is no journal.
///
/// Takes a shared lock on a file opened for reading. This works in read-only folders, and readers do not mistake each
/// other for recorders.
fn read_lock_state(folder: &Path) -> Result<Option<bool>, FileError> {
    let path = folder.join(JOURNAL_FILE);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).on("open", &path),
    };
    let is_locked = match file.try_lock_shared() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => return Err(error).on("lock", &path),
    };
    // The recorder may have finished the run and removed the file meanwhile.
    Ok(path.exists().then_some(is_locked))
}

/// Rebuilds the run from a journal. A partial last line is dropped.
pub(super) fn replay_journal(path: &Path, bytes: &[u8]) -> Result<ReplayedRun, Problem> {
    let mut lines = LineReader::new(bytes);
    let mut problems = Vec::new();
    let mut run = None;
    let mut ended = false;
    while let Ok(Some(line)) = lines.read_line() {
        if line.end == LineEnd::Input {
            break;
        }
        match (JournalRecord::parse(&line.bytes), &mut run) {
            (Err(reason), _) => problems.push(Problem::at_line(path, line.number, reason)),
            (Ok(JournalRecord::Start(meta)), None) => run = Some(new_run(meta)),
            (Ok(record), Some(run)) => ended |= apply_record(run, record),
            (Ok(_), None) => {
                problems.push(Problem::at_line(
                    path,
                    line.number,
                    "record before the start record",
                ));
            }
        }
    }
    let Some(run) = run else {
        let empty = || Problem::for_file(path, "journal has no start record");
        return Err(problems.into_iter().next().unwrap_or_else(empty));
    };
    let decoded = DecodedRun { run, problems };
    Ok(ReplayedRun { decoded, has_ended: ended })
}

/// A run without turns.
pub(super) fn new_run(metadata: RunMetadata) -> DevflowRun {
    DevflowRun { run_id: metadata.run_id.clone(), metadata, ..DevflowRun::default() }
}

/// Applies a record to a run, and returns whether it ended the run.
pub(super) fn apply_record(run: &mut DevflowRun, record: JournalRecord) -> bool {
    match record {
        JournalRecord::Start(_) => {}
        JournalRecord::Turn(turn) => {
            run.push_turn(turn);
        }
        JournalRecord::ToolCall(call) => {
            if let Some(turn) = run.turns.last_mut() {
                turn.tool_calls.push(call);
            }
        }
        JournalRecord::Cost(total) => run.metadata.total_cost = total,
        JournalRecord::End(metadata) => {
            run.metadata = metadata;
            run.metadata.turn_count = None;
            return true;
        }
    }
    false
}

impl JournalRecord {
    fn to_line(&self) -> String {
        let shape = RunFileShape::Shipped;
        let (name, value) = match self {
            JournalRecord::Start(meta) => ("start", Value::Object(meta.to_object(shape))),
            JournalRecord::Turn(turn) => ("turn", Value::Object(turn.to_object(shape))),
            JournalRecord::ToolCall(call) => ("toolCall", Value::Object(call.to_object(shape))),
            JournalRecord::Cost(total) => ("cost", float_value(*total)),
            JournalRecord::End(meta) => ("end", Value::Object(meta.to_object(shape))),
        };
        let object = Object::from_iter([(name.to_owned(), value)]);
        JsonStyle::COMPACT.print(&object) + "\n"
    }

    fn parse(line: &[u8]) -> Result<Self, String> {
        let object: Object =
            serde_json::from_slice(line).map_err(|error| json_error_reason(&error))?;
        let Some((name, value)) = object.into_iter().next() else {
            return Err("empty record".to_owned());
        };
        let unknown = || format!("unknown record: {name}");
        if name == "cost" {
            return value.as_f64().map(JournalRecord::Cost).ok_or_else(unknown);
        }
        let Value::Object(object) = value else {
            return Err(unknown());
        };
        let mut fields = LenientFields::new(object);
        let record = match name.as_str() {
            "start" => JournalRecord::Start(RunMetadata::from_fields(&mut fields)),
            "turn" => JournalRecord::Turn(RunTurn::from_fields(&mut fields)),
            "toolCall" => JournalRecord::ToolCall(TurnToolCall::from_fields(&mut fields)),
            "end" => JournalRecord::End(RunMetadata::from_fields(&mut fields)),
            _ => return Err(unknown()),
        };
        match fields.errors.into_iter().next() {
            None => Ok(record),
            Some(wrong) => Err(wrong.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn meta() -> RunMetadata {
        RunMetadata {
            run_id: "r".to_owned(),
            flow_id: "f".to_owned(),
            status: "running".to_owned(),
            ..RunMetadata::default()
        }
    }

    #[test]
    fn replays_a_recording() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = RunJournal::create(dir.path(), &meta()).unwrap().unwrap();
        let records = [
            JournalRecord::Turn(RunTurn::new("user", "Hi\u{2028}\n", 3)),
            JournalRecord::Turn(RunTurn::new("assistant", "ok", 4)),
            JournalRecord::ToolCall(TurnToolCall::with_output("ls", None, "x")),
            JournalRecord::Cost(0.25),
        ];
        for record in &records {
            journal.append(record).unwrap();
        }
        let bytes = fs::read(journal.path()).unwrap();
        let torn = [bytes.as_slice(), b"{\"turn\":{\"role\":\"us"].concat();
        for bytes in [bytes, torn] {
            let replayed = replay_journal(journal.path(), &bytes).unwrap();
            let run = replayed.decoded.run;
            assert!(!replayed.has_ended);
            assert_eq!(replayed.decoded.problems, []);
            assert_eq!(run.turns.len(), 2);
            assert_eq!(run.turns[0].content, "Hi\u{2028}\n");
            assert_eq!(run.turns[1].tool_calls[0].output, "x");
            assert_eq!(run.metadata.total_tokens_in, 3);
            assert_eq!(run.metadata.total_cost, 0.25);
        }
    }

    #[test]
    fn a_journal_in_use_is_not_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let journal = RunJournal::create(dir.path(), &meta()).unwrap().unwrap();
        assert!(RunJournal::create(dir.path(), &meta()).unwrap().is_none());
        assert!(RunJournal::take_over(dir.path()).unwrap().is_none());
        assert!(is_live(dir.path()).unwrap());
        drop(journal);
        assert!(!is_live(dir.path()).unwrap());
        assert!(RunJournal::take_over(dir.path()).unwrap().is_some());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_bad_line_costs_no_other() {
        let text =
            "{\"start\":{\"runId\":\"r\"}}\n{\"turn\":5}\nnoise\n{\"turn\":{\"role\":\"user\"}}\n";
        let replayed = replay_journal(Path::new("j"), text.as_bytes()).unwrap();
        assert_eq!(replayed.decoded.run.turns.len(), 1);
        let lines: Vec<_> = replayed.decoded.problems.iter().map(|p| p.line).collect();
        assert_eq!(lines, [Some(2), Some(3)]);
        assert!(replay_journal(Path::new("j"), b"").is_err());
    }
}
