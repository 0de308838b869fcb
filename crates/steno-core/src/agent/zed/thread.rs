//! Decodes messages of threads since version 0.3. Each is an object with one field, named after the
//! message's kind.

use crate::agent::attachment;
use crate::agent::entries::{tool_call, tool_result, unknown};
use crate::agent::fields::{filled, items};
use crate::agent::message::Message;
use crate::agent::output::Output;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// A message's index in its thread, and the thread's model.
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) model: Option<String>,
}

impl Place {
    /// Starts a message. Most messages have no id; their index is used instead.
    pub(super) fn message(self, id: Option<&str>) -> Message {
        let id = id.map_or_else(|| format!("message {}", self.index), str::to_owned);
        Message { id: Some(id), model: self.model, ..Message::default() }
    }
}

/// Decodes a message and emits its entries.
pub(super) fn take(record: Value, context: Place, output: &mut Output<'_>) {
    match only(&record) {
        Some(("User", user)) => {
            let mut message = context.message(filled(user, "id"));
            blocks(user).for_each(|block| of_user(&mut message, block));
            output.message(message);
        }
        Some(("Agent", agent)) => {
            let mut message = context.message(None);
            let mut results = agent.get("tool_results").and_then(Value::as_object).cloned();
            for block in blocks(agent) {
                of_agent(&mut message, block, &mut results);
            }
            for (id, answer) in results.into_iter().flatten() {
                message.push(result(&id, &answer));
            }
            output.answer(message);
        }
        Some(("Compaction", compaction)) => {
            let summary = only(compaction).map(|(_, summary)| summary).unwrap_or(compaction);
            let mut message = context.message(None);
            message.say(Role::System, Kind::Compaction, words(summary));
            output.message(message);
        }
        _ if record.as_str() == Some("Resume") => {
            output.entry(Entry::new(Role::User, Kind::Notice, "Resume"));
        }
        _ => output.entry(unknown(record)),
    }
}

/// The entry of a tool result.
pub(super) fn result(id: &str, answer: &Value) -> Entry {
    let is_error = answer.get("is_error") == Some(&Value::Bool(true));
    let content = answer.get("content").unwrap_or(&Value::Null);
    let mut entry = tool_result(Some(id), words(content), is_error);
    entry.tool_name = filled(answer, "tool_name").map(str::to_owned);
    entry
}

fn of_user(message: &mut Message, block: &Value) {
    match only(block) {
        Some(("Text", text)) => message.say(Role::User, Kind::Text, words(text)),
        Some(("Mention", mention)) => {
            let content = filled(mention, "content").unwrap_or_default();
            let mut entry = Entry::new(Role::User, Kind::Notice, content);
            let uri = mention.get("uri").cloned().unwrap_or_default();
            entry.metadata.get_or_insert_default().insert("uri".to_owned(), uri);
            message.push(entry);
        }
        Some(("Image", image)) => message.say(Role::User, Kind::Notice, picture(image)),
        _ => message.unknown(block.clone()),
    }
}

fn of_agent(message: &mut Message, block: &Value, results: &mut Option<Object>) {
    match only(block) {
        Some(("Text", text)) => message.say(Role::Assistant, Kind::Text, words(text)),
        Some(("Thinking", thought)) => {
            let text = filled(thought, "text").unwrap_or_default();
            message.say(Role::Assistant, Kind::Thinking, text);
        }
        Some(("RedactedThinking", _)) => message.say(Role::Assistant, Kind::Thinking, ""),
        Some(("ToolUse", call)) => {
            let id = filled(call, "id");
            message.push(tool_call(filled(call, "name"), id, call.get("input")));
            let answer = id.and_then(|id| Some((id, results.as_mut()?.shift_remove(id)?)));
            message.entries.extend(answer.map(|(id, answer)| result(id, &answer)));
        }
        _ => message.unknown(block.clone()),
    }
}

/// The name and value of the only field of an object.
fn only(record: &Value) -> Option<(&str, &Value)> {
    let fields = record.as_object().filter(|fields| fields.len() == 1)?;
    fields.iter().next().map(|(name, value)| (name.as_str(), value))
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    items(&message["content"]).iter()
}

/// The text of a value: a string, a list of values, or an object with text.
fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join("\n"),
        other => match only(other) {
            Some(("Text" | "text", text)) => words(text),
            Some(("Image", image)) => picture(image),
            _ => filled(other, "text").map_or_else(|| other.to_string(), str::to_owned),
        },
    }
}

/// Describes an image. Zed stores images as PNG.
fn picture(image: &Value) -> String {
    attachment::media(Some("image/png"), filled(image, "source").unwrap_or_default())
}
