//! Reads the older JSON Lines files: a header line with the session's metadata, then one line per message.

use crate::agent::fields::{as_count, filled, from_seconds};
use crate::agent::json_lines::each_object;
use crate::agent::output::Output;
use crate::entry::Usage;
use crate::format::{Emit, FormatError};
use crate::json::{Object, Value};
use crate::lines::{Line, Lines};
use crate::session::{Session, SessionId};
use steno_vault::Source;

use super::AGENT;
use super::content::Said;

/// How many bytes of the header line are read to recognize a file.
const HEAD: usize = 64 << 10;

/// Whether the first line of a file is a header of Goose.
pub(super) fn is_session(source: &Source) -> bool {
    let Ok(input) = source.open() else { return false };
    let head = Lines::with_limit(input, HEAD).read();
    let Ok(Some(Line { bytes, .. })) = head else { return false };
    serde_json::from_slice(&bytes).is_ok_and(|value| is_head(&value))
}

/// Reads the session in one file.
pub(super) fn read(source: &Source, emit: Emit<'_>) -> Result<Session, FormatError> {
    let stem = source.path().file_stem().unwrap_or_default().to_string_lossy();
    let mut session = Session::new(SessionId::for_native(AGENT, &stem), AGENT);
    session.native_id = Some(stem.clone().into_owned());
    let mut output = Output::new(AGENT, &stem, emit);
    each_object(source, |record, line| match record.map(Value::Object) {
        Ok(record) if is_head(&record) => state(&mut session, record),
        Ok(record) => said(record, line).hand_out(&mut output),
        Err(problem) => output.problem(problem),
    })?;
    Ok(session)
}

fn is_head(record: &Value) -> bool {
    record.get("role").is_none()
        && ["working_dir", "message_count"].iter().all(|name| record.get(name).is_some())
}

fn state(session: &mut Session, header: Value) {
    let count = |name| as_count(&header[name]);
    session.totals.usage = Usage {
        input: count("accumulated_input_tokens"),
        output: count("accumulated_output_tokens"),
        ..Usage::default()
    };
    session.title = filled(&header, "description").map(str::to_owned);
    session.project = filled(&header, "working_dir").map(str::to_owned);
    session.extra = match header {
        Value::Object(fields) => fields,
        _ => Object::new(),
    };
}

fn said(mut record: Value, line: u64) -> Said {
    let content = match record.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::String(text)) => vec![serde_json::json!({"type": "text", "text": text})],
        _ => vec![record.clone()],
    };
    Said {
        id: Some(filled(&record, "id").map_or_else(|| format!("line {line}"), str::to_owned)),
        role: filled(&record, "role").unwrap_or("system").to_owned(),
        content,
        created_at: record.get("created").and_then(Value::as_i64).and_then(from_seconds),
        metadata: record.get("metadata").cloned().unwrap_or_default(),
        model: None,
    }
}
