//! Decodes a message of Pi into entries.

use crate::agent::{entries, fields, record};
use crate::entry::{Entry, Kind, Role, Usage};
use crate::json::{Object, Value};
use crate::session::Session;

/// Decodes a message, and adds its cost to the session's.
pub(super) fn entries(session: &mut Session, message: &Object) -> Vec<Entry> {
    match fields::text(message, "role") {
        Some("user") => user(message),
        Some("assistant") => assistant(session, message),
        Some("toolResult") => vec![result(message)],
        Some("bashExecution") => vec![command(message)],
        Some("custom" | "hookMessage") => vec![notice(plain(message, "content"))],
        Some("branchSummary" | "compactionSummary") => vec![notice(plain(message, "summary"))],
        _ => vec![entries::unknown(message.clone())],
    }
}

fn plain(message: &Object, field: &str) -> String {
    message.get(field).map(record::said).unwrap_or_default()
}

fn notice(content: String) -> Entry {
    Entry::new(Role::User, Kind::Notice, content)
}

/// The content blocks of a message. A string is one block.
fn blocks(message: &Object) -> &[Value] {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(text) => std::slice::from_ref(text),
        None => &[],
    }
}

fn user(message: &Object) -> Vec<Entry> {
    let to_entry = |block: &Value| {
        let content = record::said(&Value::Array(vec![block.clone()]));
        Entry::new(Role::User, Kind::Text, content)
    };
    let mut entries: Vec<_> = blocks(message).iter().map(to_entry).collect();
    if entries.is_empty() {
        entries.push(Entry::new(Role::User, Kind::Text, ""));
    }
    entries
}

fn assistant(session: &mut Session, message: &Object) -> Vec<Entry> {
    let mut entries: Vec<_> = blocks(message).iter().map(block).collect();
    if entries.is_empty() {
        entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
    }
    for entry in &mut entries {
        entry.model = fields::text(message, "model").map(str::to_owned);
    }
    if let Some(tokens) = fields::object(message, "usage") {
        entries[0].usage = Some(usage(tokens));
        let cost = fields::object(tokens, "cost").and_then(|cost| cost.get("total")?.as_f64());
        session.totals.cost =
            cost.map(|cost| cost + session.totals.cost.unwrap_or(0.0)).or(session.totals.cost);
    }
    session.stop_reason = fields::text(message, "stopReason").map(str::to_owned);
    if let Some(error) = fields::text(message, "errorMessage") {
        entries.push(Entry::new(Role::System, Kind::Error, error));
    }
    entries
}

fn block(block: &Value) -> Entry {
    let entry = |kind, text: &str| Entry::new(Role::Assistant, kind, text);
    let object = match block {
        Value::Object(object) => object,
        other => return entry(Kind::Text, &record::said(other)),
    };
    let text = |field| fields::text(object, field);
    match text("type") {
        Some("text") => entry(Kind::Text, text("text").unwrap_or_default()),
        Some("thinking") => entry(Kind::Thinking, text("thinking").unwrap_or_default()),
        Some("toolCall") => entries::tool_call(text("name"), text("id"), object.get("arguments")),
        _ => entries::unknown(object.clone()),
    }
}

fn result(message: &Object) -> Entry {
    let is_error = message.get("isError").and_then(Value::as_bool) == Some(true);
    let id = fields::text(message, "toolCallId");
    let mut entry = entries::tool_result(id, plain(message, "content"), is_error);
    entry.tool_name = fields::text(message, "toolName").map(str::to_owned);
    entry
}

/// The entry of a shell command that the user ran with `!`, and its output.
fn command(message: &Object) -> Entry {
    let mut entry =
        notice(format!("$ {}\n{}", plain(message, "command"), plain(message, "output")));
    let names = ["exitCode", "cancelled", "truncated", "excludeFromContext"];
    let fields =
        names.iter().filter_map(|name| Some(((*name).to_owned(), message.get(*name)?.clone())));
    entry.metadata = Some(fields.collect());
    entry
}

fn usage(tokens: &Object) -> Usage {
    let count = |field| fields::count(tokens, field);
    Usage {
        input: count("input"),
        cache_read: count("cacheRead"),
        cache_write: count("cacheWrite"),
        output: count("output"),
        reasoning: count("reasoning"),
        ..Usage::default()
    }
}
