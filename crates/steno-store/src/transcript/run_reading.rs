//! Decodes the runs of a recording that are in agents' own formats, with their readers.

use super::record_reader::RecordReader;
use super::recorded_runs::RecordedRun;
use crate::format::file_format::RecognisedFile;
use steno_agents::reader::{FormatError, FormatReader, ItemSink, ReaderItem};
use steno_model::durable::FileError;
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId};
use steno_model::timestamp::Timestamp;
use steno_vault::SessionBundle;

/// The session in which an agent made the recorded messages, whoever recorded them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordOrigin {
    pub(crate) agent: String,
    pub(crate) id: SessionId,
}

/// An item of a recording.
#[derive(Debug)]
pub(crate) enum RecordedItem {
    /// An entry or a problem.
    Item(ReaderItem),
    /// The origin of the following messages: a session that its agent may have in files too, or `None` for the
    /// recording itself.
    Origin(Option<RecordOrigin>),
}

/// Receives the items of a recording, in order.
pub(crate) type EmitRecorded<'a> = &'a mut dyn FnMut(RecordedItem);

/// Decodes the runs of a recording while its log is read.
pub(super) struct RunReading {
    runs: std::iter::Peekable<std::vec::IntoIter<RecordedRun>>,
    /// The end of the current run, as a line number.
    end: u64,
    /// The sessions as the runs state them.
    stated: Vec<Session>,
    /// Whether every record so far is part of a run.
    is_all: bool,
    /// The time of the last entry.
    pub(super) last: Option<Timestamp>,
}

impl RunReading {
    pub(super) fn new(runs: Vec<RecordedRun>) -> Self {
        let runs = runs.into_iter().peekable();
        Self { runs, end: 0, stated: Vec::new(), is_all: true, last: None }
    }

    /// Advances to a line of the log, counted from 0, and reads the run that starts there. Returns whether the line's
    /// record was read as part of a run.
    pub(super) fn reach(
        &mut self,
        line: u64,
        reader: &mut RecordReader,
        emit: EmitRecorded<'_>,
    ) -> Result<bool, FileError> {
        if let Some(run) = self.runs.next_if(|run| run.begin == line) {
            // If the reader emits no entries, the records are shown one by one.
            if self.read_run(&run, reader, emit)? > 0 {
                self.end = run.end;
            }
        }
        Ok(line < self.end)
    }

    /// Notes that a record outside of all runs has entries.
    pub(super) fn note_other_record(&mut self) {
        self.is_all = false;
    }

    /// Decodes a run. Returns the number of its entries.
    fn read_run(
        &mut self,
        run: &RecordedRun,
        reader: &mut RecordReader,
        emit: EmitRecorded<'_>,
    ) -> Result<usize, FileError> {
        let RecognisedFile { format, sessions } = &run.file;
        let mut count = 0;
        for (session, head) in sessions.iter().zip(&run.head.sessions) {
            let stated = read_session(format.reader, head, &mut |_| {});
            let stated = stated.or_else(|_| read_session(format.reader, session, &mut |_| {}));
            let origin = stated.ok().map(|Session { agent, id, .. }| RecordOrigin { agent, id });
            emit(RecordedItem::Origin(origin));
            let last = &mut self.last;
            let stated = read_session(format.reader, session, &mut |item| {
                let item = match item {
                    ReaderItem::Entry(mut entry) => {
                        count += 1;
                        reader.take_entry(&mut entry);
                        *last = entry.created_at.or(*last);
                        ReaderItem::Entry(entry)
                    }
                    problem @ ReaderItem::Problem(_) => problem,
                };
                emit(RecordedItem::Item(item));
            });
            emit(RecordedItem::Origin(None));
            match stated {
                Ok(stated) => self.stated.push(stated),
                Err(FormatError::Invalid(problem)) => {
                    emit(RecordedItem::Item(ReaderItem::Problem(problem)));
                }
                Err(error @ FormatError::File(_)) if !error.is_system_error() => {
                    let problem = Problem::for_file(&session.root, error.to_string());
                    emit(RecordedItem::Item(ReaderItem::Problem(problem)));
                }
                Err(FormatError::File(error)) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Completes the session of the recording with the fields that the runs state.
    pub(super) fn complete(self, session: &mut Session) {
        let is_whole = self.is_all && self.stated.len() == 1;
        for stated in self.stated.into_iter().rev() {
            session.title = stated.title.or(session.title.take());
            session.branch = stated.branch.or(session.branch.take());
            session.project = session.project.take().or(stated.project);
            session.stop_reason = session.stop_reason.take().or(stated.stop_reason);
            for model in stated.models {
                if !session.models.contains(&model) {
                    session.models.push(model);
                }
            }
            for (name, value) in stated.extra {
                session.extra.entry(name).or_insert(value);
            }
            if let Some(cost) = stated.totals.cost {
                session.totals.cost = Some(session.totals.cost.unwrap_or_default() + cost);
            }
            if is_whole && !stated.totals.usage.is_empty() {
                session.totals.usage = stated.totals.usage;
            }
        }
    }
}

fn read_session(
    reader: &FormatReader,
    session: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    (reader.read)(session, emit)
}
