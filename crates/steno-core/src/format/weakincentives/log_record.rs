//! Log records of later versions: `event: transcript.entry` with the entry in `context`.
//!
//! A Claude message that came whole in `detail` is split into its blocks; all of them have the record's number.

use super::claude::blocks;
use crate::entry::{Entry, EntryError, Kind, PRIMARY, Role, take_object, take_string, take_u64};
use crate::json::{Object, Style, Value};
use crate::timestamp::Timestamp;

const ENTRY_EVENT: &str = "transcript.entry";

/// Whether an object is a log record about a transcript.
pub(super) fn recognises(object: &Object) -> bool {
    let event = object.get("event").and_then(Value::as_str);
    event.is_some_and(|event| event.starts_with("transcript."))
        && object.get("context").is_some_and(Value::is_object)
        && !object.contains_key("role")
}

/// The session that a record names.
pub(super) fn session_id(record: &Object) -> Option<String> {
    let id = record.get("context")?.get("session_id")?.as_str()?;
    Some(id.to_owned())
}

/// The entries of a record; none if it only tells that recording began or ended.
pub(super) fn entries(mut record: Object) -> Result<Vec<Entry>, EntryError> {
    if record.get("event").and_then(Value::as_str) != Some(ENTRY_EVENT) {
        return Ok(Vec::new());
    }
    let mut context =
        take_object(&mut record, "context")?.ok_or(EntryError::MissingField("context"))?;
    let entry_type = required(&mut context, "entry_type")?;
    let source = required(&mut context, "source")?;
    let sequence = take_u64(&mut context, "sequence_number")?;
    let sequence = sequence.ok_or(EntryError::MissingField("sequence_number"))?;
    let time = [
        context.shift_remove("timestamp"),
        record.get("timestamp").cloned(),
    ];
    let time = time.iter().flatten().find_map(moment);
    context.insert("entry_type".to_owned(), entry_type.as_str().into());

    let mut entries = said(&entry_type, &context);
    for entry in &mut entries {
        entry.created_at = entry.created_at.or(time);
        entry.sequence = sequence;
        entry.source = match source.as_str() {
            "main" => PRIMARY.to_owned(),
            other => other.to_owned(),
        };
        entry.metadata = Some(brief(&context));
    }
    if let Some(first) = entries.first_mut() {
        first.metadata = Some(context);
        first.extra.extend(record);
    }
    Ok(entries)
}

fn required(object: &mut Object, field: &'static str) -> Result<String, EntryError> {
    take_string(object, field)?.ok_or(EntryError::MissingField(field))
}

fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// The context without what only the first entry of a record keeps.
fn brief(context: &Object) -> Object {
    let mut brief = context.clone();
    brief.retain(|key, _| key != "detail" && key != "raw");
    brief
}

fn said(entry_type: &str, context: &Object) -> Vec<Entry> {
    let detail = context.get("detail").and_then(Value::as_object);
    let (role, kind) = role_and_kind(entry_type, detail);
    let Some(detail) = detail else {
        return vec![Entry::new(role, kind, "")];
    };
    let mut entries = match detail.get("sdk_entry") {
        Some(Value::Object(sdk_entry)) => from_sdk_entry(sdk_entry, &role),
        _ => Vec::new(),
    };
    if entries.is_empty() {
        entries.push(Entry::new(role, kind, plain_text(kind, detail)));
    }
    for entry in &mut entries {
        name_tool(entry, detail);
    }
    entries
}

fn role_and_kind(entry_type: &str, detail: Option<&Object>) -> (Role, Kind) {
    let subtype = detail.and_then(|detail| detail.get("subtype")?.as_str());
    match entry_type {
        "user_message" => (Role::User, Kind::Text),
        "assistant_message" => (Role::Assistant, Kind::Text),
        "thinking" => (Role::Assistant, Kind::Thinking),
        "tool_use" => (Role::Assistant, Kind::ToolCall),
        "tool_result" => (Role::Tool, Kind::ToolResult),
        "system_event" if subtype == Some("compaction") => (Role::System, Kind::Compaction),
        "system_event" | "token_usage" => (Role::System, Kind::Notice),
        "error" => (Role::System, Kind::Error),
        _ => (Role::System, Kind::Other),
    }
}

/// The blocks of a Claude line, or the one block that a call or a result was split off as.
fn from_sdk_entry(sdk_entry: &Object, role: &Role) -> Vec<Entry> {
    let message = sdk_entry.get("message").and_then(Value::as_object);
    let mut entries = match message.and_then(|message| message.get("content")) {
        Some(content) => blocks::from_content(content, role),
        None if blocks::is_block(sdk_entry) => vec![blocks::from_block(sdk_entry.clone(), role)],
        None => Vec::new(),
    };
    let text = |key| Some(message?.get(key)?.as_str()?.to_owned());
    for entry in &mut entries {
        entry.created_at = sdk_entry.get("timestamp").and_then(moment);
        entry.message_id = text("id");
        entry.model = text("model");
    }
    entries
}

/// What a bridge put into `detail`: text, a tool's output or input, or else all of it.
fn plain_text(kind: Kind, detail: &Object) -> String {
    let item = detail.get("notification").and_then(|n| n.get("item"));
    let spoken = match kind {
        Kind::ToolResult => detail.get("output"),
        Kind::ToolCall => detail.get("input"),
        _ => None,
    };
    let spoken = spoken
        .or_else(|| detail.get("text"))
        .or_else(|| item?.get("text"))
        .and_then(Value::as_str);
    match spoken {
        Some(text) => text.to_owned(),
        None => Style::PRETTY.print(detail),
    }
}

fn name_tool(entry: &mut Entry, detail: &Object) {
    let text = |key| Some(detail.get(key)?.as_str()?.to_owned());
    if matches!(entry.kind, Kind::ToolCall | Kind::ToolResult) {
        entry.tool_name = entry.tool_name.take().or_else(|| text("tool_name"));
        entry.tool_call_id = entry.tool_call_id.take().or_else(|| text("tool_call_id"));
    }
}
