//! Decodes one message of a sample.

use crate::decoding::json_fields::{list_items, owned_text, plain_text};
use crate::decoding::{attachment, entries};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Value;

/// The entries of a message. `answered` says whether the model has answered before it.
pub(super) fn message_entries(message: &Value, answered: bool) -> Vec<Entry> {
    let role = message["role"].as_str().unwrap_or_default();
    let content = &message["content"];
    match role {
        "system" => vec![Entry::new(Role::System, EntryKind::Text, content_text(content))],
        "user" => vec![Entry::new(Role::User, user_kind(message, answered), content_text(content))],
        "assistant" => answer_entries(message),
        "tool" => vec![tool_result_entry(message)],
        _ => {
            let mut entry = Entry::new(Role::System, EntryKind::Other, content_text(content));
            entry.metadata = message.as_object().cloned();
            vec![entry]
        }
    }
}

/// Only the sample's input is a prompt. User messages after an answer come from a program.
fn user_kind(message: &Value, answered: bool) -> EntryKind {
    match message["source"].as_str() {
        Some("input") => EntryKind::Text,
        _ if answered => EntryKind::Notice,
        _ => EntryKind::Text,
    }
}

fn answer_entries(message: &Value) -> Vec<Entry> {
    let mut entries = Vec::new();
    match &message["content"] {
        Value::Array(parts) => {
            for block in parts {
                let is_thought = block["type"] == "reasoning";
                let kind = if is_thought { EntryKind::Thinking } else { EntryKind::Text };
                entries.push(Entry::new(Role::Assistant, kind, part_text(block)));
            }
        }
        other => entries.push(Entry::new(Role::Assistant, EntryKind::Text, plain_text(other))),
    }
    let calls = list_items(&message["tool_calls"]);
    // An answer with only tool calls has no text entry.
    entries.retain(|entry| calls.is_empty() || !entry.content.is_empty());
    entries.extend(calls.iter().map(tool_call_entry));
    for entry in &mut entries {
        entry.model = owned_text(&message["model"]);
    }
    entries
}

fn tool_call_entry(call: &Value) -> Entry {
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    entry.tool_call_id = owned_text(&call["id"]);
    entry.tool_name = owned_text(&call["function"]);
    entry.tool_input = call.get("arguments").cloned();
    entry
}

fn tool_result_entry(message: &Value) -> Entry {
    let mut content = content_text(&message["content"]);
    let error = &message["error"];
    let mut metadata = None;
    if error.is_object() {
        metadata = Some(entries::failure_metadata());
        if content.is_empty() {
            content = plain_text(&error["message"]);
        }
    }
    let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, content);
    entry.metadata = metadata;
    entry.tool_call_id = owned_text(&message["tool_call_id"]);
    entry.tool_name = owned_text(&message["function"]);
    entry
}

fn content_text(content: &Value) -> String {
    let Value::Array(parts) = content else { return plain_text(content) };
    parts.iter().map(part_text).collect::<Vec<_>>().join("\n")
}

/// The text of a part. Images, audio and video are described by their URL or data.
fn part_text(part: &Value) -> String {
    let text = ["text", "reasoning"].iter().find_map(|key| owned_text(&part[*key]));
    let media_url = ["image", "audio", "video"].iter().find_map(|key| part[*key].as_str());
    text.or_else(|| media_url.map(|url| attachment::describe_url("image", url)))
        .unwrap_or_else(|| part.to_string())
}
