//! Copies one session that an agent names into the vault, with its subagents.

use std::path::{Path, PathBuf};

use steno_core::agent::places::places;
use steno_core::durable::{self, OnPath};
use steno_core::format;

use super::hook_payload::HookPayload;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::session_syncer::{self, SessionSyncer, resolve_links};
use crate::ui::Ui;

/// Keeps the session of an agent that has ended; whether there is one.
pub(crate) fn sync_named_session(
    ui: &Ui,
    env: &ProcessEnvironment,
    agent: &str,
    session: &str,
) -> Result<bool, CommandError> {
    sync_session(ui, env, Some(agent), &HookPayload::for_session(session))
}

/// Keeps what is new by now; whether there is a session at all.
pub(crate) fn sync_session(
    ui: &Ui,
    env: &ProcessEnvironment,
    agent: Option<&str>,
    told: &HookPayload,
) -> Result<bool, CommandError> {
    let files = find_session_files(env, agent, told)?;
    if files.is_empty() {
        return Ok(false);
    }
    // One hook at a time, so that the next one finds what this one has seen.
    let path = env.store.join("hook.lock");
    durable::create_private_dir(&env.store)?;
    let lock =
        durable::private_options().create(true).append(true).open(&path).on("open", &path)?;
    lock.lock().on("lock", &path)?;
    let places: Vec<_> =
        session_syncer::session_roots(env, &[], &[]).into_iter().map(resolve_links).collect();
    sync_files(SessionSyncer::new(ui, env)?, told, &files, &places)
}

/// The files of the session: the one that was named, or else the transcripts that have its name.
fn find_session_files(
    env: &ProcessEnvironment,
    agent: Option<&str>,
    told: &HookPayload,
) -> Result<Vec<PathBuf>, CommandError> {
    if let Some(path) = &told.transcript {
        return Ok(if path.is_file() { vec![resolve_links(path.clone())] } else { Vec::new() });
    }
    let mut files = Vec::new();
    for place in places(&env.home, &ProcessEnvironment::variable) {
        if agent == Some(place.agent) && told.session.is_some() && place.path.is_dir() {
            files.extend(format::files(&resolve_links(place.path))?);
        }
    }
    files.retain(|file| told.is_named_in(file) && is_transcript(file));
    Ok(files)
}

/// Whether a file may be a transcript by its name: agents leave locks and notes under the same names.
fn is_transcript(file: &Path) -> bool {
    let name = file.to_string_lossy();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.zst")
}

/// Keeps what is new of the session and its subagents; whether there is a session in the files.
fn sync_files(
    mut sync: SessionSyncer,
    told: &HookPayload,
    files: &[PathBuf],
    places: &[PathBuf],
) -> Result<bool, CommandError> {
    let mut known: Vec<PathBuf> = Vec::new();
    for file in files {
        if !known.contains(file) {
            known.extend(sync.sync_sessions_of(file, places)?);
        }
        // Codex tells of no subagents, but keeps them beside.
        if told.is_codex_turn {
            sync.sync_folder(durable::parent(file))?;
        }
    }
    // Most agents keep subagents with their session; to others they are sessions of their own.
    let subagent = told.subagent.clone().filter(|path| path.is_file()).map(resolve_links);
    if let Some(file) = subagent.filter(|file| !known.is_empty() && !known.contains(file)) {
        sync.sync_sessions_of(&file, places)?;
    }
    sync.failures.pop().map_or(Ok(!known.is_empty()), Err)
}
