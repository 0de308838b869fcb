//! Decodes messages of threads before version 0.3: a role, text segments, and lists of tool uses and results.

use crate::agent::entries::tool_call;
use crate::agent::fields::{filled, items};
use crate::agent::message::Message;
use crate::agent::output::Output;
use crate::entry::{Kind, Role};
use crate::json::Value;

use super::thread::{Place, result};

/// Decodes a message and emits its entries.
pub(super) fn take(record: Value, context: Place, output: &mut Output<'_>) {
    let mut message = context.message(None);
    let role = Role::from(filled(&record, "role").unwrap_or_default());
    let is_hidden = record.get("is_hidden") == Some(&Value::Bool(true));
    let kind = if is_hidden && role == Role::User { Kind::Notice } else { Kind::Text };
    for answer in items(&record["tool_results"]) {
        message.push(result(filled(answer, "tool_use_id").unwrap_or_default(), answer));
    }
    if let Some(text) = filled(&record, "text") {
        message.say(role.clone(), kind, text);
    }
    for segment in items(&record["segments"]) {
        add(&mut message, &role, kind, segment);
    }
    for call in items(&record["tool_uses"]) {
        message.push(tool_call(filled(call, "name"), filled(call, "id"), call.get("input")));
    }
    match role {
        Role::Assistant => output.answer(message),
        _ => output.message(message),
    }
}

fn add(message: &mut Message, role: &Role, kind: Kind, segment: &Value) {
    let text = filled(segment, "text").unwrap_or_default();
    match segment.get("type").and_then(Value::as_str) {
        // A user message with only tool results has an empty segment.
        Some("text") if text.is_empty() => {}
        Some("text") => message.say(role.clone(), kind, text),
        Some("thinking") => message.say(Role::Assistant, Kind::Thinking, text),
        Some("redacted_thinking") => message.say(Role::Assistant, Kind::Thinking, ""),
        _ => message.unknown(segment.clone()),
    }
}
