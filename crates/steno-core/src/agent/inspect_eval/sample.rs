//! One sample: its messages, with texts that stand elsewhere in it put back in their places.

use crate::agent::attachment;
use std::collections::HashMap;
use std::path::Path;

use super::super::fields::{items, plain, string};
use super::super::output::Output;
use crate::agent::entries;
use crate::entry::{Entry, EntryError, Kind, Role};
use crate::json::Value;
use crate::problem::Problem;
use crate::timestamp::Timestamp;

/// What stands where a text was moved to the sample's attachments.
const ATTACHMENT: &str = "attachment://";

/// Hands out the entries of a sample; takes its messages out of it.
pub(super) fn read(sample: &mut Value, path: &Path, output: &mut Output<'_>) {
    let mut messages = sample.get_mut("messages").map(Value::take).unwrap_or_default();
    attach(&mut messages, &sample["attachments"]);
    let times = times(&sample["events"]);
    let mut answered = false;
    for (index, message) in items(&messages).iter().enumerate() {
        if !message.is_object() {
            let reason = format!("message {}: {}", index + 1, EntryError::NotAnObject);
            output.problem(Problem::of(path, reason));
            continue;
        }
        let ids = [&message["id"], &message["tool_call_id"]];
        let at = ids.iter().find_map(|id| times.get(id.as_str()?)).copied();
        for mut entry in entries(message, answered) {
            entry.created_at = at;
            entry.message_id = Some(string(&message["id"]).unwrap_or(format!("message-{index}")));
            output.entry(entry);
        }
        answered |= message["role"] == "assistant";
    }
    if let Some(reason) = string(&sample["error"]["message"]) {
        output.entry(Entry::new(Role::System, Kind::Error, reason));
    }
}

/// Puts texts back that were moved to the attachments.
fn attach(value: &mut Value, attachments: &Value) {
    match value {
        Value::String(text) => {
            let moved = text.strip_prefix(ATTACHMENT).and_then(|hash| attachments[hash].as_str());
            if let Some(moved) = moved {
                *text = moved.to_owned();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| attach(value, attachments)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|value| attach(value, attachments));
        }
        _ => {}
    }
}

/// When messages were written and tools answered, by their ids.
fn times(events: &Value) -> HashMap<&str, Timestamp> {
    let times = items(events).iter().filter_map(|event| {
        let id = match event["event"].as_str()? {
            "model" => &event["output"]["choices"][0]["message"]["id"],
            "tool" => &event["id"],
            _ => return None,
        };
        let stated = [&event["completed"], &event["timestamp"]];
        let at = stated.iter().find_map(|time| time.as_str()?.parse().ok())?;
        Some((id.as_str()?, at))
    });
    times.collect()
}

fn entries(message: &Value, answered: bool) -> Vec<Entry> {
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

/// Only the sample's input is a prompt; what follows an answer was written by a program.
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
    // An answer that only calls tools says nothing.
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

/// The text of a part; a picture, sound or film is an address or its data.
fn part(part: &Value) -> String {
    let said = ["text", "reasoning"].iter().find_map(|key| string(&part[*key]));
    let shown = ["image", "audio", "video"].iter().find_map(|key| part[*key].as_str());
    said.or_else(|| shown.map(|url| attachment::url("image", url)))
        .unwrap_or_else(|| part.to_string())
}
