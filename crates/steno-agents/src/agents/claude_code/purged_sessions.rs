//! Finds purged sessions: sessions with lines in the prompt history but without a file.
//!
//! History lines of a session with a file are skipped, since they repeat prompts in that file.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::lenient_value::LenientScalar;
use crate::decoding::shared_log::{SharedLog, lines_by_session};
use steno_model::durable::{FileError, OnPath};
use steno_vault::SessionBundle;

/// The name of the prompt history, which is beside the `projects` folder.
const HISTORY_FILE: &str = "history.jsonl";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaudeHistoryKey<'a> {
    #[serde(borrow)]
    session_id: LenientScalar<'a>,
}

/// Finds the sessions of which only history lines remain. Lines without a session id form one more session.
///
/// Returns none if the file is not in Claude Code's own folder.
pub(super) fn find_purged_sessions(
    history: &Path,
) -> Result<Option<Vec<SessionBundle>>, FileError> {
    let projects = history.with_file_name("projects");
    if !history.ends_with(HISTORY_FILE) || !projects.is_dir() {
        return Ok(None);
    }
    let existing = list_session_ids(&projects);
    let session_id = |line: &[u8]| {
        serde_json::from_slice::<ClaudeHistoryKey<'_>>(line)
            .unwrap_or_default()
            .session_id
            .owned_text()
    };
    let mut excerpts = lines_by_session(history, &session_id).on("read", history)?;
    excerpts
        .retain(|session, _| session.as_ref().is_none_or(|session| !existing.contains(session)));
    let log = SharedLog { path: history, name: HISTORY_FILE };
    Ok(Some(excerpts.into_iter().map(|(key, lines)| log.excerpt_bundle(key, lines)).collect()))
}

/// Lists the ids of all session files in the project folders, by file name. Opens no file.
fn list_session_ids(projects: &Path) -> HashSet<String> {
    let items = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let files = items(projects).flat_map(|project| items(&project.path()));
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    names.filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned())).collect()
}
