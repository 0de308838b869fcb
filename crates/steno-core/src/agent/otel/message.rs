//! Decodes the messages of a request and its response, from span attributes or, before v1.37, from span events.

use super::super::fields::{items, plain, string, unpacked};
use super::span::Span;
use crate::agent::attachment;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// A message with parts of text, reasoning, tool calls and results.
pub(super) struct Message {
    role: String,
    parts: Vec<Value>,
}

impl Message {
    fn new(message: &Value) -> Self {
        Self { role: plain(&message["role"]), parts: items(&message["parts"]).to_vec() }
    }

    /// Hashes role and parts. The finish reason is not included.
    pub(super) fn sum(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.role.as_bytes());
        self.parts.iter().for_each(|part| {
            hasher.update(part.to_string().as_bytes());
        });
        hasher.finalize()
    }

    /// One entry for each part.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.parts.iter().map(|part| entry(&self.role, part))
    }
}

/// The input messages of a request, and its output messages.
pub(super) fn of(span: &Span) -> (Vec<Message>, Vec<Message>) {
    let instructions = items(&span.value("gen_ai.system_instructions")).to_vec();
    let mut input = messages(&span.value("gen_ai.input.messages"));
    let mut answers = messages(&span.value("gen_ai.output.messages"));
    if !instructions.is_empty() {
        input.insert(0, Message { role: "system".to_owned(), parts: instructions });
    }
    for (name, fields) in &span.events {
        match name.as_str() {
            "gen_ai.choice" => {
                let message = fields.get("message").map(unpacked);
                let message = message.as_ref().and_then(Value::as_object).unwrap_or(fields);
                answers.push(from_event("assistant", message));
            }
            _ => {
                let role = name.strip_prefix("gen_ai.").and_then(|n| n.strip_suffix(".message"));
                input.extend(role.map(|role| from_event(role, fields)));
            }
        }
    }
    (input, answers)
}

/// Parses the messages of an attribute.
fn messages(value: &Value) -> Vec<Message> {
    items(value).iter().map(Message::new).collect()
}

/// Converts a message of the older events to the form of the newer attributes.
fn from_event(role: &str, fields: &Object) -> Message {
    let field = |key: &str| fields.get(key).cloned().unwrap_or_default();
    let mut parts = Vec::new();
    if role == "tool" {
        parts.push(part(
            "tool_call_response",
            [("id", field("id")), ("response", field("content"))],
        ));
    } else if !field("content").is_null() {
        parts.push(part("text", [("content", field("content"))]));
    }
    for call in items(&unpacked(&field("tool_calls"))) {
        let function = &call["function"];
        let (name, arguments) = (function["name"].clone(), unpacked(&function["arguments"]));
        let fields = [("id", call["id"].clone()), ("name", name), ("arguments", arguments)];
        parts.push(part("tool_call", fields));
    }
    Message { role: role.to_owned(), parts }
}

fn part<const N: usize>(kind: &str, fields: [(&str, Value); N]) -> Value {
    let kind = [("type", Value::from(kind))].into_iter();
    let fields = kind.chain(fields).map(|(key, value)| (key.to_owned(), value));
    Value::Object(fields.collect())
}

fn entry(role: &str, part: &Value) -> Entry {
    let content = &part["content"];
    match part["type"].as_str().unwrap_or_default() {
        "text" => Entry::new(role.into(), Kind::Text, plain(content)),
        "reasoning" => Entry::new(Role::Assistant, Kind::Thinking, plain(content)),
        "tool_call" | "server_tool_call" => {
            let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
            entry.tool_name = string(&part["name"]);
            entry.tool_call_id = string(&part["id"]);
            entry.tool_input = ["arguments", "server_tool_call"]
                .iter()
                .find_map(|key| part.get(*key))
                .map(unpacked);
            entry
        }
        "tool_call_response" | "server_tool_call_response" => {
            let keys = ["response", "result", "server_tool_call_response"];
            let response = keys.iter().find_map(|key| part.get(*key)).unwrap_or(&Value::Null);
            let mut entry = Entry::new(Role::Tool, Kind::ToolResult, plain(response));
            entry.tool_call_id = string(&part["id"]);
            entry
        }
        "blob" => {
            let kind = string(&part["mime_type"]).or_else(|| string(&part["modality"]));
            let description =
                attachment::media(kind.as_deref(), content.as_str().unwrap_or_default());
            Entry::new(role.into(), Kind::Text, description)
        }
        "uri" => Entry::new(role.into(), Kind::Text, format!("[{}]", plain(&part["uri"]))),
        "file" => Entry::new(role.into(), Kind::Text, format!("[{}]", plain(&part["file_id"]))),
        _ => {
            let mut entry = Entry::new(Role::System, Kind::Other, "");
            entry.metadata = part.as_object().cloned();
            entry
        }
    }
}
