//! Sessions whose files are gone, as far as the history of prompts beside the projects tells of them.
//!
//! Where a session's file is there, its lines of the history are left alone: they would only repeat it.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::loose::Plain;
use crate::agent::shared_log::{SharedLog, lines_by_session};
use crate::durable::{FileError, OnPath};
use steno_vault::Bundle;

/// The history's name, beside the folder of all projects.
const HISTORY: &str = "history.jsonl";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Named<'a> {
    #[serde(borrow)]
    session_id: Plain<'a>,
}

/// The sessions that only the history tells of, and one of all lines that name none; nothing where the file stands
/// elsewhere than in Claude Code's own folder.
pub(super) fn sessions(history: &Path) -> Result<Option<Vec<Bundle>>, FileError> {
    let projects = history.with_file_name("projects");
    if !history.ends_with(HISTORY) || !projects.is_dir() {
        return Ok(None);
    }
    let there = sessions_in(&projects);
    let named = |line: &[u8]| {
        serde_json::from_slice::<Named<'_>>(line).unwrap_or_default().session_id.owned()
    };
    let mut told = lines_by_session(history, &named).on("read", history)?;
    told.retain(|session, _| session.as_ref().is_none_or(|session| !there.contains(session)));
    let log = SharedLog { path: history, name: HISTORY };
    Ok(Some(told.into_iter().map(|(key, lines)| log.excerpt(key, lines)).collect()))
}

/// The names of all files in project folders; none is opened.
fn sessions_in(projects: &Path) -> HashSet<String> {
    let items = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let files = items(projects).flat_map(|project| items(&project.path()));
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    names.filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned())).collect()
}
