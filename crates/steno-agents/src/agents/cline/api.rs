//! Decodes `api_conversation_history.json`: Anthropic's messages as sent to the model, with typed text in tags.

use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{owned_text, plain_text, timestamp_from_millis};
use crate::decoding::{attachment, entries};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// The tags around text that a person typed.
const USER_TEXT_TAGS: [&str; 4] = ["<task>", "<feedback>", "<user_message>", "<answer>"];

/// Decodes the message at `index` and emits its entries.
pub(super) fn decode_message(index: usize, message: &Object, output: &mut EntryEmitter<'_>) {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    let is_summary = message.get("isSummary") == Some(&Value::Bool(true));
    let content = message.get("content").unwrap_or(&Value::Null);
    let at = message.get("ts").and_then(Value::as_i64).and_then(timestamp_from_millis);
    if is_summary {
        let mut compaction = Entry::new(Role::System, EntryKind::Compaction, "");
        compaction.created_at = at;
        output.emit_entry(compaction);
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
        let mut entry = decode_block(role, block);
        if is_summary && entry.kind == EntryKind::Text {
            (entry.role, entry.kind) = (Role::User, EntryKind::Notice);
        }
        entry.created_at = at;
        entry.message_id = Some(format!("message-{index}"));
        output.emit_entry(entry);
    }
}

fn decode_block(role: &str, block: &Value) -> Entry {
    let text = || owned_text(block).or_else(|| owned_text(&block["text"])).unwrap_or_default();
    let kind = block["type"].as_str().unwrap_or("text");
    match (role, kind) {
        ("user", "text") => {
            let text = text();
            let is_typed = USER_TEXT_TAGS.iter().any(|tag| text.contains(tag));
            Entry::new(Role::User, if is_typed { EntryKind::Text } else { EntryKind::Notice }, text)
        }
        (_, "text") => Entry::new(role.into(), EntryKind::Text, text()),
        (_, "thinking") => {
            Entry::new(Role::Assistant, EntryKind::Thinking, plain_text(&block["thinking"]))
        }
        (_, "reasoning") => Entry::new(Role::Assistant, EntryKind::Thinking, text()),
        (_, "tool_use") => decode_tool_call(block),
        (_, "tool_result") => decode_tool_result(block),
        (_, "image") => Entry::new(role.into(), EntryKind::Notice, describe_image(block)),
        _ => {
            let mut entry = Entry::new(Role::System, EntryKind::Other, "");
            entry.metadata = block.as_object().cloned();
            entry
        }
    }
}

fn decode_tool_call(block: &Value) -> Entry {
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    entry.tool_call_id = owned_text(&block["id"]);
    entry.tool_name = owned_text(&block["name"]);
    entry.tool_input = block.get("input").cloned();
    entry
}

fn decode_tool_result(block: &Value) -> Entry {
    let content = match &block["content"] {
        Value::Array(parts) => parts.iter().map(result_part_text).collect::<Vec<_>>().join("\n"),
        other => plain_text(other),
    };
    let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, content);
    entry.tool_call_id = owned_text(&block["tool_use_id"]);
    if block["is_error"].as_bool() == Some(true) {
        entry.metadata = Some(entries::failure_metadata());
    }
    entry
}

fn result_part_text(part: &Value) -> String {
    match part["type"].as_str() {
        Some("image") => describe_image(part),
        _ => owned_text(&part["text"]).unwrap_or_else(|| part.to_string()),
    }
}

fn describe_image(block: &Value) -> String {
    let source = &block["source"];
    let media_type = source["media_type"].as_str().unwrap_or("image");
    attachment::describe_base64(Some(media_type), source["data"].as_str().unwrap_or_default())
}
