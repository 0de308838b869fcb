//! Decodes `api_conversation_history.json`: Anthropic's messages as sent to the model, with typed text in tags.

use super::super::fields::{from_millis, plain, string};
use super::super::output::Output;
use crate::agent::attachment;
use crate::agent::entries;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// The tags around text that a person typed.
const PERSONS: [&str; 4] = ["<task>", "<feedback>", "<user_message>", "<answer>"];

/// Decodes the message at `index` and emits its entries.
pub(super) fn message(index: usize, message: &Object, output: &mut Output<'_>) {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    let is_summary = message.get("isSummary") == Some(&Value::Bool(true));
    let content = message.get("content").unwrap_or(&Value::Null);
    let at = message.get("ts").and_then(Value::as_i64).and_then(from_millis);
    if is_summary {
        let mut compaction = Entry::new(Role::System, Kind::Compaction, "");
        compaction.created_at = at;
        output.entry(compaction);
    }
    let text;
    let blocks = match content {
        Value::Array(blocks) => blocks.as_slice(),
        other => {
            text = [other.clone()];
            &text
        }
    };
    for block in blocks {
        let mut entry = entry(role, block);
        if is_summary && entry.kind == Kind::Text {
            (entry.role, entry.kind) = (Role::User, Kind::Notice);
        }
        entry.created_at = at;
        entry.message_id = Some(format!("message-{index}"));
        output.entry(entry);
    }
}

fn entry(role: &str, block: &Value) -> Entry {
    let text = || string(block).or_else(|| string(&block["text"])).unwrap_or_default();
    let kind = block["type"].as_str().unwrap_or("text");
    match (role, kind) {
        ("user", "text") => {
            let text = text();
            let is_typed = PERSONS.iter().any(|tag| text.contains(tag));
            Entry::new(Role::User, if is_typed { Kind::Text } else { Kind::Notice }, text)
        }
        (_, "text") => Entry::new(role.into(), Kind::Text, text()),
        (_, "thinking") => Entry::new(Role::Assistant, Kind::Thinking, plain(&block["thinking"])),
        (_, "reasoning") => Entry::new(Role::Assistant, Kind::Thinking, text()),
        (_, "tool_use") => call(block),
        (_, "tool_result") => result(block),
        (_, "image") => Entry::new(role.into(), Kind::Notice, image(block)),
        _ => {
            let mut entry = Entry::new(Role::System, Kind::Other, "");
            entry.metadata = block.as_object().cloned();
            entry
        }
    }
}

fn call(block: &Value) -> Entry {
    let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
    entry.tool_call_id = string(&block["id"]);
    entry.tool_name = string(&block["name"]);
    entry.tool_input = block.get("input").cloned();
    entry
}

fn result(block: &Value) -> Entry {
    let content = match &block["content"] {
        Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join("\n"),
        other => plain(other),
    };
    let mut entry = Entry::new(Role::Tool, Kind::ToolResult, content);
    entry.tool_call_id = string(&block["tool_use_id"]);
    if block["is_error"].as_bool() == Some(true) {
        entry.metadata = Some(entries::failure());
    }
    entry
}

fn part(part: &Value) -> String {
    match part["type"].as_str() {
        Some("image") => image(part),
        _ => string(&part["text"]).unwrap_or_else(|| part.to_string()),
    }
}

fn image(block: &Value) -> String {
    let source = &block["source"];
    let media_type = source["media_type"].as_str().unwrap_or("image");
    attachment::media(Some(media_type), source["data"].as_str().unwrap_or_default())
}
