//! Decodes a request into instructions and messages.

use super::dialect::Dialect;
use super::translate::translate_request;
use super::{gemini, single_call};
use crate::agent::api_log::{anthropic, chat};
use crate::agent::fields::text;
use crate::agent::responses::{self, content_text};
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// A decoded request.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Instructions to the model.
    pub(super) system: Vec<Entry>,
    /// Messages, in order.
    pub(super) said: Vec<Entry>,
    /// The id of the previous response, if the server keeps the history.
    pub(super) follows: Option<String>,
    /// Whether the request asks for structured output.
    pub(super) structured: bool,
    /// Whether the request only adds to the history and expects no response.
    pub(super) is_unanswered: bool,
}

impl Asked {
    /// Decodes the fields of a request.
    pub(super) fn of(dialect: Dialect, request: Object) -> Self {
        let request = &translate_request(dialect, request);
        let dialect = dialect.translated();
        let entries = match dialect {
            Dialect::Messages => messages(request, anthropic::entries),
            Dialect::Chat => messages(request, chat::entries),
            Dialect::Responses => items(request),
            Dialect::Generate => gemini::said(request),
            _ => single_call::asked_entries(dialect, request),
        };
        let mut asked = Self {
            system: instructions(dialect, request),
            follows: text(request, "previous_response_id").map(str::to_owned),
            structured: is_structured(request),
            is_unanswered: request.get("generate") == Some(&Value::Bool(false)),
            ..Self::default()
        };
        for mut entry in entries {
            settle(&mut entry);
            let is_instruction = entry.role == Role::System && entry.kind == Kind::Text;
            let list = if is_instruction { &mut asked.system } else { &mut asked.said };
            list.push(entry);
        }
        asked
    }
}

/// Normalizes an entry of any dialect.
pub(super) fn settle(entry: &mut Entry) {
    match entry.kind {
        Kind::ToolCall => settle_call(entry),
        Kind::Notice if entry.role == Role::System => entry.kind = Kind::Text,
        _ => {}
    }
    if let Role::Other(_) = entry.role {
        entry.role = Role::User;
    }
}

/// Puts the arguments into `content` as formatted JSON, and into `tool_input` if they are an object.
fn settle_call(entry: &mut Entry) {
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
    entry.content = crate::json::Style::PRETTY.print(&input);
    entry.tool_input = Some(input).filter(Value::is_object);
}

fn instructions(dialect: Dialect, request: &Object) -> Vec<Entry> {
    let instructions = match dialect {
        Dialect::Messages => request.get("system").map(content_text),
        Dialect::Responses => request.get("instructions").map(content_text),
        Dialect::Generate => gemini::instructions(request),
        _ => None,
    };
    let instructions = instructions.filter(|text| !text.is_empty());
    instructions.map(|text| Entry::new(Role::System, Kind::Text, text)).into_iter().collect()
}

fn messages(request: &Object, entries: fn(&Object) -> Vec<Entry>) -> Vec<Entry> {
    let messages = request.get("messages").and_then(Value::as_array);
    messages.into_iter().flatten().filter_map(Value::as_object).flat_map(entries).collect()
}

/// Decodes the input of a Responses request: a text, or items. Plain messages may lack a type.
fn items(request: &Object) -> Vec<Entry> {
    match request.get("input") {
        Some(Value::String(input)) => vec![Entry::new(Role::User, Kind::Text, input.as_str())],
        Some(Value::Array(items)) => {
            items.iter().filter_map(Value::as_object).filter_map(item).collect()
        }
        _ => Vec::new(),
    }
}

fn item(item: &Object) -> Option<Entry> {
    if item.contains_key("type") || !item.contains_key("role") {
        return responses::entry(item);
    }
    let mut message = item.clone();
    message.insert("type".to_owned(), "message".into());
    responses::entry(&message)
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
        || gemini::is_structured(request)
}
