//! The net change of each file in a session: all its edits, composed into one diff.
//!
//! Agents record edits as pairs of old and new text without positions. An edit of text that an earlier edit wrote is
//! merged into it, so that text which was written and removed again does not show. Edits of failed calls are left out.

use std::collections::{HashMap, HashSet};

use super::edits::{EditLine, FileEdit, diff_lines, find_edits};
use steno_model::entry::{Entry, EntryKind};

/// How many earlier edits of a file an edit is merged with, so that thousands of edits take little time.
const MAX_COMPOSED: usize = 200;

/// The net change of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileChange {
    /// The path, as the agent names it.
    pub path: String,
    /// The numbers of the entries that edit the file, in order.
    pub entries: Vec<usize>,
    replacements: Vec<TextReplacement>,
    /// The entry that first wrote each line that is still there.
    line_entries: HashMap<String, usize>,
}

/// An old text and the one that stands in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TextReplacement {
    pub(super) old: String,
    pub(super) new: String,
}

impl FileChange {
    /// The lines of the diff; empty if all edits were undone.
    pub fn lines(&self) -> Vec<EditLine<'_>> {
        let changed = self.replacements.iter().filter(|one| one.old != one.new);
        let parts: Vec<_> = changed.map(|one| diff_lines(&one.old, &one.new)).collect();
        parts.join(&EditLine::Gap)
    }

    /// The number of the entry that wrote a line of the diff.
    pub fn entry_of_line(&self, line: &str) -> Option<usize> {
        self.line_entries.get(line).copied()
    }

    fn note_lines(&mut self, edit: &FileEdit<'_>, entry: usize) {
        for line in &edit.lines {
            match line {
                EditLine::Removed(text) => _ = self.line_entries.remove(*text),
                EditLine::Added(text) => {
                    self.line_entries.entry((*text).to_owned()).or_insert(entry);
                }
                EditLine::Same(_) | EditLine::Gap => {}
            }
        }
    }

    fn apply_edit(&mut self, edit: &FileEdit<'_>) {
        let blocks = replaced_blocks(&edit.lines);
        let is_whole_file = blocks.len() == 1 && blocks[0].old.is_empty();
        for block in blocks {
            if is_whole_file {
                // What the file contained before is known only if the session wrote that, too.
                let before = self.replacements.drain(..).next().filter(|one| one.old.is_empty());
                let old = before.map(|one| one.old).unwrap_or_default();
                self.replacements.push(TextReplacement { old, new: block.new });
            } else {
                self.apply_replacement(block);
            }
        }
    }

    fn apply_replacement(&mut self, mut edit: TextReplacement) {
        let inside =
            |one: &&mut TextReplacement| !edit.old.is_empty() && one.new.contains(&edit.old);
        let mut recent = self.replacements.iter_mut().rev().take(MAX_COMPOSED);
        if let Some(earlier) = recent.find(inside) {
            earlier.new = earlier.new.replacen(&edit.old, &edit.new, 1);
            return;
        }
        if self.replacements.len() > MAX_COMPOSED {
            return self.replacements.push(edit);
        }
        self.replacements.retain(|earlier| {
            let is_part = !earlier.new.is_empty() && edit.old.contains(&earlier.new);
            if is_part {
                edit.old = edit.old.replacen(&earlier.new, &earlier.old, 1);
            }
            !is_part
        });
        self.replacements.push(edit);
    }
}

/// The net changes of a session's entries, by path.
pub fn find_file_changes(entries: &[Entry]) -> Vec<FileChange> {
    let failed = failed_call_ids(entries);
    let mut changes: Vec<FileChange> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (number, entry) in entries.iter().enumerate() {
        if entry.tool_call_id.as_deref().is_some_and(|id| failed.contains(id)) {
            continue;
        }
        for edit in find_edits(entry) {
            let at = *places.entry(edit.path.to_owned()).or_insert(changes.len());
            if at == changes.len() {
                changes.push(FileChange { path: edit.path.to_owned(), ..FileChange::default() });
            }
            changes[at].entries.push(number);
            changes[at].note_lines(&edit, number);
            changes[at].apply_edit(&edit);
        }
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

/// The ids of the tool calls that failed.
pub(crate) fn failed_call_ids(entries: &[Entry]) -> HashSet<&str> {
    let failed =
        entries.iter().filter(|entry| entry.kind != EntryKind::ToolCall && entry.is_tool_error());
    failed.filter_map(|entry| entry.tool_call_id.as_deref()).collect()
}

/// The replaced texts of an edit, one for each run of lines without a gap.
pub(super) fn replaced_blocks(lines: &[EditLine<'_>]) -> Vec<TextReplacement> {
    let block = |lines: &[EditLine<'_>]| {
        let text = |keep: fn(&EditLine<'_>) -> Option<String>| {
            lines.iter().filter_map(keep).collect::<Vec<_>>().join("\n")
        };
        TextReplacement {
            old: text(|line| match line {
                EditLine::Same(text) | EditLine::Removed(text) => Some((*text).to_owned()),
                _ => None,
            }),
            new: text(|line| match line {
                EditLine::Same(text) | EditLine::Added(text) => Some((*text).to_owned()),
                _ => None,
            }),
        }
    };
    let blocks = lines.split(|line| *line == EditLine::Gap).filter(|lines| !lines.is_empty());
    blocks.map(block).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::EditLine::{Added, Gap, Removed};
    use super::*;
    use steno_model::entry::Role;

    fn call(id: &str, tool: &str, input: Value) -> Entry {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        entry.tool_call_id = Some(id.to_owned());
        (entry.tool_name, entry.tool_input) = (Some(tool.to_owned()), Some(input));
        entry
    }

    fn edit(id: &str, old: &str, new: &str) -> Entry {
        call(id, "Edit", json!({"file_path": "a.rs", "old_string": old, "new_string": new}))
    }

    fn failure(id: &str) -> Entry {
        let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, "no such text");
        entry.tool_call_id = Some(id.to_owned());
        entry.extra.insert("is_error".to_owned(), json!(true));
        entry
    }

    #[test]
    fn edits_of_one_text_are_composed() {
        let entries = [edit("1", "one", "two"), edit("2", "two", "three"), edit("3", "x", "y")];
        let changes = find_file_changes(&entries);
        assert_eq!(changes[0].entries, [0, 1, 2]);
        assert_eq!(
            changes[0].lines(),
            [Removed("one"), Added("three"), Gap, Removed("x"), Added("y")]
        );
    }

    #[test]
    fn an_edit_that_was_undone_leaves_nothing() {
        let entries = [edit("1", "one", "two"), edit("2", "two", "one")];
        let changes = find_file_changes(&entries);
        assert_eq!((changes.len(), changes[0].lines()), (1, Vec::new()));
    }

    #[test]
    fn a_larger_edit_contains_earlier_ones() {
        let entries = [edit("1", "b", "B"), edit("2", "a\nB\nc", "z")];
        let changes = find_file_changes(&entries);
        assert_eq!(changes[0].lines(), [Removed("a"), Removed("b"), Removed("c"), Added("z")]);
    }

    #[test]
    fn a_written_file_replaces_what_was_there() {
        let write =
            |content: &str| call("w", "Write", json!({"file_path": "a.rs", "content": content}));
        let entries = [write("one\ntwo"), edit("2", "two", "2"), write("three")];
        assert_eq!(find_file_changes(&entries)[0].lines(), [Added("three")]);
    }

    #[test]
    fn a_line_has_the_entry_that_wrote_it() {
        let entries = [edit("1", "a", "one\ntwo"), edit("2", "two", "2"), edit("3", "2", "two")];
        let change = &find_file_changes(&entries)[0];
        let found = ["one", "two", "2"].map(|line| change.entry_of_line(line));
        assert_eq!(found, [Some(0), Some(2), None]);
    }

    #[test]
    fn failed_edits_do_not_count() {
        let entries = [edit("1", "one", "two"), failure("1")];
        assert_eq!(find_file_changes(&entries), []);
    }
}
