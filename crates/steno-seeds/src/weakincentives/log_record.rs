//! Log records of later versions: `event: transcript.entry` with the entry in `context`.
//!
//! A Claude message that is complete in `detail` is split into its blocks, which share the record's sequence number.

use super::claude::blocks;
use super::line::scalar_text;
use steno_model::entry::{
    Entry, EntryError, EntryKind, PRIMARY_SOURCE, Role, take_object, take_string, take_u64,
};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::timestamp::Timestamp;

/// Whether an object is a log record of any kind.
pub(super) fn is_log_record(object: &Object) -> bool {
    object.get("event").is_some_and(Value::is_string)
        && object.get("context").is_some_and(Value::is_object)
        && !object.contains_key("role")
}

/// Whether an object is a log record about a transcript.
pub(super) fn is_transcript_log_record(object: &Object) -> bool {
    is_log_record(object)
        && record_event(object).is_some_and(|event| event.starts_with("transcript."))
}

/// The session id in a record.
pub(super) fn session_id(record: &Object) -> Option<String> {
    let id = record.get("context")?.get("session_id")?.as_str()?;
    Some(id.to_owned())
}

/// Decodes a record; no entries if it is not about a message, a tool or a failure.
pub(super) fn decode_log_record(mut record: Object) -> Result<Vec<Entry>, EntryError> {
    let mut context =
        take_object(&mut record, "context")?.ok_or(EntryError::MissingField("context"))?;
    let time = [context.get("timestamp"), record.get("timestamp")];
    let time = time.into_iter().flatten().find_map(parse_record_time);
    let mut entries = match record_event(&record) {
        Some("transcript.entry") => entries_from_context(&mut context)?,
        Some("transcript.error") => vec![failure_entry(&record)],
        Some(event) if event.starts_with("transcript.") => vec![notice_entry(&record)],
        _ => return Ok(Vec::new()),
    };
    context.shift_remove("timestamp");
    let brief = brief_context(&context);
    for entry in &mut entries {
        entry.created_at = entry.created_at.or(time);
        entry.metadata = Some(brief.clone());
    }
    if let Some(first) = entries.first_mut() {
        first.metadata = Some(context);
        first.extra.extend(record);
    }
    Ok(entries)
}

fn record_event(record: &Object) -> Option<&str> {
    record.get("event")?.as_str()
}

/// Decodes the entries, and removes from the context what they contain.
fn entries_from_context(context: &mut Object) -> Result<Vec<Entry>, EntryError> {
    let source = match take_required(context, "source")? {
        main if main == "main" => PRIMARY_SOURCE.to_owned(),
        other => other,
    };
    let sequence = take_u64(context, "sequence_number")?;
    let sequence = sequence.ok_or(EntryError::MissingField("sequence_number"))?;
    let entry_type = context.get("entry_type").and_then(Value::as_str);
    let entry_type = entry_type.ok_or(EntryError::MissingField("entry_type"))?;
    let mut entries = entries_from_detail(entry_type, context);
    for entry in &mut entries {
        entry.source.clone_from(&source);
        entry.sequence = sequence;
    }
    Ok(entries)
}

/// An event of the recorder itself: it started, stopped or found a file.
fn notice_entry(record: &Object) -> Entry {
    let text = record.get("message").or_else(|| record.get("event"));
    Entry::new(Role::System, EntryKind::Notice, text.map(scalar_text).unwrap_or_default())
}

fn failure_entry(record: &Object) -> Entry {
    let message = record.get("message").and_then(Value::as_str);
    Entry::new(Role::System, EntryKind::Error, message.unwrap_or_default())
}

fn take_required(object: &mut Object, field: &'static str) -> Result<String, EntryError> {
    take_string(object, field)?.ok_or(EntryError::MissingField(field))
}

fn parse_record_time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// The context for all entries but the first, which keeps the complete one.
fn brief_context(context: &Object) -> Object {
    let brief = context.iter().filter(|(key, _)| *key != "detail" && *key != "raw");
    brief.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn entries_from_detail(entry_type: &str, context: &Object) -> Vec<Entry> {
    let detail = context.get("detail").and_then(Value::as_object);
    let (role, kind) = role_and_kind(entry_type, detail);
    let Some(detail) = detail else {
        return vec![Entry::new(role, kind, "")];
    };
    let mut entries = match detail.get("sdk_entry") {
        Some(Value::Object(sdk_entry)) => entries_from_sdk_entry(sdk_entry, &role),
        _ => Vec::new(),
    };
    if entries.is_empty() {
        entries.push(Entry::new(role, kind, detail_text(kind, detail)));
    }
    for entry in &mut entries {
        name_tool(entry, detail);
    }
    entries
}

fn role_and_kind(entry_type: &str, detail: Option<&Object>) -> (Role, EntryKind) {
    let subtype = detail.and_then(|detail| detail.get("subtype")?.as_str());
    match entry_type {
        "user_message" => (Role::User, EntryKind::Text),
        "assistant_message" => (Role::Assistant, EntryKind::Text),
        "thinking" => (Role::Assistant, EntryKind::Thinking),
        "tool_use" => (Role::Assistant, EntryKind::ToolCall),
        "tool_result" => (Role::Tool, EntryKind::ToolResult),
        "system_event" if subtype == Some("compaction") => (Role::System, EntryKind::Compaction),
        "system_event" | "token_usage" => (Role::System, EntryKind::Notice),
        "error" => (Role::System, EntryKind::Error),
        _ => (Role::System, EntryKind::Other),
    }
}

/// The blocks of a Claude line, or the single block that a tool call or result was split off as.
fn entries_from_sdk_entry(sdk_entry: &Object, role: &Role) -> Vec<Entry> {
    let message = sdk_entry.get("message").and_then(Value::as_object);
    let mut entries = match message.and_then(|message| message.get("content")) {
        Some(content) => blocks::entries_from_content(content, role),
        None if blocks::is_tool_block(sdk_entry) => {
            vec![blocks::entry_from_block(sdk_entry.clone(), role)]
        }
        None => Vec::new(),
    };
    let text = |key| Some(message?.get(key)?.as_str()?.to_owned());
    for entry in &mut entries {
        entry.created_at = sdk_entry.get("timestamp").and_then(parse_record_time);
        entry.message_id = text("id");
        entry.model = text("model");
    }
    entries
}

/// The text in `detail`: text, a tool's output or input, or else everything as JSON.
fn detail_text(kind: EntryKind, detail: &Object) -> String {
    let item = detail.get("notification").and_then(|n| n.get("item"));
    let value = match kind {
        EntryKind::ToolResult => detail.get("output"),
        EntryKind::ToolCall => detail.get("input"),
        _ => None,
    };
    let value =
        value.or_else(|| detail.get("text")).or_else(|| item?.get("text")).and_then(Value::as_str);
    match value {
        Some(text) => text.to_owned(),
        None => JsonStyle::PRETTY.print(detail),
    }
}

fn name_tool(entry: &mut Entry, detail: &Object) {
    let text = |key| Some(detail.get(key)?.as_str()?.to_owned());
    if matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult) {
        entry.tool_name = entry.tool_name.take().or_else(|| text("tool_name"));
        entry.tool_call_id = entry.tool_call_id.take().or_else(|| text("tool_call_id"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weakincentives::{read_session, render_lines};
    use steno_model::session::Transcript;
    use steno_vault::{SessionBundle, SessionFile};

    const RECORDS: &str =
        include_str!("../../tests/fixtures/weakincentives/weakincentives-0.27-log-records.jsonl");

    fn read_text(text: &str) -> Transcript {
        let source = SessionFile::in_memory("transcript.jsonl", "transcript.jsonl", text.into());
        let root = "transcript.jsonl";
        let sources = vec![source];
        read_session(&SessionBundle::new(root, sources)).unwrap()
    }

    #[test]
    fn records_become_entries_with_their_own_numbers() {
        let transcript = read_text(RECORDS);
        let actual: Vec<_> = transcript
            .entries
            .iter()
            .map(|entry| {
                let tool = entry.tool_name.as_deref().unwrap_or("-");
                let (source, number) = (&entry.source, entry.sequence);
                format!("{source} {number} {} {} {tool}: {}", entry.role, entry.kind, entry.content)
            })
            .collect();
        let call = "primary 3 assistant tool_call Read: {\n  \"path\": \"a.py\"\n}";
        assert_eq!(
            actual[..7],
            [
                "primary 0 system notice -: transcript start",
                "primary 1 user text -: Grüße, review it",
                "primary 2 assistant thinking -: First the file.",
                "primary 2 assistant text -: Reading.",
                call,
                "primary 4 tool tool_result Read: pass",
                "subagent:a7 1 assistant text -: Done.",
            ]
        );
        assert!(actual[7].starts_with("primary 5 system compaction -: {"));
        assert_eq!(
            transcript.problems[0].to_string(),
            "transcript.jsonl:7: missing field: sequence_number"
        );
        assert_eq!(transcript.session.id.as_str(), "3b1c");
        assert_eq!(transcript.session.models, ["claude-x"]);
        let times: Vec<_> = transcript.entries.iter().map(|e| e.created_at.unwrap()).collect();
        assert_eq!(times[1].to_string(), "2026-02-10T09:59:58.500Z");
        assert_eq!(times[7].to_string(), "2026-02-10T10:00:06+00:00");
    }

    #[test]
    fn a_record_survives_as_lines() {
        let transcript = read_text(RECORDS);
        let again = read_text(&render_lines(&transcript, false));
        assert_eq!(again.entries.len(), transcript.entries.len());
        for (again, entry) in again.entries.iter().zip(&transcript.entries) {
            let mut entry = entry.clone();
            entry.created_at = again.created_at;
            assert_eq!(again, &entry);
        }
    }

    #[test]
    fn emits_failures_and_skips_other_records() {
        let failure = r#"{"timestamp": "2026-02-10T10:00:00Z", "event": "transcript.error", "message": "no file", "context": {"prompt_name": "x"}}"#;
        let other = r#"{"event": "session.start", "context": {}}"#;
        let transcript = read_text(&format!("{failure}\n{other}\n"));
        let [entry] = &transcript.entries[..] else {
            panic!("one entry");
        };
        assert_eq!((entry.kind, entry.content.as_str()), (EntryKind::Error, "no file"));
        assert_eq!(transcript.problems, []);
    }
}
