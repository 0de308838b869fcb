//! Compaction: copies older lines to the archive verbatim before it removes them from the window.
//!
//! A crash in between leaves lines in both files. Readers merge them by id, and the next compaction first completes
//! the interrupted one.

use std::collections::HashSet;

use uuid::Uuid;

use super::{ChibiContext, ContextError, read_nonblank_lines, read_or_empty};
use crate::chibi::context_files::{ARCHIVE_FILE, CONTEXT_FILE, MARKDOWN_FILE};
use crate::chibi::context_line::ContextLine;
use crate::chibi::line_conversion::{entry_from_line, line_from_entry};
use crate::chibi::{context_lock, markdown, records};
use steno_model::durable::{FileError, append_lines, write_atomic};
use steno_model::entry::{Entry, EntryKind, Role};

/// One line of the active conversation, parsed if it is valid.
struct RawContextLine {
    bytes: Vec<u8>,
    line: Option<ContextLine>,
}

impl ChibiContext {
    /// Moves all but the last `keep` entries to the archive, and puts `summary` in their place.
    ///
    /// A tool call is not separated from its result. Lines that an interrupted compaction has already archived are
    /// removed in any case. Returns how many entries moved; if none, nothing changes.
    pub fn compact_entries(&self, summary: &str, keep: usize) -> Result<usize, ContextError> {
        let _held = context_lock::lock_context(&self.dir, &self.clock)?;
        let archived = self.read_archived_lines()?;
        let mut removed = self.read_raw_lines()?;
        let there = count_archived_prefix(&removed, &archived);
        let kept = removed.split_off(find_cut(&removed, keep, there));
        let count = removed.iter().filter(|raw| raw.line.is_some()).count();
        if count == 0 {
            return Ok(0);
        }
        self.move_to_archive(&removed, &archived)?;
        let mut bytes = self.compaction_line(summary).to_line().into_bytes();
        for raw in &kept {
            bytes.extend_from_slice(&raw.bytes);
            bytes.push(b'\n');
        }
        write_atomic(&self.file_path(CONTEXT_FILE), &bytes)?;
        Ok(count)
    }

    /// Moves the whole conversation to the archive, and returns how many entries moved.
    pub fn archive_all(&self) -> Result<usize, ContextError> {
        let _held = context_lock::lock_context(&self.dir, &self.clock)?;
        let removed = self.read_raw_lines()?;
        if !removed.is_empty() {
            self.move_to_archive(&removed, &self.read_archived_lines()?)?;
            write_atomic(&self.file_path(CONTEXT_FILE), b"")?;
        }
        Ok(removed.iter().filter(|raw| raw.line.is_some()).count())
    }

    fn compaction_line(&self, summary: &str) -> ContextLine {
        let mut entry = Entry::new(Role::System, EntryKind::Compaction, summary);
        entry.entry_id = Uuid::new_v4();
        entry.created_at = self.now_timestamp();
        line_from_entry(&entry, self.name.as_str(), self.now_seconds())
    }

    fn read_raw_lines(&self) -> Result<Vec<RawContextLine>, FileError> {
        let lines = read_nonblank_lines(&self.file_path(CONTEXT_FILE))?;
        let parsed =
            |bytes: &[u8]| ContextLine::from_object(records::parse_record(bytes).ok()?).ok();
        Ok(lines.into_iter().map(|bytes| RawContextLine { line: parsed(&bytes), bytes }).collect())
    }

    fn read_archived_lines(&self) -> Result<HashSet<Vec<u8>>, FileError> {
        Ok(read_nonblank_lines(&self.file_path(ARCHIVE_FILE))?.into_iter().collect())
    }

    /// Appends lines to both archives, except those that an interrupted compaction has already appended.
    fn move_to_archive(
        &self,
        removed: &[RawContextLine],
        archived: &HashSet<Vec<u8>>,
    ) -> Result<(), FileError> {
        let mut bytes = Vec::new();
        for raw in removed.iter().filter(|raw| !archived.contains(&raw.bytes)) {
            bytes.extend_from_slice(&raw.bytes);
            bytes.push(b'\n');
        }
        if !bytes.is_empty() {
            append_lines(&self.file_path(ARCHIVE_FILE), &bytes)?;
        }
        self.append_markdown(removed, count_archived_prefix(removed, archived))
    }

    /// Appends messages to `transcript.md`. Its end may already have some of the first `there` lines.
    fn append_markdown(&self, removed: &[RawContextLine], there: usize) -> Result<(), FileError> {
        let path = self.file_path(MARKDOWN_FILE);
        let text = |raw: &[RawContextLine]| {
            let entries: Vec<_> =
                raw.iter().filter_map(|raw| raw.line.clone()).map(entry_from_line).collect();
            markdown::render_markdown(&entries)
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
fn count_archived_prefix(lines: &[RawContextLine], archived: &HashSet<Vec<u8>>) -> usize {
    let there = lines.iter().take_while(|raw| archived.contains(&raw.bytes));
    there.count()
}

/// Finds the first line to keep: not before `there`, and not between a tool call and its result.
fn find_cut(lines: &[RawContextLine], keep: usize, there: usize) -> usize {
    let is = |at: usize, entry_type: &str| {
        let line = lines.get(at).and_then(|raw: &RawContextLine| raw.line.as_ref());
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
