//! Reads `history.jsonl`, the prompts of all sessions, for sessions with deleted rollouts.
//!
//! History lines of a session with a rollout are skipped, since they repeat prompts in the rollout.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::AGENT_NAME;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::timestamp_from_seconds;
use crate::decoding::json_lines::JsonLines;
use crate::decoding::shared_log::{SharedLog, lines_by_session};
use crate::reader::{FormatError, ItemSink};
use steno_model::durable::{FileError, OnPath};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::lines::LineReader;
use steno_model::problem::{Problem, json_error_reason};
use steno_model::session::{Session, SessionId};
use steno_vault::{SessionBundle, SessionFile};

/// The name of the prompt history, which is beside the folders of rollouts.
const HISTORY_FILE: &str = "history.jsonl";

/// How many bytes of the first line are read to recognize the file.
const PROBED_BYTES: usize = 1 << 20;

/// The length of the id at the end of a rollout's name.
const ID_LENGTH: usize = 36;

#[derive(Deserialize)]
struct CodexHistoryLine {
    session_id: String,
    /// Seconds since the epoch.
    ts: i64,
    text: String,
}

/// Finds the sessions of which only history lines remain. None if the file is not Codex's prompt history.
pub(super) fn find_purged_sessions(file: &Path) -> Result<Vec<SessionBundle>, FileError> {
    if !file.ends_with(HISTORY_FILE) || !is_history(file) {
        return Ok(Vec::new());
    }
    let mut existing = HashSet::new();
    for folder in ["sessions", "archived_sessions"] {
        collect_rollout_ids(&file.with_file_name(folder), &mut existing);
    }
    let session_id =
        |line: &[u8]| Some(serde_json::from_slice::<CodexHistoryLine>(line).ok()?.session_id);
    let excerpts = lines_by_session(file, &session_id).on("read", file)?;
    let log = SharedLog { path: file, name: HISTORY_FILE };
    let is_purged = |id: &Option<String>| id.as_ref().is_some_and(|id| !existing.contains(id));
    let purged = excerpts.into_iter().filter(|(id, _)| is_purged(id));
    Ok(purged.map(|(id, lines)| log.excerpt_bundle(id, lines)).collect())
}

fn is_history(file: &Path) -> bool {
    let Ok(input) = (SessionFile::on_disk(HISTORY_FILE, file)).open() else { return false };
    let mut lines = LineReader::with_limit(input, PROBED_BYTES).map_while(Result::ok);
    let first = lines.find(|line| !line.bytes.trim_ascii().is_empty());
    first.is_some_and(|line| serde_json::from_slice::<CodexHistoryLine>(&line.bytes).is_ok())
}

/// Collects the ids of all rollouts below a folder, by file name. Opens no file.
fn collect_rollout_ids(folder: &Path, ids: &mut HashSet<String>) {
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        if item.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_rollout_ids(&item.path(), ids);
        } else if let Some(id) = rollout_id(&item.file_name().to_string_lossy()) {
            ids.insert(id.to_owned());
        }
    }
}

fn rollout_id(name: &str) -> Option<&str> {
    let name = name.split(".jsonl").next()?.strip_prefix("rollout-")?;
    name.get(name.len().checked_sub(ID_LENGTH)?..)
}

/// Reads the prompts of one session.
pub(super) fn read_history(
    source: &SessionFile,
    id: &str,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let mut output = EntryEmitter::new(AGENT_NAME, id, emit);
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, id), AGENT_NAME);
    session.native_id = Some(id.to_owned());
    session.extra.insert("told_by".to_owned(), source.name().into());
    for line in JsonLines::open(source)? {
        let prompt = line.and_then(|line| {
            serde_json::from_slice::<CodexHistoryLine>(&line.bytes).map_err(|error| {
                Problem::at_line(source.path(), line.number, json_error_reason(&error))
            })
        });
        match prompt {
            Ok(prompt) if prompt.session_id == id => output.emit_entry(prompt_entry(prompt)),
            Ok(_) => {}
            Err(problem) => output.emit_problem(problem),
        }
    }
    Ok(session)
}

fn prompt_entry(prompt: CodexHistoryLine) -> Entry {
    let is_command = prompt.text.starts_with(['/', '!']);
    let kind = if is_command { EntryKind::Notice } else { EntryKind::Text };
    let mut entry = Entry::new(Role::User, kind, prompt.text);
    entry.created_at = timestamp_from_seconds(prompt.ts);
    entry
}
