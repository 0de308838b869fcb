//! Jumps to the next or previous error, prompt, subagent or match.

use steno_model::{Entry, EntryKind, Role, entry};
use steno_store::index::{SearchQuery, entry_text};

use super::{RowPosition, SessionReader};
use crate::browser::entry_rows::ScreenRow;

/// What to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JumpTarget {
    /// An error, or a tool call that failed.
    Error,
    /// A compaction of the agent's context.
    Compaction,
    /// The first entry of a subagent.
    Subagent,
    /// A prompt of the user.
    Prompt,
    /// Any entry.
    Entry,
    /// A match of the current query.
    Match,
}

impl JumpTarget {
    /// Noun for the notice that there is none.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            JumpTarget::Error => "error",
            JumpTarget::Compaction => "compaction",
            JumpTarget::Subagent => "subagent",
            JumpTarget::Prompt => "prompt",
            JumpTarget::Entry => "entry",
            JumpTarget::Match => "match",
        }
    }
}

impl SessionReader {
    /// Jumps to the next or previous target. Returns whether there is one.
    pub(crate) fn jump_to(&mut self, to: JumpTarget, forward: bool) -> bool {
        if to == JumpTarget::Match
            && let Some(row) = self.next_match_in_entry(forward)
        {
            self.cursor.row = row;
            self.clamp_cursor();
            return true;
        }
        let at = self.cursor.entry;
        let found = if forward {
            (at + 1..self.transcript.entries.len()).find(|at| self.is_target(to, *at))
        } else {
            (0..at).rev().find(|at| self.is_target(to, *at))
        };
        let Some(found) = found else { return false };
        let unfolds = !matches!(to, JumpTarget::Entry | JumpTarget::Subagent);
        self.place_cursor(found, unfolds);
        if to == JumpTarget::Match {
            self.cursor.row = self.match_row_in(found, forward).unwrap_or(self.cursor.row);
            self.clamp_cursor();
        }
        true
    }

    /// Moves to an entry, and to the first match in it.
    pub(crate) fn go_to_entry(&mut self, at: usize) {
        self.place_cursor(at.min(self.transcript.entries.len().saturating_sub(1)), true);
        if let Some(row) = self.match_row_in(self.cursor.entry, true) {
            self.cursor.row = row;
            self.clamp_cursor();
        }
    }

    /// Moves to the first match at or after the cursor, else to the first of all. Returns whether there is one.
    pub(crate) fn go_to_first_match(&mut self) -> bool {
        let count = self.transcript.entries.len();
        let at = self.cursor.entry;
        let found = (at..count).chain(0..at).find(|at| self.is_target(JumpTarget::Match, *at));
        if let Some(found) = found {
            self.go_to_entry(found);
        }
        found.is_some()
    }

    fn place_cursor(&mut self, at: usize, unfolds: bool) {
        if unfolds && self.is_folded(at) {
            self.folds.set_folded(at, false);
            self.row_cache.clear();
        }
        self.cursor = RowPosition { entry: at, row: self.heading_row(at) };
        // Some rows above give context.
        self.top = self.offset_position(self.cursor, -(self.height as isize / 4));
        self.clamp_cursor();
    }

    fn is_target(&self, to: JumpTarget, at: usize) -> bool {
        let entries = &self.transcript.entries;
        let entry = &entries[at];
        match to {
            JumpTarget::Error => entry.kind == EntryKind::Error || entry.is_tool_error(),
            JumpTarget::Compaction => entry.kind == EntryKind::Compaction,
            JumpTarget::Subagent => {
                let before = at.checked_sub(1).map(|before| entries[before].source.as_str());
                entry.source != entry::PRIMARY_SOURCE && before != Some(entry.source.as_str())
            }
            JumpTarget::Prompt => is_prompt(entry),
            JumpTarget::Entry => true,
            JumpTarget::Match => {
                self.find.as_ref().is_some_and(|query| entry_matches(entry, query))
            }
        }
    }

    /// Returns the next or previous matching row of the same entry.
    fn next_match_in_entry(&mut self, forward: bool) -> Option<usize> {
        let rows = self.entry_rows(self.cursor.entry);
        let query = self.find.as_ref()?;
        let hit = |row: &usize| rows.get(*row).is_some_and(|row| is_match(query, row));
        if forward {
            (self.cursor.row + 1..rows.len()).find(hit)
        } else {
            (0..self.cursor.row).rev().find(hit)
        }
    }

    fn match_row_in(&mut self, at: usize, first: bool) -> Option<usize> {
        let rows = self.entry_rows(at);
        let query = self.find.as_ref()?;
        let hit = |row: &ScreenRow| is_match(query, row);
        if first { rows.iter().position(hit) } else { rows.iter().rposition(hit) }
    }
}

fn is_prompt(entry: &Entry) -> bool {
    entry.role == Role::User
        && entry.kind == EntryKind::Text
        && entry.source == entry::PRIMARY_SOURCE
}

fn is_match(query: &SearchQuery, row: &ScreenRow) -> bool {
    matches!(row, ScreenRow::Text(text) if query.has_mark(text))
}

/// Returns whether an entry matches the query.
fn entry_matches(entry: &Entry, query: &SearchQuery) -> bool {
    match entry.kind {
        EntryKind::ToolCall => query.has_mark(&entry_text::searchable_text(entry)),
        _ => query.has_mark(&entry.content),
    }
}
