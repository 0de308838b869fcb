//! Decodes requests and responses of Gemini's generateContent.

use serde_json::json;

use crate::decoding::json_fields::{list_field, object_field, text_field};
use crate::decoding::usage;
use crate::protocols::gemini_parts;
use steno_model::entry::{Entry, Role, Usage};
use steno_model::json::{Object, Value};

/// Decodes the history. `contents` may also be a text or a single content.
pub(super) fn decode_contents(request: &Object) -> Vec<Entry> {
    match request.get("contents") {
        Some(Value::Array(contents)) => contents.iter().flat_map(decode_content).collect(),
        Some(single) => decode_content(single),
        None => Vec::new(),
    }
}

/// The text of the system instruction, in either spelling.
pub(super) fn system_instruction(request: &Object) -> Option<String> {
    let instruction = request.get("systemInstruction").or(request.get("system_instruction"))?;
    Some(gemini_parts::joined_text(instruction.get("parts").unwrap_or(instruction)))
}

/// Whether the request asks for structured output.
pub(super) fn has_structured_output(request: &Object) -> bool {
    let config =
        object_field(request, "generationConfig").or(object_field(request, "generation_config"));
    config.is_some_and(|config| {
        let kind =
            text_field(config, "responseMimeType").or(text_field(config, "response_mime_type"));
        kind == Some("application/json")
    })
}

/// The entries of a response, from its first candidate.
pub(super) fn candidate_entries(answer: &Object) -> Vec<Entry> {
    list_field(answer, "candidates").first().map(decode_candidate).unwrap_or_default()
}

/// Why the model stopped.
pub(super) fn finish_reason(answer: &Object) -> Option<&str> {
    list_field(answer, "candidates").first()?.get("finishReason")?.as_str()
}

/// The billed usage.
pub(super) fn response_usage(answer: &Object) -> Option<Usage> {
    object_field(answer, "usageMetadata").map(usage::gemini_usage)
}

/// Merges a chunk of a stream into the response so far.
pub(super) fn merge_chunk(answer: &mut Object, chunk: &Object) {
    for (field, value) in chunk.iter().filter(|(field, _)| *field != "candidates") {
        answer.insert(field.clone(), value.clone());
    }
    for piece in list_field(chunk, "candidates").iter().filter_map(Value::as_object) {
        merge_candidate(answer, piece);
    }
}

fn decode_content(content: &Value) -> Vec<Entry> {
    let role = match content.get("role").and_then(Value::as_str) {
        Some("model") => Role::Assistant,
        _ => Role::User,
    };
    match content.get("parts") {
        Some(Value::Array(list)) => {
            gemini_parts::decode_parts(&list.iter().map(to_camel_case).collect::<Value>(), &role)
        }
        other => gemini_parts::decode_parts(other.unwrap_or(content), &role),
    }
}

/// Converts field names of a part to camel case. Clients may also write them with underscores.
fn to_camel_case(part: &Value) -> Value {
    const NAMES: [(&str, &str); 4] = [
        ("function_call", "functionCall"),
        ("function_response", "functionResponse"),
        ("inline_data", "inlineData"),
        ("mime_type", "mimeType"),
    ];
    let Value::Object(part) = part else { return part.clone() };
    let renamed =
        part.iter().map(|(name, value)| match NAMES.iter().find(|(from, _)| from == name) {
            Some((_, to)) => ((*to).to_owned(), to_camel_case(value)),
            None => (name.clone(), value.clone()),
        });
    Value::Object(renamed.collect())
}

fn decode_candidate(candidate: &Value) -> Vec<Entry> {
    let parts = candidate.get("content").and_then(|content| content.get("parts"));
    parts.map(|parts| gemini_parts::decode_parts(parts, &Role::Assistant)).unwrap_or_default()
}

fn merge_candidate(answer: &mut Object, piece: &Object) {
    let index = piece.get("index").cloned().unwrap_or(json!(0));
    let Value::Array(whole) = answer.entry("candidates").or_insert_with(|| json!([])) else {
        return;
    };
    if whole.is_empty() {
        whole.push(json!({"index": index, "content": {"role": "model", "parts": []}}));
    }
    // Only the first candidate is decoded.
    let Some(first) = whole.first_mut().filter(|first| first["index"] == index) else { return };
    if let Some(reason) = piece.get("finishReason") {
        first["finishReason"] = reason.clone();
    }
    let new_parts =
        piece.get("content").and_then(|content| content.get("parts")).and_then(Value::as_array);
    if let Some(Value::Array(parts)) = first.pointer_mut("/content/parts") {
        new_parts.into_iter().flatten().for_each(|part| merge_part(parts, part));
    }
}

/// Appends a part. Consecutive pieces of one text or thought are joined.
fn merge_part(parts: &mut Vec<Value>, part: &Value) {
    let is_thought = |part: &Value| part.get("thought") == Some(&Value::Bool(true));
    let more = part.get("text").and_then(Value::as_str);
    let same = parts.last().is_some_and(|last| is_thought(last) == is_thought(part));
    if let (Some(more), true) = (more, same)
        && let Some(Value::String(last_text)) =
            parts.last_mut().and_then(|last| last.get_mut("text"))
    {
        last_text.push_str(more);
        return;
    }
    parts.push(part.clone());
}
