//! Decodes one message of a sample.

use super::super::fields::{items, plain, string};
use crate::agent::{attachment, entries};
use crate::entry::{Entry, Kind, Role};
use crate::json::Value;

/// The entries of a message. `answered` says whether the model has answered before it.
pub(super) fn entries(message: &Value, answered: bool) -> Vec<Entry> {
    let role = message["role"].as_str().unwrap_or_default();
    let content = &message["content"];
    match role {
        "system" => vec![Entry::new(Role::System, Kind::Text, text(content))],
        "user" => vec![Entry::new(Role::User, user_kind(message, answered), text(content))],
        "assistant" => answer(message),
        "tool" => vec![result(message)],
        _ => {
            let mut entry = Entry::new(Role::System, Kind::Other, text(content));
            entry.metadata = message.as_object().cloned();
            vec![entry]
        }
    }
}

/// Only the sample's input is a prompt. User messages after an answer come from a program.
fn user_kind(message: &Value, answered: bool) -> Kind {
    match message["source"].as_str() {
        Some("input") => Kind::Text,
        _ if answered => Kind::Notice,
        _ => Kind::Text,
    }
}

fn answer(message: &Value) -> Vec<Entry> {
    let mut entries = Vec::new();
    match &message["content"] {
        Value::Array(parts) => {
            for block in parts {
                let is_thought = block["type"] == "reasoning";
                let kind = if is_thought { Kind::Thinking } else { Kind::Text };
                entries.push(Entry::new(Role::Assistant, kind, part(block)));
            }
        }
        other => entries.push(Entry::new(Role::Assistant, Kind::Text, plain(other))),
    }
    let calls = items(&message["tool_calls"]);
    // An answer with only tool calls has no text entry.
    entries.retain(|entry| calls.is_empty() || !entry.content.is_empty());
    entries.extend(calls.iter().map(call));
    for entry in &mut entries {
        entry.model = string(&message["model"]);
    }
    entries
}

fn call(call: &Value) -> Entry {
    let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
    entry.tool_call_id = string(&call["id"]);
    entry.tool_name = string(&call["function"]);
    entry.tool_input = call.get("arguments").cloned();
    entry
}

fn result(message: &Value) -> Entry {
    let mut content = text(&message["content"]);
    let error = &message["error"];
    let mut metadata = None;
    if error.is_object() {
        metadata = Some(entries::failure());
        if content.is_empty() {
            content = plain(&error["message"]);
        }
    }
    let mut entry = Entry::new(Role::Tool, Kind::ToolResult, content);
    entry.metadata = metadata;
    entry.tool_call_id = string(&message["tool_call_id"]);
    entry.tool_name = string(&message["function"]);
    entry
}

fn text(content: &Value) -> String {
    let Value::Array(parts) = content else { return plain(content) };
    parts.iter().map(part).collect::<Vec<_>>().join("\n")
}

/// The text of a part. Images, audio and video are described by their URL or data.
fn part(part: &Value) -> String {
    let text = ["text", "reasoning"].iter().find_map(|key| string(&part[*key]));
    let media_url = ["image", "audio", "video"].iter().find_map(|key| part[*key].as_str());
    text.or_else(|| media_url.map(|url| attachment::url("image", url)))
        .unwrap_or_else(|| part.to_string())
}
