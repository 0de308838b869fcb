//! Jumps from one thing of interest to the next.

use steno_core::index::Query;
use steno_core::index::text;
use steno_core::{Entry, Kind, Role, entry};

use super::{Reader, Spot};
use crate::browser::page::Row;

/// What to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jump {
    /// An error, or a tool that failed.
    Error,
    /// A place where the agent's context was shortened.
    Compaction,
    /// Where a subagent begins to speak.
    Subagent,
    /// What the user said.
    Prompt,
    /// Any entry.
    Entry,
    /// What is looked for.
    Match,
}

impl Jump {
    /// What it is called when there is none.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Jump::Error => "error",
            Jump::Compaction => "compaction",
            Jump::Subagent => "subagent",
            Jump::Prompt => "prompt",
            Jump::Entry => "entry",
            Jump::Match => "match",
        }
    }
}

impl Reader {
    /// Goes to the next or previous place of this sort; whether there is one.
    pub(crate) fn jump(&mut self, to: Jump, forward: bool) -> bool {
        if to == Jump::Match
            && let Some(row) = self.match_beside(forward)
        {
            self.cursor.row = row;
            self.settle();
            return true;
        }
        let at = self.cursor.entry;
        let found = if forward {
            (at + 1..self.transcript.entries.len()).find(|at| self.is_at(to, *at))
        } else {
            (0..at).rev().find(|at| self.is_at(to, *at))
        };
        let Some(found) = found else { return false };
        let unfolds = !matches!(to, Jump::Entry | Jump::Subagent);
        self.go_to(found, unfolds);
        if to == Jump::Match {
            self.cursor.row = self.match_in(found, forward).unwrap_or(self.cursor.row);
            self.settle();
        }
        true
    }

    /// Goes to an entry, and to what is looked for in it.
    pub(crate) fn open_at(&mut self, at: usize) {
        self.go_to(at.min(self.transcript.entries.len().saturating_sub(1)), true);
        if let Some(row) = self.match_in(self.cursor.entry, true) {
            self.cursor.row = row;
            self.settle();
        }
    }

    /// Goes to the first match at or after the cursor, or else to the first of all; whether there is one.
    pub(crate) fn first_match(&mut self) -> bool {
        let count = self.transcript.entries.len();
        let at = self.cursor.entry;
        let found = (at..count).chain(0..at).find(|at| self.is_at(Jump::Match, *at));
        if let Some(found) = found {
            self.open_at(found);
        }
        found.is_some()
    }

    fn go_to(&mut self, at: usize, unfolds: bool) {
        if unfolds && self.is_folded(at) {
            self.folds.set(at, false);
            self.rows.clear();
        }
        self.cursor = Spot { entry: at, row: self.heading(at) };
        // What comes before gives it a context.
        self.top = self.moved(self.cursor, -(self.height as isize / 4));
        self.settle();
    }

    fn is_at(&self, to: Jump, at: usize) -> bool {
        let entries = &self.transcript.entries;
        let entry = &entries[at];
        match to {
            Jump::Error => entry.kind == Kind::Error || entry.is_tool_error(),
            Jump::Compaction => entry.kind == Kind::Compaction,
            Jump::Subagent => {
                let before = at.checked_sub(1).map(|before| entries[before].source.as_str());
                entry.source != entry::PRIMARY && before != Some(entry.source.as_str())
            }
            Jump::Prompt => is_prompt(entry),
            Jump::Entry => true,
            Jump::Match => self.find.as_ref().is_some_and(|query| says(entry, query)),
        }
    }

    /// The next or previous row of the same entry that matches.
    fn match_beside(&mut self, forward: bool) -> Option<usize> {
        let rows = self.rows(self.cursor.entry);
        let query = self.find.as_ref()?;
        let hit = |row: &usize| rows.get(*row).is_some_and(|row| is_match(query, row));
        if forward {
            (self.cursor.row + 1..rows.len()).find(hit)
        } else {
            (0..self.cursor.row).rev().find(hit)
        }
    }

    fn match_in(&mut self, at: usize, first: bool) -> Option<usize> {
        let rows = self.rows(at);
        let query = self.find.as_ref()?;
        let hit = |row: &Row| is_match(query, row);
        if first { rows.iter().position(hit) } else { rows.iter().rposition(hit) }
    }
}

fn is_prompt(entry: &Entry) -> bool {
    entry.role == Role::User && entry.kind == Kind::Text && entry.source == entry::PRIMARY
}

fn is_match(query: &Query, row: &Row) -> bool {
    matches!(row, Row::Text(text) if query.marks(text))
}

/// Whether what is looked for stands in an entry.
fn says(entry: &Entry, query: &Query) -> bool {
    match entry.kind {
        Kind::ToolCall => query.marks(&text::of(entry)),
        _ => query.marks(&entry.content),
    }
}
