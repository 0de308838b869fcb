//! The sessions that edited a file.

use std::collections::HashMap;

use serde::Serialize;

use super::edit_archive::EditArchive;
use super::path_edits::find_path_edits;
use super::repository_scope::RepositoryScope;
use crate::index::{Index, IndexError};
use steno_model::session::SessionId;
use steno_model::timestamp::Timestamp;
use steno_vault::Vault;

/// A session that edited a file. Also one line of `steno log --json`.
#[derive(Clone, Debug, Serialize)]
pub struct FileSession {
    /// The file, relative to the repository's root.
    pub file: String,
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: String,
    /// The session's title.
    pub title: Option<String>,
    /// The session's project folder.
    pub project: Option<String>,
    /// When it first edited the file.
    pub first_edit: Option<Timestamp>,
    /// When it last edited the file.
    pub last_edit: Option<Timestamp>,
    /// The numbers of the entries that edited it.
    pub entries: Vec<u64>,
}

/// Finds the sessions that edited a file, newest first. `path` is relative to the repository's root. Failed edits do
/// not count.
pub fn find_file_sessions(
    index: &Index,
    vault: &Vault,
    scope: &RepositoryScope,
    path: &str,
) -> Result<Vec<FileSession>, IndexError> {
    let mut archive = EditArchive::new(index, vault, scope);
    let mut sessions: Vec<FileSession> = Vec::new();
    let mut places: HashMap<i64, usize> = HashMap::new();
    for found in find_path_edits(&mut archive, path, None)? {
        let (row, number) = (found.hit.session_row, found.hit.number);
        if archive.is_failed_call(row, number)? {
            continue;
        }
        let instant = found.hit.time.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        let time = instant.map(|instant| Timestamp::from_instant(instant, 3));
        let place = *places.entry(row).or_insert(sessions.len());
        if place == sessions.len() {
            let facts = &found.session.facts;
            sessions.push(FileSession {
                file: path.to_owned(),
                session: facts.id.clone(),
                agent: facts.agent.clone(),
                title: facts.title.clone(),
                project: facts.project.clone(),
                first_edit: time,
                last_edit: time,
                entries: Vec::new(),
            });
        }
        let session = &mut sessions[place];
        session.last_edit = time.or(session.last_edit);
        if session.entries.last() != Some(&number) {
            session.entries.push(number);
        }
    }
    sessions.sort_by_key(|session| {
        std::cmp::Reverse(session.last_edit.map(|time| time.instant().as_millisecond()))
    });
    Ok(sessions)
}
