//! The text of an entry, for search and display.

use steno_model::entry::{Entry, EntryKind};
use steno_model::json::Value;

/// The searchable text of an entry: its content, or the arguments of a tool call.
pub fn searchable_text(entry: &Entry) -> String {
    call_text(entry).unwrap_or_else(|| entry.content.clone())
}

/// As [`searchable_text`], but takes the content out of the entry.
pub(super) fn take_searchable_text(entry: &mut Entry) -> String {
    call_text(entry).unwrap_or_else(|| std::mem::take(&mut entry.content))
}

fn call_text(entry: &Entry) -> Option<String> {
    let input = entry.tool_input.as_ref().filter(|_| entry.kind == EntryKind::ToolCall)?;
    let mut text = String::new();
    if let Some(spoken) = entry.text_beside_call() {
        text.push_str(spoken);
        text.push('\n');
    }
    push_arguments(input, &mut text);
    text.truncate(text.trim_end().len());
    Some(text)
}

/// Appends each value on a line of its own, after its name.
fn push_arguments(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| push_arguments(item, out)),
        Value::Object(fields) => {
            for (name, value) in fields {
                out.push_str(name);
                out.push_str(": ");
                push_arguments(value, out);
            }
        }
        plain => {
            out.push_str(&plain.to_string());
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use steno_model::entry::Role;

    #[test]
    fn a_call_is_its_arguments() {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        entry.tool_input =
            Some(json!({"command": "ls -l\n", "lines": [1, true], "more": {"x": null}}));
        assert_eq!(searchable_text(&entry), "command: ls -l\n\nlines: 1\ntrue\nmore: x:");
        entry.content = "Let me look.".to_owned();
        assert!(searchable_text(&entry).starts_with("Let me look.\ncommand: ls -l"));
        entry.content = entry.tool_input.as_ref().unwrap().to_string();
        assert!(searchable_text(&entry).starts_with("command: ls -l"));
    }
}
