//! Finds the session of one file without searching the rest of the tree.
//!
//! The file's path suggests where its whole session may be found. Readers then check the content of each candidate. A
//! candidate without the file is skipped.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::{FoundSessions, find_sessions_and_failures};
use steno_agents::agents::cline::sdk::main_file_name;
use steno_agents::decoding::file_head::FileHead;
use steno_agents::decoding::json_fields::text_field;
use steno_agents::reader::FoundSession;
use steno_model::durable::FileError;
use steno_vault::SessionBundle;

/// Files that mark the folder of a whole session.
const SESSION_FOLDER_FILES: [&str; 9] = [
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
const PART_FOLDERS: [&str; 2] = ["agents", "subagents"];

/// Folders with files that form sessions together.
const SHARED_FOLDERS: [&str; 2] = ["chats", "chatSessions"];

/// The sessions that `file`, at or below `root`, belongs to. A search of the whole tree would find the same.
pub fn find_sessions_near(file: &Path, root: &Path) -> Result<Vec<FoundSession>, FileError> {
    for path in candidate_paths(file, root) {
        let FoundSessions { sessions: mut found, failures } = find_sessions_and_failures(&path)?;
        if let Some(failure) = failures.into_iter().find(|failure| failure.path == file) {
            return Err(failure);
        }
        found.retain(|found| found.bundle.main_files().iter().any(|source| source.path() == file));
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Paths at which the file's session may be found whole. The likeliest is first, the file itself last.
fn candidate_paths(file: &Path, root: &Path) -> Vec<PathBuf> {
    let folders = || file.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    let mut paths: Vec<PathBuf> = Vec::new();
    paths.extend(original_file(file).filter(|path| path.is_file()));
    paths.extend(
        folders().map(|folder| with_suffix(folder, ".jsonl")).filter(|path| path.is_file()),
    );
    paths.extend(folders().find_map(|folder| opencode_session_file(file, folder)));
    paths.extend(sessions_of_project(file).filter(|folder| folder.is_dir()));
    paths.extend(session_beside(file));
    paths.extend(folders().find_map(whole_session_folder));
    paths.extend(folders().next().filter(|_| describes_folder(file)).map(Path::to_owned));
    paths.push(file.to_owned());
    paths
}

/// The file that this one is a write-ahead log, a compressed copy or the settings of.
fn original_file(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    let main = name.strip_suffix("-wal").or_else(|| name.strip_suffix(".zst"));
    match (main, name.strip_suffix(".settings.json")) {
        (Some(main), _) => Some(file.with_file_name(main)),
        (None, Some(stem)) => Some(file.with_file_name(format!("{stem}.jsonl"))),
        (None, None) => None,
    }
}

fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(end);
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
fn opencode_session_file(file: &Path, folder: &Path) -> Option<PathBuf> {
    let sessions = folder.parent()?.join("session");
    let id = if folder.ends_with("message") {
        file.strip_prefix(folder).ok()?.iter().next()?.to_str().map(str::to_owned)
    } else if ["session_diff", "todo"].iter().any(|name| folder.ends_with(name)) {
        file.file_stem()?.to_str().map(str::to_owned)
    } else if folder.ends_with("part") {
        read_stated_name(file, "sessionID")
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
fn whole_session_folder(folder: &Path) -> Option<PathBuf> {
    if PART_FOLDERS.iter().any(|name| folder.ends_with(name)) {
        return folder.parent().map(Path::to_owned);
    }
    let is_whole = SHARED_FOLDERS.iter().any(|name| folder.ends_with(name))
        || SESSION_FOLDER_FILES.iter().any(|name| folder.join(name).is_file())
        || folder
            .file_name()
            .is_some_and(|id| folder.join(main_file_name(&id.to_string_lossy())).is_file())
        || PART_FOLDERS.iter().any(|name| folder.join(name).is_dir());
    is_whole.then(|| folder.to_owned())
}

/// Whether a file describes others in its folder: one of leslie's units, or an editor's `workspace.json`.
fn describes_folder(file: &Path) -> bool {
    let is_unit = file.extension().is_some_and(|extension| extension == "txt");
    is_unit || file.ends_with("workspace.json")
}

/// A name stated in the first record of a file. `None` if it is not a plain file name.
fn read_stated_name(file: &Path, field: &str) -> Option<String> {
    let head = FileHead::read(&SessionBundle::from_file(file).files[0]).ok()?;
    let name = text_field(&head.line_objects().next()?, field).map(str::to_owned);
    let name = name.or_else(|| text_field(&head.scalar_fields(), field).map(str::to_owned))?;
    let is_plain = !name.contains(['/', '\\', '\0']) && !matches!(name.as_str(), "" | "." | "..");
    is_plain.then_some(name)
}
