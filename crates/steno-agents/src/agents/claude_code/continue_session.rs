//! Writes a session that continues one of another agent: a chain of records, one for each block.
//!
//! Answers have no usage: their tokens were billed in the other agent's session.

use std::path::PathBuf;

use serde_json::json;

use super::AGENT_NAME;
use crate::agent::continuation::conversation::{ContinuedCall, ContinuedItem, ContinuedItemKind};
use crate::agent::continuation::image_segments::{ImageSegment, split_images};
use crate::agent::continuation::{
    ContinuationError, ContinuationFiles, ContinuationRequest, utc_millis,
};
use crate::agent::resume::named_project_folder;
use steno_model::json::Value;
use steno_model::timestamp::Timestamp;

/// The longest name of a project folder without a hash.
pub(super) const MAX_FOLDER_NAME: usize = 200;

/// The model of an answer whose model was not recorded.
const UNKNOWN_MODEL: &str = "unknown";

/// Makes the session file.
pub(super) fn write_session(
    request: &ContinuationRequest<'_>,
) -> Result<ContinuationFiles, ContinuationError> {
    let id = request.random_session_id();
    let config = super::settings_folders(request.user).into_iter().next();
    let projects = config.unwrap_or_else(|| request.user.home.join(".claude")).join("projects");
    let folder = named_project_folder(AGENT_NAME, &projects, request.folder, MAX_FOLDER_NAME)?;
    let mut writer = ClaudeRecordWriter { request, session: &id, parent: None, lines: Vec::new() };
    let notice = json!({"role": "user", "content": request.notice});
    writer.push_record("user", notice, request.first_time());
    for ((number, item), at) in (1..).zip(&request.conversation.items).zip(request.item_times()) {
        writer.push_item(number, item, at);
    }
    let path: PathBuf = folder.join(format!("{id}.jsonl"));
    Ok(ContinuationFiles::with_session_file(id.clone(), path, writer.lines))
}

/// Appends records to a session file, each with the one before as its parent.
struct ClaudeRecordWriter<'a> {
    request: &'a ContinuationRequest<'a>,
    session: &'a str,
    /// The UUID of the record before.
    parent: Option<String>,
    lines: Vec<u8>,
}

impl ClaudeRecordWriter<'_> {
    fn push_item(&mut self, number: usize, item: &ContinuedItem, at: Timestamp) {
        let model = item.model.as_deref();
        match &item.kind {
            ContinuedItemKind::Prompt(text) => {
                let message = json!({"role": "user", "content": self.message_content(text)});
                self.push_record("user", message, at);
            }
            ContinuedItemKind::Answer(text) => {
                let block = json!({"type": "text", "text": text});
                self.push_answer(number, block, model, at);
            }
            ContinuedItemKind::Call(call) => self.push_call(number, call, model, at),
        }
    }

    /// Appends a call, and its result at once.
    fn push_call(
        &mut self,
        number: usize,
        call: &ContinuedCall,
        model: Option<&str>,
        at: Timestamp,
    ) {
        let id = format!("toolu_{}", self.request.unique_hex(number, 24));
        let ContinuedCall { name, input, result, is_error, .. } = call;
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        self.push_answer(number, block, model, at);
        let result = json!({
            "type": "tool_result", "tool_use_id": id, "content": self.message_content(result), "is_error": is_error,
        });
        self.push_record("user", json!({"role": "user", "content": [result]}), at);
    }

    fn push_answer(&mut self, number: usize, block: Value, model: Option<&str>, at: Timestamp) {
        let reason = if block["type"] == "tool_use" { "tool_use" } else { "end_turn" };
        let message = json!({
            "id": format!("msg_{}", self.request.unique_hex(number, 24)),
            "type": "message",
            "role": "assistant",
            "model": model.unwrap_or(UNKNOWN_MODEL),
            "content": [block],
            "stop_reason": reason,
            "stop_sequence": null,
        });
        self.push_record("assistant", message, at);
    }

    /// The content of a message or result: text, or blocks if it has images.
    fn message_content(&self, text: &str) -> Value {
        let segments = split_images(text, self.request.images);
        if let [ImageSegment::Text(text)] = segments.as_slice() {
            return Value::String(text.clone());
        }
        let block = |segment: ImageSegment| match segment {
            ImageSegment::Text(text) => json!({"type": "text", "text": text}),
            ImageSegment::Image(image) => {
                let media_type = image.media_type;
                let source =
                    json!({"type": "base64", "media_type": media_type, "data": image.base64});
                json!({"type": "image", "source": source})
            }
        };
        segments.into_iter().map(block).collect()
    }

    fn push_record(&mut self, kind: &str, message: Value, at: Timestamp) {
        let is_first = self.parent.is_none();
        let uuid = self.request.unique_uuid(self.lines.len());
        let mut record = json!({
            "parentUuid": self.parent,
            "isSidechain": false,
            "userType": "external",
            "cwd": self.request.folder,
            "sessionId": self.session,
            "version": self.request.version,
            "gitBranch": self.request.branch.unwrap_or_default(),
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": utc_millis(at),
        });
        if is_first {
            // The notice: shown to the model, but not as something that the user typed.
            record["isMeta"] = Value::Bool(true);
        }
        serde_json::to_writer(&mut self.lines, &record).expect("a JSON value is written to memory");
        self.lines.push(b'\n');
        self.parent = Some(uuid);
    }
}
