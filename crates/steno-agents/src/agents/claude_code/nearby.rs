//! Leads from a file of a subagent or of a tool's result to the session that it belongs to.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::agent::nearby::{folders_above, read_stated_name};

/// The paths at which the session of `file` may be found whole.
pub(super) fn candidate_paths(file: &Path, root: &Path) -> Vec<PathBuf> {
    let named = folders_above(file, root).map(session_of_folder).filter(|path| path.is_file());
    named.chain(session_beside(file)).collect()
}

/// The session with side files in `folder`, which has its name.
fn session_of_folder(folder: &Path) -> PathBuf {
    let mut name: OsString = folder.as_os_str().to_owned();
    name.push(".jsonl");
    PathBuf::from(name)
}

/// The session file that a subagent's file names, if it is in the same folder. Otherwise that folder.
fn session_beside(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?.strip_prefix("agent-")?;
    let stem = name.strip_suffix(".meta.json").or_else(|| name.strip_suffix(".jsonl"))?;
    let log = file.with_file_name(format!("agent-{stem}.jsonl"));
    let session = read_stated_name(&log, "sessionId")?;
    let session = file.with_file_name(format!("{session}.jsonl"));
    if session.is_file() { Some(session) } else { file.parent().map(Path::to_owned) }
}
