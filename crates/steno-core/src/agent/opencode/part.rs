//! Decodes the parts of a message into entries.

use serde_json::json;

use crate::agent::attachment;
use crate::agent::entries::{tool_call, tool_result};
use crate::agent::fields::{filled, items};
use crate::agent::message::Message;
use crate::entry::{Entry, Kind, Role};
use crate::json::Value;

use super::conversation::timed;

/// Decodes a part of a user message. Parts that no person wrote become notices.
pub(super) fn of_user(message: &mut Message, part: Value) {
    match kind(&part) {
        "text" if is_machine_made(&part) => say(message, Role::User, Kind::Notice, &part),
        "text" => say(message, Role::User, Kind::Text, &part),
        "subtask" => message.push(subtask(&part)),
        "file" => message.say(Role::User, Kind::Notice, file(&part)),
        _ => of_any(message, part),
    }
}

/// Decodes a part of an assistant message.
pub(super) fn of_assistant(message: &mut Message, part: Value) {
    match kind(&part) {
        "text" if is_machine_made(&part) => say(message, Role::Assistant, Kind::Notice, &part),
        "text" => say(message, Role::Assistant, Kind::Text, &part),
        "reasoning" => say(message, Role::Assistant, Kind::Thinking, &part),
        "tool" => tool(message, &part),
        "file" => message.say(Role::Assistant, Kind::Notice, file(&part)),
        _ => of_any(message, part),
    }
}

/// The entry of an error that ended an assistant message.
pub(super) fn error(error: &Value) -> Entry {
    let detail = error.get("data").and_then(|data| filled(data, "message"));
    let texts: Vec<_> = [filled(error, "name"), detail].into_iter().flatten().collect();
    let mut entry = Entry::new(Role::Assistant, Kind::Error, texts.join(": "));
    entry.metadata = error.as_object().cloned();
    entry
}

fn of_any(message: &mut Message, part: Value) {
    match kind(&part) {
        // The message has the same information.
        "step-start" | "step-finish" | "snapshot" => {}
        "compaction" => message.push(with_metadata(Kind::Compaction, part)),
        "patch" | "agent" => message.push(with_metadata(Kind::Notice, part)),
        "retry" => message.push(retry(&part)),
        _ => message.unknown(part),
    }
}

fn kind(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn is_machine_made(part: &Value) -> bool {
    ["synthetic", "ignored"].iter().any(|name| part.get(name) == Some(&Value::Bool(true)))
}

fn say(message: &mut Message, role: Role, kind: Kind, part: &Value) {
    let entry = Entry::new(role, kind, filled(part, "text").unwrap_or_default());
    message.push(timed(entry, part.get("time"), "start"));
}

fn with_metadata(kind: Kind, part: Value) -> Entry {
    let mut entry = Entry::new(Role::System, kind, "");
    if let Value::Object(fields) = part {
        entry.metadata = Some(fields);
    }
    entry
}

fn subtask(part: &Value) -> Entry {
    let mut entry =
        Entry::new(Role::User, Kind::Notice, filled(part, "prompt").unwrap_or_default());
    let names = ["agent", "description", "command"];
    let fields =
        names.iter().filter_map(|name| Some(((*name).to_owned(), part.get(name)?.clone())));
    entry.metadata = Some(fields.collect());
    entry
}

fn retry(part: &Value) -> Entry {
    let mut entry = error(part.get("error").unwrap_or(&Value::Null));
    entry.role = Role::System;
    timed(entry, part.get("time"), "created")
}

fn file(part: &Value) -> String {
    let mime = filled(part, "mime").unwrap_or("application/octet-stream");
    let content = attachment::url(mime, filled(part, "url").unwrap_or_default());
    match filled(part, "filename") {
        Some(name) => format!("{name} {content}"),
        None => content,
    }
}

/// Decodes a tool part into a call and its result. OpenCode adds the result to the part when the tool ends.
fn tool(message: &mut Message, part: &Value) {
    let (id, name) = (filled(part, "callID"), filled(part, "tool").unwrap_or_default());
    let empty = json!({});
    let state = part.get("state").unwrap_or(&empty);
    let times = state.get("time");
    message.push(timed(tool_call(Some(name), id, state.get("input")), times, "start"));
    let status = filled(state, "status").unwrap_or_default();
    if matches!(status, "" | "pending" | "running") {
        return;
    }
    let is_error = status == "error";
    let output = filled(state, if is_error { "error" } else { "output" }).unwrap_or_default();
    let mut result = tool_result(id, with_attachments(output, state), is_error);
    result.tool_name = Some(name.to_owned());
    if let Some(metadata) = state.get("metadata").filter(|metadata| !metadata.is_null()) {
        result.metadata.get_or_insert_default().insert("tool".to_owned(), metadata.clone());
    }
    message.push(timed(result, times, "end"));
}

fn with_attachments(output: &str, state: &Value) -> String {
    let mut content = output.to_owned();
    for attachment in items(&state["attachments"]) {
        if !content.is_empty() {
            content.push('\n');
        }
        content.push_str(&file(attachment));
    }
    content
}
