//! Writes a session that continues one of another agent, in the format of `opencode export`. `opencode import` puts it
//! into the database, whose tables differ between versions.
//!
//! Tokens and costs are 0: they were billed in the other agent's session.

use serde_json::json;

use super::user_model::{OpenCodeModel, find_user_model};
use crate::agent::continuation::conversation::{ContinuedCall, ContinuedItem, ContinuedItemKind};
use crate::agent::continuation::image_segments::{ImageSegment, split_images};
use crate::agent::continuation::{ContinuationError, ContinuationFiles, ContinuationRequest};
use steno_model::json::Value;
use steno_model::timestamp::Timestamp;

/// The agent of OpenCode that works on a session.
const BUILD_AGENT: &str = "build";

/// Makes the file to import.
pub(super) fn write_session(
    request: &ContinuationRequest<'_>,
) -> Result<ContinuationFiles, ContinuationError> {
    let ids = OpenCodeIds::new(request);
    let session = ids.session_id();
    let now = unix_millis(request.now);
    let info = json!({
        "id": session,
        "slug": format!("continued-{}", request.unique_hex(0, 8)),
        "projectID": "global",
        "directory": request.folder,
        "title": request.title,
        "version": request.version,
        "time": {"created": now, "updated": now},
    });
    let model = find_user_model(request.user, request.folder);
    let mut writer = OpenCodeMessageWriter {
        request,
        ids,
        session: &session,
        model,
        prompt: None,
        messages: Vec::new(),
    };
    let notice = json!({"type": "text", "text": request.notice, "synthetic": true});
    writer.push_prompt(vec![notice], request.first_time());
    for ((number, item), at) in (1..).zip(&request.conversation.items).zip(request.item_times()) {
        writer.push_item(number, item, at);
    }
    let export = json!({"info": info, "messages": writer.messages});
    let bytes = serde_json::to_vec(&export).expect("a JSON value is written to memory");
    let path = format!("{session}.json").into();
    Ok(ContinuationFiles::with_session_file(session.clone(), path, bytes))
}

/// Makes ids that sort in the order of the records, and before those that OpenCode makes later.
struct OpenCodeIds<'a> {
    request: &'a ContinuationRequest<'a>,
    /// The number of the next record.
    next: u64,
}

impl<'a> OpenCodeIds<'a> {
    fn new(request: &'a ContinuationRequest<'a>) -> Self {
        // Each item has at most a message, its parts and its images.
        let count = request.conversation.items.len() as u64;
        let now = unix_millis(request.now) << 12;
        Self { request, next: now.saturating_sub(count << 16) }
    }

    /// The id of a session. Those of newer sessions sort before it.
    fn session_id(&self) -> String {
        let at = !(unix_millis(self.request.now) << 12);
        self.format_id("ses", at)
    }

    fn next_id(&mut self, prefix: &str) -> String {
        self.next += 1;
        self.format_id(prefix, self.next)
    }

    fn format_id(&self, prefix: &str, number: u64) -> String {
        let time = number & 0xffff_ffff_ffff;
        let unique = self.request.unique_hex(usize::try_from(time).unwrap_or_default(), 14);
        format!("{prefix}_{time:012x}{unique}")
    }
}

/// Collects the messages of an export.
struct OpenCodeMessageWriter<'a> {
    request: &'a ContinuationRequest<'a>,
    ids: OpenCodeIds<'a>,
    session: &'a str,
    model: OpenCodeModel,
    /// The id of the last prompt, which answers name.
    prompt: Option<String>,
    messages: Vec<Value>,
}

impl OpenCodeMessageWriter<'_> {
    fn push_item(&mut self, number: usize, item: &ContinuedItem, at: Timestamp) {
        match &item.kind {
            ContinuedItemKind::Prompt(text) => {
                let segments = split_images(text, self.request.images);
                self.push_prompt(segments.into_iter().map(prompt_part).collect(), at);
            }
            ContinuedItemKind::Answer(text) => {
                let part = json!({"type": "text", "text": text});
                self.push_answer(part, item.model.as_deref(), at);
            }
            ContinuedItemKind::Call(call) => {
                let part = self.tool_part(number, call, at);
                self.push_answer(part, item.model.as_deref(), at);
            }
        }
    }

    fn push_prompt(&mut self, parts: Vec<Value>, at: Timestamp) {
        let id = self.ids.next_id("msg");
        let OpenCodeModel { provider, model } = &self.model;
        let info = json!({
            "id": id,
            "sessionID": self.session,
            "role": "user",
            "time": {"created": unix_millis(at)},
            "agent": BUILD_AGENT,
            "model": {"providerID": provider, "modelID": model},
        });
        self.push_message(info, parts);
        self.prompt = Some(id);
    }

    fn push_answer(&mut self, part: Value, model: Option<&str>, at: Timestamp) {
        let at = unix_millis(at);
        let info = json!({
            "id": self.ids.next_id("msg"),
            "sessionID": self.session,
            "role": "assistant",
            "time": {"created": at, "completed": at},
            "parentID": self.prompt,
            "modelID": model.unwrap_or("unknown"),
            "providerID": self.request.origin_agent,
            "mode": BUILD_AGENT,
            "agent": BUILD_AGENT,
            "path": {"cwd": self.request.folder, "root": self.request.folder},
            "cost": 0,
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "finish": if part["type"] == "tool" { "tool-calls" } else { "stop" },
        });
        self.push_message(info, vec![part]);
    }

    fn push_message(&mut self, info: Value, parts: Vec<Value>) {
        let message = info["id"].clone();
        let parts: Vec<Value> =
            parts.into_iter().map(|part| self.complete_part(part, &message)).collect();
        self.messages.push(json!({"info": info, "parts": parts}));
    }

    /// Adds the ids that every part has.
    fn complete_part(&mut self, mut part: Value, message: &Value) -> Value {
        part["id"] = self.ids.next_id("prt").into();
        part["sessionID"] = self.session.into();
        part["messageID"] = message.clone();
        if let Some(Value::Array(files)) = part.pointer_mut("/state/attachments") {
            let files = std::mem::take(files);
            let files: Vec<Value> =
                files.into_iter().map(|file| self.complete_part(file, message)).collect();
            part["state"]["attachments"] = files.into();
        }
        part
    }

    /// A call with its result. Images after the text of the result are attachments.
    fn tool_part(&self, number: usize, call: &ContinuedCall, at: Timestamp) -> Value {
        let (at, input) = (unix_millis(at), &call.input);
        let time = json!({"start": at, "end": at});
        let state = if call.is_error {
            json!({"status": "error", "input": input, "error": call.result, "time": time})
        } else {
            let (output, attachments) = self.split_result(&call.result);
            let mut state = json!({
                "status": "completed", "input": input, "output": output, "title": "", "metadata": {}, "time": time,
            });
            if !attachments.is_empty() {
                state["attachments"] = attachments.into();
            }
            state
        };
        let id = format!("call_{}", self.request.unique_hex(number, 24));
        json!({"type": "tool", "callID": id, "tool": call.name, "state": state})
    }

    fn split_result(&self, result: &str) -> (String, Vec<Value>) {
        let mut segments = split_images(result, self.request.images).into_iter();
        let first = segments.next();
        let rest: Vec<ImageSegment> = segments.collect();
        match first {
            Some(ImageSegment::Text(text))
                if rest.iter().all(|segment| matches!(segment, ImageSegment::Image(_))) =>
            {
                (text, rest.into_iter().map(prompt_part).collect())
            }
            _ => (result.to_owned(), Vec::new()),
        }
    }
}

fn prompt_part(segment: ImageSegment) -> Value {
    match segment {
        ImageSegment::Text(text) => json!({"type": "text", "text": text}),
        ImageSegment::Image(image) => {
            json!({"type": "file", "mime": image.media_type, "url": image.data_url()})
        }
    }
}

fn unix_millis(at: Timestamp) -> u64 {
    u64::try_from(at.instant().as_millisecond()).unwrap_or_default()
}
