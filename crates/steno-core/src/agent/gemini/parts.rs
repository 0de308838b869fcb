//! Decodes the parts of a message in Gemini's API: text, thoughts, function calls and responses, files.

use crate::agent::attachment;
use crate::agent::{entries, fields, record};
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Style, Value};

/// Decodes `content`, which is a text, a part or a list of parts. Empty texts are skipped.
pub(crate) fn entries(content: &Value, role: &Role) -> Vec<Entry> {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| entry(part, role)).collect(),
        part => entry(part, role).into_iter().collect(),
    }
}

/// The text of all parts without thoughts, joined by newlines.
pub(crate) fn text(content: &Value) -> String {
    let texts = entries(content, &Role::User).into_iter().filter(|entry| entry.kind == Kind::Text);
    texts.map(|entry| entry.content).collect::<Vec<_>>().join("\n")
}

fn entry(part: &Value, role: &Role) -> Option<Entry> {
    let part = match part {
        Value::Null => return None,
        Value::String(text) => return said(text, role, Kind::Text),
        Value::Object(part) => part,
        other => return Some(Entry::new(role.clone(), Kind::Text, other.to_string())),
    };
    if let Some(text) = fields::text(part, "text") {
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        return said(text, role, if is_thought { Kind::Thinking } else { Kind::Text });
    }
    if let Some(call) = fields::object(part, "functionCall") {
        let (name, id) = (fields::text(call, "name"), fields::text(call, "id"));
        return Some(entries::tool_call(name, id, call.get("args")));
    }
    if let Some(response) = fields::object(part, "functionResponse") {
        return Some(answer(response));
    }
    if let Some(file) = fields::object(part, "inlineData") {
        let data = fields::text(file, "data").unwrap_or_default();
        let description = attachment::media(fields::text(file, "mimeType"), data);
        return Some(Entry::new(role.clone(), Kind::Text, description));
    }
    Some(entries::unknown(part.clone()))
}

fn said(text: &str, role: &Role, kind: Kind) -> Option<Entry> {
    (!text.is_empty()).then(|| Entry::new(role.clone(), kind, text))
}

/// Decodes a `functionResponse` into a tool result.
fn answer(response: &Object) -> Entry {
    let body = fields::object(response, "response");
    let error = body.and_then(|body| body.get("error"));
    let output = body.and_then(|body| body.get("output")).or(error);
    let content = match (output, body) {
        (Some(output), _) => record::said(output),
        (None, Some(body)) => Style::COMPACT.print(body),
        (None, None) => String::new(),
    };
    let mut entry = entries::tool_result(fields::text(response, "id"), content, error.is_some());
    entry.tool_name = fields::text(response, "name").map(str::to_owned);
    entry
}
