//! Translates Ollama's API into chat completions.

use serde_json::json;

use super::{PROVIDER_USAGE_FIELD, into_object};
use crate::decoding::json_fields::{count_field, list_field, text_field};
use steno_model::json::{Object, Value};

pub(super) fn translate_chat_request(mut request: Object) -> Object {
    if let Some(Value::Array(messages)) = request.get_mut("messages") {
        messages.iter_mut().filter_map(Value::as_object_mut).for_each(translate_message);
    }
    request
}

/// Translates a prompt, with its system text as the first message.
pub(super) fn translate_generate_request(request: &Object) -> Object {
    let mut messages = Vec::new();
    if let Some(system) = text_field(request, "system").filter(|system| !system.is_empty()) {
        messages.push(json!({"role": "system", "content": system}));
    }
    let mut prompt = into_object(json!({"role": "user", "content": request.get("prompt")}));
    if let Some(images) = request.get("images") {
        prompt.insert("images".to_owned(), images.clone());
    }
    translate_message(&mut prompt);
    messages.push(Value::Object(prompt));
    into_object(json!({"model": request.get("model"), "messages": messages,
        "response_format": response_format(request)}))
}

pub(super) fn translate_answer(mut answer: Object) -> Object {
    let reason = stop_reason(&answer);
    let mut message = match answer.shift_remove("message") {
        Some(Value::Object(message)) => message,
        _ => generated_message(&answer),
    };
    message.entry("role").or_insert_with(|| json!("assistant"));
    translate_message(&mut message);
    add_usage(&mut answer);
    let choice = json!({"index": 0, "message": message, "finish_reason": reason});
    answer.insert("choices".to_owned(), json!([choice]));
    answer
}

/// Translates one line of a stream. Tool calls are whole and have no index.
pub(super) fn translate_event(mut event: Object, calls: &mut usize) -> Object {
    let reason = stop_reason(&event);
    let mut delta = match event.shift_remove("message") {
        Some(Value::Object(message)) => message,
        _ => generated_message(&event),
    };
    translate_message(&mut delta);
    if let Some(Value::Array(list)) = delta.get_mut("tool_calls") {
        for call in list.iter_mut().filter_map(Value::as_object_mut) {
            call.insert("index".to_owned(), json!(*calls));
            *calls += 1;
        }
    }
    add_usage(&mut event);
    let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
    event.insert("choices".to_owned(), json!([choice]));
    event.insert("object".to_owned(), json!("chat.completion.chunk"));
    event
}

/// The message in a response to a prompt.
fn generated_message(answer: &Object) -> Object {
    let fields = [("content", "response"), ("thinking", "thinking")];
    let fields =
        fields.iter().filter_map(|(to, from)| Some(((*to).to_owned(), answer.get(*from)?.clone())));
    fields.collect()
}

/// Renames thoughts, arguments and images to the fields of chat completions.
fn translate_message(message: &mut Object) {
    if let Some(thought) = message.shift_remove("thinking") {
        message.insert("reasoning_content".to_owned(), thought);
    }
    if let Some(name) = message.shift_remove("tool_name") {
        message.insert("name".to_owned(), name);
    }
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for call in calls {
            if let Some(arguments) = call.pointer_mut("/function/arguments")
                && !arguments.is_string()
            {
                *arguments = arguments.to_string().into();
            }
        }
    }
    let images: Vec<Value> = list_field(message, "images")
        .iter()
        .filter_map(Value::as_str)
        .map(|data| json!({"type": "image_url", "image_url": {"url": format!("data:image;base64,{data}")}}))
        .collect();
    if !images.is_empty() {
        let text_part =
            json!({"type": "text", "text": text_field(message, "content").unwrap_or_default()});
        let parts: Vec<Value> = std::iter::once(text_part).chain(images).collect();
        message.insert("content".to_owned(), parts.into());
    }
}

fn stop_reason(answer: &Object) -> Option<String> {
    let is_done = answer.get("done") == Some(&Value::Bool(true));
    is_done.then(|| text_field(answer, "done_reason").unwrap_or("stop").to_owned())
}

fn add_usage(answer: &mut Object) {
    let (input, output) =
        (count_field(answer, "prompt_eval_count"), count_field(answer, "eval_count"));
    if input + output == 0 {
        return;
    }
    let provider_usage =
        answer.iter().filter(|(name, _)| name.ends_with("_count") || name.ends_with("_duration"));
    let provider_usage: Object =
        provider_usage.map(|(name, value)| (name.clone(), value.clone())).collect();
    answer.insert(PROVIDER_USAGE_FIELD.to_owned(), provider_usage.into());
    answer.insert("usage".to_owned(), json!({"prompt_tokens": input, "completion_tokens": output}));
}

/// Any `format`, including a schema, asks for JSON.
fn response_format(request: &Object) -> Value {
    let has_format = request.get("format").is_some_and(|format| !format.is_null());
    if has_format { json!({"type": "json_object"}) } else { Value::Null }
}
