//! leslie's transcripts: one text file per conversation unit, at most fifty to a folder.
//!
//! The text is for people and agents to read and is not complete: tool data is truncated to 200 characters and a file
//! to 20 KiB, and thoughts, system texts and notices are omitted. The vault has the complete bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use steno_model::durable;

use steno_agents::agent::Agent;
use steno_agents::agent::nearby::NearbyRules;
use steno_agents::decoding::entry_emitter::EntryEmitter;
use steno_agents::reader::file_tree::FileTree;
use steno_agents::reader::{self, FormatError, FormatReader, ItemSink};
use steno_model::durable::{FileError, OnPath};
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId, SessionStatus, Transcript};
use steno_model::timestamp::Clock;
use steno_vault::{SessionBundle, SessionFile};

mod body;
mod file;
mod folder;
mod slug;
mod unit;

pub use file::{MAX_FILE_BYTES, MAX_TOOL_CHARS, UnitFile, UnitHeader, UnitItem, truncate_chars};
pub use folder::{MAX_FOLDER_FILES, untruncated_path};
pub use slug::{MAX_SLUG_CHARS, slug_from_query, unit_file_stem};
pub use unit::{AGENT_MODE_KEY, is_user_prompt};

/// The agent's name.
pub const AGENT_NAME: &str = "leslie";

/// The reader of these files.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: emit_session };

/// What is known about leslie.
pub(crate) const AGENT: Agent = Agent {
    nearby: NearbyRules {
        describes_folder: |file| file.extension().is_some_and(|extension| extension == "txt"),
        ..NearbyRules::NONE
    },
    ..Agent::new("leslie", &READER)
};

/// Number of bytes that are read to detect a transcript.
const HEADER_PROBE_BYTES: u64 = 8 << 10;

/// Finds the sessions. Files in one folder with the same thread and chat form one session.
pub fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    if !tree.is_folder() {
        let path = tree.root();
        let header = read_header(path).on("open", path)?;
        return Ok(header.map(|_| SessionBundle::from_file(path)).into_iter().collect());
    }
    let mut sessions: BTreeMap<_, Vec<SessionFile>> = BTreeMap::new();
    for path in tree.files() {
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        // An unreadable file may belong to any format.
        let Ok(Some(header)) = read_header(path) else {
            continue;
        };
        let session = (durable::parent_folder(path), header.thread_id, header.chat_id);
        sessions.entry(session).or_default().extend(SessionBundle::from_file(path).files);
    }
    let bundles =
        sessions.into_iter().map(|((folder, ..), sources)| SessionBundle::new(folder, sources));
    Ok(bundles.collect())
}

/// Reads the files of one session, in the order of their names.
pub fn read_session(bundle: &SessionBundle) -> Result<Transcript, FormatError> {
    reader::read_transcript(&READER, bundle)
}

fn emit_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let mut sources: Vec<_> = bundle.files.iter().collect();
    sources.sort_by(|a, b| slug::file_sort_key(a.name()).cmp(&slug::file_sort_key(b.name())));
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for source in sources {
        let bytes = source.read_bytes()?;
        let text = String::from_utf8_lossy(&bytes);
        if let Cow::Owned(_) = text {
            problems.push(Problem::for_file(
                source.path(),
                "not UTF-8: the bad bytes are shown as \u{fffd}",
            ));
        }
        match UnitFile::parse(&text) {
            Some(file) => {
                let own = file.to_text() == text;
                files.push((source.name(), file, own));
            }
            None => problems.push(Problem::for_file(source.path(), "not a transcript: no header")),
        }
    }
    let Some((_, first, _)) = files.first() else {
        let nothing = || Problem::for_file(&bundle.root, "not a transcript: no header");
        return Err(FormatError::Invalid(problems.pop().unwrap_or_else(nothing)));
    };
    let mut session = session_from_header(&first.header, &bundle.root);
    let mut output = EntryEmitter::new(AGENT_NAME, &first.header.chat_id, emit);
    for (name, file, own) in &files {
        apply_header(&mut session, &file.header);
        let entries = unit::entries_from_file(file, name, *own);
        entries.into_iter().for_each(|entry| output.emit_entry(entry));
    }
    problems.into_iter().for_each(|problem| output.emit_problem(problem));
    Ok(session)
}

/// Writes one file per unit into `dir`, and returns the paths.
///
/// A unit that the folder already has is not written again, so writing twice has no effect; a unit of a run is
/// updated in place. If there are more than fifty files, the oldest are removed.
pub fn write_units(
    transcript: &Transcript,
    dir: &Path,
    clock: &Clock,
) -> Result<Vec<PathBuf>, FileError> {
    durable::create_private_dir(dir)?;
    let units = unit::units_from_transcript(transcript, Some(clock.now()));
    match unit::is_thread_run(&transcript.session) {
        true => folder::update_units(dir, &units),
        false => folder::write_units(dir, &units),
    }
}

/// Converts all times to `zone`, in whole seconds with the offset. Sessions that leslie wrote are unchanged.
pub fn localize_times(transcript: &mut Transcript, zone: &TimeZone) {
    let session = &mut transcript.session;
    if session.agent == AGENT_NAME {
        return;
    }
    let times = [&mut session.started, &mut session.ended].into_iter();
    let times = times.chain(transcript.entries.iter_mut().map(|entry| &mut entry.created_at));
    times.flatten().for_each(|at| *at = at.to_local_seconds(zone));
}

/// The stop reason of the last turn of a run; `None` if it did not end.
pub fn last_stop_reason(transcript: &Transcript) -> Option<String> {
    let units = unit::units_from_transcript(transcript, None);
    units.last().and_then(|unit| unit.file.header.stop_reason.clone())
}

/// Renders all units as one text, each as in its file.
pub fn render_units(transcript: &Transcript) -> String {
    let units = unit::units_from_transcript(transcript, None);
    let mut texts: Vec<_> = units.iter().map(|unit| unit.file.to_text()).collect();
    for text in &mut texts {
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    texts.join("\n")
}

fn read_header(path: &Path) -> std::io::Result<Option<UnitHeader>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEADER_PROBE_BYTES).read_to_end(&mut head)?;
    let file = UnitFile::parse(&String::from_utf8_lossy(&head));
    Ok(file.map(|file| file.header).filter(|header| !header.chat_id.is_empty()))
}

fn session_from_header(header: &UnitHeader, root: &Path) -> Session {
    let name = root.file_stem().unwrap_or_default().to_string_lossy();
    let chat = if header.chat_id.is_empty() { &name } else { &*header.chat_id };
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, chat), AGENT_NAME);
    session.native_id = Some(chat.to_owned());
    session.thread = Some(header.thread_id.clone()).filter(|thread| !thread.is_empty());
    session.started = header.start.parse().ok();
    session
}

/// Updates the session from the header of one more file; the last header takes precedence.
fn apply_header(session: &mut Session, header: &UnitHeader) {
    session.ended = header.end.parse().ok().or(session.ended);
    session.stop_reason = header.stop_reason.clone();
    session.status = match header.stop_reason.as_deref() {
        Some("cancelled" | "canceled") => SessionStatus::Canceled,
        Some(unit::ERROR_STOP_REASON) => SessionStatus::Failed,
        _ => SessionStatus::Completed,
    };
    if !header.agent_mode.is_empty() {
        session.extra.insert(unit::AGENT_MODE_KEY.to_owned(), header.agent_mode.clone().into());
    }
}

#[cfg(test)]
mod tests;
