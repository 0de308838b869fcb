//! Converts lines to entries and back without loss.
//!
//! Data that an entry has no field for (sender, recipient, entry types of a release) is stored under [`CHIBI_KEY`] in
//! the entry's extra fields. Data that a line has no field for (model, usage, exact time, ...) is stored under
//! [`STENO_KEY`] in the line's metadata, but only the fields that the plain line does not imply. Thoughts, errors,
//! notices and unknown records are lines of the types `thinking`, `error`, `notice` and `other`.

use uuid::Uuid;

use super::context_line::ContextLine;
use super::debug_file;
use super::unix_second::UnixSecond;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{JsonStyle, Object, Value};

/// Extra field of an entry with chibi's own data.
pub(super) const CHIBI_KEY: &str = "chibi";
/// Metadata field of a line with Steno's own data.
const STENO_KEY: &str = "steno";
/// Fields that follow from the line itself or from the order of lines.
const DERIVED_FIELDS: [&str; 3] = ["entry_id", "sequence", CHIBI_KEY];
/// Sender of the program's own lines, and the default sender.
const SYSTEM_SPEAKER: &str = "system";
const USER_SPEAKER: &str = "user";

/// Converts a line to an entry. The caller assigns its number, and an id if the line's is not a UUID.
pub fn entry_from_line(mut line: ContextLine) -> Entry {
    let Some(steno_fields) = take_steno_fields(&mut line) else {
        return entry_from_plain_line(line);
    };
    let derived = entry_from_plain_line(line);
    let mut object = derived.to_object();
    for (key, value) in &steno_fields {
        object.insert(key.clone(), value.clone());
    }
    Entry::from_object(object).unwrap_or_else(|_| {
        // Not written by Steno: keep it where it was.
        let mut derived = derived;
        derived.metadata.get_or_insert_default().insert(STENO_KEY.to_owned(), steno_fields.into());
        derived
    })
}

/// Converts an entry to a line of the context `context`.
///
/// An entry without a time gets the second `earlier`, so that lines stay in order.
pub fn line_from_entry(entry: &Entry, context: &str, earlier: i64) -> ContextLine {
    let mut line = plain_line_from_entry(entry, context, earlier);
    let mut derived = entry_from_plain_line(line.clone());
    if let Some(response) = response_line(entry) {
        debug_file::attach_response(&mut derived, response);
    }
    let steno_fields = find_missing_fields(&derived, entry);
    if !steno_fields.is_empty() {
        let metadata = line.metadata.get_or_insert_default();
        metadata.insert(STENO_KEY.to_owned(), Value::Object(steno_fields));
    }
    line
}

fn take_steno_fields(line: &mut ContextLine) -> Option<Object> {
    let metadata = line.metadata.as_mut()?;
    let Some(Value::Object(_)) = metadata.get(STENO_KEY) else {
        return None;
    };
    let steno_fields = metadata.shift_remove(STENO_KEY);
    if metadata.is_empty() {
        line.metadata = None;
    }
    match steno_fields {
        Some(Value::Object(steno_fields)) => Some(steno_fields),
        _ => None,
    }
}

/// The fields of an entry that only chibi has.
pub(super) fn chibi_fields(entry: &Entry) -> Option<&Object> {
    entry.extra.get(CHIBI_KEY)?.as_object()
}

/// Like [`chibi_fields`], mutable.
pub(super) fn chibi_fields_mut(entry: &mut Entry) -> &mut Object {
    let value = entry.extra.entry(CHIBI_KEY).or_insert_with(|| Object::new().into());
    if !value.is_object() {
        *value = Object::new().into();
    }
    value.as_object_mut().expect("it was just made one")
}

/// The id of an entry's line.
pub(super) fn line_id(entry: &Entry) -> String {
    match chibi_fields(entry).and_then(|native| native.get("id")?.as_str()) {
        Some(id) => id.to_owned(),
        None => entry.entry_id.hyphenated().to_string(),
    }
}

/// The id of an entry's line; `None` if it is empty or nil.
pub(super) fn unique_line_id(entry: &Entry) -> Option<String> {
    let id = line_id(entry);
    let is_missing = id.is_empty() || id == Uuid::nil().hyphenated().to_string();
    (!is_missing).then_some(id)
}

/// The line of `response_meta.jsonl` that the entry's model and usage came from.
pub(super) fn response_line(entry: &Entry) -> Option<&Object> {
    chibi_fields(entry)?.get("response")?.as_object()
}

/// The fields of `entry` that differ from `derived` or are missing there.
fn find_missing_fields(derived: &Entry, entry: &Entry) -> Object {
    let (mut derived, fields) = (derived.to_object(), entry.to_object());
    let mut difference = Object::new();
    for (key, value) in fields {
        if derived.shift_remove(&key).as_ref() != Some(&value)
            && !DERIVED_FIELDS.contains(&key.as_str())
        {
            difference.insert(key, value);
        }
    }
    difference
}

fn entry_from_plain_line(line: ContextLine) -> Entry {
    let kind = kind_from_type(&line.entry_type);
    let mut native = unmapped_line_fields(&line, kind);
    let mut entry = Entry::new(line_role(&line, kind), kind, line.content);
    if !native.contains_key("id") {
        entry.entry_id = Uuid::parse_str(&line.id).unwrap_or_default();
    }
    entry.created_at = line.timestamp.to_timestamp();
    let tool = match kind {
        EntryKind::ToolCall => Some(line.to),
        EntryKind::ToolResult => Some(line.from),
        _ => None,
    };
    entry.tool_name = tool.filter(|name| !name.is_empty());
    if kind == EntryKind::ToolCall {
        entry.tool_input = serde_json::from_str(&entry.content).ok().filter(Value::is_object);
    }
    entry.metadata = line.metadata;
    entry.tool_call_id = line.tool_call_id;
    if kind == EntryKind::Compaction {
        take_summary(&mut entry, &mut native);
    }
    entry.extra.insert(CHIBI_KEY.to_owned(), Value::Object(native));
    entry
}

/// The fields of a line that no field of an entry can store unchanged.
fn unmapped_line_fields(line: &ContextLine, kind: EntryKind) -> Object {
    let mut native = Object::new();
    let mut keep = |field: &str, value: Value| {
        native.insert(field.to_owned(), value);
    };
    let id = Uuid::parse_str(&line.id).unwrap_or_default();
    if id.is_nil() || id.hyphenated().to_string() != line.id {
        keep("id", line.id.clone().into());
    }
    if let Some(timestamp) = line.timestamp.value_if_inexact() {
        keep("timestamp", timestamp);
    }
    keep("from", line.from.clone().into());
    keep("to", line.to.clone().into());
    if line.entry_type != type_from_kind(kind) {
        keep("entry_type", line.entry_type.clone().into());
    }
    if let Some(role) = &line.role {
        keep("role", role.clone().into());
    }
    if let Some(flow_control) = line.flow_control {
        keep("flow_control", flow_control.into());
    }
    if !line.extra.is_empty() {
        keep("extra", line.extra.clone().into());
    }
    native
}

/// Uses the summary of a compaction as its content. The text next to it has no other information.
fn take_summary(entry: &mut Entry, native: &mut Object) {
    let metadata = entry.metadata.as_mut();
    let summary = metadata.and_then(|metadata| match metadata.get("summary") {
        Some(Value::String(_)) => metadata.shift_remove("summary"),
        _ => None,
    });
    if summary.is_some() && entry.metadata.as_ref().is_some_and(Object::is_empty) {
        entry.metadata = None;
    }
    let content = std::mem::take(&mut entry.content);
    if !content.is_empty() {
        native.insert("content".to_owned(), content.into());
    }
    match summary {
        Some(Value::String(summary)) => entry.content = summary,
        _ => {
            native.insert("summary".to_owned(), Value::Null);
        }
    }
}

fn plain_line_from_entry(entry: &Entry, context: &str, earlier: i64) -> ContextLine {
    let native = chibi_fields(entry);
    let kept = |field: &str| native?.get(field)?.as_str().map(str::to_owned);
    let (from, to) = default_speakers(entry, context);
    let stated = native.and_then(|native| native.get("timestamp")).and_then(UnixSecond::from_value);
    let second = entry.created_at.map(|at| at.unix_seconds());
    let mut line = ContextLine {
        id: line_id(entry),
        timestamp: stated.unwrap_or_else(|| second.unwrap_or(earlier).into()),
        from: kept("from").unwrap_or(from),
        to: kept("to").unwrap_or(to),
        content: entry.content.clone(),
        entry_type: kept("entry_type").unwrap_or_else(|| type_from_kind(entry.kind).to_owned()),
        metadata: entry.metadata.clone(),
        tool_call_id: entry.tool_call_id.clone(),
        role: kept("role"),
        flow_control: native.and_then(|native| native.get("flow_control")?.as_bool()),
        extra: native
            .and_then(|native| native.get("extra")?.as_object().cloned())
            .unwrap_or_default(),
    };
    match (entry.kind, &entry.tool_input) {
        (EntryKind::ToolCall, Some(input)) if line.content.is_empty() => {
            line.content = JsonStyle::COMPACT.print(input);
        }
        (EntryKind::Compaction, _) => put_summary(&mut line, native),
        _ => {}
    }
    if line.role.is_none() && line_role(&line, kind_from_type(&line.entry_type)) != entry.role {
        line.role = Some(role_name(&entry.role).to_owned());
    }
    line
}

fn put_summary(line: &mut ContextLine, native: Option<&Object>) {
    let unsaid = native.is_some_and(|native| native.contains_key("summary"));
    let content = native.and_then(|native| native.get("content")?.as_str());
    let summary = std::mem::replace(&mut line.content, content.unwrap_or_default().to_owned());
    if summary.is_empty() && unsaid {
        return;
    }
    let mut metadata = Object::new();
    metadata.insert("summary".to_owned(), summary.into());
    for (key, value) in line.metadata.take().unwrap_or_default() {
        metadata.entry(key).or_insert(value);
    }
    line.metadata = Some(metadata);
}

/// Sender and recipient of an entry from another agent.
fn default_speakers(entry: &Entry, context: &str) -> (String, String) {
    let tool = entry.tool_name.as_deref().unwrap_or_default();
    let (from, to) = match (entry.kind, &entry.role) {
        (EntryKind::ToolCall, _) => (context, tool),
        (EntryKind::ToolResult, _) => (tool, context),
        (EntryKind::Compaction, _) => (SYSTEM_SPEAKER, context),
        (_, Role::Assistant) => (context, USER_SPEAKER),
        (_, role) => (role.as_str(), context),
    };
    (from.to_owned(), to.to_owned())
}

fn kind_from_type(entry_type: &str) -> EntryKind {
    match entry_type {
        "message" | "system_prompt" => EntryKind::Text,
        "tool_call" | "flow_control_call" => EntryKind::ToolCall,
        "tool_result" | "flow_control_result" => EntryKind::ToolResult,
        "compaction" => EntryKind::Compaction,
        "thinking" => EntryKind::Thinking,
        "error" => EntryKind::Error,
        "notice"
        | "context_created"
        | "archival"
        | "system_prompt_changed"
        | "control_transfer" => EntryKind::Notice,
        _ => EntryKind::Other,
    }
}

fn type_from_kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Text => "message",
        other => other.as_str(),
    }
}

/// The role of a line: as stated, or derived from type and recipient. A message to `user` is from the assistant.
fn line_role(line: &ContextLine, kind: EntryKind) -> Role {
    match (line.role.as_deref(), kind) {
        (Some("agent"), _) => Role::Assistant,
        (Some(role), _) => Role::from(role),
        (None, EntryKind::ToolCall) => Role::Assistant,
        (None, EntryKind::ToolResult) => Role::Tool,
        (None, EntryKind::Text) if line.entry_type == "system_prompt" => Role::System,
        (None, kind) if kind != EntryKind::Text && line.from == SYSTEM_SPEAKER => Role::System,
        (None, _) if line.to == USER_SPEAKER => Role::Assistant,
        (None, _) => Role::User,
    }
}

fn role_name(role: &Role) -> &str {
    match role {
        Role::Assistant => "agent",
        role => role.as_str(),
    }
}

#[cfg(test)]
mod tests;
