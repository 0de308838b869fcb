//! Decodes the messages of a request and its response, from span attributes or, before v1.37, from span events.

use super::span::OtelSpan;
use crate::decoding::attachment;
use crate::decoding::json_fields::{list_items, owned_text, plain_text, unpack_json};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// A message with parts of text, reasoning, tool calls and results.
pub(super) struct OtelMessage {
    role: String,
    parts: Vec<Value>,
}

impl OtelMessage {
    fn from_json(message: &Value) -> Self {
        Self { role: plain_text(&message["role"]), parts: list_items(&message["parts"]).to_vec() }
    }

    /// Hashes role and parts. The finish reason is not included.
    pub(super) fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.role.as_bytes());
        self.parts.iter().for_each(|part| {
            hasher.update(part.to_string().as_bytes());
        });
        hasher.finalize()
    }

    /// One entry for each part.
    pub(super) fn part_entries(&self) -> impl Iterator<Item = Entry> {
        self.parts.iter().map(|part| part_entry(&self.role, part))
    }
}

/// The input messages of a request, and its output messages.
pub(super) fn span_messages(span: &OtelSpan) -> (Vec<OtelMessage>, Vec<OtelMessage>) {
    let instructions = list_items(&span.value("gen_ai.system_instructions")).to_vec();
    let mut input = parse_messages(&span.value("gen_ai.input.messages"));
    let mut answers = parse_messages(&span.value("gen_ai.output.messages"));
    if !instructions.is_empty() {
        input.insert(0, OtelMessage { role: "system".to_owned(), parts: instructions });
    }
    for (name, fields) in &span.events {
        match name.as_str() {
            "gen_ai.choice" => {
                let message = fields.get("message").map(unpack_json);
                let message = message.as_ref().and_then(Value::as_object).unwrap_or(fields);
                answers.push(event_message("assistant", message));
            }
            _ => {
                let role = name.strip_prefix("gen_ai.").and_then(|n| n.strip_suffix(".message"));
                input.extend(role.map(|role| event_message(role, fields)));
            }
        }
    }
    (input, answers)
}

/// Parses the messages of an attribute.
fn parse_messages(value: &Value) -> Vec<OtelMessage> {
    list_items(value).iter().map(OtelMessage::from_json).collect()
}

/// Converts a message of the older events to the form of the newer attributes.
fn event_message(role: &str, fields: &Object) -> OtelMessage {
    let field = |key: &str| fields.get(key).cloned().unwrap_or_default();
    let mut parts = Vec::new();
    if role == "tool" {
        parts.push(new_part(
            "tool_call_response",
            [("id", field("id")), ("response", field("content"))],
        ));
    } else if !field("content").is_null() {
        parts.push(new_part("text", [("content", field("content"))]));
    }
    for call in list_items(&unpack_json(&field("tool_calls"))) {
        let function = &call["function"];
        let (name, arguments) = (function["name"].clone(), unpack_json(&function["arguments"]));
        let fields = [("id", call["id"].clone()), ("name", name), ("arguments", arguments)];
        parts.push(new_part("tool_call", fields));
    }
    OtelMessage { role: role.to_owned(), parts }
}

fn new_part<const N: usize>(kind: &str, fields: [(&str, Value); N]) -> Value {
    let kind = [("type", Value::from(kind))].into_iter();
    let fields = kind.chain(fields).map(|(key, value)| (key.to_owned(), value));
    Value::Object(fields.collect())
}

fn part_entry(role: &str, part: &Value) -> Entry {
    let content = &part["content"];
    match part["type"].as_str().unwrap_or_default() {
        "text" => Entry::new(role.into(), EntryKind::Text, plain_text(content)),
        "reasoning" => Entry::new(Role::Assistant, EntryKind::Thinking, plain_text(content)),
        "tool_call" | "server_tool_call" => {
            let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
            entry.tool_name = owned_text(&part["name"]);
            entry.tool_call_id = owned_text(&part["id"]);
            entry.tool_input = ["arguments", "server_tool_call"]
                .iter()
                .find_map(|key| part.get(*key))
                .map(unpack_json);
            entry
        }
        "tool_call_response" | "server_tool_call_response" => {
            let keys = ["response", "result", "server_tool_call_response"];
            let response = keys.iter().find_map(|key| part.get(*key)).unwrap_or(&Value::Null);
            let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, plain_text(response));
            entry.tool_call_id = owned_text(&part["id"]);
            entry
        }
        "blob" => {
            let kind = owned_text(&part["mime_type"]).or_else(|| owned_text(&part["modality"]));
            let description =
                attachment::describe_base64(kind.as_deref(), content.as_str().unwrap_or_default());
            Entry::new(role.into(), EntryKind::Text, description)
        }
        "uri" => {
            Entry::new(role.into(), EntryKind::Text, format!("[{}]", plain_text(&part["uri"])))
        }
        "file" => {
            Entry::new(role.into(), EntryKind::Text, format!("[{}]", plain_text(&part["file_id"])))
        }
        _ => {
            let mut entry = Entry::new(Role::System, EntryKind::Other, "");
            entry.metadata = part.as_object().cloned();
            entry
        }
    }
}
