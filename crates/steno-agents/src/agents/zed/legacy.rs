//! Decodes messages of threads before version 0.3: a role, text segments, and lists of tool uses and results.

use crate::decoding::agent_message::AgentMessage;
use crate::decoding::entries::tool_call;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{list_items, nonempty_text};
use steno_model::entry::{EntryKind, Role};
use steno_model::json::Value;

use super::decode::{ZedMessageContext, tool_result_entry};

/// Decodes a message and emits its entries.
pub(super) fn decode_legacy_message(
    record: Value,
    context: ZedMessageContext,
    output: &mut EntryEmitter<'_>,
) {
    let mut message = context.new_message(None);
    let role = Role::from(nonempty_text(&record, "role").unwrap_or_default());
    let is_hidden = record.get("is_hidden") == Some(&Value::Bool(true));
    let kind = if is_hidden && role == Role::User { EntryKind::Notice } else { EntryKind::Text };
    for answer in list_items(&record["tool_results"]) {
        message.push(tool_result_entry(
            nonempty_text(answer, "tool_use_id").unwrap_or_default(),
            answer,
        ));
    }
    if let Some(text) = nonempty_text(&record, "text") {
        message.add_text(role.clone(), kind, text);
    }
    for segment in list_items(&record["segments"]) {
        push_segment(&mut message, &role, kind, segment);
    }
    for call in list_items(&record["tool_uses"]) {
        message.push(tool_call(
            nonempty_text(call, "name"),
            nonempty_text(call, "id"),
            call.get("input"),
        ));
    }
    match role {
        Role::Assistant => output.emit_answer(message),
        _ => output.emit_message(message),
    }
}

fn push_segment(message: &mut AgentMessage, role: &Role, kind: EntryKind, segment: &Value) {
    let text = nonempty_text(segment, "text").unwrap_or_default();
    match segment.get("type").and_then(Value::as_str) {
        // A user message with only tool results has an empty segment.
        Some("text") if text.is_empty() => {}
        Some("text") => message.add_text(role.clone(), kind, text),
        Some("thinking") => message.add_text(Role::Assistant, EntryKind::Thinking, text),
        Some("redacted_thinking") => message.add_text(Role::Assistant, EntryKind::Thinking, ""),
        _ => message.add_unknown(segment.clone()),
    }
}
