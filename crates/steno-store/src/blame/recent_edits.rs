//! The files that agents edited last, over all sessions.
//!
//! Only calls of edit tools count, as in the files that a session changed: what a shell command wrote is not known.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::edit_archive::EditArchive;
use super::recorded_edit::{LineChange, RecordedEdit};
use super::repository_scope::{RepositoryScope, remove_dots};
use crate::index::{EditCallRequest, Index, IndexError, SessionOfHit};
use steno_model::session::SessionId;
use steno_model::timestamp::Timestamp;
use steno_vault::Vault;

/// Some of the newest edits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecentEdits {
    /// The files, the one that was edited last first.
    pub files: Vec<EditedFile>,
    /// Whether there are older edits.
    pub has_more: bool,
}

/// A file and its edits.
#[derive(Clone, Debug, PartialEq)]
pub struct EditedFile {
    /// The path; relative only if the session has no project folder.
    pub path: String,
    /// The project folder of the session that edited it last.
    pub project: Option<String>,
    /// The edits, the newest first.
    pub edits: Vec<RecentEdit>,
}

/// One edit of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct RecentEdit {
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: String,
    /// The session's title.
    pub title: Option<String>,
    /// The number of the entry in the session.
    pub number: u64,
    /// When the file was edited.
    pub time: Option<Timestamp>,
    /// How many lines the edit added. A file that was written as a whole has all its lines added.
    pub added: u64,
    /// How many lines it removed.
    pub removed: u64,
    /// Whether it deleted the file; how many lines that removed is not known.
    pub is_deletion: bool,
}

impl EditedFile {
    /// How many lines all edits added and removed.
    pub fn count_lines(&self) -> (u64, u64) {
        let sum = |lines: fn(&RecentEdit) -> u64| self.edits.iter().map(lines).sum();
        (sum(|edit| edit.added), sum(|edit| edit.removed))
    }

    /// The sessions that edited the file, as agent and id, the last one first.
    pub fn sessions(&self) -> Vec<(&str, &SessionId)> {
        let mut sessions: Vec<(&str, &SessionId)> = Vec::new();
        for edit in &self.edits {
            let session = (edit.agent.as_str(), &edit.session);
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
        sessions
    }
}

/// Finds the files that were edited last, from the newest calls of edit tools. Failed calls do not count.
pub fn find_recent_edits(
    index: &Index,
    vault: &Vault,
    request: &EditCallRequest<'_>,
) -> Result<RecentEdits, IndexError> {
    let scope = RepositoryScope::everything();
    let mut archive = EditArchive::new(index, vault, &scope);
    let found = index.find_edit_calls(request)?;
    let wanted = path_words(request.path);
    let mut files: Vec<EditedFile> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for call in &found.calls {
        let Some(session) = archive.session(call.session_row)? else { continue };
        let edits = match archive.edits_of(call) {
            Ok(edits) if edits.is_empty() => continue,
            Ok(edits) => edits,
            Err(error) => skip_unreadable(error)?,
        };
        let is_failed = archive.is_failed_call(call.session_row, call.number);
        if is_failed.or_else(|error| skip_unreadable(error).map(|()| true))? {
            continue;
        }
        let facts = &session.facts;
        for edit in edits.iter() {
            let path = absolute_path(&edit.path, facts.project.as_deref());
            if !path_words(&path).contains(&wanted) {
                continue;
            }
            let place = *places.entry(path.clone()).or_insert(files.len());
            if place == files.len() {
                files.push(EditedFile { path, project: facts.project.clone(), edits: Vec::new() });
            }
            let time = call.time.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
            files[place].edits.push(recent_edit(edit, facts, call.number, time));
        }
    }
    Ok(RecentEdits { files, has_more: found.has_more })
}

/// Leaves out a call whose session cannot be read; the index lists such sessions as damaged.
fn skip_unreadable<T: Default>(error: IndexError) -> Result<T, IndexError> {
    if matches!(error, IndexError::Format(_)) { Ok(T::default()) } else { Err(error) }
}

fn recent_edit(
    edit: &RecordedEdit,
    session: &SessionOfHit,
    number: u64,
    time: Option<jiff::Timestamp>,
) -> RecentEdit {
    let count = |change| edit.lines.iter().filter(|line| line.change == change).count() as u64;
    RecentEdit {
        session: session.id.clone(),
        agent: session.agent.clone(),
        title: session.title.clone(),
        number,
        time: time.map(|instant| Timestamp::from_instant(instant, 3)),
        added: count(LineChange::Added),
        removed: count(LineChange::Removed),
        is_deletion: edit.is_deletion,
    }
}

/// The path below the project folder, if it is relative.
fn absolute_path(path: &str, project: Option<&str>) -> String {
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    let joined = match project.filter(|project| Path::new(project).is_absolute() && !has_drive) {
        Some(project) => Path::new(project).join(path),
        None => PathBuf::from(path),
    };
    remove_dots(&joined).to_string_lossy().into_owned()
}

/// The words of a path in lower case, each between spaces but for the ends.
fn path_words(path: &str) -> String {
    let lower = path.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_below_the_project() {
        let all = [
            ("src/a.rs", Some("/p"), "/p/src/a.rs"),
            ("/q/./b/../a.rs", Some("/p"), "/q/a.rs"),
            ("a.rs", None, "a.rs"),
            (r"C:\p\a.rs", Some("/p"), r"C:\p\a.rs"),
        ];
        for (path, project, expected) in all {
            assert_eq!(absolute_path(path, project), expected);
        }
    }

    #[test]
    fn words_of_a_path_match_its_part() {
        assert!(path_words("/p/src/Cost_Series.rs").contains(&path_words("src/cost_ser")));
        assert!(!path_words("/p/src/cost.rs").contains(&path_words("src/series")));
        assert_eq!(path_words(""), "");
    }
}
