//! Converts lines to entries and back without loss.
//!
//! Data that an entry has no field for (sender, recipient, entry types of a release) is stored under [`NATIVE`] in
//! the entry's extra fields. Data that a line has no field for (model, usage, exact time, ...) is stored under
//! [`OURS`] in the line's metadata, but only the fields that the plain line does not imply. Thoughts, errors, notices
//! and unknown records are lines of the types `thinking`, `error`, `notice` and `other`.

use uuid::Uuid;

use super::debug;
use super::line::Line;
use super::second::UnixSecond;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Style, Value};

/// Extra field of an entry with chibi's own data.
pub(super) const NATIVE: &str = "chibi";
/// Metadata field of a line with Steno's own data.
const OURS: &str = "steno";
/// Fields that follow from the line itself or from the order of lines.
const TOLD: [&str; 3] = ["entry_id", "sequence", NATIVE];
/// Sender of the program's own lines, and the default sender.
const SYSTEM: &str = "system";
const USER: &str = "user";

/// Converts a line to an entry. The caller assigns its number, and an id if the line's is not a UUID.
pub fn entry_of(mut line: Line) -> Entry {
    let Some(steno_fields) = take_ours(&mut line) else {
        return plain_entry(line);
    };
    let derived = plain_entry(line);
    let mut object = derived.to_object();
    for (key, value) in &steno_fields {
        object.insert(key.clone(), value.clone());
    }
    Entry::from_object(object).unwrap_or_else(|_| {
        // Not written by Steno: keep it where it was.
        let mut derived = derived;
        derived.metadata.get_or_insert_default().insert(OURS.to_owned(), steno_fields.into());
        derived
    })
}

/// Converts an entry to a line of the context `context`.
///
/// An entry without a time gets the second `earlier`, so that lines stay in order.
pub fn line_of(entry: &Entry, context: &str, earlier: i64) -> Line {
    let mut line = plain_line(entry, context, earlier);
    let mut derived = plain_entry(line.clone());
    if let Some(response) = response_of(entry) {
        debug::attach(&mut derived, response);
    }
    let steno_fields = difference(&derived, entry);
    if !steno_fields.is_empty() {
        let metadata = line.metadata.get_or_insert_default();
        metadata.insert(OURS.to_owned(), Value::Object(steno_fields));
    }
    line
}

fn take_ours(line: &mut Line) -> Option<Object> {
    let metadata = line.metadata.as_mut()?;
    let Some(Value::Object(_)) = metadata.get(OURS) else {
        return None;
    };
    let steno_fields = metadata.shift_remove(OURS);
    if metadata.is_empty() {
        line.metadata = None;
    }
    match steno_fields {
        Some(Value::Object(steno_fields)) => Some(steno_fields),
        _ => None,
    }
}

/// The fields of an entry that only chibi has.
pub(super) fn native(entry: &Entry) -> Option<&Object> {
    entry.extra.get(NATIVE)?.as_object()
}

/// Like [`native`], for changing.
pub(super) fn native_mut(entry: &mut Entry) -> &mut Object {
    let value = entry.extra.entry(NATIVE).or_insert_with(|| Object::new().into());
    if !value.is_object() {
        *value = Object::new().into();
    }
    value.as_object_mut().expect("it was just made one")
}

/// The id of an entry's line.
pub(super) fn id_of(entry: &Entry) -> String {
    match native(entry).and_then(|native| native.get("id")?.as_str()) {
        Some(id) => id.to_owned(),
        None => entry.entry_id.hyphenated().to_string(),
    }
}

/// The id of an entry's line; `None` if it is empty or nil.
pub(super) fn identity(entry: &Entry) -> Option<String> {
    let id = id_of(entry);
    let is_missing = id.is_empty() || id == Uuid::nil().hyphenated().to_string();
    (!is_missing).then_some(id)
}

/// The line of `response_meta.jsonl` that the entry's model and usage came from.
pub(super) fn response_of(entry: &Entry) -> Option<&Object> {
    native(entry)?.get("response")?.as_object()
}

/// The fields of `entry` that differ from `derived` or are missing there.
fn difference(derived: &Entry, entry: &Entry) -> Object {
    let (mut derived, fields) = (derived.to_object(), entry.to_object());
    let mut difference = Object::new();
    for (key, value) in fields {
        if derived.shift_remove(&key).as_ref() != Some(&value) && !TOLD.contains(&key.as_str()) {
            difference.insert(key, value);
        }
    }
    difference
}

fn plain_entry(line: Line) -> Entry {
    let kind = kind_of(&line.entry_type);
    let mut native = native_fields(&line, kind);
    let mut entry = Entry::new(role_of(&line, kind), kind, line.content);
    if !native.contains_key("id") {
        entry.entry_id = Uuid::parse_str(&line.id).unwrap_or_default();
    }
    entry.created_at = line.timestamp.moment();
    let tool = match kind {
        Kind::ToolCall => Some(line.to),
        Kind::ToolResult => Some(line.from),
        _ => None,
    };
    entry.tool_name = tool.filter(|name| !name.is_empty());
    if kind == Kind::ToolCall {
        entry.tool_input = serde_json::from_str(&entry.content).ok().filter(Value::is_object);
    }
    entry.metadata = line.metadata;
    entry.tool_call_id = line.tool_call_id;
    if kind == Kind::Compaction {
        take_summary(&mut entry, &mut native);
    }
    entry.extra.insert(NATIVE.to_owned(), Value::Object(native));
    entry
}

/// The fields of a line that no field of an entry can store unchanged.
fn native_fields(line: &Line, kind: Kind) -> Object {
    let mut native = Object::new();
    let mut keep = |field: &str, value: Value| {
        native.insert(field.to_owned(), value);
    };
    let id = Uuid::parse_str(&line.id).unwrap_or_default();
    if id.is_nil() || id.hyphenated().to_string() != line.id {
        keep("id", line.id.clone().into());
    }
    if let Some(timestamp) = line.timestamp.beyond_moment() {
        keep("timestamp", timestamp);
    }
    keep("from", line.from.clone().into());
    keep("to", line.to.clone().into());
    if line.entry_type != type_of(kind) {
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

fn plain_line(entry: &Entry, context: &str, earlier: i64) -> Line {
    let native = native(entry);
    let kept = |field: &str| native?.get(field)?.as_str().map(str::to_owned);
    let (from, to) = speakers(entry, context);
    let stated = native.and_then(|native| native.get("timestamp")).and_then(UnixSecond::of);
    let second = entry.created_at.map(|at| at.unix_seconds());
    let mut line = Line {
        id: id_of(entry),
        timestamp: stated.unwrap_or_else(|| second.unwrap_or(earlier).into()),
        from: kept("from").unwrap_or(from),
        to: kept("to").unwrap_or(to),
        content: entry.content.clone(),
        entry_type: kept("entry_type").unwrap_or_else(|| type_of(entry.kind).to_owned()),
        metadata: entry.metadata.clone(),
        tool_call_id: entry.tool_call_id.clone(),
        role: kept("role"),
        flow_control: native.and_then(|native| native.get("flow_control")?.as_bool()),
        extra: native
            .and_then(|native| native.get("extra")?.as_object().cloned())
            .unwrap_or_default(),
    };
    match (entry.kind, &entry.tool_input) {
        (Kind::ToolCall, Some(input)) if line.content.is_empty() => {
            line.content = Style::COMPACT.print(input);
        }
        (Kind::Compaction, _) => put_summary(&mut line, native),
        _ => {}
    }
    if line.role.is_none() && role_of(&line, kind_of(&line.entry_type)) != entry.role {
        line.role = Some(role_name(&entry.role).to_owned());
    }
    line
}

fn put_summary(line: &mut Line, native: Option<&Object>) {
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
fn speakers(entry: &Entry, context: &str) -> (String, String) {
    let tool = entry.tool_name.as_deref().unwrap_or_default();
    let (from, to) = match (entry.kind, &entry.role) {
        (Kind::ToolCall, _) => (context, tool),
        (Kind::ToolResult, _) => (tool, context),
        (Kind::Compaction, _) => (SYSTEM, context),
        (_, Role::Assistant) => (context, USER),
        (_, role) => (role.as_str(), context),
    };
    (from.to_owned(), to.to_owned())
}

fn kind_of(entry_type: &str) -> Kind {
    match entry_type {
        "message" | "system_prompt" => Kind::Text,
        "tool_call" | "flow_control_call" => Kind::ToolCall,
        "tool_result" | "flow_control_result" => Kind::ToolResult,
        "compaction" => Kind::Compaction,
        "thinking" => Kind::Thinking,
        "error" => Kind::Error,
        "notice"
        | "context_created"
        | "archival"
        | "system_prompt_changed"
        | "control_transfer" => Kind::Notice,
        _ => Kind::Other,
    }
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "message",
        other => other.as_str(),
    }
}

/// The role of a line: as stated, or derived from type and recipient. A message to `user` is from the assistant.
fn role_of(line: &Line, kind: Kind) -> Role {
    match (line.role.as_deref(), kind) {
        (Some("agent"), _) => Role::Assistant,
        (Some(role), _) => Role::from(role),
        (None, Kind::ToolCall) => Role::Assistant,
        (None, Kind::ToolResult) => Role::Tool,
        (None, Kind::Text) if line.entry_type == "system_prompt" => Role::System,
        (None, kind) if kind != Kind::Text && line.from == SYSTEM => Role::System,
        (None, _) if line.to == USER => Role::Assistant,
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
