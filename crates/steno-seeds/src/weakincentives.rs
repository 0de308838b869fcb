//! weakincentives: one `TranscriptEntry` per line, in a file that is a LOG slice.
//!
//! Later versions write log records instead (`transcript.jsonl`), also inside debug bundles. Both are read; only the
//! first is written. Lines have no session id, so each file is one session, named by its first entry.

pub mod capture;
pub mod claude;
mod debug_bundle;
pub mod events;
mod files;
mod jsonl;
pub mod line;
mod line_extension;
mod log_record;
pub mod reducers;
pub mod session;
pub mod slice;
pub mod snapshot;
mod store;
mod view;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use files::find_sessions;
pub use session::SliceSession;
pub use view::format_transcript;

use uuid::Uuid;

use steno_model::durable;

use steno_agents::agent::Agent;
use steno_agents::reader::{self, FormatError, FormatReader, ItemSink, ReaderItem};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryError};
use steno_model::json::Object;
use steno_model::numbering::EntryNumbering;
use steno_model::problem::ProblemList;
use steno_model::session::{Session, SessionId, Transcript};
use steno_model::timestamp::Timestamp;
use steno_vault::SessionBundle;

/// The agent's name.
pub const AGENT_NAME: &str = "weakincentives";

/// The reader of these files.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: emit_session };

/// What is known about weakincentives.
pub(crate) const AGENT: Agent = Agent::new("weakincentives", &READER);

/// Name of the transcript file in a folder.
pub const TRANSCRIPT_FILE: &str = "weakincentives.transcript.TranscriptEntry.jsonl";

/// Whether a record belongs to this system, of any version.
pub fn is_weakincentives_record(object: &Object) -> bool {
    line::is_transcript_entry(object)
        || log_record::is_transcript_log_record(object)
        || snapshot::is_snapshot(object)
}

/// Decodes one line: one entry for a `TranscriptEntry`, several for a log record or a snapshot.
pub fn decode_record(object: Object) -> Result<Vec<Entry>, EntryError> {
    if log_record::is_log_record(&object) {
        log_record::decode_log_record(object)
    } else if snapshot::is_snapshot(&object) {
        snapshot::entries_from_snapshot(&object)
    } else {
        line::entry_from_object(object).map(|entry| vec![entry])
    }
}

/// Reads a session. Sequence numbers and ids in the file are kept.
pub fn read_session(bundle: &SessionBundle) -> Result<Transcript, FormatError> {
    reader::read_transcript(&READER, bundle)
}

/// Reads a session in two passes: its identity, then its entries.
fn emit_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let unpacked = debug_bundle::unpack_members(bundle);
    let bundle = unpacked.as_ref().unwrap_or(bundle);
    let mut facts = SliceFileFacts {
        session_id: debug_bundle::session_id(bundle),
        ..SliceFileFacts::default()
    };
    for_each_object(bundle, |object| facts.add_object(object))?;
    let mut session = facts.into_session(&bundle.root);
    if unpacked.is_some() {
        let problem = debug_bundle::describe_session(&mut session, bundle)?;
        problem.into_iter().for_each(|problem| emit(ReaderItem::Problem(problem)));
    }
    let mut numbering =
        EntryNumbering::new(AGENT_NAME, session.native_id.as_deref().unwrap_or_default());
    let problems = for_each_object(bundle, |object| {
        for mut entry in decode_record(object)? {
            let stated = entry.sequence;
            numbering.assign_number(&mut entry);
            entry.sequence = stated;
            emit(ReaderItem::Entry(Box::new(entry)));
        }
        Ok(())
    })?;
    problems.into_problems().into_iter().for_each(|problem| emit(ReaderItem::Problem(problem)));
    Ok(session)
}

/// Calls `take` for each object in the session's files, and returns parse errors and rejected objects as problems.
fn for_each_object(
    bundle: &SessionBundle,
    mut take: impl FnMut(Object) -> Result<(), EntryError>,
) -> Result<ProblemList, FileError> {
    let mut problems = ProblemList::default();
    for source in debug_bundle::transcript_members(bundle) {
        problems.append(jsonl::read_objects(source.open()?, source.path(), &mut take)?);
    }
    Ok(problems)
}

/// Renders the transcript as JSON Lines, byte for byte as Python does.
///
/// With `with_type`, every line starts with `__type__`, as in the oldest versions; without it, only lines that were
/// read with one.
pub fn render_lines(transcript: &Transcript, with_type: bool) -> String {
    let mut moment = transcript
        .entries
        .iter()
        .find_map(|entry| entry.created_at)
        .or(transcript.session.started)
        .unwrap_or_else(unknown_time);
    let mut text = String::new();
    for entry in &transcript.entries {
        moment = entry.created_at.unwrap_or(moment);
        let object = line::object_from_entry(entry, with_type, moment);
        text.push_str(&jsonl::render_objects([&object]));
    }
    text
}

/// Writes the transcript to the file `path`, or to [`TRANSCRIPT_FILE`] in the folder `path`. Returns the file's path.
pub fn write_transcript(transcript: &Transcript, path: &Path) -> Result<PathBuf, FileError> {
    let file = if path.is_dir() { path.join(TRANSCRIPT_FILE) } else { path.to_owned() };
    durable::write_atomic(&file, render_lines(transcript, false).as_bytes())?;
    Ok(file)
}

/// Placeholder for an unknown time. Readers treat it as no time.
fn unknown_time() -> Timestamp {
    Timestamp::from_unix(0).expect("the epoch is a moment")
}

/// What the lines of a file state about their session.
#[derive(Default)]
struct SliceFileFacts {
    session_id: Option<String>,
    first_entry: Option<Uuid>,
    first_time: Option<Timestamp>,
    is_timed: bool,
}

impl SliceFileFacts {
    fn add_object(&mut self, object: Object) -> Result<(), EntryError> {
        if self.session_id.is_none() {
            self.session_id =
                log_record::session_id(&object).or_else(|| snapshot::session_id(&object));
        }
        let time = object.get("created_at").and_then(|time| time.as_str());
        let time = time.and_then(|time| time.parse().ok());
        let entries = decode_record(object)?;
        self.first_time = self.first_time.or(time);
        self.first_entry = self.first_entry.or(entries.first().map(|entry| entry.entry_id));
        self.is_timed |= entries.iter().any(|entry| entry.created_at.is_some());
        Ok(())
    }

    fn into_session(self, root: &Path) -> Session {
        let native_id = self.native_id(root);
        let mut session = Session::new(SessionId::for_native(AGENT_NAME, &native_id), AGENT_NAME);
        session.native_id = Some(native_id);
        // If no entry had a time, the writer used the session's start for all lines.
        let stated = self.first_time.filter(|time| time.instant() != unknown_time().instant());
        session.started = stated.filter(|_| !self.is_timed);
        session
    }

    fn native_id(&self, root: &Path) -> String {
        match (&self.session_id, self.first_entry.filter(|id| !id.is_nil())) {
            (Some(id), _) => id.clone(),
            (None, Some(id)) => id.hyphenated().to_string(),
            (None, None) => root.display().to_string(),
        }
    }
}
