//! Finds the session of one file without searching the rest of the tree.
//!
//! The file's path suggests where its whole session may be found. Readers then check the content of each candidate. A
//! candidate without the file is skipped.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::cline::sdk::main_file;
use super::fields::text;
use super::head::Head;
use crate::durable::FileError;
use crate::format::{Found, Look, look};
use steno_vault::Bundle;

/// Files that mark the folder of a whole session.
const MARKS: [&str; 9] = [
    "ui_messages.json",
    "api_conversation_history.json",
    "context.jsonl",
    "context.json",
    "transcript.jsonl",
    "transcript.md",
    "transcript_archive.jsonl",
    "transcript.json",
    "transcript.json.gz",
];

/// Folders with parts of a session, inside its folder.
const PARTS: [&str; 2] = ["agents", "subagents"];

/// Folders with files that form sessions together.
const SHARED: [&str; 2] = ["chats", "chatSessions"];

/// The sessions that `file`, at or below `root`, belongs to. A search of the whole tree would find the same.
pub fn find_near(file: &Path, root: &Path) -> Result<Vec<Found>, FileError> {
    for path in places(file, root) {
        let Look { mut found, failures } = look(&path)?;
        if let Some(failure) = failures.into_iter().find(|failure| failure.path == file) {
            return Err(failure);
        }
        found.retain(|found| found.bundle.files().iter().any(|source| source.path() == file));
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Paths at which the file's session may be found whole. The likeliest is first, the file itself last.
fn places(file: &Path, root: &Path) -> Vec<PathBuf> {
    let folders = || file.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    let mut paths: Vec<PathBuf> = Vec::new();
    paths.extend(original(file).filter(|path| path.is_file()));
    paths.extend(folders().map(|folder| ending(folder, ".jsonl")).filter(|path| path.is_file()));
    paths.extend(folders().find_map(|folder| in_tree(file, folder)));
    paths.extend(sessions_of_project(file).filter(|folder| folder.is_dir()));
    paths.extend(session_beside(file));
    paths.extend(folders().find_map(whole_session));
    paths.extend(folders().next().filter(|_| is_shared(file)).map(Path::to_owned));
    paths.push(file.to_owned());
    paths
}

/// The file that this one is a write-ahead log, a compressed copy or the settings of.
fn original(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    let main = name.strip_suffix("-wal").or_else(|| name.strip_suffix(".zst"));
    match (main, name.strip_suffix(".settings.json")) {
        (Some(main), _) => Some(file.with_file_name(main)),
        (None, Some(stem)) => Some(file.with_file_name(format!("{stem}.jsonl"))),
        (None, None) => None,
    }
}

fn ending(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// The session file that a subagent's file names, if it is in the same folder. Otherwise that folder.
fn session_beside(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?.strip_prefix("agent-")?;
    let stem = name.strip_suffix(".meta.json").or_else(|| name.strip_suffix(".jsonl"))?;
    let log = file.with_file_name(format!("agent-{stem}.jsonl"));
    let session = stated(&log, "sessionId")?;
    let session = file.with_file_name(format!("{session}.jsonl"));
    if session.is_file() { Some(session) } else { file.parent().map(Path::to_owned) }
}

/// The session folder of a project file in OpenCode's tree.
fn sessions_of_project(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    if file.ends_with("migration") {
        return Some(folder.join("session"));
    }
    let tree = folder.parent().filter(|_| folder.ends_with("project"))?;
    Some(tree.join("session").join(file.file_stem()?))
}

/// The session file for a message or part in OpenCode's tree. If no file is named after the session, the folder of
/// all sessions.
fn in_tree(file: &Path, folder: &Path) -> Option<PathBuf> {
    let sessions = folder.parent()?.join("session");
    let id = if folder.ends_with("message") {
        file.strip_prefix(folder).ok()?.iter().next()?.to_str().map(str::to_owned)
    } else if ["session_diff", "todo"].iter().any(|name| folder.ends_with(name)) {
        file.file_stem()?.to_str().map(str::to_owned)
    } else if folder.ends_with("part") {
        stated(file, "sessionID")
    } else {
        return None;
    };
    let name = format!("{}.json", id.unwrap_or_default());
    let projects = fs::read_dir(&sessions).into_iter().flatten().flatten();
    let mut folders: Vec<_> = projects.map(|project| project.path()).collect();
    folders.push(sessions.with_file_name("info"));
    let named = folders.into_iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
    named.or_else(|| Some(sessions).filter(|sessions| sessions.is_dir()))
}

/// The folder itself or its parent, if it holds a whole session.
fn whole_session(folder: &Path) -> Option<PathBuf> {
    if PARTS.iter().any(|name| folder.ends_with(name)) {
        return folder.parent().map(Path::to_owned);
    }
    let is_whole = SHARED.iter().any(|name| folder.ends_with(name))
        || MARKS.iter().any(|name| folder.join(name).is_file())
        || folder
            .file_name()
            .is_some_and(|id| folder.join(main_file(&id.to_string_lossy())).is_file())
        || PARTS.iter().any(|name| folder.join(name).is_dir());
    is_whole.then(|| folder.to_owned())
}

/// Whether a file describes others in its folder: one of leslie's units, or an editor's `workspace.json`.
fn is_shared(file: &Path) -> bool {
    let is_unit = file.extension().is_some_and(|extension| extension == "txt");
    is_unit || file.ends_with("workspace.json")
}

/// A name stated in the first record of a file. `None` if it is not a plain file name.
fn stated(file: &Path, field: &str) -> Option<String> {
    let head = Head::of(&Bundle::file(file).sources[0]).ok()?;
    let name = text(&head.objects().next()?, field).map(str::to_owned);
    let name = name.or_else(|| text(&head.fields(), field).map(str::to_owned))?;
    let is_plain = !name.contains(['/', '\\', '\0']) && !matches!(name.as_str(), "" | "." | "..");
    is_plain.then_some(name)
}
