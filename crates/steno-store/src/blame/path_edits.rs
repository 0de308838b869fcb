//! All recorded edits of one file.

use std::rc::Rc;

use super::edit_archive::{EditArchive, MAX_NAME_HITS, ScopedSession};
use super::recorded_edit::RecordedEdit;
use crate::index::{IndexError, PhraseHit};
use steno_model::entry::EntryKind;

/// A recorded edit of a file.
#[derive(Clone, Debug)]
pub(super) struct PathEdit {
    pub(super) hit: PhraseHit,
    pub(super) session: Rc<ScopedSession>,
    pub(super) edit: RecordedEdit,
}

/// Finds the edits of a file, oldest first. `path` is relative to the repository's root. With `limit`, only the newest
/// calls of the repository's own sessions are looked at.
pub(super) fn find_path_edits(
    archive: &mut EditArchive<'_>,
    path: &str,
    limit: Option<usize>,
) -> Result<Vec<PathEdit>, IndexError> {
    let hits = archive.find_name(path)?;
    let (mut found, mut looked_at) = (Vec::new(), 0);
    for hit in hits.iter().filter(|hit| hit.kind == EntryKind::ToolCall) {
        let Some(session) = archive.session(hit.session_row)? else { continue };
        if limit.is_some() && !session.is_in_repository {
            continue;
        }
        looked_at += 1;
        if limit.is_some_and(|limit| looked_at > limit) {
            break;
        }
        let project = session.facts.project.as_deref();
        for edit in archive.edits_of(hit)?.iter() {
            if archive.scope.relative_path(&edit.path, project).as_deref() == Some(path) {
                let (hit, session) = (hit.clone(), Rc::clone(&session));
                found.push(PathEdit { hit, session, edit: edit.clone() });
            }
        }
    }
    found.sort_by_key(|edit| (edit.hit.time, edit.hit.session_row, edit.hit.number));
    Ok(found)
}

/// The edits of a file by one session after one of its entries, in order; `None` if too many entries name the file.
pub(super) fn find_later_edits(
    archive: &mut EditArchive<'_>,
    path: &str,
    entry: &PhraseHit,
) -> Result<Option<Vec<PathEdit>>, IndexError> {
    let hits = archive.find_name(path)?;
    if hits.len() >= MAX_NAME_HITS {
        return Ok(None);
    }
    let Some(session) = archive.session(entry.session_row)? else { return Ok(None) };
    let is_later = |hit: &&PhraseHit| {
        hit.kind == EntryKind::ToolCall
            && hit.session_row == entry.session_row
            && hit.number > entry.number
    };
    let project = session.facts.project.as_deref();
    let mut found = Vec::new();
    for hit in hits.iter().filter(is_later) {
        for edit in archive.edits_of(hit)?.iter() {
            if archive.scope.relative_path(&edit.path, project).as_deref() == Some(path) {
                let (hit, session) = (hit.clone(), Rc::clone(&session));
                found.push(PathEdit { hit, session, edit: edit.clone() });
            }
        }
    }
    found.sort_by_key(|edit| edit.hit.number);
    Ok(Some(found))
}
