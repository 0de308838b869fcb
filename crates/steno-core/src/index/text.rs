//! The text of an entry, for search and display.

use crate::entry::{Entry, Kind};
use crate::json::Value;

/// The searchable text of an entry: its content, or the arguments of a tool call.
pub fn of(entry: &Entry) -> String {
    of_call(entry).unwrap_or_else(|| entry.content.clone())
}

/// As [`of`], but takes the content out of the entry.
pub(super) fn take(entry: &mut Entry) -> String {
    of_call(entry).unwrap_or_else(|| std::mem::take(&mut entry.content))
}

fn of_call(entry: &Entry) -> Option<String> {
    let input = entry.tool_input.as_ref().filter(|_| entry.kind == Kind::ToolCall)?;
    let mut text = String::new();
    if let Some(said) = entry.said_with_call() {
        text.push_str(said);
        text.push('\n');
    }
    arguments(input, &mut text);
    text.truncate(text.trim_end().len());
    Some(text)
}

/// Appends each value on a line of its own, after its name.
fn arguments(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| arguments(item, out)),
        Value::Object(fields) => {
            for (name, value) in fields {
                out.push_str(name);
                out.push_str(": ");
                arguments(value, out);
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
    use crate::entry::Role;

    #[test]
    fn a_call_is_its_arguments() {
        let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
        entry.tool_input =
            Some(json!({"command": "ls -l\n", "lines": [1, true], "more": {"x": null}}));
        assert_eq!(of(&entry), "command: ls -l\n\nlines: 1\ntrue\nmore: x:");
        entry.content = "Let me look.".to_owned();
        assert!(of(&entry).starts_with("Let me look.\ncommand: ls -l"));
        entry.content = entry.tool_input.as_ref().unwrap().to_string();
        assert!(of(&entry).starts_with("command: ls -l"));
    }
}
