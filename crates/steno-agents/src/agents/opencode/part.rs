//! Decodes the parts of a message into entries.

use serde_json::json;

use crate::decoding::agent_message::AgentMessage;
use crate::decoding::attachment;
use crate::decoding::entries::{tool_call, tool_result};
use crate::decoding::json_fields::{list_items, nonempty_text};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Value;

use super::decode::with_time;

/// Decodes a part of a user message. Parts that no person wrote become notices.
pub(super) fn decode_user_part(message: &mut AgentMessage, part: Value) {
    match part_kind(&part) {
        "text" if is_machine_made(&part) => {
            push_text(message, Role::User, EntryKind::Notice, &part)
        }
        "text" => push_text(message, Role::User, EntryKind::Text, &part),
        "subtask" => message.push(subtask_entry(&part)),
        "file" => message.add_text(Role::User, EntryKind::Notice, describe_file(&part)),
        _ => decode_other_part(message, part),
    }
}

/// Decodes a part of an assistant message.
pub(super) fn decode_assistant_part(message: &mut AgentMessage, part: Value) {
    match part_kind(&part) {
        "text" if is_machine_made(&part) => {
            push_text(message, Role::Assistant, EntryKind::Notice, &part)
        }
        "text" => push_text(message, Role::Assistant, EntryKind::Text, &part),
        "reasoning" => push_text(message, Role::Assistant, EntryKind::Thinking, &part),
        "tool" => decode_tool_part(message, &part),
        "file" => message.add_text(Role::Assistant, EntryKind::Notice, describe_file(&part)),
        _ => decode_other_part(message, part),
    }
}

/// The entry of an error that ended an assistant message.
pub(super) fn error_entry(error: &Value) -> Entry {
    let detail = error.get("data").and_then(|data| nonempty_text(data, "message"));
    let texts: Vec<_> = [nonempty_text(error, "name"), detail].into_iter().flatten().collect();
    let mut entry = Entry::new(Role::Assistant, EntryKind::Error, texts.join(": "));
    entry.metadata = error.as_object().cloned();
    entry
}

fn decode_other_part(message: &mut AgentMessage, part: Value) {
    match part_kind(&part) {
        // The message has the same information.
        "step-start" | "step-finish" | "snapshot" => {}
        "compaction" => message.push(metadata_entry(EntryKind::Compaction, part)),
        "patch" | "agent" => message.push(metadata_entry(EntryKind::Notice, part)),
        "retry" => message.push(retry_entry(&part)),
        _ => message.add_unknown(part),
    }
}

fn part_kind(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn is_machine_made(part: &Value) -> bool {
    ["synthetic", "ignored"].iter().any(|name| part.get(name) == Some(&Value::Bool(true)))
}

fn push_text(message: &mut AgentMessage, role: Role, kind: EntryKind, part: &Value) {
    let entry = Entry::new(role, kind, nonempty_text(part, "text").unwrap_or_default());
    message.push(with_time(entry, part.get("time"), "start"));
}

fn metadata_entry(kind: EntryKind, part: Value) -> Entry {
    let mut entry = Entry::new(Role::System, kind, "");
    if let Value::Object(fields) = part {
        entry.metadata = Some(fields);
    }
    entry
}

fn subtask_entry(part: &Value) -> Entry {
    let mut entry = Entry::new(
        Role::User,
        EntryKind::Notice,
        nonempty_text(part, "prompt").unwrap_or_default(),
    );
    let names = ["agent", "description", "command"];
    let fields =
        names.iter().filter_map(|name| Some(((*name).to_owned(), part.get(name)?.clone())));
    entry.metadata = Some(fields.collect());
    entry
}

fn retry_entry(part: &Value) -> Entry {
    let mut entry = error_entry(part.get("error").unwrap_or(&Value::Null));
    entry.role = Role::System;
    with_time(entry, part.get("time"), "created")
}

fn describe_file(part: &Value) -> String {
    let mime = nonempty_text(part, "mime").unwrap_or("application/octet-stream");
    let content = attachment::describe_url(mime, nonempty_text(part, "url").unwrap_or_default());
    match nonempty_text(part, "filename") {
        Some(name) => format!("{name} {content}"),
        None => content,
    }
}

/// Decodes a tool part into a call and its result. OpenCode adds the result to the part when the tool ends.
fn decode_tool_part(message: &mut AgentMessage, part: &Value) {
    let (id, name) =
        (nonempty_text(part, "callID"), nonempty_text(part, "tool").unwrap_or_default());
    let empty = json!({});
    let state = part.get("state").unwrap_or(&empty);
    let times = state.get("time");
    message.push(with_time(tool_call(Some(name), id, state.get("input")), times, "start"));
    let status = nonempty_text(state, "status").unwrap_or_default();
    if matches!(status, "" | "pending" | "running") {
        return;
    }
    let is_error = status == "error";
    let output =
        nonempty_text(state, if is_error { "error" } else { "output" }).unwrap_or_default();
    let mut result = tool_result(id, append_attachments(output, state), is_error);
    result.tool_name = Some(name.to_owned());
    if let Some(metadata) = state.get("metadata").filter(|metadata| !metadata.is_null()) {
        result.metadata.get_or_insert_default().insert("tool".to_owned(), metadata.clone());
    }
    message.push(with_time(result, times, "end"));
}

fn append_attachments(output: &str, state: &Value) -> String {
    let mut content = output.to_owned();
    for attachment in list_items(&state["attachments"]) {
        if !content.is_empty() {
            content.push('\n');
        }
        content.push_str(&describe_file(attachment));
    }
    content
}
