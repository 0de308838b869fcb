//! Finds the sessions that wrote a line, from all entries that contain it.
//!
//! A session that had seen the line before it wrote it, in a file that it read or in a prompt, has copied it: somebody
//! else may have written it. A session that wrote it first, and had not seen it, is an original writer.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::edit_archive::{EditArchive, MAX_LINE_HITS, ScopedSession};
use super::line_text::search_phrase;
use super::recorded_edit::{LineLikeness, RecordedEdit};
use crate::index::{IndexError, PhraseHit};
use steno_model::entry::EntryKind;

/// All that sessions say about one line.
#[derive(Debug, Default)]
pub(super) struct LineWriters {
    /// For each session and file, the entry that wrote the line and is still the last to have brought it in.
    pub(super) writers: Vec<LineWriter>,
    /// Edits that wrote a similar line.
    pub(super) similar: Vec<LineWriter>,
    /// The first time at which any session saw the line without having written it.
    pub(super) first_shown: Option<i64>,
    /// Whether all entries with the line were looked at. A line that too many entries have is not looked up.
    pub(super) is_complete: bool,
}

/// A session that wrote a line.
#[derive(Clone, Debug)]
pub(super) struct LineWriter {
    pub(super) hit: PhraseHit,
    pub(super) session: Rc<ScopedSession>,
    pub(super) edit: Rc<RecordedEdit>,
    pub(super) likeness: LineLikeness,
    /// Whether the session had seen the line before.
    pub(super) is_copy: bool,
    /// Whether the session removed the line later.
    pub(super) is_removed: bool,
    /// The path of the edit relative to the repository.
    pub(super) path: Option<String>,
}

/// Finds the writers of a line before `until` (milliseconds since 1970).
pub(super) fn find_writers(
    archive: &mut EditArchive<'_>,
    line: &str,
    until: i64,
) -> Result<LineWriters, IndexError> {
    let Some(phrase) = search_phrase(line) else { return Ok(LineWriters::default()) };
    let hits = archive.find_line(&phrase)?;
    if hits.len() >= MAX_LINE_HITS {
        return Ok(LineWriters::default());
    }
    let mut found = LineWriters { is_complete: true, ..LineWriters::default() };
    let mut by_session: BTreeMap<i64, Vec<&PhraseHit>> = BTreeMap::new();
    for hit in hits.iter().filter(|hit| hit.time.is_none_or(|time| time <= until)) {
        by_session.entry(hit.session_row).or_default().push(hit);
    }
    for (row, mut hits) in by_session {
        let Some(session) = archive.session(row)? else { continue };
        hits.sort_by_key(|hit| (hit.time, hit.number));
        let mut history = LineHistory { line, session, shown: None, writers: Vec::new() };
        for hit in hits {
            history.add_hit(archive, hit, &mut found)?;
        }
        history.finish(&mut found);
    }
    found.remove_copied_history();
    Ok(found)
}

impl LineWriters {
    /// Removes writers whose session repeats the history of another: the same call at the same time.
    fn remove_copied_history(&mut self) {
        let all = self.writers.clone();
        let is_earlier = |a: &LineWriter, b: &LineWriter| {
            let order = |writer: &LineWriter| {
                (
                    writer.session.facts.started_at,
                    writer.session.facts.entries,
                    writer.hit.session_row,
                )
            };
            order(a) < order(b)
        };
        let is_repeated = |writer: &LineWriter| {
            all.iter().any(|other| {
                other.hit.text_row == writer.hit.text_row
                    && other.hit.time.is_some()
                    && other.hit.time == writer.hit.time
                    && other.hit.session_row != writer.hit.session_row
                    && is_earlier(other, writer)
            })
        };
        self.writers.retain(|writer| !is_repeated(writer));
    }
}

/// What one session did with a line so far.
struct LineHistory<'a> {
    line: &'a str,
    session: Rc<ScopedSession>,
    /// When the session first saw the line, unless it had written it.
    shown: Option<Option<i64>>,
    /// The entries that wrote it, one for each file.
    writers: Vec<LineWriter>,
}

impl LineHistory<'_> {
    fn add_hit(
        &mut self,
        archive: &mut EditArchive<'_>,
        hit: &PhraseHit,
        found: &mut LineWriters,
    ) -> Result<(), IndexError> {
        if hit.kind == EntryKind::ToolCall {
            let edits = archive.edits_of(hit)?;
            for edit in edits.iter() {
                self.add_edit(archive, hit, edit, found)?;
            }
            return Ok(());
        }
        let is_own_words = hit.role == "assistant";
        if !is_own_words
            && self.session.is_in_repository
            && self.writers.is_empty()
            && archive.text(hit.text_row)?.contains(self.line.trim())
        {
            self.show(hit);
        }
        Ok(())
    }

    fn add_edit(
        &mut self,
        archive: &mut EditArchive<'_>,
        hit: &PhraseHit,
        edit: &RecordedEdit,
        found: &mut LineWriters,
    ) -> Result<(), IndexError> {
        let is_exact = edit.adds(self.line, LineLikeness::Exact);
        let is_similar = is_exact || edit.adds(self.line, LineLikeness::Part);
        if is_exact && archive.is_failed_call(hit.session_row, hit.number)? {
            return Ok(());
        }
        if edit.had(self.line) && self.writers.is_empty() {
            self.show(hit);
        }
        let project = self.session.facts.project.as_deref();
        let path = archive.scope.relative_path(&edit.path, project);
        if is_exact {
            let is_there = |writer: &LineWriter| writer.path == path && !writer.is_removed;
            if !self.writers.iter().any(is_there) {
                let writer = self.new_writer(archive, hit, edit, LineLikeness::Exact);
                self.writers.retain(|writer| writer.path != path);
                self.writers.push(writer);
            }
        } else if is_similar {
            let likeness = if edit.adds(self.line, LineLikeness::Spaces) {
                LineLikeness::Spaces
            } else {
                LineLikeness::Part
            };
            found.similar.push(self.new_writer(archive, hit, edit, likeness));
        }
        if edit.removes(self.line) {
            let same_file = self.writers.iter_mut().filter(|writer| writer.path == path);
            same_file.for_each(|writer| writer.is_removed = true);
        }
        Ok(())
    }

    fn show(&mut self, hit: &PhraseHit) {
        if self.shown.is_none() {
            self.shown = Some(hit.time);
        }
    }

    fn new_writer(
        &self,
        archive: &EditArchive<'_>,
        hit: &PhraseHit,
        edit: &RecordedEdit,
        likeness: LineLikeness,
    ) -> LineWriter {
        let project = self.session.facts.project.as_deref();
        LineWriter {
            hit: hit.clone(),
            session: Rc::clone(&self.session),
            path: archive.scope.relative_path(&edit.path, project),
            edit: Rc::new(edit.clone()),
            likeness,
            is_copy: self.shown.is_some(),
            is_removed: false,
        }
    }

    fn finish(self, found: &mut LineWriters) {
        found.writers.extend(self.writers);
        if let Some(shown) = self.shown {
            // A time that is not known could be the first.
            let shown = shown.unwrap_or(i64::MIN);
            found.first_shown = Some(found.first_shown.map_or(shown, |first| first.min(shown)));
        }
    }
}
