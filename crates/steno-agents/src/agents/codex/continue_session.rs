//! Writes a rollout that continues a session of another agent: response items, and an event for each prompt and answer.

use serde_json::json;

use crate::agent::continuation::conversation::{ContinuedCall, ContinuedItem, ContinuedItemKind};
use crate::agent::continuation::image_segments::{ImageSegment, split_images};
use crate::agent::continuation::{
    ContinuationError, ContinuationFiles, ContinuationRequest, utc_millis,
};
use steno_model::json::{JsonStyle, Value};
use steno_model::timestamp::Timestamp;

/// Makes the rollout.
pub(super) fn write_session(
    request: &ContinuationRequest<'_>,
) -> Result<ContinuationFiles, ContinuationError> {
    let id = request.id.hyphenated().to_string();
    let mut writer = CodexRolloutWriter { request, lines: Vec::new() };
    writer.push_meta(&id);
    writer.push_message("user", request.notice, request.first_time());
    for ((number, item), at) in (1..).zip(&request.conversation.items).zip(request.item_times()) {
        writer.push_item(number, item, at);
    }
    let now = request.now.instant().to_string();
    let (date, time) = (&now[..10], now[11..19].replace(':', "-"));
    let folder = super::config_folder(request.user).join("sessions").join(date.replace('-', "/"));
    let path = folder.join(format!("rollout-{date}T{time}-{id}.jsonl"));
    Ok(ContinuationFiles::with_session_file(id, path, writer.lines))
}

/// Appends lines to a rollout.
struct CodexRolloutWriter<'a> {
    request: &'a ContinuationRequest<'a>,
    lines: Vec<u8>,
}

impl CodexRolloutWriter<'_> {
    fn push_meta(&mut self, id: &str) {
        let at = utc_millis(self.request.now);
        let meta = json!({
            "session_id": id,
            "id": id,
            "timestamp": at,
            "cwd": self.request.folder,
            "originator": "codex_cli_rs",
            "cli_version": self.request.version,
            "source": "cli",
        });
        self.push_line("session_meta", meta, self.request.first_time());
    }

    fn push_item(&mut self, number: usize, item: &ContinuedItem, at: Timestamp) {
        match &item.kind {
            ContinuedItemKind::Prompt(text) => {
                let images = self.push_message("user", text, at);
                let event = json!({
                    "type": "user_message", "message": images.text, "images": images.urls, "local_images": [],
                    "text_elements": [],
                });
                self.push_line("event_msg", event, at);
            }
            ContinuedItemKind::Answer(text) => {
                self.push_message("assistant", text, at);
                let event = json!({"type": "agent_message", "message": text});
                self.push_line("event_msg", event, at);
            }
            ContinuedItemKind::Call(call) => self.push_call(number, call, at),
        }
    }

    /// Appends a call, and its result at once.
    fn push_call(&mut self, number: usize, call: &ContinuedCall, at: Timestamp) {
        let id = format!("call_{}", self.request.unique_hex(number, 24));
        let arguments = JsonStyle::COMPACT.print(&call.input);
        let item = json!({
            "type": "function_call", "name": call.name, "arguments": arguments, "call_id": id,
        });
        self.push_line("response_item", item, at);
        let segments = split_images(&call.result, self.request.images);
        let output = match segments.as_slice() {
            [ImageSegment::Text(text)] => Value::String(text.clone()),
            segments => {
                segments.iter().map(|segment| content_part(segment, "input_text")).collect()
            }
        };
        let item = json!({"type": "function_call_output", "call_id": id, "output": output});
        self.push_line("response_item", item, at);
    }

    /// Appends a message, and returns what its event must have.
    fn push_message(&mut self, role: &str, text: &str, at: Timestamp) -> CodexPromptEvent {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        let segments = match role {
            "user" => split_images(text, self.request.images),
            _ => vec![ImageSegment::Text(text.to_owned())],
        };
        let content: Value = segments.iter().map(|segment| content_part(segment, kind)).collect();
        let message = json!({"type": "message", "role": role, "content": content});
        self.push_line("response_item", message, at);
        let (mut texts, mut urls) = (Vec::new(), Vec::new());
        for segment in segments {
            match segment {
                ImageSegment::Text(text) => texts.push(text),
                ImageSegment::Image(image) => urls.push(image.data_url()),
            }
        }
        CodexPromptEvent { text: texts.join("\n"), urls }
    }

    fn push_line(&mut self, kind: &str, payload: Value, at: Timestamp) {
        let line = json!({"timestamp": utc_millis(at), "type": kind, "payload": payload});
        serde_json::to_writer(&mut self.lines, &line).expect("a JSON value is written to memory");
        self.lines.push(b'\n');
    }
}

/// The text and images of a prompt event.
struct CodexPromptEvent {
    text: String,
    urls: Vec<String>,
}

fn content_part(segment: &ImageSegment, text_kind: &str) -> Value {
    match segment {
        ImageSegment::Text(text) => json!({"type": text_kind, "text": text}),
        ImageSegment::Image(image) => json!({"type": "input_image", "image_url": image.data_url()}),
    }
}
