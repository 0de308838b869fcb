//! weakincentives: one `TranscriptEntry` per line, in a file that is a LOG slice.
//!
//! Later versions write log records instead (`transcript.jsonl`), also inside debug bundles. Both are read; only the
//! first is written. Lines have no session id, so each file is one session, named by its first entry.

pub mod capture;
pub mod claude;
mod debug_bundle;
pub mod events;
mod files;
mod fold;
mod jsonl;
pub mod line;
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

pub use files::find;
pub use session::SliceSession;
pub use view::format_transcript;

use uuid::Uuid;

use crate::durable::{self, FileError};
use crate::entry::{Entry, EntryError, Numbering};
use crate::format::{self, Emit, FormatError, Item, Reader};
use crate::json::Object;
use crate::problem::ProblemList;
use crate::session::{Session, SessionId, Transcript};
use crate::timestamp::Timestamp;
use steno_vault::Bundle;

/// The agent's name.
pub const AGENT: &str = "weakincentives";

/// The reader of these files.
pub const READER: Reader = Reader { agent: AGENT, find, read: read_into };

/// Name of the transcript file in a folder.
pub const FILE_NAME: &str = "weakincentives.transcript.TranscriptEntry.jsonl";

/// Whether a record belongs to this system, of any version.
pub fn recognises(object: &Object) -> bool {
    line::recognises(object) || log_record::recognises(object) || snapshot::recognises(object)
}

/// Decodes one line: one entry for a `TranscriptEntry`, several for a log record or a snapshot.
pub fn entries(object: Object) -> Result<Vec<Entry>, EntryError> {
    if log_record::is_record(&object) {
        log_record::entries(object)
    } else if snapshot::recognises(&object) {
        snapshot::entries(&object)
    } else {
        line::from_object(object).map(|entry| vec![entry])
    }
}

/// Reads a session. Sequence numbers and ids in the file are kept.
pub fn read(bundle: &Bundle) -> Result<Transcript, FormatError> {
    format::read(&READER, bundle)
}

/// Reads a session in two passes: its identity, then its entries.
fn read_into(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let unpacked = debug_bundle::unpack(bundle);
    let bundle = unpacked.as_ref().unwrap_or(bundle);
    let mut facts = Facts { session_id: debug_bundle::session_id(bundle), ..Facts::default() };
    each_object(bundle, |object| facts.take(object))?;
    let mut session = facts.session(&bundle.root);
    if unpacked.is_some() {
        let problem = debug_bundle::describe(&mut session, bundle)?;
        problem.into_iter().for_each(|problem| emit(Item::Problem(problem)));
    }
    let mut numbering = Numbering::new(AGENT, session.native_id.as_deref().unwrap_or_default());
    let problems = each_object(bundle, |object| {
        for mut entry in entries(object)? {
            let stated = entry.sequence;
            numbering.assign(&mut entry);
            entry.sequence = stated;
            emit(Item::Entry(Box::new(entry)));
        }
        Ok(())
    })?;
    problems.into_problems().into_iter().for_each(|problem| emit(Item::Problem(problem)));
    Ok(session)
}

/// Calls `take` for each object in the session's files, and returns parse errors and rejected objects as problems.
fn each_object(
    bundle: &Bundle,
    mut take: impl FnMut(Object) -> Result<(), EntryError>,
) -> Result<ProblemList, FileError> {
    let mut problems = ProblemList::default();
    for source in debug_bundle::transcripts(bundle) {
        problems.append(jsonl::read_objects(source.open()?, source.path(), &mut take)?);
    }
    Ok(problems)
}

/// Renders the transcript as JSON Lines, byte for byte as Python does.
///
/// With `with_type`, every line starts with `__type__`, as in the oldest versions; without it, only lines that were
/// read with one.
pub fn render(transcript: &Transcript, with_type: bool) -> String {
    let mut moment = transcript
        .entries
        .iter()
        .find_map(|entry| entry.created_at)
        .or(transcript.session.started)
        .unwrap_or_else(epoch);
    let mut text = String::new();
    for entry in &transcript.entries {
        moment = entry.created_at.unwrap_or(moment);
        let object = line::to_object(entry, with_type, moment);
        text.push_str(&jsonl::lines([&object]));
    }
    text
}

/// Writes the transcript to the file `path`, or to [`FILE_NAME`] in the folder `path`. Returns the file's path.
pub fn write(transcript: &Transcript, path: &Path) -> Result<PathBuf, FileError> {
    let file = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
    durable::write_atomic(&file, render(transcript, false).as_bytes())?;
    Ok(file)
}

/// Placeholder for an unknown time. Readers treat it as no time.
fn epoch() -> Timestamp {
    Timestamp::from_unix(0).expect("the epoch is a moment")
}

/// What the lines of a file state about their session.
#[derive(Default)]
struct Facts {
    session_id: Option<String>,
    first_entry: Option<Uuid>,
    first_time: Option<Timestamp>,
    is_timed: bool,
}

impl Facts {
    fn take(&mut self, object: Object) -> Result<(), EntryError> {
        if self.session_id.is_none() {
            self.session_id =
                log_record::session_id(&object).or_else(|| snapshot::session_id(&object));
        }
        let time = object.get("created_at").and_then(|time| time.as_str());
        let time = time.and_then(|time| time.parse().ok());
        let entries = entries(object)?;
        self.first_time = self.first_time.or(time);
        self.first_entry = self.first_entry.or(entries.first().map(|entry| entry.entry_id));
        self.is_timed |= entries.iter().any(|entry| entry.created_at.is_some());
        Ok(())
    }

    fn session(self, root: &Path) -> Session {
        let native_id = self.native_id(root);
        let mut session = Session::new(SessionId::for_native(AGENT, &native_id), AGENT);
        session.native_id = Some(native_id);
        // If no entry had a time, the writer used the session's start for all lines.
        let stated = self.first_time.filter(|time| time.instant() != epoch().instant());
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
