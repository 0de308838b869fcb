//! Reads the sessions of the vault as transcripts, with the readers of their formats.

mod exchanges;
mod moved_traffic;
pub mod record_reader;
mod recorded_runs;
#[cfg(test)]
mod resumable_tests;
pub(crate) mod run_reading;

use std::sync::PoisonError;

pub use self::exchanges::{RecordedExchanges, for_each_exchange, read_exchanges};
pub use self::moved_traffic::traffic_owner;
pub(crate) use self::moved_traffic::{ended_exchanges, move_exchanges};
use self::record_reader::RecordReader;
use self::run_reading::{EmitRecorded, RecordedItem, RunReading};
use crate::format;
use steno_agents::agents::aider;
use steno_agents::join::join_recorded;
use steno_agents::reader::{FormatError, ItemSink, ReaderItem};
use steno_model::durable::FileError;
use steno_model::entry::Entry;
use steno_model::numbering::EntryNumbering;
use steno_model::problem::{Problem, ProblemList};
use steno_model::session::{Session, SessionStatus, SessionTotals, Transcript};
use steno_model::timestamp::Timestamp;
use steno_vault::record::{self, RecordError};
use steno_vault::sealed::SharedProblems;
use steno_vault::{SessionBundle, SessionDir};

/// The stop reason of a session with a killed recorder.
pub const UNENDED_REASON: &str = "the recorder stopped without ending the session";

/// Reads a session of the vault as a transcript.
pub trait ReadTranscript {
    /// Reads the session with its notes. Damage costs only the affected frames and lines, and is reported.
    fn read_transcript(&self) -> Result<Transcript, FormatError>;

    /// Reads only the recording, without the agent's own files. Faults of those files are not reported.
    fn read_recording(&self) -> Result<Transcript, FileError>;
}

impl ReadTranscript for SessionDir {
    fn read_transcript(&self) -> Result<Transcript, FormatError> {
        let mut transcript = read_files_and_record(self)?;
        let notes = self.read_notes()?;
        transcript.notes.extend(notes.all);
        transcript.problems.extend(notes.problems);
        add_faults(&mut transcript, self.find_faults()?);
        Ok(transcript)
    }

    fn read_recording(&self) -> Result<Transcript, FileError> {
        let mut transcript = read_record(self, false)?;
        add_faults(&mut transcript, self.find_recording_faults()?);
        Ok(transcript)
    }
}

/// Adds the faults of files that no damage is known of.
fn add_faults(transcript: &mut Transcript, faults: Vec<Problem>) {
    for fault in faults {
        let is_known = |known: &Problem| known.is_damage() && known.path == fault.path;
        if !transcript.problems.iter().any(is_known) {
            transcript.problems.push(fault);
        }
    }
}

/// Reads the session without its notes.
pub(crate) fn read_files_and_record(dir: &SessionDir) -> Result<Transcript, FormatError> {
    if !dir.is_imported()? {
        return Ok(read_record(dir, false)?);
    }
    let transcript = read_files(dir)?;
    if !dir.is_recorded()? {
        return Ok(transcript);
    }
    Ok(join_transcripts(transcript, read_record(dir, true)?))
}

/// Reads the agent's own files.
fn read_files(dir: &SessionDir) -> Result<Transcript, FormatError> {
    let problems = SharedProblems::default();
    let bundle = bundle_for_reader(dir, &problems)?;
    let reader = format::reader_for_stored_session(dir.agent(), &bundle);
    let mut transcript = format::read_transcript(reader, &bundle)?;
    transcript.session.id = dir.id().clone();
    transcript.session.agent = dir.agent().to_owned();
    let mut reported = problems.lock().unwrap_or_else(PoisonError::into_inner);
    transcript.problems.append(&mut reported);
    Ok(transcript)
}

/// Calls `take` with each entry of the agent's own files as it is read.
pub(crate) fn for_each_own_entry(
    dir: &SessionDir,
    take: &mut dyn FnMut(&Entry),
) -> Result<(), FormatError> {
    stream_files(dir, &mut |item| {
        if let ReaderItem::Entry(entry) = item {
            take(&entry);
        }
    })?;
    Ok(())
}

/// Emits each entry and problem of the agent's own files as it is read, and then the damage of the kept files. Returns
/// the session's fields at the end.
pub(crate) fn stream_files(dir: &SessionDir, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let problems = SharedProblems::default();
    let bundle = bundle_for_reader(dir, &problems)?;
    let reader = format::reader_for_stored_session(dir.agent(), &bundle);
    let session = (reader.read)(&bundle, emit);
    for problem in problems.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        emit(ReaderItem::Problem(problem));
    }
    session
}

/// The bundle to pass to a reader.
fn bundle_for_reader(
    dir: &SessionDir,
    problems: &SharedProblems,
) -> Result<SessionBundle, FileError> {
    let mut bundle = dir.collect_bundle(problems)?;
    if dir.agent() == aider::AGENT_NAME && bundle.key.is_none() {
        let agent = aider::AGENT_NAME.parse().expect("the name of a reader");
        aider::clear_if_chats_kept(&mut bundle, |id| dir.sibling_session(&agent, id).exists())?;
    }
    Ok(bundle)
}

/// Reads the recording. With `is_joined`, it completes the agent's own files.
fn read_record(dir: &SessionDir, is_joined: bool) -> Result<Transcript, FileError> {
    let (mut entries, mut problems) = (Vec::new(), ProblemList::default());
    let reader = RecordReader::new(dir.id(), dir.agent()).with_token_count();
    let session = stream_record(dir, reader, is_joined, &mut |item| match item {
        RecordedItem::Item(ReaderItem::Entry(entry)) => entries.push(*entry),
        RecordedItem::Item(ReaderItem::Problem(problem)) => problems.push(problem),
        RecordedItem::Origin(_) => {}
    })?;
    let mut transcript = Transcript::new(session);
    (transcript.entries, transcript.problems) = (entries, problems.into_problems());
    Ok(transcript)
}

/// Emits each entry and problem of the recording as it is read. Returns the session at the end.
pub(crate) fn stream_record(
    dir: &SessionDir,
    mut reader: RecordReader,
    is_joined: bool,
    emit: EmitRecorded<'_>,
) -> Result<Session, FileError> {
    let mut runs = RunReading::new(recorded_runs::find_runs(dir)?);
    let (problems, mut number, mut last) = (SharedProblems::default(), 0, None);
    // For an agent without session files, ACP provides the conversation and API traffic completes it.
    let mut traffic_beside_acp = Vec::new();
    let (mut has_traffic, mut failure) = (false, None);
    dir.for_each_recorded_line(&problems, &mut |path, line| {
        number += 1;
        if !has_traffic && record::raw_starts_with(line, b"{\"traffic\":\"") {
            has_traffic = true;
            match moved_traffic::moved_exchanges(dir) {
                Ok(moved) => reader.exclude_exchanges(moved),
                Err(error) => failure = Some(error),
            }
        }
        let is_in_run = match runs.reach(number - 1, &mut reader, emit) {
            Ok(is_in_run) => is_in_run,
            Err(error) => return failure = Some(error),
        };
        let read =
            if is_in_run { reader.line_without_record(line) } else { reader.decode_line(line) };
        match read {
            Ok(entries) if reader.has_acp() && !is_joined => traffic_beside_acp.extend(entries),
            Ok(entries) => {
                if !entries.is_empty() {
                    runs.note_other_record();
                }
                emit_entries(entries, &mut last, emit);
            }
            Err(RecordError::Damaged) => {
                let damage = Problem::damage_at_line(path, number, RecordError::Damaged);
                emit_problem(damage, emit);
            }
            Err(error) => emit_problem(Problem::at_line(path, number, error), emit),
        }
    })?;
    failure.map_or(Ok(()), Err)?;
    let is_abandoned = dir.is_abandoned(reader.session())?;
    if is_abandoned {
        reader.break_open_turn();
    }
    let folded = reader.take_folded_entries(is_joined);
    emit_entries(join_traffic(folded, traffic_beside_acp), &mut last, emit);
    for problem in problems.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        emit_problem(problem, emit);
    }
    if is_abandoned {
        mark_as_unended(reader.session_mut(), last.or(runs.last));
    }
    runs.complete(reader.session_mut());
    if reader.session().status != SessionStatus::Running {
        emit_entries(reader.finish(), &mut last, emit);
    }
    Ok(reader.into_session())
}

fn emit_problem(problem: Problem, emit: EmitRecorded<'_>) {
    emit(RecordedItem::Item(ReaderItem::Problem(problem)));
}

/// Sets the status of a session with a killed recorder.
fn mark_as_unended(session: &mut Session, last_entry: Option<Timestamp>) {
    session.status = SessionStatus::Failed;
    session.stop_reason = Some(UNENDED_REASON.to_owned());
    session.ended = last_entry;
}

fn emit_entries(entries: Vec<Entry>, last: &mut Option<Timestamp>, emit: EmitRecorded<'_>) {
    for entry in entries {
        *last = entry.created_at;
        emit(RecordedItem::Item(ReaderItem::Entry(Box::new(entry))));
    }
}

/// Completes the entries of an ACP connection from API traffic.
fn join_traffic(own: Vec<Entry>, traffic: Vec<Entry>) -> Vec<Entry> {
    if traffic.is_empty() {
        return own;
    }
    let mut numbering = EntryNumbering::new("", "");
    let mut entries = join_recorded(own, traffic);
    entries.iter_mut().for_each(|entry| numbering.assign_number(entry));
    entries
}

/// Completes the agent's own transcript from its recorded wire.
fn join_transcripts(own: Transcript, wire: Transcript) -> Transcript {
    let Session { title, stop_reason, project, thread, extra, status, .. } = wire.session;
    let mut session = own.session;
    session.thread = session.thread.take().or(thread);
    session.title = session.title.take().or(title);
    session.project = session.project.take().or(project);
    session.stop_reason = session.stop_reason.take().or(stop_reason);
    session.extra.extend(extra);
    session.status = status;
    let cost = session.totals.cost;
    session.totals = SessionTotals { cost, ..SessionTotals::default() };
    let mut transcript = Transcript::new(session);
    transcript.problems = own.problems;
    transcript.problems.extend(wire.problems);
    let mut numbering = EntryNumbering::new("", "");
    for mut entry in join_recorded(own.entries, wire.entries) {
        numbering.assign_number(&mut entry);
        transcript.push(entry);
    }
    transcript
}
