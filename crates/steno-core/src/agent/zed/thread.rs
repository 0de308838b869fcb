//! Messages of threads since version 0.3: objects whose only field names their kind.

use crate::agent::attachment;
use crate::agent::entries::{tool_call, tool_result, unknown};
use crate::agent::fields::{filled, items};
use crate::agent::message::Message;
use crate::agent::output::Output;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// Where a message stands in its thread, and which model the thread used.
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) model: Option<String>,
}

impl Place {
    /// A message there. Most have no id: the position is as good.
    pub(super) fn message(self, id: Option<&str>) -> Message {
        let id = id.map_or_else(|| format!("message {}", self.index), str::to_owned);
        Message { id: Some(id), model: self.model, ..Message::default() }
    }
}

/// Hands out one message.
pub(super) fn take(record: Value, place: Place, output: &mut Output<'_>) {
    match only(&record) {
        Some(("User", user)) => {
            let mut message = place.message(filled(user, "id"));
            blocks(user).for_each(|block| of_user(&mut message, block));
            output.message(message);
        }
        Some(("Agent", agent)) => {
            let mut message = place.message(None);
            let mut results = agent.get("tool_results").and_then(Value::as_object).cloned();
            for block in blocks(agent) {
                of_agent(&mut message, block, &mut results);
            }
            for (id, answer) in results.into_iter().flatten() {
                message.push(result(&id, &answer));
            }
            output.answer(message);
        }
        Some(("Compaction", how)) => {
            let summary = only(how).map(|(_, said)| said).unwrap_or(how);
            let mut message = place.message(None);
            message.say(Role::System, Kind::Compaction, words(summary));
            output.message(message);
        }
        _ if record.as_str() == Some("Resume") => {
            output.entry(Entry::new(Role::User, Kind::Notice, "Resume"));
        }
        _ => output.entry(unknown(record)),
    }
}

/// What a tool answered.
pub(super) fn result(id: &str, answer: &Value) -> Entry {
    let failed = answer.get("is_error") == Some(&Value::Bool(true));
    let content = answer.get("content").unwrap_or(&Value::Null);
    let mut entry = tool_result(Some(id), words(content), failed);
    entry.tool_name = filled(answer, "tool_name").map(str::to_owned);
    entry
}

fn of_user(message: &mut Message, block: &Value) {
    match only(block) {
        Some(("Text", said)) => message.say(Role::User, Kind::Text, words(said)),
        Some(("Mention", mention)) => {
            let said = filled(mention, "content").unwrap_or_default();
            let mut entry = Entry::new(Role::User, Kind::Notice, said);
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
        Some(("Text", said)) => message.say(Role::Assistant, Kind::Text, words(said)),
        Some(("Thinking", thought)) => {
            let said = filled(thought, "text").unwrap_or_default();
            message.say(Role::Assistant, Kind::Thinking, said);
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

/// The only field of an object.
fn only(record: &Value) -> Option<(&str, &Value)> {
    let fields = record.as_object().filter(|fields| fields.len() == 1)?;
    fields.iter().next().map(|(name, value)| (name.as_str(), value))
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    items(&message["content"]).iter()
}

/// The text of a value that is one, or is made of some.
fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join("\n"),
        other => match only(other) {
            Some(("Text" | "text", said)) => words(said),
            Some(("Image", image)) => picture(image),
            _ => filled(other, "text").map_or_else(|| other.to_string(), str::to_owned),
        },
    }
}

/// Zed keeps images as PNG.
fn picture(image: &Value) -> String {
    attachment::media(Some("image/png"), filled(image, "source").unwrap_or_default())
}
