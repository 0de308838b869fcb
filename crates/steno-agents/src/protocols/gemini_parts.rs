//! Decodes the parts of a message in Gemini's API: text, thoughts, function calls and responses, files. Makes those of
//! prompts and tool results.

use serde_json::json;

use crate::agent::continuation::conversation::ContinuedCall;
use crate::agent::continuation::image_segments::{ImageLookup, ImageSegment, split_images};
use crate::decoding::{attachment, entries, json_fields, json_records};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{JsonStyle, Object, Value};

/// Decodes `content`, which is a text, a part or a list of parts. Empty texts are skipped.
pub(crate) fn decode_parts(content: &Value, role: &Role) -> Vec<Entry> {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| decode_part(part, role)).collect(),
        part => decode_part(part, role).into_iter().collect(),
    }
}

/// The text of all parts without thoughts, joined by newlines.
pub(crate) fn joined_text(content: &Value) -> String {
    let texts = decode_parts(content, &Role::User)
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::Text);
    texts.map(|entry| entry.content).collect::<Vec<_>>().join("\n")
}

fn decode_part(part: &Value, role: &Role) -> Option<Entry> {
    let part = match part {
        Value::Null => return None,
        Value::String(text) => return text_entry(text, role, EntryKind::Text),
        Value::Object(part) => part,
        other => return Some(Entry::new(role.clone(), EntryKind::Text, other.to_string())),
    };
    if let Some(text) = json_fields::text_field(part, "text") {
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        return text_entry(
            text,
            role,
            if is_thought { EntryKind::Thinking } else { EntryKind::Text },
        );
    }
    if let Some(call) = json_fields::object_field(part, "functionCall") {
        let (name, id) =
            (json_fields::text_field(call, "name"), json_fields::text_field(call, "id"));
        return Some(entries::tool_call(name, id, call.get("args")));
    }
    if let Some(response) = json_fields::object_field(part, "functionResponse") {
        return Some(decode_function_response(response));
    }
    if let Some(file) = json_fields::object_field(part, "inlineData") {
        let data = json_fields::text_field(file, "data").unwrap_or_default();
        let description =
            attachment::describe_base64(json_fields::text_field(file, "mimeType"), data);
        return Some(Entry::new(role.clone(), EntryKind::Text, description));
    }
    Some(entries::unknown_entry(part.clone()))
}

fn text_entry(text: &str, role: &Role, kind: EntryKind) -> Option<Entry> {
    (!text.is_empty()).then(|| Entry::new(role.clone(), kind, text))
}

/// Decodes a `functionResponse` into a tool result.
fn decode_function_response(response: &Object) -> Entry {
    let body = json_fields::object_field(response, "response");
    let error = body.and_then(|body| body.get("error"));
    let output = body.and_then(|body| body.get("output")).or(error);
    let content = match (output, body) {
        (Some(output), _) => json_records::value_text(output),
        (None, Some(body)) => JsonStyle::COMPACT.print(body),
        (None, None) => String::new(),
    };
    let mut entry =
        entries::tool_result(json_fields::text_field(response, "id"), content, error.is_some());
    entry.tool_name = json_fields::text_field(response, "name").map(str::to_owned);
    entry
}

/// The parts of a prompt: its text, and the images that the text names.
pub(crate) fn text_parts(text: &str, images: ImageLookup<'_>) -> Vec<Value> {
    let part = |segment| match segment {
        ImageSegment::Text(text) => json!({"text": text}),
        ImageSegment::Image(image) => {
            json!({"inlineData": {"mimeType": image.media_type, "data": image.base64}})
        }
    };
    split_images(text, images).into_iter().map(part).collect()
}

/// The parts of a tool result: the response, and after it the images that its text ends with.
pub(crate) fn function_response(
    id: &str,
    call: &ContinuedCall,
    images: ImageLookup<'_>,
) -> Vec<Value> {
    let mut segments = split_images(&call.result, images);
    // The response comes first, so only images after the text can be parts of their own.
    let is_text = |segment: &ImageSegment| matches!(segment, ImageSegment::Text(_));
    let has_text_first_only =
        segments.first().is_some_and(is_text) && !segments[1..].iter().any(is_text);
    if !has_text_first_only {
        segments = vec![ImageSegment::Text(call.result.clone())];
    }
    let mut parts = Vec::new();
    for segment in segments {
        parts.push(match segment {
            ImageSegment::Text(text) => {
                let field = if call.is_error { "error" } else { "output" };
                json!({"functionResponse": {"id": id, "name": call.name, "response": {field: text}}})
            }
            ImageSegment::Image(image) => {
                json!({"inlineData": {"mimeType": image.media_type, "data": image.base64}})
            }
        });
    }
    parts
}
