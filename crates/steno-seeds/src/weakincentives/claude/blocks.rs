//! Converts the content blocks of a Claude message, one entry each.

use super::content_text;
use steno_model::entry::{Entry, EntryKind, Role, take_string};
use steno_model::json::{JsonStyle, Object, Value};

/// Whether an object is a tool call or tool result block.
pub(in crate::weakincentives) fn is_tool_block(object: &Object) -> bool {
    matches!(object.get("type").and_then(Value::as_str), Some("tool_use" | "tool_result"))
}

/// Converts a message's content, which is a text or a list of blocks and texts.
pub(in crate::weakincentives) fn entries_from_content(content: &Value, role: &Role) -> Vec<Entry> {
    let text_entry = |text: &str| Entry::new(role.clone(), EntryKind::Text, text);
    match content {
        Value::Null => Vec::new(),
        Value::Array(parts) => parts
            .iter()
            .map(|part| match part {
                Value::Object(block) => entry_from_block(block.clone(), role),
                other => text_entry(&content_text(other)),
            })
            .collect(),
        other => vec![text_entry(&content_text(other))],
    }
}

/// Converts one block. Fields without an equivalent stay in `extra`.
pub(in crate::weakincentives) fn entry_from_block(mut block: Object, role: &Role) -> Entry {
    let name = block.get("type").and_then(Value::as_str).unwrap_or("text");
    let mut entry = match name {
        "text" => Entry::new(role.clone(), EntryKind::Text, take_text(&mut block, "text")),
        "thinking" => {
            let thought = take_text(&mut block, "thinking");
            Entry::new(role.clone(), EntryKind::Thinking, thought)
        }
        "tool_use" => tool_call_entry(&mut block),
        "tool_result" => tool_result_entry(&mut block),
        _ => {
            let mut entry = Entry::new(role.clone(), EntryKind::Other, "");
            entry.extra.insert("block".to_owned(), block.into());
            return entry;
        }
    };
    block.shift_remove("type");
    entry.extra.extend(block);
    entry
}

fn take_text(block: &mut Object, key: &str) -> String {
    let text = block.shift_remove(key);
    text.as_ref().map(content_text).unwrap_or_default()
}

fn tool_call_entry(block: &mut Object) -> Entry {
    let input = block.shift_remove("input").unwrap_or_default();
    let mut entry =
        Entry::new(Role::Assistant, EntryKind::ToolCall, JsonStyle::PRETTY.print(&input));
    entry.tool_name = take_string(block, "name").ok().flatten();
    entry.tool_call_id = take_string(block, "id").ok().flatten();
    entry.tool_input = Some(input).filter(|input| !input.is_null());
    entry
}

fn tool_result_entry(block: &mut Object) -> Entry {
    let output = take_text(block, "content");
    let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, output);
    entry.tool_call_id = take_string(block, "tool_use_id").ok().flatten();
    entry
}
