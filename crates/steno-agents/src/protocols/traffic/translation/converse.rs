//! Translates Bedrock Converse into Anthropic Messages.

use serde_json::json;

use super::{PROVIDER_USAGE_FIELD, into_object};
use crate::decoding::json_fields::{list_field, text_field};
use steno_model::json::{Object, Value};

pub(super) fn translate_request(mut request: Object) -> Object {
    if let Some(Value::Array(messages)) = request.get_mut("messages") {
        for message in messages.iter_mut().filter_map(Value::as_object_mut) {
            let blocks: Vec<_> =
                list_field(message, "content").iter().map(translate_block).collect();
            message.insert("content".to_owned(), blocks.into());
        }
    }
    let system: Vec<_> =
        list_field(&request, "system").iter().filter_map(|block| block["text"].as_str()).collect();
    if !system.is_empty() {
        let system = system.join("\n");
        request.insert("system".to_owned(), system.into());
    }
    request
}

pub(super) fn translate_answer(answer: Object) -> Object {
    let Some(message) = answer.get("output").and_then(|output| output.get("message")) else {
        return answer;
    };
    let content = message.get("content").and_then(Value::as_array);
    let blocks: Vec<_> = content.into_iter().flatten().map(translate_block).collect();
    let mut translated = into_object(json!({"type": "message", "role": "assistant",
        "content": blocks, "stop_reason": answer.get("stopReason")}));
    add_usage(&mut translated, answer.get("usage"));
    translated
}

/// Translates an event. Its `type` is the event's name.
pub(super) fn translate_event(event: Object) -> Vec<Object> {
    let index = event.get("contentBlockIndex").cloned().unwrap_or_else(|| json!(0));
    let translated = match text_field(&event, "type").unwrap_or_default() {
        "messageStart" => {
            json!([{"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}}])
        }
        "contentBlockStart" => match event.get("start").and_then(|start| start.get("toolUse")) {
            Some(call) => {
                let block = json!({"type": "tool_use", "id": call["toolUseId"], "name": call["name"], "input": {}});
                json!([{"type": "content_block_start", "index": index, "content_block": block}])
            }
            None => json!([]),
        },
        "contentBlockDelta" => translate_delta(&index, &event["delta"]),
        "contentBlockStop" => json!([{"type": "content_block_stop", "index": index}]),
        "messageStop" => {
            json!([{"type": "message_delta", "delta": {"stop_reason": event.get("stopReason")}}])
        }
        "metadata" => {
            let mut usage = Object::new();
            add_usage(&mut usage, event.get("usage"));
            let delta = json!({PROVIDER_USAGE_FIELD: usage.get(PROVIDER_USAGE_FIELD)});
            json!([{"type": "message_delta", "delta": delta, "usage": usage.get("usage")}])
        }
        _ => json!([]),
    };
    let Value::Array(events) = translated else { return Vec::new() };
    events.into_iter().map(into_object).collect()
}

/// Converse does not announce text and thinking blocks. Each delta is preceded by a block start; repeated starts of a
/// block are ignored.
fn translate_delta(index: &Value, delta: &Value) -> Value {
    let (block, delta) = if let Some(content) = delta.get("text") {
        (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": content}))
    } else if let Some(input) = delta.pointer("/toolUse/input") {
        let delta = json!({"type": "input_json_delta", "partial_json": input});
        return json!([{"type": "content_block_delta", "index": index, "delta": delta}]);
    } else if let Some(thought) = delta.pointer("/reasoningContent/text") {
        let delta = json!({"type": "thinking_delta", "thinking": thought});
        (json!({"type": "thinking", "thinking": ""}), delta)
    } else if delta.get("reasoningContent").is_some() {
        // A signature, or an encrypted thought.
        let delta = json!({"type": "signature_delta"});
        (json!({"type": "thinking", "thinking": ""}), delta)
    } else {
        return json!([]);
    };
    json!([
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_delta", "index": index, "delta": delta},
    ])
}

/// A block is an object with one field that names its type.
fn translate_block(block: &Value) -> Value {
    let source = |media: &Value| {
        let data = media.pointer("/source/bytes").and_then(Value::as_str).unwrap_or_default();
        json!({"type": "base64", "media_type": media["format"], "data": data})
    };
    match block.as_object().and_then(|block| block.iter().next()) {
        Some((kind, value)) => match kind.as_str() {
            "text" => json!({"type": "text", "text": value}),
            "toolUse" => json!({"type": "tool_use", "id": value["toolUseId"],
                "name": value["name"], "input": value["input"]}),
            "toolResult" => {
                let parts: Vec<_> = value["content"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(translate_block)
                    .collect();
                json!({"type": "tool_result", "tool_use_id": value["toolUseId"], "content": parts,
                    "is_error": value["status"] == "error"})
            }
            "reasoningContent" => {
                let thought = value.pointer("/reasoningText/text").cloned().unwrap_or_default();
                json!({"type": "thinking", "thinking": thought})
            }
            "json" => json!({"type": "text", "text": value.to_string()}),
            "image" => json!({"type": "image", "source": source(value)}),
            "document" => json!({"type": "document", "source": source(value)}),
            // A cache marker has no content.
            "cachePoint" => json!({"type": "text", "text": ""}),
            _ => block.clone(),
        },
        None => block.clone(),
    }
}

fn add_usage(answer: &mut Object, provider_usage: Option<&Value>) {
    let Some(provider_usage) = provider_usage.and_then(Value::as_object) else { return };
    let count =
        |name: &str| provider_usage.get(name).or(provider_usage.get(&format!("{name}Count")));
    answer.insert(
        "usage".to_owned(),
        json!({
            "input_tokens": count("inputTokens"),
            "output_tokens": count("outputTokens"),
            "cache_read_input_tokens": count("cacheReadInputTokens"),
            "cache_creation_input_tokens": count("cacheWriteInputTokens"),
        }),
    );
    answer.insert(PROVIDER_USAGE_FIELD.to_owned(), Value::Object(provider_usage.clone()));
}
