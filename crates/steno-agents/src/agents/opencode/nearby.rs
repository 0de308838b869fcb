//! Leads from a file in OpenCode's tree to the session that it belongs to.

use std::fs;
use std::path::{Path, PathBuf};

use crate::agent::nearby::{folders_above, read_stated_name};

/// The paths at which the session of `file` may be found whole.
pub(super) fn candidate_paths(file: &Path, root: &Path) -> Vec<PathBuf> {
    let session = folders_above(file, root).find_map(|folder| session_file(file, folder));
    let sessions = sessions_of_project(file).filter(|folder| folder.is_dir());
    session.into_iter().chain(sessions).collect()
}

/// The session file for a message or part. If no file is named after the session, the folder of all sessions.
fn session_file(file: &Path, folder: &Path) -> Option<PathBuf> {
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

/// The session folder of a project file.
fn sessions_of_project(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    if file.ends_with("migration") {
        return Some(folder.join("session"));
    }
    let tree = folder.parent().filter(|_| folder.ends_with("project"))?;
    Some(tree.join("session").join(file.file_stem()?))
}
