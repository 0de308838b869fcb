//! Decodes messages of threads since version 0.3. Each is an object with one field, named after the
//! message's kind.

use crate::decoding::agent_message::AgentMessage;
use crate::decoding::attachment;
use crate::decoding::entries::{tool_call, tool_result, unknown_entry};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{list_items, nonempty_text};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// A message's index in its thread, and the thread's model.
pub(super) struct ZedMessageContext {
    pub(super) index: usize,
    pub(super) model: Option<String>,
}

impl ZedMessageContext {
    /// Starts a message. Most messages have no id; their index is used instead.
    pub(super) fn new_message(self, id: Option<&str>) -> AgentMessage {
        let id = id.map_or_else(|| format!("message {}", self.index), str::to_owned);
        AgentMessage { id: Some(id), model: self.model, ..AgentMessage::default() }
    }
}

/// Decodes a message and emits its entries.
pub(super) fn decode_message(
    record: Value,
    context: ZedMessageContext,
    output: &mut EntryEmitter<'_>,
) {
    match only_field(&record) {
        Some(("User", user)) => {
            let mut message = context.new_message(nonempty_text(user, "id"));
            content_blocks(user).for_each(|block| push_user_block(&mut message, block));
            output.emit_message(message);
        }
        Some(("Agent", agent)) => {
            let mut message = context.new_message(None);
            let mut results = agent.get("tool_results").and_then(Value::as_object).cloned();
            for block in content_blocks(agent) {
                push_agent_block(&mut message, block, &mut results);
            }
            for (id, answer) in results.into_iter().flatten() {
                message.push(tool_result_entry(&id, &answer));
            }
            output.emit_answer(message);
        }
        Some(("Compaction", compaction)) => {
            let summary = only_field(compaction).map(|(_, summary)| summary).unwrap_or(compaction);
            let mut message = context.new_message(None);
            message.add_text(Role::System, EntryKind::Compaction, value_text(summary));
            output.emit_message(message);
        }
        _ if record.as_str() == Some("Resume") => {
            output.emit_entry(Entry::new(Role::User, EntryKind::Notice, "Resume"));
        }
        _ => output.emit_entry(unknown_entry(record)),
    }
}

/// The entry of a tool result.
pub(super) fn tool_result_entry(id: &str, answer: &Value) -> Entry {
    let is_error = answer.get("is_error") == Some(&Value::Bool(true));
    let content = answer.get("content").unwrap_or(&Value::Null);
    let mut entry = tool_result(Some(id), value_text(content), is_error);
    entry.tool_name = nonempty_text(answer, "tool_name").map(str::to_owned);
    entry
}

fn push_user_block(message: &mut AgentMessage, block: &Value) {
    match only_field(block) {
        Some(("Text", text)) => message.add_text(Role::User, EntryKind::Text, value_text(text)),
        Some(("Mention", mention)) => {
            let content = nonempty_text(mention, "content").unwrap_or_default();
            let mut entry = Entry::new(Role::User, EntryKind::Notice, content);
            let uri = mention.get("uri").cloned().unwrap_or_default();
            entry.metadata.get_or_insert_default().insert("uri".to_owned(), uri);
            message.push(entry);
        }
        Some(("Image", image)) => {
            message.add_text(Role::User, EntryKind::Notice, describe_image(image))
        }
        _ => message.add_unknown(block.clone()),
    }
}

fn push_agent_block(message: &mut AgentMessage, block: &Value, results: &mut Option<Object>) {
    match only_field(block) {
        Some(("Text", text)) => {
            message.add_text(Role::Assistant, EntryKind::Text, value_text(text))
        }
        Some(("Thinking", thought)) => {
            let text = nonempty_text(thought, "text").unwrap_or_default();
            message.add_text(Role::Assistant, EntryKind::Thinking, text);
        }
        Some(("RedactedThinking", _)) => message.add_text(Role::Assistant, EntryKind::Thinking, ""),
        Some(("ToolUse", call)) => {
            let id = nonempty_text(call, "id");
            message.push(tool_call(nonempty_text(call, "name"), id, call.get("input")));
            let answer = id.and_then(|id| Some((id, results.as_mut()?.shift_remove(id)?)));
            message.entries.extend(answer.map(|(id, answer)| tool_result_entry(id, &answer)));
        }
        _ => message.add_unknown(block.clone()),
    }
}

/// The name and value of the only field of an object.
fn only_field(record: &Value) -> Option<(&str, &Value)> {
    let fields = record.as_object().filter(|fields| fields.len() == 1)?;
    fields.iter().next().map(|(name, value)| (name.as_str(), value))
}

fn content_blocks(message: &Value) -> impl Iterator<Item = &Value> {
    list_items(&message["content"]).iter()
}

/// The text of a value: a string, a list of values, or an object with text.
fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(value_text).collect::<Vec<_>>().join("\n"),
        other => match only_field(other) {
            Some(("Text" | "text", text)) => value_text(text),
            Some(("Image", image)) => describe_image(image),
            _ => nonempty_text(other, "text").map_or_else(|| other.to_string(), str::to_owned),
        },
    }
}

/// Describes an image. Zed stores images as PNG.
fn describe_image(image: &Value) -> String {
    attachment::describe_base64(
        Some("image/png"),
        nonempty_text(image, "source").unwrap_or_default(),
    )
}
