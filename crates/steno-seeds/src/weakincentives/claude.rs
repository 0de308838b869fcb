//! Converts Claude Code lines to entries: the flat shape that weakincentives' specification assumed, and the nested
//! one that Claude Code writes.
//!
//! Does not follow forks, and does not detect lines that resumed sessions copied.

pub(super) mod blocks;
mod files;

pub use files::{find_sessions, read_session};
use uuid::Uuid;

use super::line::scalar_text;
use steno_model::entry::{Entry, EntryError, EntryKind, Role, Usage, take_object, take_string};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::timestamp::Timestamp;

/// The agent's name.
pub const AGENT_NAME: &str = "claude";

/// Whether a line is one of Claude Code's, flat or nested.
pub fn is_claude_line(object: &Object) -> bool {
    let Some(raw_type) = object.get("type").and_then(Value::as_str) else {
        return false;
    };
    let has = |key: &&str| object.contains_key(*key);
    let message = object.get("message").and_then(Value::as_object);
    let flat = ["user", "assistant", "system", "tool_use", "tool_result"].contains(&raw_type)
        && ["content", "tool_use_id"].iter().any(has)
        && ["timestamp", "session_id"].iter().any(has);
    flat || message.is_some_and(|message| message.contains_key("role"))
        || ["sessionId", "uuid"].iter().all(has)
        || has(&"leafUuid")
}

/// Decodes one line. A missing time stays absent.
pub fn decode_line(object: Object) -> Result<Vec<Entry>, EntryError> {
    if !object.contains_key("type") && !object.contains_key("content") {
        return Err(EntryError::MissingField("type"));
    }
    Ok(entries_from_line(object, None))
}

/// Converts one line: one entry for a flat line, one per block for a nested one.
///
/// `now` replaces a missing or invalid time. Ids of flat lines stay nil.
pub fn entries_from_line(raw: Object, now: Option<Timestamp>) -> Vec<Entry> {
    let created_at = line_time(&raw).or(now);
    let mut entries = if is_nested(&raw) {
        entries_from_nested_line(raw)
    } else {
        vec![entry_from_flat_line(&raw)]
    };
    for entry in &mut entries {
        entry.created_at = created_at;
    }
    entries
}

fn is_nested(object: &Object) -> bool {
    let has = |key: &&str| object.contains_key(*key);
    ["message", "sessionId", "uuid", "leafUuid"].iter().any(has)
}

fn line_time(raw: &Object) -> Option<Timestamp> {
    raw.get("timestamp")?.as_str()?.parse().ok()
}

fn entry_from_flat_line(raw: &Object) -> Entry {
    let raw_type = raw.get("type").map(scalar_text).unwrap_or_default();
    let (role, kind) = match raw_type.as_str() {
        "user" => (Role::User, EntryKind::Text),
        "system" => (Role::System, EntryKind::Text),
        "tool_use" => (Role::Assistant, EntryKind::ToolCall),
        "tool_result" => (Role::Tool, EntryKind::ToolResult),
        _ => (Role::Assistant, EntryKind::Text),
    };
    let content = raw.get("content").map(content_text).unwrap_or_default();
    let mut entry = Entry::new(role, kind, content);
    entry.tool_name = text_field(raw, "tool_name");
    entry.tool_call_id = text_field(raw, "tool_use_id");
    if kind == EntryKind::ToolCall {
        entry.tool_input = raw.get("input").cloned().filter(|input| !input.is_null());
    }
    entry.metadata = Some(line_metadata(&raw_type, raw.get("session_id")));
    entry
}

fn text_field(raw: &Object, key: &str) -> Option<String> {
    raw.get(key).filter(|v| !v.is_null()).map(scalar_text)
}

fn line_metadata(raw_type: &str, session_id: Option<&Value>) -> Object {
    let session_id = session_id.cloned().unwrap_or_default();
    Object::from_iter([
        ("raw_type".to_owned(), raw_type.into()),
        ("claude_session_id".to_owned(), session_id),
    ])
}

/// Formats content as the specification does: objects as JSON, the texts of a list joined by newlines.
pub(super) fn content_text(content: &Value) -> String {
    match content {
        Value::Object(object) => JsonStyle::PYTHON_INDENT.print(object),
        Value::Array(parts) => {
            let texts: Vec<_> = parts.iter().filter_map(part_text).collect();
            texts.join("\n")
        }
        scalar => scalar_text(scalar),
    }
}

fn part_text(part: &Value) -> Option<String> {
    match part {
        Value::String(text) => Some(text.clone()),
        Value::Object(block) => block.get("text").map(scalar_text),
        _ => None,
    }
}

fn entries_from_nested_line(mut line: Object) -> Vec<Entry> {
    let raw_type = line.shift_remove("type").map(|t| scalar_text(&t));
    let raw_type = raw_type.unwrap_or_default();
    let metadata = line_metadata(&raw_type, line.get("sessionId"));
    let source = line_source(&line);
    let uuid = take_string(&mut line, "uuid").ok().flatten();
    let parent_id = take_string(&mut line, "parentUuid").ok().flatten();
    let mut message = take_object(&mut line, "message").ok().flatten();
    let mut entries = match &mut message {
        Some(message) => entries_from_message(message, &raw_type, uuid.as_deref()),
        None => vec![entry_from_event(&mut line, &raw_type)],
    };
    for (index, entry) in entries.iter_mut().enumerate() {
        entry.entry_id = block_entry_id(uuid.as_deref(), index);
        entry.source.clone_from(&source);
        entry.parent_id.clone_from(&parent_id);
        entry.metadata = Some(metadata.clone());
    }
    if let Some(message) = message.filter(|message| !message.is_empty()) {
        line.insert("message".to_owned(), Value::Object(message));
    }
    if let Some(first) = entries.first_mut() {
        first.extra.extend(line);
    }
    entries
}

/// Takes blocks, model and tokens out of a message. The remaining fields stay in it.
fn entries_from_message(message: &mut Object, raw_type: &str, uuid: Option<&str>) -> Vec<Entry> {
    let content = message.shift_remove("content").unwrap_or_default();
    let role = match raw_type {
        "assistant" => Role::Assistant,
        "user" => Role::User,
        _ => Role::System,
    };
    let mut entries = blocks::entries_from_content(&content, &role);
    if entries.is_empty() {
        entries.push(Entry::new(role, EntryKind::Text, ""));
    }
    let id = take_string(message, "id").ok().flatten();
    let id = id.or_else(|| uuid.map(str::to_owned));
    let model = take_string(message, "model").ok().flatten();
    for entry in &mut entries {
        entry.message_id.clone_from(&id);
        entry.model.clone_from(&model);
    }
    entries[0].usage = message.get("usage").and_then(Value::as_object).map(usage_from_counts);
    entries
}

/// Converts a line without a message, such as an event of the program itself.
fn entry_from_event(line: &mut Object, raw_type: &str) -> Entry {
    let subtype = line.get("subtype").and_then(Value::as_str);
    let kind = match (raw_type, subtype) {
        (_, Some("compact_boundary")) => EntryKind::Compaction,
        ("system" | "summary", _) => EntryKind::Notice,
        _ => EntryKind::Other,
    };
    let content = ["content", "summary"].iter().find_map(|key| line.shift_remove(*key));
    let content = content.as_ref().map(content_text).unwrap_or_default();
    Entry::new(Role::System, kind, content)
}

fn line_source(line: &Object) -> String {
    let agent = line.get("agentId").and_then(Value::as_str);
    let sidechain = line.get("isSidechain").and_then(Value::as_bool);
    match (sidechain.unwrap_or(false), agent) {
        (false, _) => steno_model::entry::PRIMARY_SOURCE.to_owned(),
        (true, agent) => format!("subagent:{}", agent.unwrap_or("sidechain")),
    }
}

/// The line's id for its first entry, and ids derived from it for the others.
fn block_entry_id(uuid: Option<&str>, index: usize) -> Uuid {
    let own = uuid.and_then(|uuid| Uuid::try_parse(uuid).ok());
    match (own, index) {
        (Some(own), 0) => own,
        (Some(own), _) => Uuid::new_v5(&own, index.to_string().as_bytes()),
        (None, _) => Uuid::nil(),
    }
}

fn usage_from_counts(counts: &Object) -> Usage {
    let count = |key| counts.get(key).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        input: count("input_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
        output: count("output_tokens"),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn converted(raw: Value) -> Entry {
        let mut entries = entries_from_line(raw.as_object().unwrap().clone(), None);
        assert_eq!(entries.len(), 1);
        entries.remove(0)
    }

    #[test]
    fn odd_content_of_flat_lines_becomes_text() {
        for (content, text) in [
            (json!(null), ""),
            (json!(0), "0"),
            (json!(false), "false"),
            (json!([{"text": 5}, {"text": null}, "x", 7]), "5\n\nx"),
            (json!({"a": "é"}), "{\n  \"a\": \"\\u00e9\"\n}"),
        ] {
            let entry = converted(json!({"type": "user", "content": content}));
            assert_eq!(entry.content, text);
            assert_eq!(entry.created_at, None);
        }
    }

    #[test]
    fn both_shapes_are_recognised_and_others_are_not() {
        let known = |value: Value| is_claude_line(value.as_object().unwrap());
        assert!(known(json!({"type": "tool_use", "tool_use_id": "t", "timestamp": ""})));
        assert!(known(json!({"type": "system", "uuid": "u", "sessionId": "s"})));
        assert!(known(json!({"type": "summary", "summary": "x", "leafUuid": "u"})));
        assert!(!known(json!({"type": "user", "content": "x"})));
        assert!(!known(json!({"type": "error", "message": "x"})));
        assert!(!known(json!({"role": "user", "content": "x", "timestamp": 1})));
        assert_eq!(decode_line(Object::new()).unwrap_err(), EntryError::MissingField("type"));
    }

    #[test]
    fn a_line_with_an_odd_message_still_gives_an_entry() {
        for message in [json!({}), json!({"content": []}), json!(5)] {
            let entry = converted(json!({"type": "user", "uuid": "u1", "message": message}));
            assert_eq!(entry.content, "");
        }
    }
}
