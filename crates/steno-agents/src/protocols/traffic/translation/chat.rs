//! Normalizes chat completions of compatible servers: Mistral sends thoughts as content parts, OpenRouter in
//! `reasoning_details`.

use serde_json::json;

use super::push_line;
use crate::decoding::json_fields::{list_field, text_field};
use steno_model::json::{Object, Value};

pub(super) fn translate_request(mut request: Object) -> Object {
    if let Some(Value::Array(messages)) = request.get_mut("messages") {
        messages.iter_mut().filter_map(Value::as_object_mut).for_each(separate_thoughts);
    }
    request
}

pub(super) fn translate_answer(mut answer: Object) -> Object {
    separate_choice_thoughts(&mut answer, "message");
    answer
}

pub(super) fn translate_event(mut event: Object) -> Object {
    separate_choice_thoughts(&mut event, "delta");
    event
}

fn separate_choice_thoughts(answer: &mut Object, field: &str) {
    let Some(Value::Array(choices)) = answer.get_mut("choices") else { return };
    let messages = choices.iter_mut().filter_map(|choice| choice.get_mut(field)?.as_object_mut());
    messages.for_each(separate_thoughts);
}

/// Moves thoughts into the field that most servers use for them.
fn separate_thoughts(message: &mut Object) {
    let is_thought = |part: &Value| part["type"] == "thinking";
    if let Some(Value::Array(parts)) = message.get_mut("content")
        && parts.iter().any(is_thought)
    {
        let mut thought = String::new();
        for part in parts.iter().filter(|part| is_thought(part)) {
            push_line(&mut thought, &thinking_text(&part["thinking"]));
        }
        parts.retain(|part| !is_thought(part));
        message.insert("reasoning_content".to_owned(), thought.into());
    }
    // In a stream, the content of a delta is a text or a list of parts.
    if let Some(Value::Array(parts)) = message.get("content")
        && parts.iter().all(|part| part["type"] == "text")
    {
        let content: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        message.insert("content".to_owned(), content.into());
    }
    let has_thought = ["reasoning", "reasoning_content"]
        .iter()
        .any(|field| text_field(message, field).is_some_and(|thought| !thought.is_empty()));
    if !has_thought && message.contains_key("reasoning_details") {
        let details = list_field(message, "reasoning_details").iter();
        let thought: String = details
            .filter_map(|detail| detail["text"].as_str().or(detail["summary"].as_str()))
            .collect();
        message.insert("reasoning".to_owned(), json!(thought));
    }
}

/// A thought is a text, or a list of parts with texts.
fn thinking_text(thinking: &Value) -> String {
    match thinking {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
