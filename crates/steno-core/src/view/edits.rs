//! Extracts file edits from tool calls, as removed and added lines, for any agent's tools.

use crate::compare::text::rows;
use crate::entry::{Entry, Kind};
use crate::json::{Object, Value};

/// Fields with the file's path.
const PATHS: [&str; 7] =
    ["file_path", "filePath", "path", "notebook_path", "absolute_path", "target_file", "filename"];

/// Fields with the old and the new text.
const PAIRS: [(&str, &str); 4] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
];

/// Fields with the whole content of a file.
const WHOLE: [&str; 4] = ["content", "file_text", "contents", "new_source"];

/// Parts of the names of tools that write a whole file.
const WRITERS: [&str; 5] = ["write", "create", "edit", "notebook", "save"];

/// The edit of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit<'a> {
    /// The path, as the agent names it.
    pub path: &'a str,
    /// The lines, in order.
    pub lines: Vec<Line<'a>>,
}

/// One line of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
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
pub fn of(entry: &Entry) -> Vec<Edit<'_>> {
    let Some(input) = entry.tool_input.as_ref().filter(|_| entry.kind == Kind::ToolCall) else {
        return Vec::new();
    };
    if let Some(patch) = patch_in(input) {
        return patched(patch);
    }
    let Some(fields) = input.as_object() else { return Vec::new() };
    let Some(path) = PATHS.iter().find_map(|name| text(fields, name)) else { return Vec::new() };
    let tool = entry.tool_name.as_deref().unwrap_or_default().to_lowercase();
    let lines = lines(fields, &tool);
    lines.map(|lines| vec![Edit { path, lines }]).unwrap_or_default()
}

fn lines<'a>(fields: &'a Object, tool: &str) -> Option<Vec<Line<'a>>> {
    if let Some((old, new)) = pair(fields) {
        return Some(compared(old, new));
    }
    if let Some(Value::Array(edits)) = fields.get("edits") {
        let pairs = edits.iter().filter_map(|edit| pair(edit.as_object()?));
        let parts: Vec<_> = pairs.map(|(old, new)| compared(old, new)).collect();
        return (!parts.is_empty()).then(|| parts.join(&Line::Gap));
    }
    if let Some(diff) =
        text(fields, "diff").filter(|diff| diff.contains("<<<<<<<") || diff.contains("-------"))
    {
        return Some(searched(diff));
    }
    let writes = WRITERS.iter().any(|word| tool.contains(word));
    let whole = WHOLE.iter().find_map(|name| text(fields, name)).filter(|_| writes)?;
    Some(whole.lines().map(Line::Added).collect())
}

fn text<'a>(fields: &'a Object, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

fn pair(fields: &Object) -> Option<(&str, &str)> {
    let found = |(old, new): &(&str, &str)| {
        let (old, new) = (text(fields, old), text(fields, new));
        old.or(new).map(|_| (old.unwrap_or_default(), new.unwrap_or_default()))
    };
    PAIRS.iter().find_map(found)
}

fn compared<'a>(old: &'a str, new: &'a str) -> Vec<Line<'a>> {
    let (mut lines, mut added) = (Vec::new(), Vec::new());
    for row in rows(old, new) {
        if row.is_same() {
            lines.append(&mut added);
            lines.extend(row.a.map(Line::Same));
        } else {
            lines.extend(row.a.map(Line::Removed));
            added.extend(row.b.map(Line::Added));
        }
    }
    lines.append(&mut added);
    lines
}

/// Parses blocks of text to search and to replace, between lines of `<`, `=` and `>`.
fn searched(diff: &str) -> Vec<Line<'_>> {
    let (mut lines, mut is_new, mut inside) = (Vec::new(), false, false);
    for line in diff.lines() {
        if line.starts_with("<<<<<<<") || line.starts_with("------- SEARCH") {
            if !lines.is_empty() {
                lines.push(Line::Gap);
            }
            (is_new, inside) = (false, true);
        } else if line.starts_with("=======") && inside {
            is_new = true;
        } else if line.starts_with(">>>>>>>") || line.starts_with("+++++++ REPLACE") {
            inside = false;
        } else if inside {
            lines.push(if is_new { Line::Added(line) } else { Line::Removed(line) });
        }
    }
    lines
}

/// Finds a patch that starts with `*** Begin Patch`, anywhere in the arguments.
fn patch_in(input: &Value) -> Option<&str> {
    match input {
        Value::String(text) => text.contains("*** Begin Patch").then_some(text),
        Value::Array(items) => items.iter().find_map(patch_in),
        Value::Object(fields) => fields.values().find_map(patch_in),
        _ => None,
    }
}

fn patched(patch: &str) -> Vec<Edit<'_>> {
    let mut edits: Vec<Edit<'_>> = Vec::new();
    for line in patch.lines() {
        let named = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
        if let Some(path) = named.iter().find_map(|name| line.strip_prefix(name)) {
            edits.push(Edit { path, lines: Vec::new() });
            continue;
        }
        let Some(edit) = edits.last_mut() else { continue };
        if line.starts_with("*** End Patch") {
            break;
        }
        edit.lines.extend(match line.split_at_checked(1) {
            Some(("+", rest)) => Some(Line::Added(rest)),
            Some(("-", rest)) => Some(Line::Removed(rest)),
            Some((" ", rest)) => Some(Line::Same(rest)),
            Some(("@", _)) if !edit.lines.is_empty() => Some(Line::Gap),
            _ => None,
        });
    }
    edits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Line::{Added, Gap, Removed, Same};
    use super::*;
    use crate::entry::Role;

    fn call(tool: &str, input: Value) -> Entry {
        let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
        (entry.tool_name, entry.tool_input) = (Some(tool.to_owned()), Some(input));
        entry
    }

    #[test]
    fn what_was_there_is_compared_with_what_is() {
        let input =
            json!({"file_path": "a.rs", "old_string": "one\ntwo\n", "new_string": "one\n2\n"});
        let entry = call("Edit", input);
        let lines = vec![Same("one"), Removed("two"), Added("2")];
        assert_eq!(of(&entry), [Edit { path: "a.rs", lines }]);
        let several = json!({"filePath": "b", "edits": [
            {"oldString": "a", "newString": "b"}, {"oldString": "", "newString": "c"}]});
        let lines = vec![Removed("a"), Added("b"), Gap, Added("c")];
        assert_eq!(of(&call("multiedit", several)), [Edit { path: "b", lines }]);
    }

    #[test]
    fn whole_files_patches_and_blocks_are_edits_too() {
        let written = call("write_file", json!({"path": "c", "content": "x\ny"}));
        assert_eq!(of(&written)[0].lines, [Added("x"), Added("y")]);
        let patch = "*** Begin Patch\n*** Update File: d\n@@\n same\n-old\n+new\n@@\n+more\n*** Add File: e\n+new\n*** End Patch";
        let patched = call("shell", json!({"command": ["apply_patch", patch]}));
        let edits = of(&patched);
        assert_eq!((edits[0].path, edits[1].path), ("d", "e"));
        assert_eq!(
            edits[0].lines,
            [Same("same"), Removed("old"), Added("new"), Gap, Added("more")]
        );
        let blocks = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE";
        let replaced = call("replace_in_file", json!({"path": "f", "diff": blocks}));
        assert_eq!(of(&replaced)[0].lines, [Removed("old"), Added("new")]);
    }

    #[test]
    fn reading_is_no_edit() {
        assert!(of(&call("Read", json!({"file_path": "a", "content": "x"}))).is_empty());
        assert!(of(&call("Bash", json!({"command": "ls"}))).is_empty());
    }
}
