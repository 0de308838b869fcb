//! Messages of threads before version 0.3: a role, segments of text, and lists of tool uses and results.

use crate::agent::message::{Message, Output, text};
use crate::agent::record::tool_call;
use crate::entry::{Kind, Role};
use crate::json::Value;

use super::thread::{Place, result};

/// Hands out one message.
pub(super) fn take(record: Value, place: Place, output: &mut Output<'_>) {
    let mut message = place.message(None);
    let role = Role::from(text(&record, "role").unwrap_or_default());
    let is_hidden = record.get("is_hidden") == Some(&Value::Bool(true));
    let kind = if is_hidden && role == Role::User { Kind::Notice } else { Kind::Text };
    for answer in list(&record, "tool_results") {
        message.push(result(text(answer, "tool_use_id").unwrap_or_default(), answer));
    }
    if let Some(said) = text(&record, "text") {
        message.say(role.clone(), kind, said);
    }
    for segment in list(&record, "segments") {
        add(&mut message, (&role, kind), segment);
    }
    for call in list(&record, "tool_uses") {
        message.push(tool_call(text(call, "name"), text(call, "id"), call.get("input")));
    }
    match role {
        Role::Assistant => output.answer(message),
        _ => output.message(message),
    }
}

fn add(message: &mut Message, (role, kind): (&Role, Kind), segment: &Value) {
    let said = text(segment, "text").unwrap_or_default();
    match segment.get("type").and_then(Value::as_str) {
        // Tool results alone make a user's message with an empty segment.
        Some("text") if said.is_empty() => {}
        Some("text") => message.say(role.clone(), kind, said),
        Some("thinking") => message.say(Role::Assistant, Kind::Thinking, said),
        Some("redacted_thinking") => message.say(Role::Assistant, Kind::Thinking, ""),
        _ => message.unknown(segment.clone()),
    }
}

fn list<'a>(record: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    record.get(name).and_then(Value::as_array).into_iter().flatten()
}
