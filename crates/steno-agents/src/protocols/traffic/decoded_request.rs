//! Decodes a request into instructions and messages.

use super::dialect::ApiDialect;
use super::translation::translate_request;
use super::{gemini, single_call};
use crate::decoding::json_fields::text_field;
use crate::protocols::api_log::{anthropic, chat};
use crate::protocols::responses::{self, content_text};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// A decoded request.
#[derive(Debug, Default)]
pub(super) struct DecodedRequest {
    /// Instructions to the model.
    pub(super) instructions: Vec<Entry>,
    /// Messages, in order.
    pub(super) messages: Vec<Entry>,
    /// The id of the previous response, if the server keeps the history.
    pub(super) previous_response_id: Option<String>,
    /// Whether the request asks for structured output.
    pub(super) is_structured: bool,
    /// Whether the request only adds to the history and expects no response.
    pub(super) expects_no_response: bool,
}

impl DecodedRequest {
    /// Decodes the fields of a request.
    pub(super) fn from_object(dialect: ApiDialect, request: Object) -> Self {
        let request = &translate_request(dialect, request);
        let dialect = dialect.translation_target();
        let entries = match dialect {
            ApiDialect::Messages => decode_messages(request, anthropic::message_entries),
            ApiDialect::Chat => decode_messages(request, chat::message_entries),
            ApiDialect::Responses => decode_input(request),
            ApiDialect::Generate => gemini::decode_contents(request),
            _ => single_call::request_entries(dialect, request),
        };
        let mut asked = Self {
            instructions: decode_instructions(dialect, request),
            previous_response_id: text_field(request, "previous_response_id").map(str::to_owned),
            is_structured: is_structured(request),
            expects_no_response: request.get("generate") == Some(&Value::Bool(false)),
            ..Self::default()
        };
        for mut entry in entries {
            normalize_entry(&mut entry);
            let is_instruction = entry.role == Role::System && entry.kind == EntryKind::Text;
            let list = if is_instruction { &mut asked.instructions } else { &mut asked.messages };
            list.push(entry);
        }
        asked
    }
}

/// Normalizes an entry of any dialect.
pub(super) fn normalize_entry(entry: &mut Entry) {
    match entry.kind {
        EntryKind::ToolCall => normalize_call(entry),
        EntryKind::Notice if entry.role == Role::System => entry.kind = EntryKind::Text,
        _ => {}
    }
    if let Role::Other(_) = entry.role {
        entry.role = Role::User;
    }
}

/// Puts the arguments into `content` as formatted JSON, and into `tool_input` if they are an object.
fn normalize_call(entry: &mut Entry) {
    entry.tool_name.get_or_insert_with(|| "unknown".to_owned());
    let input = match entry.tool_input.take() {
        None => Value::Object(Object::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Object::new()),
        Some(Value::String(text)) => match serde_json::from_str(&text) {
            Ok(value) => value,
            Err(_) => {
                entry.tool_input = Some(serde_json::json!({"raw": text}));
                entry.content = text;
                return;
            }
        },
        Some(input) => input,
    };
    entry.content = steno_model::json::JsonStyle::PRETTY.print(&input);
    entry.tool_input = Some(input).filter(Value::is_object);
}

fn decode_instructions(dialect: ApiDialect, request: &Object) -> Vec<Entry> {
    let instructions = match dialect {
        ApiDialect::Messages => request.get("system").map(content_text),
        ApiDialect::Responses => request.get("instructions").map(content_text),
        ApiDialect::Generate => gemini::system_instruction(request),
        _ => None,
    };
    let instructions = instructions.filter(|text| !text.is_empty());
    instructions.map(|text| Entry::new(Role::System, EntryKind::Text, text)).into_iter().collect()
}

fn decode_messages(request: &Object, entries: fn(&Object) -> Vec<Entry>) -> Vec<Entry> {
    let messages = request.get("messages").and_then(Value::as_array);
    messages.into_iter().flatten().filter_map(Value::as_object).flat_map(entries).collect()
}

/// Decodes the input of a Responses request: a text, or items. Plain messages may lack a type.
fn decode_input(request: &Object) -> Vec<Entry> {
    match request.get("input") {
        Some(Value::String(input)) => vec![Entry::new(Role::User, EntryKind::Text, input.as_str())],
        Some(Value::Array(items)) => {
            items.iter().filter_map(Value::as_object).filter_map(decode_item).collect()
        }
        _ => Vec::new(),
    }
}

fn decode_item(item: &Object) -> Option<Entry> {
    if item.contains_key("type") || !item.contains_key("role") {
        return responses::item_entry(item);
    }
    let mut message = item.clone();
    message.insert("type".to_owned(), "message".into());
    responses::item_entry(&message)
}

fn is_structured(request: &Object) -> bool {
    let format = |parent: Option<&Value>| {
        let kind = parent.and_then(|format| format.get("type")).and_then(Value::as_str);
        kind.is_some_and(|kind| kind.starts_with("json"))
    };
    let inner = |outer: &str, name: &str| request.get(outer).and_then(|outer| outer.get(name));
    format(request.get("response_format"))
        || format(request.get("output_format"))
        || format(inner("text", "format"))
        || format(inner("output_config", "format"))
        || gemini::has_structured_output(request)
}
