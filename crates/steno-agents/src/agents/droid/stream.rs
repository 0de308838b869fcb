//! Reads the output of `droid exec`: messages, tool calls, results and a completion, one per line.

use super::AGENT_NAME;
use crate::decoding::file_head::FileHead;
use crate::decoding::json_lines::for_each_object;
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{entries, json_fields, json_records, usage};
use crate::reader::ItemSink;
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};
use steno_model::session::Session;
use steno_vault::{FormatError, SessionFile};

/// How many records of a file are parsed to recognize it.
const PROBED_RECORDS: usize = 20;

/// Whether a file starts like the output of `droid exec`.
pub(super) fn is_stream(head: &FileHead) -> bool {
    head.line_objects().take(PROBED_RECORDS).any(|object| {
        let has = |field| object.contains_key(field);
        let has_fields = match json_fields::text_field(&object, "type") {
            Some("message") => has("role") && has("text"),
            Some("tool_call") => has("toolName") && has("parameters"),
            Some("completion") => has("finalText"),
            _ => false,
        };
        has_fields && session_id(&object).is_some() && has("timestamp")
    })
}

fn session_id(object: &Object) -> Option<&str> {
    json_fields::text_field(object, "session_id")
        .or_else(|| json_fields::text_field(object, "sessionId"))
}

/// Reads the session in a saved output.
pub(super) fn read_stream(
    source: &SessionFile,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let id = first_id(source)?.unwrap_or_else(|| json_records::session_stem(source).to_owned());
    let mut emitter = SessionEmitter::new(AGENT_NAME, &id, emit);
    let mut model = None;
    for_each_object(source, |object, line| match object {
        Ok(object) => decode_record(&mut emitter, &mut model, object, line),
        Err(problem) => emitter.emit_problem(problem),
    })?;
    Ok(emitter.session)
}

fn first_id(source: &SessionFile) -> Result<Option<String>, FileError> {
    Ok(FileHead::read(source)?
        .line_objects()
        .find_map(|object| session_id(&object).map(str::to_owned)))
}

fn decode_record(
    emitter: &mut SessionEmitter<'_>,
    model: &mut Option<String>,
    object: Object,
    line: u64,
) {
    let at = json_fields::time_field(&object, "timestamp");
    emitter.note_time(at);
    if json_fields::text_field(&object, "type") == Some("system") {
        *model = json_fields::text_field(&object, "model").map(str::to_owned);
        emitter.session.project = json_fields::text_field(&object, "cwd").map(str::to_owned);
    }
    let mut entry = decode_entry(object);
    entry.created_at = at;
    entry.message_id = entry.message_id.or(Some(format!("line {line}")));
    if entry.role == Role::Assistant {
        entry.model.clone_from(model);
    }
    emitter.emit_entry(entry);
}

fn decode_entry(object: Object) -> Entry {
    let text = |field| json_fields::text_field(&object, field);
    let call = text("toolCallId").or_else(|| text("id"));
    match text("type") {
        Some("message") => {
            let content = text("text").unwrap_or_default();
            let is_notice = text("role") == Some("user") && super::is_system_reminder(content);
            let kind = if is_notice { EntryKind::Notice } else { EntryKind::Text };
            let mut entry = Entry::new(Role::from(text("role").unwrap_or("user")), kind, content);
            entry.message_id = text("id").map(str::to_owned);
            entry
        }
        Some("tool_call") => entries::tool_call(text("toolName"), call, object.get("parameters")),
        Some("tool_result") => {
            let is_error = object.get("isError").and_then(Value::as_bool) == Some(true);
            let value = object.get("value").map(json_records::value_text).unwrap_or_default();
            entries::tool_result(call, value, is_error)
        }
        Some("completion") => completion_entry(&object),
        Some("error") => {
            Entry::new(Role::System, EntryKind::Error, text("message").unwrap_or_default())
        }
        _ => entries::unknown_entry(object),
    }
}

fn completion_entry(object: &Object) -> Entry {
    let text = json_fields::text_field(object, "finalText").unwrap_or_default();
    let mut entry = Entry::new(Role::Assistant, EntryKind::Text, text);
    entry.usage = json_fields::object_field(object, "usage").map(usage::anthropic_usage);
    entry
}
