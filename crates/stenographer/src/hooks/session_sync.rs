//! Copies the session that an agent's hook names into the vault, with its subagents.

use std::path::{Path, PathBuf};

use steno_agents::registry::session_locations::session_locations;
use steno_model::durable::{self, OnPath};
use steno_store::format;

use super::hook_payload::HookPayload;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::session_paths;
use steno_store::sync::{SessionSyncer, resolve_links};

/// Syncs a session by its name. Returns whether it exists.
pub(crate) fn sync_named_session(
    env: &ProcessEnvironment,
    agent: &str,
    session: &str,
) -> Result<bool, CommandError> {
    sync_session(env, Some(agent), &HookPayload::for_session(session))
}

/// Syncs the session in a hook's payload. Returns whether it exists.
pub(crate) fn sync_session(
    env: &ProcessEnvironment,
    agent: Option<&str>,
    payload: &HookPayload,
) -> Result<bool, CommandError> {
    let files = find_session_files(env, agent, payload)?;
    if files.is_empty() {
        return Ok(false);
    }
    // Hooks run one at a time, so that the next one sees the files that this one has synced.
    let path = env.store.join("hook.lock");
    durable::create_private_dir(&env.store)?;
    let lock =
        durable::private_options().create(true).append(true).open(&path).on("open", &path)?;
    lock.lock().on("lock", &path)?;
    let folders: Vec<_> =
        session_paths::possible_roots(env, &[], &[]).into_iter().map(resolve_links).collect();
    sync_files(SessionSyncer::new(env.store_location())?, payload, &files, &folders)
}

/// Finds the files of the session: the named transcript, or those with the session's name.
fn find_session_files(
    env: &ProcessEnvironment,
    agent: Option<&str>,
    payload: &HookPayload,
) -> Result<Vec<PathBuf>, CommandError> {
    if let Some(path) = &payload.transcript {
        return Ok(if path.is_file() { vec![resolve_links(path.clone())] } else { Vec::new() });
    }
    let mut files = Vec::new();
    for place in session_locations(&env.home, &ProcessEnvironment::variable) {
        if agent == Some(place.agent) && payload.session.is_some() && place.path.is_dir() {
            files.extend(format::list_file_paths(&resolve_links(place.path))?);
        }
    }
    files.retain(|file| payload.is_named_in(file) && is_transcript(file));
    Ok(files)
}

/// Returns whether a file name is that of a transcript: agents have lock files and notes with the same stem.
fn is_transcript(file: &Path) -> bool {
    let name = file.to_string_lossy();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.zst")
}

/// Syncs the session and its subagents. Returns whether the files contain a session.
fn sync_files(
    mut sync: SessionSyncer,
    payload: &HookPayload,
    files: &[PathBuf],
    folders: &[PathBuf],
) -> Result<bool, CommandError> {
    let mut known: Vec<PathBuf> = Vec::new();
    for file in files {
        if !known.contains(file) {
            known.extend(sync.sync_sessions_of(file, folders)?);
        }
        // Codex names no subagents, but stores them beside the session.
        if payload.is_codex_turn {
            sync.sync_folder(durable::parent_folder(file))?;
        }
    }
    // Most agents store subagents with their session; for others they are sessions of their own.
    let subagent = payload.subagent.clone().filter(|path| path.is_file()).map(resolve_links);
    if let Some(file) = subagent.filter(|file| !known.is_empty() && !known.contains(file)) {
        sync.sync_sessions_of(&file, folders)?;
    }
    sync.failures.pop().map_or(Ok(!known.is_empty()), |error| Err(error.into()))
}
