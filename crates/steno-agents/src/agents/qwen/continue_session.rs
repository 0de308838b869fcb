//! Writes a session that continues one of another agent: a chain of records, each with the parts of a message.

use serde_json::json;

use super::AGENT_NAME;
use crate::agent::continuation::conversation::{ContinuedCall, ContinuedItem, ContinuedItemKind};
use crate::agent::continuation::{
    ContinuationError, ContinuationFiles, ContinuationRequest, utc_millis,
};
use crate::agent::resume::named_project_folder;
use crate::protocols::gemini_parts::{function_response, text_parts};
use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;

/// Makes the session file.
pub(super) fn write_session(
    request: &ContinuationRequest<'_>,
) -> Result<ContinuationFiles, ContinuationError> {
    let id = request.random_session_id();
    let projects = super::data_folder(request.user).join("projects");
    let folder = named_project_folder(AGENT_NAME, &projects, request.folder, usize::MAX)?;
    let mut writer = QwenRecordWriter { request, session: &id, parent: None, lines: Vec::new() };
    let notice = QwenRecord {
        kind: "user",
        message: json!({"role": "user", "parts": [{"text": request.notice}]}),
        at: request.first_time(),
        more: json_object(json!({"provenance": "system"})),
    };
    writer.push_record(notice);
    for ((number, item), at) in (1..).zip(&request.conversation.items).zip(request.item_times()) {
        writer.push_item(number, item, at);
    }
    let path = folder.join("chats").join(format!("{id}.jsonl"));
    Ok(ContinuationFiles::with_session_file(id.clone(), path, writer.lines))
}

/// A record without the fields that all have.
struct QwenRecord {
    kind: &'static str,
    message: Value,
    at: Timestamp,
    more: Object,
}

/// Appends records to a session file, each with the one before as its parent.
struct QwenRecordWriter<'a> {
    request: &'a ContinuationRequest<'a>,
    session: &'a str,
    /// The UUID of the record before.
    parent: Option<String>,
    lines: Vec<u8>,
}

impl QwenRecordWriter<'_> {
    fn push_item(&mut self, number: usize, item: &ContinuedItem, at: Timestamp) {
        let model = item.model.as_deref();
        match &item.kind {
            ContinuedItemKind::Prompt(text) => {
                let parts = text_parts(text, self.request.images);
                let message = json!({"role": "user", "parts": parts});
                self.push_record(QwenRecord { kind: "user", message, at, more: Object::new() });
            }
            ContinuedItemKind::Answer(text) => self.push_answer(json!({"text": text}), model, at),
            ContinuedItemKind::Call(call) => self.push_call(number, call, model, at),
        }
    }

    fn push_answer(&mut self, part: Value, model: Option<&str>, at: Timestamp) {
        let message = json!({"role": "model", "parts": [part]});
        let more = model.map(|model| json_object(json!({"model": model}))).unwrap_or_default();
        self.push_record(QwenRecord { kind: "assistant", message, at, more });
    }

    /// Appends a call, and its result at once.
    fn push_call(
        &mut self,
        number: usize,
        call: &ContinuedCall,
        model: Option<&str>,
        at: Timestamp,
    ) {
        let id = format!("call_{}", self.request.unique_hex(number, 24));
        let part = json!({"functionCall": {"id": id, "name": call.name, "args": call.input}});
        self.push_answer(part, model, at);
        // The reader takes each part of a result for a result, so an image stays a description.
        let parts = function_response(&id, call, &|_| None);
        let status = if call.is_error { "error" } else { "success" };
        let message = json!({"role": "user", "parts": parts});
        let more = json_object(json!({"toolCallResult": {"callId": id, "status": status}}));
        self.push_record(QwenRecord { kind: "tool_result", message, at, more });
    }

    fn push_record(&mut self, record: QwenRecord) {
        let uuid = self.request.unique_uuid(self.lines.len());
        let mut record_fields = json_object(json!({
            "uuid": uuid,
            "parentUuid": self.parent,
            "sessionId": self.session,
            "timestamp": utc_millis(record.at),
            "type": record.kind,
            "cwd": self.request.folder,
            "version": self.request.version,
        }));
        if let Some(branch) = self.request.branch {
            record_fields.insert("gitBranch".to_owned(), branch.into());
        }
        record_fields.insert("message".to_owned(), record.message);
        record_fields.extend(record.more);
        serde_json::to_writer(&mut self.lines, &record_fields)
            .expect("a JSON value is written to memory");
        self.lines.push(b'\n');
        self.parent = Some(uuid);
    }
}

/// The fields of a JSON object.
fn json_object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => unreachable!("only objects are passed"),
    }
}
