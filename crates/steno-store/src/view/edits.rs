//! Extracts file edits from tool calls, as removed and added lines, for any agent's tools.

use crate::compare::text_diff::pair_lines;
use steno_model::entry::{Entry, EntryKind};
use steno_model::json::{Object, Value};

/// Fields with the file's path.
pub(super) const PATH_FIELDS: [&str; 7] =
    ["file_path", "filePath", "path", "notebook_path", "absolute_path", "target_file", "filename"];

/// Fields with the old and the new text.
const REPLACEMENT_FIELDS: [(&str, &str); 4] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
];

/// Fields with the whole content of a file.
const CONTENT_FIELDS: [&str; 4] = ["content", "file_text", "contents", "new_source"];

/// Parts of the names of tools that write a whole file.
const WRITING_TOOL_WORDS: [&str; 5] = ["write", "create", "edit", "notebook", "save"];

/// The edit of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdit<'a> {
    /// The path, as the agent names it.
    pub path: &'a str,
    /// The lines, in order.
    pub lines: Vec<EditLine<'a>>,
    /// Whether the edit deletes the file; what the file contained is not known.
    pub is_deletion: bool,
}

/// One line of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditLine<'a> {
    /// An unchanged line.
    Same(&'a str),
    /// A removed line.
    Removed(&'a str),
    /// An added line.
    Added(&'a str),
    /// A gap between changes.
    Gap,
}

/// The edits of an entry; empty unless it calls a tool that writes files.
pub fn find_edits(entry: &Entry) -> Vec<FileEdit<'_>> {
    let Some(input) = entry.tool_input.as_ref().filter(|_| entry.kind == EntryKind::ToolCall)
    else {
        return Vec::new();
    };
    if let Some(patch) = find_patch(input) {
        return parse_patch(patch);
    }
    let Some(fields) = input.as_object() else { return Vec::new() };
    let Some(path) = PATH_FIELDS.iter().find_map(|name| text_field(fields, name)) else {
        return Vec::new();
    };
    let tool = entry.tool_name.as_deref().unwrap_or_default().to_lowercase();
    let lines = edit_lines(fields, &tool);
    lines.map(|lines| vec![FileEdit { path, lines, is_deletion: false }]).unwrap_or_default()
}

fn edit_lines<'a>(fields: &'a Object, tool: &str) -> Option<Vec<EditLine<'a>>> {
    if let Some((old, new)) = find_replacement(fields) {
        return Some(diff_lines(old, new));
    }
    if let Some(Value::Array(edits)) = fields.get("edits") {
        let pairs = edits.iter().filter_map(|edit| find_replacement(edit.as_object()?));
        let parts: Vec<_> = pairs.map(|(old, new)| diff_lines(old, new)).collect();
        return (!parts.is_empty()).then(|| parts.join(&EditLine::Gap));
    }
    if let Some(diff) = text_field(fields, "diff")
        .filter(|diff| diff.contains("<<<<<<<") || diff.contains("-------"))
    {
        return Some(parse_search_blocks(diff));
    }
    let writes = WRITING_TOOL_WORDS.iter().any(|word| tool.contains(word));
    let whole =
        CONTENT_FIELDS.iter().find_map(|name| text_field(fields, name)).filter(|_| writes)?;
    Some(whole.lines().map(EditLine::Added).collect())
}

pub(super) fn text_field<'a>(fields: &'a Object, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

fn find_replacement(fields: &Object) -> Option<(&str, &str)> {
    let found = |(old, new): &(&str, &str)| {
        let (old, new) = (text_field(fields, old), text_field(fields, new));
        old.or(new).map(|_| (old.unwrap_or_default(), new.unwrap_or_default()))
    };
    REPLACEMENT_FIELDS.iter().find_map(found)
}

pub(super) fn diff_lines<'a>(old: &'a str, new: &'a str) -> Vec<EditLine<'a>> {
    let (mut lines, mut added) = (Vec::new(), Vec::new());
    for row in pair_lines(old, new) {
        if row.is_same() {
            lines.append(&mut added);
            lines.extend(row.a.map(EditLine::Same));
        } else {
            lines.extend(row.a.map(EditLine::Removed));
            added.extend(row.b.map(EditLine::Added));
        }
    }
    lines.append(&mut added);
    lines
}

/// Parses blocks of text to search and to replace, between lines of `<`, `=` and `>`.
fn parse_search_blocks(diff: &str) -> Vec<EditLine<'_>> {
    let (mut lines, mut is_new, mut inside) = (Vec::new(), false, false);
    for line in diff.lines() {
        if line.starts_with("<<<<<<<") || line.starts_with("------- SEARCH") {
            if !lines.is_empty() {
                lines.push(EditLine::Gap);
            }
            (is_new, inside) = (false, true);
        } else if line.starts_with("=======") && inside {
            is_new = true;
        } else if line.starts_with(">>>>>>>") || line.starts_with("+++++++ REPLACE") {
            inside = false;
        } else if inside {
            lines.push(if is_new { EditLine::Added(line) } else { EditLine::Removed(line) });
        }
    }
    lines
}

/// Finds a patch that starts with `*** Begin Patch`, anywhere in the arguments.
fn find_patch(input: &Value) -> Option<&str> {
    match input {
        Value::String(text) => text.contains("*** Begin Patch").then_some(text),
        Value::Array(items) => items.iter().find_map(find_patch),
        Value::Object(fields) => fields.values().find_map(find_patch),
        _ => None,
    }
}

fn parse_patch(patch: &str) -> Vec<FileEdit<'_>> {
    let mut edits: Vec<FileEdit<'_>> = Vec::new();
    for line in patch.lines() {
        let deleted = line.strip_prefix("*** Delete File: ");
        let written = ["*** Update File: ", "*** Add File: "];
        let written = written.iter().find_map(|name| line.strip_prefix(name));
        if let Some(path) = deleted.or(written) {
            edits.push(FileEdit { path, lines: Vec::new(), is_deletion: deleted.is_some() });
            continue;
        }
        let Some(edit) = edits.last_mut() else { continue };
        if line.starts_with("*** End Patch") {
            break;
        }
        edit.lines.extend(match line.split_at_checked(1) {
            Some(("+", rest)) => Some(EditLine::Added(rest)),
            Some(("-", rest)) => Some(EditLine::Removed(rest)),
            Some((" ", rest)) => Some(EditLine::Same(rest)),
            Some(("@", _)) if !edit.lines.is_empty() => Some(EditLine::Gap),
            _ => None,
        });
    }
    edits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::EditLine::{Added, Gap, Removed, Same};
    use super::*;
    use steno_model::entry::Role;

    fn call(tool: &str, input: Value) -> Entry {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        (entry.tool_name, entry.tool_input) = (Some(tool.to_owned()), Some(input));
        entry
    }

    #[test]
    fn compares_old_and_new_text_of_edits() {
        let input =
            json!({"file_path": "a.rs", "old_string": "one\ntwo\n", "new_string": "one\n2\n"});
        let entry = call("Edit", input);
        let lines = vec![Same("one"), Removed("two"), Added("2")];
        assert_eq!(find_edits(&entry), [FileEdit { path: "a.rs", lines, is_deletion: false }]);
        let several = json!({"filePath": "b", "edits": [
            {"oldString": "a", "newString": "b"}, {"oldString": "", "newString": "c"}]});
        let lines = vec![Removed("a"), Added("b"), Gap, Added("c")];
        assert_eq!(
            find_edits(&call("multiedit", several)),
            [FileEdit { path: "b", lines, is_deletion: false }]
        );
    }

    #[test]
    fn whole_files_patches_and_blocks_are_edits_too() {
        let written = call("write_file", json!({"path": "c", "content": "x\ny"}));
        assert_eq!(find_edits(&written)[0].lines, [Added("x"), Added("y")]);
        let patch = "*** Begin Patch\n*** Update File: d\n@@\n same\n-old\n+new\n@@\n+more\n*** Add File: e\n+new\n*** Delete File: g\n*** End Patch";
        let patched = call("shell", json!({"command": ["apply_patch", patch]}));
        let edits = find_edits(&patched);
        let kinds: Vec<_> = edits.iter().map(|edit| (edit.path, edit.is_deletion)).collect();
        assert_eq!(kinds, [("d", false), ("e", false), ("g", true)]);
        assert_eq!(
            edits[0].lines,
            [Same("same"), Removed("old"), Added("new"), Gap, Added("more")]
        );
        let blocks = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE";
        let replaced = call("replace_in_file", json!({"path": "f", "diff": blocks}));
        assert_eq!(find_edits(&replaced)[0].lines, [Removed("old"), Added("new")]);
    }

    #[test]
    fn reading_is_no_edit() {
        assert!(find_edits(&call("Read", json!({"file_path": "a", "content": "x"}))).is_empty());
        assert!(find_edits(&call("Bash", json!({"command": "ls"}))).is_empty());
    }
}
