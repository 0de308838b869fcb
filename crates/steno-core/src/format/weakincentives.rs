//! weakincentives: one `TranscriptEntry` per line, in a file that is a LOG slice.
//!
//! Its later versions keep log records instead (`transcript.jsonl`); both are read, the first is
//! written. The lines carry no session id, so one file is one session, named by its first entry.

pub mod capture;
pub mod claude;
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

use crate::durable::{self, FileError};
use crate::entry::{Entry, EntryError, Numbering};
use crate::format::{FormatError, Reader, emit_all};
use crate::json::Object;
use crate::problem::Problem;
use crate::session::{Session, SessionId, Transcript};
use crate::source::Bundle;
use crate::timestamp::Timestamp;

/// The agent's name.
pub const AGENT: &str = "weakincentives";

/// Finds and reads its sessions.
pub const READER: Reader =
    Reader { agent: AGENT, find, read: |bundle, emit| Ok(emit_all(read(bundle)?, emit)) };

/// The file of a folder that holds the transcript.
pub const FILE_NAME: &str = "weakincentives.transcript.TranscriptEntry.jsonl";

/// Whether a line looks like an entry of this system, of any version.
pub fn recognises(object: &Object) -> bool {
    line::recognises(object) || log_record::recognises(object) || snapshot::recognises(object)
}

/// The entries of one line: one of a `TranscriptEntry`, several of a log record or a snapshot.
pub fn entries(object: Object) -> Result<Vec<Entry>, EntryError> {
    if log_record::is_record(&object) {
        log_record::entries(object)
    } else if snapshot::recognises(&object) {
        snapshot::entries(&object)
    } else {
        line::from_object(object).map(|entry| vec![entry])
    }
}

/// Reads a session. Numbers and ids that the file states are kept.
pub fn read(bundle: &Bundle) -> Result<Transcript, FormatError> {
    let mut reading = Reading::default();
    for source in &bundle.sources {
        let problems = jsonl::read_objects(source.open_document()?, source.path(), |object| {
            reading.take(object)
        })?;
        reading.problems.extend(problems);
    }
    Ok(reading.finish(&bundle.root))
}

/// The transcript as JSON Lines, byte for byte as Python writes them.
///
/// `with_type` puts `__type__` first in every line, as the oldest versions did; without it only the
/// lines that were read with one keep it.
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

/// Writes the transcript to the file `path`, or into the folder `path` under [`FILE_NAME`]; says
/// which file it was.
pub fn write(transcript: &Transcript, path: &Path) -> Result<PathBuf, FileError> {
    let file = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
    durable::write_atomic(&file, render(transcript, false).as_bytes())?;
    Ok(file)
}

/// The moment that stands where nothing is known; reading never takes it for a fact.
fn epoch() -> Timestamp {
    Timestamp::from_unix(0).expect("the epoch is a moment")
}

/// What was read so far of one session.
#[derive(Default)]
struct Reading {
    entries: Vec<Entry>,
    problems: Vec<Problem>,
    session_id: Option<String>,
    first_time: Option<Timestamp>,
}

impl Reading {
    fn take(&mut self, object: Object) -> Result<(), EntryError> {
        if self.session_id.is_none() {
            self.session_id =
                log_record::session_id(&object).or_else(|| snapshot::session_id(&object));
        }
        let time = object.get("created_at").and_then(|time| time.as_str());
        let time = time.and_then(|time| time.parse().ok());
        self.entries.extend(entries(object)?);
        self.first_time = self.first_time.or(time);
        Ok(())
    }

    fn finish(self, root: &Path) -> Transcript {
        let native_id = self.native_id(root);
        let mut session = Session::new(SessionId::for_native(AGENT, &native_id), AGENT);
        let mut numbering = Numbering::new(AGENT, &native_id);
        session.native_id = Some(native_id);
        let mut transcript = Transcript::new(session);
        transcript.problems = self.problems;
        for mut entry in self.entries {
            let stated = entry.sequence;
            numbering.assign(&mut entry);
            entry.sequence = stated;
            transcript.push(entry);
        }
        // Where no entry had a time, the writer put the session's start into the lines.
        let started = &mut transcript.session.started;
        *started = started.or(self.first_time.filter(|time| time.instant() != epoch().instant()));
        transcript
    }

    fn native_id(&self, root: &Path) -> String {
        let first = self.entries.first().map(|entry| entry.entry_id);
        let first = first.filter(|id| !id.is_nil());
        match (&self.session_id, first) {
            (Some(id), _) => id.clone(),
            (None, Some(id)) => id.hyphenated().to_string(),
            (None, None) => root.display().to_string(),
        }
    }
}
