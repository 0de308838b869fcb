//! Messages of OpenAI's APIs in files that other programs write.
//!
//! A record is a chat message with `tool_calls`, an item of the Responses API, or an object that lists either under
//! `messages` or `input`, such as a line of a fine-tuning file. A field that is not decoded becomes an entry of its
//! own, so that it stays visible; [`unknown_fields`] returns its name.

use std::fmt;

use crate::decoding::json_fields::text_field;
use crate::decoding::usage;
use crate::protocols::{api_log, responses};
use steno_model::entry::{ENTRY_FIELD_NAMES, Entry, EntryKind, Role};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::timestamp::Timestamp;

/// Extra field of the entry that shows the undecoded fields of a message.
const UNKNOWN_FIELDS: &str = "unknown_fields";

/// Fields that list messages or items.
pub const MESSAGE_LIST_FIELDS: [&str; 2] = ["messages", "input"];

/// Fields of a chat message that are decoded, or that have no content to show.
const MESSAGE_FIELDS: [&str; 18] = [
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "refusal",
    "reasoning_content",
    "reasoning",
    "audio",
    "annotations",
    "weight",
    "id",
    "created_at",
    "timestamp",
    "model",
    "usage",
    "type",
];

/// Fields of a Responses API item that are decoded, or that have no content to show.
const ITEM_FIELDS: [&str; 22] = [
    "type",
    "id",
    "call_id",
    "status",
    "name",
    "role",
    "content",
    "summary",
    "encrypted_content",
    "arguments",
    "input",
    "action",
    "operation",
    "output",
    "outputs",
    "tools",
    "namespace",
    "phase",
    "author",
    "recipient",
    "timestamp",
    "created_at",
];

/// Fields that only Steno's entries have.
const ENTRY_FIELDS: [&str; 7] =
    ["tool_name", "tool_input", "entry_id", "source", "sequence", "message_id", "parent_id"];

/// Whether a record is a chat message. Steno's own entries, which have a role too, are not.
pub fn is_chat_message(object: &Object) -> bool {
    let Some(role) = text_field(object, "role").filter(|_| !object.contains_key("kind")) else {
        return false;
    };
    let has = |name: &str| object.contains_key(name);
    let has_chat_content = match object.get("content") {
        Some(Value::Array(_)) => true,
        None | Some(Value::Null) => {
            let alternatives =
                ["tool_calls", "function_call", "audio", "refusal", "reasoning_content"];
            alternatives.iter().any(|name| has(name)) || (role == "assistant" && has("content"))
        }
        Some(Value::String(_)) => {
            let only_ours = object.keys().all(|name| ENTRY_FIELD_NAMES.contains(&name.as_str()));
            let some_ours = ENTRY_FIELDS.iter().any(|name| has(name));
            matches!(role, "developer" | "function") || !(only_ours || some_ours)
        }
        Some(_) => false,
    };
    let has_token_counts = object
        .get("usage")
        .and_then(Value::as_object)
        .is_some_and(|usage| usage.keys().any(|name| name.ends_with("_tokens")));
    !has("tool_input") && (has_chat_content || has_token_counts)
}

/// Whether a record is an item of the Responses API.
pub fn is_responses_item(object: &Object) -> bool {
    match text_field(object, "type") {
        Some("message") => object.contains_key("role") && object.contains_key("content"),
        Some("reasoning") => object.get("summary").is_some_and(Value::is_array),
        Some(kind) => responses::is_call_or_result(kind),
        None => false,
    }
}

/// Whether a record lists messages or items.
pub fn has_message_list(object: &Object) -> bool {
    MESSAGE_LIST_FIELDS.iter().any(|name| object.get(*name).is_some_and(is_message_list_value))
}

fn is_message_list_value(list: &Value) -> bool {
    list.as_array().is_some_and(|list| is_message_list(list))
}

/// Whether a list begins with a message or an item.
pub fn is_message_list(list: &[Value]) -> bool {
    let first = list.first().and_then(Value::as_object);
    first.is_some_and(|first| is_responses_item(first) || has_message_content(first))
}

fn has_message_content(object: &Object) -> bool {
    let content_fields = ["content", "tool_calls", "function_call"];
    text_field(object, "role").is_some()
        && content_fields.iter().any(|name| object.contains_key(*name))
}

/// Decodes the entries of a message or an item. `record` identifies it within its session.
pub fn entries_from_message(message: &Object, record: &dyn fmt::Display) -> Vec<Entry> {
    let is_item = is_responses_item(message);
    let mut entries = match is_item {
        true => api_log::item_entries(message),
        false => api_log::api_message_entries(message),
    };
    let is_answer = text_field(message, "role") == Some("assistant") && !is_item;
    if is_answer && entries.is_empty() {
        entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
    }
    if let Some(fields) = find_unknown_fields(message, is_item) {
        entries.push(unknown_fields_entry(fields));
    }
    let id = text_field(message, "id").map_or_else(|| record.to_string(), str::to_owned);
    let created_at =
        ["created_at", "timestamp"].iter().find_map(|name| parse_message_time(message.get(*name)?));
    let model = text_field(message, "model").map(str::to_owned);
    for entry in &mut entries {
        entry.created_at = entry.created_at.or(created_at);
        if !is_item {
            entry.message_id.get_or_insert_with(|| id.clone());
            entry.model = model.clone().filter(|_| entry.role == Role::Assistant);
        }
    }
    if let (Some(first), Some(Value::Object(counts))) = (entries.first_mut(), message.get("usage"))
    {
        first.usage = Some(usage::openai_usage(counts)).filter(|usage| !usage.is_empty());
    }
    entries
}

/// Decodes the entries of all messages that an object lists.
pub fn entries_from_message_list(object: &Object, record: &dyn fmt::Display) -> Vec<Entry> {
    let mut entries = Vec::new();
    for field in ["system", "instructions"] {
        let system = object.get(field).map(responses::content_text).unwrap_or_default();
        if !system.is_empty() {
            entries.push(Entry::new(Role::System, EntryKind::Text, system));
        }
    }
    let list = MESSAGE_LIST_FIELDS
        .iter()
        .find_map(|name| object.get(*name).filter(|list| is_message_list_value(list)));
    if let Some(Value::Array(messages)) = list {
        entries.extend(entries_from_messages(messages, record));
    }
    let unknown = object.iter().filter(|(name, _)| !api_log::is_request_parameter(name));
    let unknown: Object = unknown.map(|(name, value)| (name.clone(), value.clone())).collect();
    if !unknown.is_empty() {
        entries.push(unknown_fields_entry(unknown));
    }
    entries
}

/// Decodes the entries of a list of messages or items.
pub fn entries_from_messages(messages: &[Value], record: &dyn fmt::Display) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        match message {
            Value::Object(message) => {
                let name = format!("{record}/{}", index + 1);
                entries.extend(entries_from_message(message, &name));
            }
            other => entries.push(crate::decoding::entries::unknown_entry(other.clone())),
        }
    }
    entries
}

/// Names of the fields that were not decoded, taken from the entries that show them.
pub fn unknown_fields(entries: &[Entry]) -> impl Iterator<Item = &str> {
    let shown = entries.iter().filter(|entry| entry.extra.contains_key(UNKNOWN_FIELDS));
    shown
        .filter_map(|entry| entry.metadata.as_ref())
        .flat_map(|fields| fields.keys().map(String::as_str))
}

/// The problem text for an unknown field.
pub fn unknown_field_reason(name: &str) -> String {
    format!("field {name} is not understood; it is kept and shown as it is")
}

/// Builds the entry that shows undecoded fields.
pub fn unknown_fields_entry(fields: Object) -> Entry {
    let mut entry = Entry::new(Role::System, EntryKind::Other, JsonStyle::COMPACT.print(&fields));
    entry.metadata = Some(fields);
    entry.extra.insert(UNKNOWN_FIELDS.to_owned(), Value::Bool(true));
    entry
}

fn find_unknown_fields(message: &Object, is_item: bool) -> Option<Object> {
    let asked_in_fields = is_item
        && !["arguments", "input", "action", "operation", "output", "content", "summary"]
            .iter()
            .any(|name| message.contains_key(*name));
    let known: &[&str] = if is_item { &ITEM_FIELDS } else { &MESSAGE_FIELDS };
    let unknown =
        message.iter().filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null());
    let unknown: Object = unknown.map(|(name, value)| (name.clone(), value.clone())).collect();
    (!unknown.is_empty() && !asked_in_fields).then_some(unknown)
}

fn parse_message_time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_i64().and_then(Timestamp::from_unix),
        _ => None,
    }
}
