//! An edit of a file as a session recorded it.

use super::heredoc::find_heredocs;
use super::line_text::{without_line_end, without_spaces};
use crate::view::edits::{EditLine, FileEdit, find_edits};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Value;

/// The edit of one file by a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedEdit {
    /// The path, as the agent names it.
    pub(super) path: String,
    /// The lines, in order.
    pub(super) lines: Vec<RecordedLine>,
    /// Whether the edit wrote the file as a whole.
    pub(super) is_whole_file: bool,
    /// Whether the edit deleted the file.
    pub(super) is_deletion: bool,
}

/// A line of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedLine {
    pub(super) change: LineChange,
    pub(super) text: String,
    /// Whether the edit may begin within the line, after its indentation.
    pub(super) is_open: bool,
}

/// What an edit does with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineChange {
    Same,
    Removed,
    Added,
    /// Not a line: other text of the file is between its neighbours.
    Gap,
}

/// How a recorded line compares with a line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LineLikeness {
    /// One is a part of the other.
    Part,
    /// Equal but for white space.
    Spaces,
    /// Equal.
    Exact,
}

/// Shortest text that counts as a part of a line, without white space.
pub(super) const MIN_PART_CHARS: usize = 12;

impl RecordedEdit {
    /// The edits of a tool call.
    pub(super) fn from_call(tool: Option<&str>, input: &Value) -> Vec<Self> {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        entry.tool_name = tool.map(str::to_owned);
        entry.tool_input = Some(input.clone());
        let is_patch = holds_patch(input);
        let edits = find_edits(&entry);
        if !edits.is_empty() {
            return edits.iter().map(|edit| Self::from_edit(edit, is_patch)).collect();
        }
        let mut commands = Vec::new();
        collect_strings(input, &mut commands);
        let heredocs = commands.iter().flat_map(|command| find_heredocs(command));
        heredocs.map(|edit| Self::from_edit(&edit, false)).collect()
    }

    fn from_edit(edit: &FileEdit<'_>, is_patch: bool) -> Self {
        let is_whole_file = edit.lines.iter().all(|line| matches!(line, EditLine::Added(_)))
            && !edit.lines.is_empty();
        let mut is_open = !is_patch && !is_whole_file;
        let can_open = is_open;
        let mut lines = Vec::with_capacity(edit.lines.len());
        for line in &edit.lines {
            let (change, text) = match line {
                EditLine::Same(text) => (LineChange::Same, *text),
                EditLine::Removed(text) => (LineChange::Removed, *text),
                EditLine::Added(text) => (LineChange::Added, *text),
                EditLine::Gap => (LineChange::Gap, ""),
            };
            let is_new = matches!(change, LineChange::Same | LineChange::Added);
            let text = without_line_end(text).to_owned();
            lines.push(RecordedLine { change, text, is_open: is_open && is_new });
            is_open = match change {
                LineChange::Gap => can_open,
                LineChange::Removed => is_open,
                LineChange::Same | LineChange::Added => false,
            };
        }
        let (path, is_deletion) = (edit.path.to_owned(), edit.is_deletion);
        Self { path, lines, is_whole_file, is_deletion }
    }

    /// The lines of the file after the edit, in runs without a gap.
    pub(super) fn new_runs(&self) -> Vec<Vec<&RecordedLine>> {
        let parts = self.lines.split(|line| line.change == LineChange::Gap);
        let new = parts.map(|part| {
            part.iter().filter(|line| line.change != LineChange::Removed).collect::<Vec<_>>()
        });
        new.filter(|part| !part.is_empty()).collect()
    }

    /// Whether the edit added a line that compares at least so.
    pub(super) fn adds(&self, line: &str, least: LineLikeness) -> bool {
        let added = self.lines.iter().filter(|own| own.change == LineChange::Added);
        added.into_iter().any(|own| own.likeness(line).is_some_and(|likeness| likeness >= least))
    }

    /// Whether the edit had the line before: removed it or left it unchanged.
    pub(super) fn had(&self, line: &str) -> bool {
        let line = line.trim();
        let old =
            |own: &&RecordedLine| matches!(own.change, LineChange::Same | LineChange::Removed);
        self.lines.iter().filter(old).any(|own| own.text.trim() == line)
    }

    /// Whether the edit removed the line and did not write it again.
    pub(super) fn removes(&self, line: &str) -> bool {
        let removed = |own: &RecordedLine| own.change == LineChange::Removed && own.text == line;
        self.lines.iter().any(removed) && !self.adds(line, LineLikeness::Exact)
    }
}

impl RecordedLine {
    /// Compares the line with a line of a file.
    pub(super) fn likeness(&self, line: &str) -> Option<LineLikeness> {
        if self.text == line || (self.is_open && line.trim_start() == self.text) {
            return Some(LineLikeness::Exact);
        }
        let (own, line) = (without_spaces(&self.text), without_spaces(line));
        if own == line {
            return Some(LineLikeness::Spaces);
        }
        let is_long = own.len().min(line.len()) >= MIN_PART_CHARS;
        (is_long && (own.contains(&line) || line.contains(&own))).then_some(LineLikeness::Part)
    }
}

fn holds_patch(input: &Value) -> bool {
    match input {
        Value::String(text) => text.contains("*** Begin Patch"),
        Value::Array(items) => items.iter().any(holds_patch),
        Value::Object(fields) => fields.values().any(holds_patch),
        _ => false,
    }
}

fn collect_strings<'a>(input: &'a Value, out: &mut Vec<&'a str>) {
    match input {
        Value::String(text) => out.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, out)),
        Value::Object(fields) => fields.values().for_each(|value| collect_strings(value, out)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edit(old: &str, new: &str) -> RecordedEdit {
        let input = json!({"file_path": "a.rs", "old_string": old, "new_string": new});
        RecordedEdit::from_call(Some("Edit"), &input).remove(0)
    }

    #[test]
    fn an_edit_may_begin_after_the_indentation() {
        let edit = edit("let a = 1;", "let a = 2;\n    let b = a;");
        assert!(edit.adds("    let a = 2;", LineLikeness::Exact));
        assert!(edit.adds("    let b = a;", LineLikeness::Exact));
        assert!(!edit.adds("        let b = a;", LineLikeness::Exact));
        assert!(edit.adds("        let b = a;", LineLikeness::Spaces));
    }

    #[test]
    fn context_is_not_added() {
        let edit = edit("one\ntwo", "one\n2");
        assert!(!edit.adds("one", LineLikeness::Part) && edit.had("  one") && edit.removes("two"));
        assert!(!edit.is_whole_file && edit.new_runs().len() == 1);
    }

    #[test]
    fn commands_write_files_too() {
        let input = json!({"command": ["bash", "-lc", "cat > b.txt <<'EOF'\none line here\nEOF"]});
        let edits = RecordedEdit::from_call(Some("shell"), &input);
        assert!(edits[0].path == "b.txt" && edits[0].is_whole_file);
    }

    #[test]
    fn the_lines_of_a_patch_are_whole() {
        let patch = "*** Begin Patch\n*** Update File: d\n@@\n-old\n+new text\n*** End Patch";
        let edits = RecordedEdit::from_call(Some("apply_patch"), &json!({"input": patch}));
        assert!(!edits[0].adds("  new text", LineLikeness::Exact));
    }
}
