//! Detects from one JSON value which system wrote it, and decodes it. Knows nothing about files.

use std::fmt;

use super::native;
use steno_agents::decoding::json_repair;
use steno_agents::interchange::openai;
use steno_agents::protocols::api_log;
use steno_model::entry::{Entry, EntryError, EntryKind, Role};
use steno_model::json::{JsonStyle, Object, Value};
use steno_seeds::weakincentives::{self, claude};
use steno_seeds::{chibi, devflow};

/// The system that wrote a record, and the kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordShape {
    /// A line of a context, inbox or debug file.
    Chibi,
    /// A turn of a run.
    Devflow,
    /// A whole run.
    DevflowRun,
    /// A `TranscriptEntry`, a log record or a snapshot.
    Weakincentives,
    /// A request to a model API and its response.
    ApiLog,
    /// A chat message or an item of the Responses API.
    Message,
    /// An object that lists such messages or items.
    MessageList,
    /// A line of Claude Code's session file.
    Claude,
    /// An entry in Steno's own JSON.
    Entry,
    /// A Steno document.
    Document,
}

impl RecordShape {
    /// Detects the shape of an object; `None` if it is unknown.
    pub fn detect(object: &Object) -> Option<Self> {
        if chibi::is_chibi_record(object) {
            Some(RecordShape::Chibi)
        } else if devflow::is_turn_record(object) {
            Some(RecordShape::Devflow)
        } else if is_weakincentives(object) {
            Some(RecordShape::Weakincentives)
        } else if api_log::is_api_exchange(object) {
            Some(RecordShape::ApiLog)
        } else if openai::is_chat_message(object) || openai::is_responses_item(object) {
            Some(RecordShape::Message)
        } else if object.contains_key("role") {
            Some(RecordShape::Entry)
        } else if claude::is_claude_line(object) {
            Some(RecordShape::Claude)
        } else {
            Self::detect_conversation(object)
        }
    }

    /// Detects the shape of an object that has a whole conversation.
    fn detect_conversation(object: &Object) -> Option<Self> {
        if devflow::is_run_record(object) {
            Some(RecordShape::DevflowRun)
        } else if openai::has_message_list(object) {
            Some(RecordShape::MessageList)
        } else if native::is_document_object(object) {
            Some(RecordShape::Document)
        } else {
            None
        }
    }
}

/// Decodes the entries of one record. A record of unknown shape becomes one entry of kind `other`.
///
/// `record` identifies it within the session; no other record has the same name.
pub fn decode_record(value: Value, record: &dyn fmt::Display) -> Result<Vec<Entry>, EntryError> {
    match value {
        Value::Object(object) => decode_object(object, record),
        Value::Array(messages) if openai::is_message_list(&messages) => {
            Ok(openai::entries_from_messages(&messages, record))
        }
        _ => Err(EntryError::NotAnObject),
    }
}

fn decode_object(object: Object, record: &dyn fmt::Display) -> Result<Vec<Entry>, EntryError> {
    match RecordShape::detect(&object) {
        Some(RecordShape::Chibi) => chibi::decode_record(object),
        Some(RecordShape::Devflow) => devflow::decode_turn(object),
        Some(RecordShape::DevflowRun) => devflow::decode_run(object),
        Some(RecordShape::Weakincentives) => weakincentives::decode_record(object),
        Some(RecordShape::ApiLog) => Ok(api_log::exchange_entries(&object)),
        Some(RecordShape::Message) => Ok(openai::entries_from_message(&object, record)),
        Some(RecordShape::MessageList) => Ok(openai::entries_from_message_list(&object, record)),
        Some(RecordShape::Claude) => claude::decode_line(object),
        Some(RecordShape::Entry) => decode_native_entry(object),
        Some(RecordShape::Document) => native::entries_from_document(object),
        None => Ok(vec![unknown_record_entry(object)]),
    }
}

/// Decodes an entry of Steno's own format. In a record that Steno did not write, unknown fields become a second
/// entry.
fn decode_native_entry(object: Object) -> Result<Vec<Entry>, EntryError> {
    let is_written_by_us = object.contains_key("kind");
    let entry = Entry::from_object(object)?;
    let mut others = entry.extra.clone();
    others.shift_remove("is_error");
    if is_written_by_us || others.is_empty() {
        return Ok(vec![entry]);
    }
    Ok(vec![entry, openai::unknown_fields_entry(others)])
}

/// Whether an object is a record of weakincentives, of any version. One with fields that only Steno writes is not.
fn is_weakincentives(object: &Object) -> bool {
    let ours = ["kind", "model", "message_id", "parent_id", "usage"];
    weakincentives::is_weakincentives_record(object)
        && !ours.iter().any(|field| object.contains_key(*field))
}

/// An object of unknown shape, kept whole as kind `other`.
pub(crate) fn opaque_entry(record: &[u8]) -> Result<Entry, EntryError> {
    match json_repair::parse_lenient(record) {
        Ok(Value::Object(object)) => Ok(unknown_record_entry(object)),
        _ => Err(EntryError::NotAnObject),
    }
}

fn unknown_record_entry(object: Object) -> Entry {
    let mut entry = Entry::new(Role::System, EntryKind::Other, JsonStyle::COMPACT.print(&object));
    entry.metadata = Some(object);
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Option<RecordShape> {
        match serde_json::from_str(text).unwrap() {
            Value::Object(object) => RecordShape::detect(&object),
            _ => None,
        }
    }

    #[test]
    fn recognises_every_system_by_a_line() {
        let chibi =
            r#"{"id":"a","timestamp":1,"from":"u","to":"c","content":"x","entry_type":"message"}"#;
        let turn = r#"{"id":1,"role":"user","content":"x","timestamp":"2026-01-05T09:15:32Z"}"#;
        let typed = r#"{"__type__":"weakincentives.transcript:TranscriptEntry","role":"user","content":"x",
            "created_at":"2026-01-05T09:15:32+00:00","sequence":0}"#;
        let claude =
            r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"x"}}"#;
        assert_eq!(shape(chibi), Some(RecordShape::Chibi));
        assert_eq!(shape(turn), Some(RecordShape::Devflow));
        assert_eq!(shape(typed), Some(RecordShape::Weakincentives));
        assert_eq!(shape(claude), Some(RecordShape::Claude));
        assert_eq!(shape(r#"{"role":"user","content":"x"}"#), Some(RecordShape::Entry));
        assert_eq!(shape(r#"{"anything":"else"}"#), None);
        let untyped = r#"{"role":"user","content":"x","created_at":"2026-01-05T09:15:32+00:00","tool_name":null,
            "metadata":{"model":"gpt-4o"},"entry_id":"6f1c3a52-0a5f-4f0e-9d0b-2f8c1f0f5a11","source":"primary","sequence":3}"#;
        assert_eq!(shape(untyped), Some(RecordShape::Weakincentives));
        let ours = untyped.replace("\"sequence\"", "\"kind\":\"text\",\"sequence\"");
        assert_eq!(shape(&ours), Some(RecordShape::Entry));
        let completion = r#"{"id":"x","object":"chat.completion","model":"m","choices":[{"message":{"role":"assistant","content":"x"}}]}"#;
        assert_eq!(shape(completion), Some(RecordShape::ApiLog));
        let run = r#"{"runId":"r","metadata":{"flowId":"f"},"turns":[]}"#;
        assert_eq!(shape(run), Some(RecordShape::DevflowRun));
        assert_eq!(shape(r#"{"session":{"id":"s"},"entries":[]}"#), Some(RecordShape::Document));
    }

    #[test]
    fn whole_conversations_in_one_record_give_all_entries() {
        let read = |text: &str| decode_record(serde_json::from_str(text).unwrap(), &1).unwrap();
        let run = r#"{"runId":"r","metadata":{"flowId":"f"},"turns":[
            {"id":1,"role":"user","content":"a","timestamp":"2026-01-05T09:15:32Z"},
            {"id":2,"role":"assistant","content":"b","timestamp":"2026-01-05T09:15:33Z"}]}"#;
        assert_eq!(read(run).len(), 2);
        let document = r#"{"session":{"id":"s"},"entries":[{"role":"user","content":"a"}]}"#;
        assert_eq!(read(document).len(), 1);
        let exchange = r#"{"request":{"model":"m","messages":[{"role":"user","content":"a"}]},
            "response":{"id":"x","object":"chat.completion","model":"m","usage":{"prompt_tokens":7,"completion_tokens":1},
            "choices":[{"message":{"role":"assistant","content":"b"}}]}}"#;
        let exchange = read(exchange);
        assert_eq!((exchange.len(), exchange[1].usage.unwrap().input), (2, 7));
        assert!(exchange.iter().all(|entry| entry.entry_id.is_nil()));
    }

    #[test]
    fn each_shape_gives_its_entries() {
        let read = |text: &str| decode_record(serde_json::from_str(text).unwrap(), &1).unwrap();
        let turn = r#"{"id":2,"role":"assistant","content":"I look","timestamp":"2026-01-05T09:15:32Z",
            "toolCalls":[{"name":"ls","input":{},"output":"a"}]}"#;
        let kinds: Vec<EntryKind> = read(turn).iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [EntryKind::Text, EntryKind::ToolCall, EntryKind::ToolResult]);
        let unknown = read(r#"{"n":1.50}"#);
        assert_eq!(
            (unknown[0].kind, unknown[0].content.as_str()),
            (EntryKind::Other, r#"{"n":1.50}"#)
        );
    }
}
