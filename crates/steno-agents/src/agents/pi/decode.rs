//! Decodes a message of Pi into entries.

use crate::decoding::{entries, json_fields, json_records};
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::session::Session;

/// Decodes a message, and adds its cost to the session's.
pub(super) fn decode_message(session: &mut Session, message: &Object) -> Vec<Entry> {
    match json_fields::text_field(message, "role") {
        Some("user") => decode_user(message),
        Some("assistant") => decode_assistant(session, message),
        Some("toolResult") => vec![decode_tool_result(message)],
        Some("bashExecution") => vec![command_entry(message)],
        Some("custom" | "hookMessage") => vec![notice_entry(field_text(message, "content"))],
        Some("branchSummary" | "compactionSummary") => {
            vec![notice_entry(field_text(message, "summary"))]
        }
        _ => vec![entries::unknown_entry(message.clone())],
    }
}

fn field_text(message: &Object, field: &str) -> String {
    message.get(field).map(json_records::value_text).unwrap_or_default()
}

fn notice_entry(content: String) -> Entry {
    Entry::new(Role::User, EntryKind::Notice, content)
}

/// The content blocks of a message. A string is one block.
fn content_blocks(message: &Object) -> &[Value] {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(text) => std::slice::from_ref(text),
        None => &[],
    }
}

fn decode_user(message: &Object) -> Vec<Entry> {
    let to_entry = |block: &Value| {
        let content = json_records::value_text(&Value::Array(vec![block.clone()]));
        Entry::new(Role::User, EntryKind::Text, content)
    };
    let mut entries: Vec<_> = content_blocks(message).iter().map(to_entry).collect();
    if entries.is_empty() {
        entries.push(Entry::new(Role::User, EntryKind::Text, ""));
    }
    entries
}

fn decode_assistant(session: &mut Session, message: &Object) -> Vec<Entry> {
    let mut entries: Vec<_> = content_blocks(message).iter().map(decode_block).collect();
    if entries.is_empty() {
        entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
    }
    for entry in &mut entries {
        entry.model = json_fields::text_field(message, "model").map(str::to_owned);
    }
    if let Some(tokens) = json_fields::object_field(message, "usage") {
        entries[0].usage = Some(parse_usage(tokens));
        let cost =
            json_fields::object_field(tokens, "cost").and_then(|cost| cost.get("total")?.as_f64());
        session.totals.cost =
            cost.map(|cost| cost + session.totals.cost.unwrap_or(0.0)).or(session.totals.cost);
    }
    session.stop_reason = json_fields::text_field(message, "stopReason").map(str::to_owned);
    if let Some(error) = json_fields::text_field(message, "errorMessage") {
        entries.push(Entry::new(Role::System, EntryKind::Error, error));
    }
    entries
}

fn decode_block(block: &Value) -> Entry {
    let entry = |kind, text: &str| Entry::new(Role::Assistant, kind, text);
    let object = match block {
        Value::Object(object) => object,
        other => return entry(EntryKind::Text, &json_records::value_text(other)),
    };
    let text = |field| json_fields::text_field(object, field);
    match text("type") {
        Some("text") => entry(EntryKind::Text, text("text").unwrap_or_default()),
        Some("thinking") => entry(EntryKind::Thinking, text("thinking").unwrap_or_default()),
        Some("toolCall") => entries::tool_call(text("name"), text("id"), object.get("arguments")),
        _ => entries::unknown_entry(object.clone()),
    }
}

fn decode_tool_result(message: &Object) -> Entry {
    let is_error = message.get("isError").and_then(Value::as_bool) == Some(true);
    let id = json_fields::text_field(message, "toolCallId");
    let mut entry = entries::tool_result(id, field_text(message, "content"), is_error);
    entry.tool_name = json_fields::text_field(message, "toolName").map(str::to_owned);
    entry
}

/// The entry of a shell command that the user ran with `!`, and its output.
fn command_entry(message: &Object) -> Entry {
    let mut entry = notice_entry(format!(
        "$ {}\n{}",
        field_text(message, "command"),
        field_text(message, "output")
    ));
    let names = ["exitCode", "cancelled", "truncated", "excludeFromContext"];
    let fields =
        names.iter().filter_map(|name| Some(((*name).to_owned(), message.get(*name)?.clone())));
    entry.metadata = Some(fields.collect());
    entry
}

fn parse_usage(tokens: &Object) -> Usage {
    let count = |field| json_fields::count_field(tokens, field);
    Usage {
        input: count("input"),
        cache_read: count("cacheRead"),
        cache_write: count("cacheWrite"),
        output: count("output"),
        reasoning: count("reasoning"),
        ..Usage::default()
    }
}
