//! Assembles stream events to the message that the API would have returned without streaming.

use std::collections::HashMap;

use serde_json::{Map, json};

use super::open_response::OpenResponse;
use crate::decoding::json_fields::{list_field, text_field};
use steno_model::json::{Object, Value};

/// Messages in progress.
#[derive(Default)]
pub(crate) struct ApiStreamAssembler {
    message: Option<Object>,
    /// Partial JSON of tool inputs, by block index.
    inputs: Map<String, Value>,
    completion: Option<Object>,
    /// Position of each choice in the completion, by its index.
    choices: HashMap<usize, usize>,
    response: OpenResponse,
}

/// The JSON of a line: the whole line, or what follows the prefix `data:`. `None` for other fields of an event
/// stream.
pub(crate) fn event_data(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii();
    if line.starts_with(b"{") {
        return Some(line);
    }
    let data = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii);
    let other = [&b"event:"[..], b"id:", b"retry:", b":"];
    match data {
        Some(b"[DONE]") => None,
        Some(data) => Some(data),
        None if other.iter().any(|field| line.starts_with(field)) || line.is_empty() => None,
        None => Some(line),
    }
}

impl ApiStreamAssembler {
    /// Whether an object is a stream event.
    pub(crate) fn is_stream_event(object: &Object) -> bool {
        let anthropic = [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
            "ping",
        ];
        let kind = text_field(object, "type").unwrap_or_default();
        anthropic.contains(&kind)
            || kind.starts_with("response.")
            || text_field(object, "object") == Some("chat.completion.chunk")
    }

    /// Adds an event. Returns the messages that it completes.
    pub(crate) fn add_event(&mut self, event: Object) -> Vec<Object> {
        let kind = text_field(&event, "type").unwrap_or_default();
        if kind.starts_with("response.") {
            return self.response.add_event(event).into_iter().collect();
        }
        match kind {
            "message_start" => return self.start_message(event).into_iter().collect(),
            "content_block_start" => self.start_block(event),
            "content_block_delta" => self.append_block_delta(&event),
            "content_block_stop" => self.finish_block(&event),
            "message_delta" => self.apply_message_delta(&event),
            "message_stop" => return self.end_message().into_iter().collect(),
            "ping" => {}
            _ => return self.add_chunk(event).into_iter().collect(),
        }
        Vec::new()
    }

    /// The partial messages of a stream that broke off.
    pub(crate) fn finish(mut self) -> Vec<Object> {
        let response = std::mem::take(&mut self.response).finish();
        [self.end_message(), self.completion.take(), response].into_iter().flatten().collect()
    }

    /// Starts a message. A repeated start of the same message is skipped. Any other start ends the open message.
    fn start_message(&mut self, mut event: Object) -> Option<Object> {
        let Some(Value::Object(mut message)) = event.shift_remove("message") else {
            return None;
        };
        let open = self.message.as_ref();
        if open.is_some_and(|open| open.get("id") == message.get("id") && block_count(open) == 0) {
            return None;
        }
        let broken = self.end_message();
        message.entry("content").or_insert_with(|| json!([]));
        self.message = Some(message);
        broken
    }

    fn start_block(&mut self, mut event: Object) {
        let index = event_index(&event);
        let block = event.shift_remove("content_block");
        if let (Some(block @ Value::Object(_)), Some(content)) = (block, self.message_content())
            && content.len() == index
        {
            content.push(block);
        }
    }

    fn append_block_delta(&mut self, event: &Object) {
        let index = event_index(event);
        let Some(Value::Object(delta)) = event.get("delta") else {
            return;
        };
        let (field, piece) = match text_field(delta, "type").unwrap_or_default() {
            "text_delta" => ("text", text_field(delta, "text")),
            "thinking_delta" => ("thinking", text_field(delta, "thinking")),
            "compaction_delta" => ("content", text_field(delta, "content")),
            "input_json_delta" => {
                let piece = text_field(delta, "partial_json").unwrap_or_default();
                return append_text(&mut self.inputs, &index.to_string(), piece);
            }
            _ => return,
        };
        let content = self.message_content();
        if let Some(Value::Object(block)) = content.and_then(|content| content.get_mut(index)) {
            append_text(block, field, piece.unwrap_or_default());
        }
    }

    fn finish_block(&mut self, event: &Object) {
        let index = event_index(event);
        let Some(Value::String(input)) = self.inputs.swap_remove(&index.to_string()) else {
            return;
        };
        let input = serde_json::from_str(&input).unwrap_or(Value::String(input));
        let content = self.message_content();
        if let Some(Value::Object(block)) = content.and_then(|content| content.get_mut(index))
            && input != Value::String(String::new())
        {
            block.insert("input".to_owned(), input);
        }
    }

    fn apply_message_delta(&mut self, event: &Object) {
        let Some(message) = &mut self.message else {
            return;
        };
        if let Some(Value::Object(delta)) = event.get("delta") {
            message.extend(delta.clone());
        }
        if let Some(Value::Object(counts)) = event.get("usage") {
            let usage = message.entry("usage").or_insert_with(|| json!({}));
            if let Value::Object(usage) = usage {
                usage.extend(counts.clone());
            }
        }
    }

    fn end_message(&mut self) -> Option<Object> {
        let inputs = std::mem::take(&mut self.inputs);
        for index in inputs.keys().filter_map(|index| index.parse::<usize>().ok()) {
            let content = self.message_content();
            if let Some(Value::Object(block)) = content.and_then(|content| content.get_mut(index)) {
                block.insert("incomplete".to_owned(), Value::Bool(true));
            }
        }
        self.message.take()
    }

    fn message_content(&mut self) -> Option<&mut Vec<Value>> {
        self.message.as_mut()?.get_mut("content")?.as_array_mut()
    }

    /// Adds a chunk. Chunks of one completion share its id, and the last one has the usage and no choices.
    fn add_chunk(&mut self, chunk: Object) -> Option<Object> {
        let same = |open: &Object| open.get("id") == chunk.get("id");
        let ended =
            if self.completion.as_ref().is_some_and(same) { None } else { self.completion.take() };
        if self.completion.is_none() {
            self.choices.clear();
        }
        let completion = self.completion.get_or_insert_with(Object::new);
        for field in ["id", "created", "model", "usage", "stated_usage"] {
            if let Some(value) = chunk.get(field).filter(|value| !value.is_null()) {
                completion.insert(field.to_owned(), value.clone());
            }
        }
        completion.insert("object".to_owned(), json!("chat.completion"));
        let whole = completion.entry("choices").or_insert_with(|| json!([]));
        let choices = list_field(&chunk, "choices").iter();
        if let Value::Array(whole) = whole {
            let positions = &mut self.choices;
            choices
                .filter_map(Value::as_object)
                .for_each(|choice| add_choice(whole, positions, choice));
        }
        ended
    }
}

fn add_choice(whole: &mut Vec<Value>, positions: &mut HashMap<usize, usize>, piece: &Object) {
    let index = event_index(piece);
    let at = *positions.entry(index).or_insert_with(|| {
        whole.push(json!({"index": index, "message": {"role": "assistant", "content": ""}}));
        whole.len() - 1
    });
    if let Some(reason) = piece.get("finish_reason").filter(|reason| reason.is_string()) {
        whole[at]["finish_reason"] = reason.clone();
    }
    let Some(Value::Object(delta)) = piece.get("delta") else {
        return;
    };
    let Some(Value::Object(message)) = whole[at].get_mut("message") else {
        return;
    };
    for field in ["content", "refusal", "reasoning_content", "reasoning"] {
        if let Some(text) = text_field(delta, field) {
            append_text(message, field, text);
        }
    }
    let calls = list_field(delta, "tool_calls").iter();
    calls.filter_map(Value::as_object).for_each(|call| add_call(message, call));
}

fn add_call(message: &mut Object, piece: &Object) {
    let index = event_index(piece);
    let calls = message.entry("tool_calls").or_insert_with(|| json!([]));
    let Value::Array(calls) = calls else {
        return;
    };
    if index >= calls.len() {
        calls.push(json!({"function": {}}));
    }
    let at = index.min(calls.len() - 1);
    let Value::Object(call) = &mut calls[at] else {
        return;
    };
    if let Some(id) = piece.get("id").filter(|id| id.is_string()) {
        call.insert("id".to_owned(), id.clone());
    }
    let (Some(Value::Object(whole)), Some(Value::Object(function))) =
        (call.get_mut("function"), piece.get("function"))
    else {
        return;
    };
    for field in ["name", "arguments"] {
        if let Some(text) = text_field(function, field) {
            append_text(whole, field, text);
        }
    }
}

/// Appends to a text field.
pub(super) fn append_text(object: &mut Object, field: &str, piece: &str) {
    match object.entry(field).or_insert_with(|| json!("")) {
        Value::String(text) => text.push_str(piece),
        other => *other = json!(piece),
    }
}

fn block_count(message: &Object) -> usize {
    list_field(message, "content").len()
}

fn event_index(event: &Object) -> usize {
    let index = event.get("index").and_then(Value::as_u64);
    index.and_then(|index| usize::try_from(index).ok()).unwrap_or_default()
}
