//! Reads the older JSON Lines files: a header line with the session's metadata, then one line per message.

use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{as_count, nonempty_text, timestamp_from_seconds};
use crate::decoding::json_lines::for_each_object;
use crate::reader::{FormatError, ItemSink};
use steno_model::entry::Usage;
use steno_model::json::{Object, Value};
use steno_model::lines::{InputLine, LineReader};
use steno_model::session::{Session, SessionId};
use steno_vault::SessionFile;

use super::AGENT_NAME;
use super::decode::GooseMessage;

/// How many bytes of the header line are read to recognize a file.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Whether the first line of a file is a header of Goose.
pub(super) fn is_session_file(source: &SessionFile) -> bool {
    let Ok(input) = source.open() else { return false };
    let head = LineReader::with_limit(input, MAX_HEADER_BYTES).read_line();
    let Ok(Some(InputLine { bytes, .. })) = head else { return false };
    serde_json::from_slice(&bytes).is_ok_and(|value| is_header(&value))
}

/// Reads the session in one file.
pub(super) fn read_line_file(
    source: &SessionFile,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let stem = source.path().file_stem().unwrap_or_default().to_string_lossy();
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &stem), AGENT_NAME);
    session.native_id = Some(stem.clone().into_owned());
    let mut output = EntryEmitter::new(AGENT_NAME, &stem, emit).naming_results();
    for_each_object(source, |record, line| match record.map(Value::Object) {
        Ok(record) if is_header(&record) => apply_header(&mut session, record),
        Ok(record) => message_from_record(record, line).emit_entries(&mut output),
        Err(problem) => output.emit_problem(problem),
    })?;
    Ok(session)
}

fn is_header(record: &Value) -> bool {
    record.get("role").is_none()
        && ["working_dir", "message_count"].iter().all(|name| record.get(name).is_some())
}

fn apply_header(session: &mut Session, header: Value) {
    let count = |name| as_count(&header[name]);
    session.totals.usage = Usage {
        input: count("accumulated_input_tokens"),
        output: count("accumulated_output_tokens"),
        ..Usage::default()
    };
    session.title = nonempty_text(&header, "description").map(str::to_owned);
    session.project = nonempty_text(&header, "working_dir").map(str::to_owned);
    session.extra = match header {
        Value::Object(fields) => fields,
        _ => Object::new(),
    };
}

fn message_from_record(mut record: Value, line: u64) -> GooseMessage {
    let content = match record.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::String(text)) => vec![serde_json::json!({"type": "text", "text": text})],
        _ => vec![record.clone()],
    };
    GooseMessage {
        id: Some(
            nonempty_text(&record, "id").map_or_else(|| format!("line {line}"), str::to_owned),
        ),
        role: nonempty_text(&record, "role").unwrap_or("system").to_owned(),
        content,
        created_at: record.get("created").and_then(Value::as_i64).and_then(timestamp_from_seconds),
        metadata: record.get("metadata").cloned().unwrap_or_default(),
        model: None,
    }
}
