//! Translates Cohere chat, versions 1 and 2, into chat completions.

use serde_json::json;

use super::{PROVIDER_USAGE_FIELD, chat, into_object};
use crate::decoding::json_fields::{count_field, list_field, object_field, text_field};
use steno_model::json::{Object, Value};

pub(super) fn translate_request(mut request: Object) -> Object {
    if request.contains_key("messages") {
        if let Some(Value::Array(messages)) = request.get_mut("messages") {
            messages.iter_mut().filter_map(Value::as_object_mut).for_each(add_plan);
        }
        return chat::translate_request(request);
    }
    let mut messages = Vec::new();
    if let Some(preamble) = text_field(&request, "preamble") {
        messages.push(json!({"role": "system", "content": preamble}));
    }
    messages.extend(
        list_field(&request, "chat_history")
            .iter()
            .filter_map(Value::as_object)
            .flat_map(translate_history_message),
    );
    if let Some(content) = text_field(&request, "message").filter(|content| !content.is_empty()) {
        messages.push(json!({"role": "user", "content": content}));
    }
    messages.extend(list_field(&request, "tool_results").iter().map(translate_tool_result));
    request.insert("messages".to_owned(), messages.into());
    request
}

/// Translates a message of the version 1 history.
fn translate_history_message(message: &Object) -> Vec<Value> {
    let role = match text_field(message, "role").unwrap_or_default() {
        "CHATBOT" => "assistant",
        "SYSTEM" => "system",
        "TOOL" => {
            return list_field(message, "tool_results").iter().map(translate_tool_result).collect();
        }
        _ => "user",
    };
    let calls: Vec<_> = list_field(message, "tool_calls").iter().map(translate_call).collect();
    let mut translated = into_object(json!({"role": role, "content": message.get("message")}));
    if !calls.is_empty() {
        translated.insert("tool_calls".to_owned(), calls.into());
    }
    vec![Value::Object(translated)]
}

/// Translates a version 1 tool call, which has no id.
fn translate_call(call: &Value) -> Value {
    let arguments = call["parameters"].to_string();
    json!({"type": "function", "function": {"name": call["name"], "arguments": arguments}})
}

fn translate_tool_result(result: &Value) -> Value {
    let name = &result["call"]["name"];
    json!({"role": "tool", "name": name, "content": result["outputs"].to_string()})
}

pub(super) fn translate_answer(mut answer: Object) -> Object {
    let usage = answer.get("usage").or(answer.get("meta")).cloned();
    let reason = answer.get("finish_reason").cloned();
    let message = match answer.shift_remove("message") {
        Some(Value::Object(mut message)) => {
            add_plan(&mut message);
            message
        }
        _ => {
            let calls: Vec<_> =
                list_field(&answer, "tool_calls").iter().map(translate_call).collect();
            into_object(
                json!({"role": "assistant", "content": answer.get("text"), "tool_calls": calls}),
            )
        }
    };
    let id = answer.get("id").or(answer.get("response_id")).or(answer.get("generation_id"));
    let choice = json!({"index": 0, "message": message, "finish_reason": reason});
    let mut translated = into_object(json!({"id": id, "choices": [choice]}));
    add_usage(&mut translated, usage.as_ref());
    chat::translate_answer(translated)
}

pub(super) fn translate_event(mut event: Object, calls: &mut usize) -> Vec<Object> {
    let kind = text_field(&event, "type")
        .or(text_field(&event, "event_type"))
        .unwrap_or_default()
        .to_owned();
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        into_object(json!({"object": "chat.completion.chunk", "choices": [choice]}))
    };
    let message =
        event.get("delta").and_then(|delta| delta.get("message")).cloned().unwrap_or_default();
    let content = &message["content"];
    match kind.as_str() {
        "message-start" => {
            let mut first = chunk(json!({}), Value::Null);
            first.insert("id".to_owned(), event.get("id").cloned().unwrap_or_default());
            vec![first]
        }
        "content-start" | "content-delta" => {
            vec![chunk(
                json!({"content": content["text"], "reasoning_content": content["thinking"]}),
                Value::Null,
            )]
        }
        "tool-plan-delta" => {
            vec![chunk(json!({"reasoning_content": message["tool_plan"]}), Value::Null)]
        }
        "tool-call-start" => {
            *calls += 1;
            vec![chunk(
                json!({"tool_calls": [with_call_index(&message["tool_calls"], *calls)]}),
                Value::Null,
            )]
        }
        "tool-call-delta" => {
            vec![chunk(
                json!({"tool_calls": [with_call_index(&message["tool_calls"], *calls)]}),
                Value::Null,
            )]
        }
        "message-end" => {
            let delta = event.get("delta").cloned().unwrap_or_default();
            let mut last = chunk(json!({}), delta["finish_reason"].clone());
            add_usage(&mut last, delta.get("usage"));
            vec![last]
        }
        // Version 1.
        "text-generation" => vec![chunk(json!({"content": event.get("text")}), Value::Null)],
        "stream-end" => match event.shift_remove("response") {
            Some(Value::Object(response)) => {
                translate_stream_end(translate_answer(response), &event)
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The last event of version 1 repeats the whole response. Only the fields missing from earlier events are taken.
fn translate_stream_end(whole: Object, event: &Object) -> Vec<Object> {
    let message = whole["choices"][0]["message"].clone();
    let calls: Vec<_> = message["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(at, call)| with_call_index(call, at + 1))
        .collect();
    let choice = json!({"index": 0, "delta": {"tool_calls": calls}, "finish_reason": event.get("finish_reason")});
    let mut last = into_object(json!({"object": "chat.completion.chunk", "choices": [choice]}));
    for field in ["usage", PROVIDER_USAGE_FIELD] {
        last.extend(whole.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    vec![last]
}

fn with_call_index(call: &Value, count: usize) -> Value {
    let mut call = call.clone();
    if let Value::Object(call) = &mut call {
        call.insert("index".to_owned(), json!(count.saturating_sub(1)));
    }
    call
}

/// The model's tool plan counts as a thought.
fn add_plan(message: &mut Object) {
    if let Some(plan) = message.shift_remove("tool_plan") {
        message.insert("reasoning_content".to_owned(), plan);
    }
}

/// Billed units count what is charged; `tokens` also counts what Cohere adds.
fn add_usage(answer: &mut Object, provider_usage: Option<&Value>) {
    let Some(provider_usage) = provider_usage.and_then(Value::as_object) else { return };
    let counts =
        object_field(provider_usage, "billed_units").or(object_field(provider_usage, "tokens"));
    if let Some(counts) = counts {
        let (input, output) =
            (count_field(counts, "input_tokens"), count_field(counts, "output_tokens"));
        answer.insert(
            "usage".to_owned(),
            json!({"prompt_tokens": input, "completion_tokens": output}),
        );
    }
    answer.insert(PROVIDER_USAGE_FIELD.to_owned(), Value::Object(provider_usage.clone()));
}
