//! Assembles a streamed response of OpenAI's Responses API that broke off before its last event. The last event
//! repeats the whole response.

use serde_json::{Map, json};

use super::stream::append_text;
use crate::decoding::json_fields::text_field;
use steno_model::json::{Object, Value};

/// A response in progress.
#[derive(Default)]
pub(super) struct OpenResponse {
    head: Object,
    /// Items by their output index. Items with a `done` event are complete.
    items: Map<String, Value>,
}

impl OpenResponse {
    /// Adds an event. Returns the whole response if the event is the last one.
    pub(super) fn add_event(&mut self, mut event: Object) -> Option<Object> {
        let kind = text_field(&event, "type").unwrap_or_default().to_owned();
        match kind.as_str() {
            "response.created" | "response.in_progress" => {
                self.head = take_object(&mut event, "response").unwrap_or_default();
            }
            "response.output_item.added" | "response.output_item.done" => self.put_item(event),
            "response.completed" | "response.incomplete" | "response.failed" => {
                *self = Self::default();
                return take_object(&mut event, "response");
            }
            kind => {
                if let Some(delta_kind) =
                    kind.strip_prefix("response.").and_then(|k| k.strip_suffix(".delta"))
                {
                    self.append_delta(delta_kind, &event);
                }
            }
        }
        None
    }

    /// The partial response of a stream that broke off.
    pub(super) fn finish(self) -> Option<Object> {
        if self.items.is_empty() {
            return None;
        }
        let mut response = self.head;
        response.insert("object".to_owned(), json!("response"));
        let items: Vec<_> = self.items.into_iter().map(|(_, item)| item).collect();
        response.insert("output".to_owned(), Value::Array(items));
        Some(response)
    }

    fn put_item(&mut self, mut event: Object) {
        if let Some(item) = event.shift_remove("item").filter(Value::is_object) {
            self.items.insert(item_key(&event), item);
        }
    }

    fn append_delta(&mut self, delta_kind: &str, event: &Object) {
        let (Some(Value::Object(item)), Some(piece)) =
            (self.items.get_mut(&item_key(event)), text_field(event, "delta"))
        else {
            return;
        };
        match delta_kind {
            "output_text" | "refusal" => append_text_part(item, "content", "output_text", piece),
            "reasoning_summary_text" => append_text_part(item, "summary", "summary_text", piece),
            "reasoning_text" => append_text_part(item, "content", "reasoning_text", piece),
            "function_call_arguments" => append_text(item, "arguments", piece),
            "custom_tool_call_input" => append_text(item, "input", piece),
            _ => {}
        }
    }
}

/// Appends to the last text part of an item.
fn append_text_part(item: &mut Object, field: &str, kind: &str, piece: &str) {
    let Value::Array(parts) = item.entry(field).or_insert_with(|| json!([])) else { return };
    if parts.is_empty() {
        parts.push(json!({"type": kind, "text": ""}));
    }
    if let Some(Value::Object(part)) = parts.last_mut() {
        append_text(part, "text", piece);
    }
}

fn item_key(event: &Object) -> String {
    event.get("output_index").map(Value::to_string).unwrap_or_default()
}

fn take_object(event: &mut Object, field: &str) -> Option<Object> {
    match event.shift_remove(field) {
        Some(Value::Object(object)) => Some(object),
        _ => None,
    }
}
