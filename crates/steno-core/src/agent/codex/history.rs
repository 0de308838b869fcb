//! Reads `history.jsonl`, the prompts of all sessions, for sessions with deleted rollouts.
//!
//! History lines of a session with a rollout are skipped, since they repeat prompts in the rollout.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::AGENT;
use crate::agent::fields::from_seconds;
use crate::agent::json_lines::JsonLines;
use crate::agent::output::Output;
use crate::agent::shared_log::{SharedLog, lines_by_session};
use crate::durable::{FileError, OnPath};
use crate::entry::{Entry, Kind, Role};
use crate::format::{Emit, FormatError};
use crate::lines::Lines;
use crate::problem::{Problem, json_reason};
use crate::session::{Session, SessionId};
use steno_vault::{Bundle, Source};

/// The name of the prompt history, which is beside the folders of rollouts.
const HISTORY: &str = "history.jsonl";

/// How many bytes of the first line are read to recognize the file.
const PROBED_BYTES: usize = 1 << 20;

/// The length of the id at the end of a rollout's name.
const ID_LENGTH: usize = 36;

#[derive(Deserialize)]
struct HistoryPrompt {
    session_id: String,
    /// Seconds since the epoch.
    ts: i64,
    text: String,
}

/// Finds the sessions of which only history lines remain. None if the file is not Codex's prompt history.
pub(super) fn sessions(file: &Path) -> Result<Vec<Bundle>, FileError> {
    if !file.ends_with(HISTORY) || !is_history(file) {
        return Ok(Vec::new());
    }
    let mut existing = HashSet::new();
    for folder in ["sessions", "archived_sessions"] {
        note_rollouts(&file.with_file_name(folder), &mut existing);
    }
    let session_id =
        |line: &[u8]| Some(serde_json::from_slice::<HistoryPrompt>(line).ok()?.session_id);
    let excerpts = lines_by_session(file, &session_id).on("read", file)?;
    let log = SharedLog { path: file, name: HISTORY };
    let is_purged = |id: &Option<String>| id.as_ref().is_some_and(|id| !existing.contains(id));
    let purged = excerpts.into_iter().filter(|(id, _)| is_purged(id));
    Ok(purged.map(|(id, lines)| log.excerpt(id, lines)).collect())
}

fn is_history(file: &Path) -> bool {
    let Ok(input) = (Source::on_disk(HISTORY, file)).open() else { return false };
    let mut lines = Lines::with_limit(input, PROBED_BYTES).map_while(Result::ok);
    let first = lines.find(|line| !line.bytes.trim_ascii().is_empty());
    first.is_some_and(|line| serde_json::from_slice::<HistoryPrompt>(&line.bytes).is_ok())
}

/// Collects the ids of all rollouts below a folder, by file name. Opens no file.
fn note_rollouts(folder: &Path, ids: &mut HashSet<String>) {
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        if item.file_type().is_ok_and(|kind| kind.is_dir()) {
            note_rollouts(&item.path(), ids);
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
pub(super) fn read(source: &Source, id: &str, emit: Emit<'_>) -> Result<Session, FormatError> {
    let mut output = Output::new(AGENT, id, emit);
    let mut session = Session::new(SessionId::for_native(AGENT, id), AGENT);
    session.native_id = Some(id.to_owned());
    session.extra.insert("told_by".to_owned(), source.name().into());
    for line in JsonLines::of(source)? {
        let prompt = line.and_then(|line| {
            serde_json::from_slice::<HistoryPrompt>(&line.bytes)
                .map_err(|error| Problem::at(source.path(), line.number, json_reason(&error)))
        });
        match prompt {
            Ok(prompt) if prompt.session_id == id => output.entry(entry(prompt)),
            Ok(_) => {}
            Err(problem) => output.problem(problem),
        }
    }
    Ok(session)
}

fn entry(prompt: HistoryPrompt) -> Entry {
    let is_command = prompt.text.starts_with(['/', '!']);
    let kind = if is_command { Kind::Notice } else { Kind::Text };
    let mut entry = Entry::new(Role::User, kind, prompt.text);
    entry.created_at = from_seconds(prompt.ts);
    entry
}
