//! Reads a kept session: as a bundle of session files, or as a transcript.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use super::frame::ContentForm;
use super::record::{self, RecordReader};
use super::recorded_file::RecordLines;
use super::recorder::RECORD_FILE;
use super::run_reading::{EmitRecorded, RecordedItem, RunReading};
use super::sealed::{SealedFile, SharedProblems};
use super::{SessionDir, rows};
use crate::agent::aider;
use crate::durable::{FileError, OnPath};
use crate::entry::Entry;
use crate::format;
use crate::join::join_recorded;
use crate::numbering::EntryNumbering;
use crate::problem::{Problem, ProblemList};
use crate::reader::{FormatError, ItemSink, ReaderItem};
use crate::session::{Session, SessionStatus, SessionTotals, Transcript};
use crate::timestamp::Timestamp;
use steno_vault::{SessionBundle, SessionFile};

/// The stop reason of a session with a killed recorder.
pub const UNENDED_REASON: &str = "the recorder stopped without ending the session";

impl SessionDir {
    /// Reads the session as a transcript, with its notes. Damage costs only the affected frames and lines, and is
    /// reported.
    pub fn read_transcript(&self) -> Result<Transcript, FormatError> {
        let mut transcript = self.read_files_and_record()?;
        let notes = self.read_notes()?;
        transcript.notes.extend(notes.all);
        transcript.problems.extend(notes.problems);
        for fault in self.find_faults()? {
            let is_known = transcript.problems.iter().any(|problem| problem.path == fault.path);
            if !is_known {
                transcript.problems.push(fault);
            }
        }
        Ok(transcript)
    }

    /// Reads only the recording, without the agent's own files.
    pub fn read_recording(&self) -> Result<Transcript, FileError> {
        self.read_record(false)
    }

    fn read_files_and_record(&self) -> Result<Transcript, FormatError> {
        if !self.is_imported()? {
            return Ok(self.read_record(false)?);
        }
        let transcript = self.read_files()?;
        if !self.is_recorded()? {
            return Ok(transcript);
        }
        Ok(join_transcripts(transcript, self.read_record(true)?))
    }

    /// Reads the agent's own files.
    fn read_files(&self) -> Result<Transcript, FormatError> {
        let problems = SharedProblems::default();
        let bundle = self.bundle_for_reader(&problems)?;
        let reader = format::reader_for_stored_session(self.agent(), &bundle);
        let mut transcript = format::read_transcript(reader, &bundle)?;
        transcript.session.id = self.id().clone();
        transcript.session.agent = self.agent().to_owned();
        let mut reported = problems.lock().unwrap_or_else(PoisonError::into_inner);
        transcript.problems.append(&mut reported);
        Ok(transcript)
    }

    /// Calls `take` with each entry of the agent's own files as it is read.
    pub(crate) fn for_each_own_entry(
        &self,
        take: &mut dyn FnMut(&Entry),
    ) -> Result<(), FormatError> {
        self.stream_files(&mut |item| {
            if let ReaderItem::Entry(entry) = item {
                take(&entry);
            }
        })?;
        Ok(())
    }

    /// Emits each entry and problem of the agent's own files as it is read. Returns the session's fields at the end.
    pub(crate) fn stream_files(&self, emit: ItemSink<'_>) -> Result<Session, FormatError> {
        let bundle = self.bundle_for_reader(&SharedProblems::default())?;
        let reader = format::reader_for_stored_session(self.agent(), &bundle);
        (reader.read)(&bundle, emit)
    }

    /// Whether a recorder has the session open.
    pub(crate) fn is_being_recorded(&self) -> Result<bool, FileError> {
        let users_path = self.recording_lock_path();
        if !users_path.exists() {
            return Ok(false);
        }
        Ok(File::open(&users_path).on("open", &users_path)?.try_lock().is_err())
    }

    /// The last known content of every session file, including deleted ones.
    pub fn kept_bundle(&self) -> Result<SessionBundle, FileError> {
        self.collect_bundle(&SharedProblems::default())
    }

    /// The bundle to pass to a reader.
    fn bundle_for_reader(&self, problems: &SharedProblems) -> Result<SessionBundle, FileError> {
        let mut bundle = self.collect_bundle(problems)?;
        if self.agent() == aider::AGENT && bundle.key.is_none() {
            let agent = aider::AGENT.parse().expect("the name of a reader");
            aider::clear_if_chats_kept(&mut bundle, |id| {
                self.sibling_session(&agent, id).exists()
            })?;
        }
        Ok(bundle)
    }

    fn collect_bundle(&self, problems: &SharedProblems) -> Result<SessionBundle, FileError> {
        let mut bundle = SessionBundle::new(self.path(), Vec::new());
        let newest: HashSet<_> = self.newest_generations()?.into_iter().collect();
        let last: HashSet<_> = self.last_generations()?.into_iter().collect();
        let mut files = self.sealed_files()?;
        files.retain(|(stem, _)| stem != RECORD_FILE);
        files.sort();
        // Deleted or rewritten files may have had another location.
        let (mut gone, mut is_placed) = (Vec::new(), false);
        for (stem, generation) in files {
            let path = self.sealed_path(&stem, generation);
            let sealed = match self.open_sealed(&stem, generation) {
                Ok(sealed) => sealed,
                // A later generation has the current content, and `verify` reports the damage.
                Err(_) if !last.contains(&(stem.clone(), generation)) => continue,
                Err(error) => {
                    let problem =
                        Problem::for_file(&path, format!("cannot be read: {}", error.source));
                    problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
                    continue;
                }
            };
            let file = (stem, generation);
            let is_current = newest.contains(&file) && !sealed.header().gone;
            if is_current || !is_placed {
                bundle.root = PathBuf::from(&sealed.header().root);
                bundle.key.clone_from(&sealed.header().key);
                is_placed |= is_current;
            }
            if sealed.header().gone {
                continue;
            }
            let is_excerpt = sealed.header().form == ContentForm::Excerpt;
            let Some(source) = self.to_session_file(sealed, problems) else { continue };
            if is_excerpt {
                bundle.excerpts.push(source);
            } else if is_current {
                bundle.files.push(source);
            } else if last.contains(&file) {
                gone.push(source.marked_gone());
            } else {
                bundle.earlier_files.push(source);
            }
        }
        // Readers that use one of several files should find an existing one first.
        bundle.files.append(&mut gone);
        Ok(bundle)
    }

    /// Opens a sealed file as a session file.
    fn to_session_file(
        &self,
        sealed: SealedFile,
        problems: &SharedProblems,
    ) -> Option<SessionFile> {
        match sealed.header().form {
            ContentForm::Bytes | ContentForm::Excerpt => {
                Some(bytes_as_session_file(&sealed, problems))
            }
            ContentForm::Rows => Some(rows::rows_as_session_file(&sealed, problems)),
            ContentForm::Pointer => match self.resolve_pointer(&sealed) {
                Ok(sealed) => Some(bytes_as_session_file(&sealed, problems)),
                Err(error) => {
                    let reason = format!("cannot be read: {}", error.source);
                    let problem = Problem::for_file(sealed.path(), reason);
                    problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
                    None
                }
            },
        }
    }

    /// Whether the session has files of an agent, rather than only a recording.
    pub fn is_imported(&self) -> Result<bool, FileError> {
        Ok(!self.newest_generations()?.is_empty())
    }

    /// Whether the vault has only excerpts about the session.
    pub fn has_only_excerpts(&self) -> Result<bool, FileError> {
        let bundle = self.kept_bundle()?;
        Ok(bundle.has_only_excerpts())
    }

    /// Whether the session has a recording.
    pub fn is_recorded(&self) -> Result<bool, FileError> {
        Ok(self.has_sealed_record()? || self.first_recorded_line()?.is_some())
    }

    /// Whether part of the recording is sealed.
    pub(super) fn has_sealed_record(&self) -> Result<bool, FileError> {
        Ok(self.sealed_files()?.iter().any(|(stem, _)| stem == RECORD_FILE))
    }

    /// Whether the recording is the wire of an agent, which may have session files too.
    pub fn is_wire_recording(&self) -> Result<bool, FileError> {
        Ok(self.first_recorded_line()?.is_some_and(|line| record::is_wire_opening(&line)))
    }

    /// The first line of the recording; `None` if the recorder was killed before it was complete.
    fn first_recorded_line(&self) -> Result<Option<Vec<u8>>, FileError> {
        let path = self.sealed_record_path();
        let mut line = Vec::new();
        if self.has_sealed_record()? {
            let sealed = self.open_sealed(RECORD_FILE, 0)?;
            sealed
                .lenient_reader(SharedProblems::default())
                .read_until(b'\n', &mut line)
                .on("read", &path)?;
        } else if let Some((_, path)) = self.live_logs()?.first() {
            let file = File::open(path).on("open", path)?;
            BufReader::new(file).read_until(b'\n', &mut line).on("read", path)?;
        }
        Ok(Some(line).filter(|line| line.ends_with(b"\n")))
    }

    /// Reads the recording. With `is_joined`, it completes the agent's own files.
    fn read_record(&self, is_joined: bool) -> Result<Transcript, FileError> {
        let (mut entries, mut problems) = (Vec::new(), ProblemList::default());
        let reader = RecordReader::new(self.id(), self.agent()).with_decoding().with_token_count();
        let session = self.stream_record(reader, is_joined, &mut |item| match item {
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
        &self,
        mut reader: RecordReader,
        is_joined: bool,
        emit: EmitRecorded<'_>,
    ) -> Result<Session, FileError> {
        let mut runs = RunReading::new(self.recorded_runs()?);
        let (problems, mut number, mut last) = (SharedProblems::default(), 0, None);
        // For an agent without session files, ACP provides the conversation and API traffic completes it.
        let mut traffic_beside_acp = Vec::new();
        let (mut has_traffic, mut failure) = (false, None);
        self.for_each_recorded_line(&problems, &mut |path, line| {
            number += 1;
            if !has_traffic && record::raw_starts_with(line, b"{\"traffic\":\"") {
                has_traffic = true;
                match self.moved_exchanges() {
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
                Err(error) => {
                    emit_problem(Problem::at_line(path, number, error), emit);
                }
            }
        })?;
        failure.map_or(Ok(()), Err)?;
        let is_abandoned = self.is_abandoned(&reader.session)?;
        if is_abandoned {
            reader.break_open_turn();
        }
        let folded = reader.take_folded_entries(is_joined);
        emit_entries(join_traffic(folded, traffic_beside_acp), &mut last, emit);
        for problem in problems.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            emit_problem(problem, emit);
        }
        if is_abandoned {
            mark_as_unended(&mut reader.session, last.or(runs.last));
        }
        runs.complete(&mut reader.session);
        if reader.session.status != SessionStatus::Running {
            emit_entries(reader.finish(), &mut last, emit);
        }
        Ok(reader.session)
    }

    /// Calls `take` with each recorded line, sealed or live.
    pub(super) fn for_each_recorded_line(
        &self,
        problems: &SharedProblems,
        take: &mut dyn FnMut(&Path, &[u8]),
    ) -> Result<(), FileError> {
        let mut lines = RecordLines::open(self, 0, problems)?;
        let mut line = Vec::new();
        while let Some((path, _)) = lines.read_line(&mut line)? {
            take(&path, &line);
        }
        Ok(())
    }

    /// Whether the session was never closed but no recorder has it open any more: it has failed.
    fn is_abandoned(&self, session: &Session) -> Result<bool, FileError> {
        let is_running =
            session.status == SessionStatus::Running && self.recording_lock_path().exists();
        Ok(is_running && !self.is_being_recorded()?)
    }
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

/// Kept bytes as a session file.
pub(super) fn bytes_as_session_file(sealed: &SealedFile, problems: &SharedProblems) -> SessionFile {
    let header = sealed.header();
    let (kept, problems) = (sealed.file_ref(), Arc::clone(problems));
    SessionFile::with_opener(header.name.clone(), header.original_path(), move |at| {
        let sealed = kept.open().map_err(io::Error::other)?;
        let is_whole = problems.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if at > 0 && is_whole {
            return Ok(Box::new(sealed.reader_from(at)));
        }
        // Damaged frames shift the offsets of later bytes.
        let mut input = sealed.lenient_reader(Arc::clone(&problems));
        io::copy(&mut input.by_ref().take(at), &mut io::sink())?;
        Ok(Box::new(input))
    })
}
