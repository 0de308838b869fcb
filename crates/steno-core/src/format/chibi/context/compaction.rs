//! Compaction: copies older lines to the archive verbatim before it removes them from the window.
//!
//! A crash in between leaves lines in both files. Readers merge them by id, and the next compaction first completes
//! the interrupted one.

use std::collections::HashSet;

use uuid::Uuid;

use super::{Context, ContextError, read_or_empty, split_lines};
use crate::durable::{FileError, append_lines, write_atomic};
use crate::entry::{Entry, Kind, Role};
use crate::format::chibi::convert::{entry_of, line_of};
use crate::format::chibi::find::{ARCHIVE, CONTEXT, MARKDOWN};
use crate::format::chibi::line::Line;
use crate::format::chibi::{lock, markdown, records};

/// One line of the active conversation, parsed if it is valid.
struct RawLine {
    bytes: Vec<u8>,
    line: Option<Line>,
}

impl Context {
    /// Moves all but the last `keep` entries to the archive, and puts `summary` in their place.
    ///
    /// A tool call is not separated from its result. Lines that an interrupted compaction has already archived are
    /// removed in any case. Returns how many entries moved; if none, nothing changes.
    pub fn compact(&self, summary: &str, keep: usize) -> Result<usize, ContextError> {
        let _held = lock::take(&self.dir, &self.clock)?;
        let archived = self.archived()?;
        let mut removed = self.raw_lines()?;
        let there = leading(&removed, &archived);
        let kept = removed.split_off(cut(&removed, keep, there));
        let count = removed.iter().filter(|raw| raw.line.is_some()).count();
        if count == 0 {
            return Ok(0);
        }
        self.move_to_archive(&removed, &archived)?;
        let mut bytes = self.marker(summary).print().into_bytes();
        for raw in &kept {
            bytes.extend_from_slice(&raw.bytes);
            bytes.push(b'\n');
        }
        write_atomic(&self.file(CONTEXT), &bytes)?;
        Ok(count)
    }

    /// Moves the whole conversation to the archive, and returns how many entries moved.
    pub fn archive(&self) -> Result<usize, ContextError> {
        let _held = lock::take(&self.dir, &self.clock)?;
        let removed = self.raw_lines()?;
        if !removed.is_empty() {
            self.move_to_archive(&removed, &self.archived()?)?;
            write_atomic(&self.file(CONTEXT), b"")?;
        }
        Ok(removed.iter().filter(|raw| raw.line.is_some()).count())
    }

    fn marker(&self, summary: &str) -> Line {
        let mut entry = Entry::new(Role::System, Kind::Compaction, summary);
        entry.entry_id = Uuid::new_v4();
        entry.created_at = self.whole_second();
        line_of(&entry, self.name.as_str(), self.second())
    }

    fn raw_lines(&self) -> Result<Vec<RawLine>, FileError> {
        let lines = split_lines(&self.file(CONTEXT))?;
        let parsed = |bytes: &[u8]| Line::from_object(records::parse(bytes).ok()?).ok();
        Ok(lines.into_iter().map(|bytes| RawLine { line: parsed(&bytes), bytes }).collect())
    }

    fn archived(&self) -> Result<HashSet<Vec<u8>>, FileError> {
        Ok(split_lines(&self.file(ARCHIVE))?.into_iter().collect())
    }

    /// Appends lines to both archives, except those that an interrupted compaction has already appended.
    fn move_to_archive(
        &self,
        removed: &[RawLine],
        archived: &HashSet<Vec<u8>>,
    ) -> Result<(), FileError> {
        let mut bytes = Vec::new();
        for raw in removed.iter().filter(|raw| !archived.contains(&raw.bytes)) {
            bytes.extend_from_slice(&raw.bytes);
            bytes.push(b'\n');
        }
        if !bytes.is_empty() {
            append_lines(&self.file(ARCHIVE), &bytes)?;
        }
        self.append_markdown(removed, leading(removed, archived))
    }

    /// Appends messages to `transcript.md`. Its end may already have some of the first `there` lines.
    fn append_markdown(&self, removed: &[RawLine], there: usize) -> Result<(), FileError> {
        let path = self.file(MARKDOWN);
        let text = |raw: &[RawLine]| {
            let entries: Vec<_> =
                raw.iter().filter_map(|raw| raw.line.clone()).map(entry_of).collect();
            markdown::render(&entries)
        };
        let existing = if there > 0 { read_or_empty(&path)? } else { Vec::new() };
        let done =
            (0..=there).rev().find(|done| existing.ends_with(text(&removed[..*done]).as_bytes()));
        let missing = text(&removed[done.unwrap_or(0)..]);
        if missing.is_empty() {
            return Ok(());
        }
        append_lines(&path, missing.as_bytes())
    }
}

/// Counts the leading lines that are already in the archive.
fn leading(lines: &[RawLine], archived: &HashSet<Vec<u8>>) -> usize {
    let there = lines.iter().take_while(|raw| archived.contains(&raw.bytes));
    there.count()
}

/// Finds the first line to keep: not before `there`, and not between a tool call and its result.
fn cut(lines: &[RawLine], keep: usize, there: usize) -> usize {
    let is = |at: usize, entry_type: &str| {
        let line = lines.get(at).and_then(|raw: &RawLine| raw.line.as_ref());
        line.is_some_and(|line| line.entry_type == entry_type)
    };
    let parts = |cut: usize| {
        let within = cut > 0 && cut < lines.len();
        within && (is(cut, "tool_result") || is(cut - 1, "tool_call"))
    };
    let good: Vec<_> = (0..lines.len()).filter(|at| lines[*at].line.is_some()).collect();
    let first_kept = good.len().saturating_sub(keep);
    let mut cut = good.get(first_kept).copied().unwrap_or(lines.len());
    while parts(cut) {
        cut -= 1;
    }
    if cut < there {
        cut = there;
        while parts(cut) {
            cut += 1;
        }
    }
    cut
}
