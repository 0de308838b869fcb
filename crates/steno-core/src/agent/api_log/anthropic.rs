//! Decodes messages of Anthropic's API, from requests and responses.

use crate::agent::attachment;
use crate::agent::entries;
use crate::agent::entries::unknown;
use crate::agent::fields::text;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Style, Value};

/// The entries of a message: one for a plain text, else one for each block.
pub(crate) fn entries(message: &Object) -> Vec<Entry> {
    let role = Role::from(text(message, "role").unwrap_or_default());
    match message.get("content") {
        Some(Value::String(text)) => vec![Entry::new(role, Kind::Text, text.as_str())],
        Some(Value::Array(blocks)) => {
            let blocks = blocks.iter().filter_map(Value::as_object);
            blocks.flat_map(|block| block_entries(block, &role)).collect()
        }
        _ => Vec::new(),
    }
}

fn block_entries(block: &Object, role: &Role) -> Vec<Entry> {
    let kind = text(block, "type").unwrap_or_default();
    let field_text = |field| text(block, field).unwrap_or_default();
    let of = |kind, content: &str| vec![Entry::new(role.clone(), kind, content)];
    match kind {
        "text" => of(Kind::Text, field_text("text")),
        "thinking" if field_text("thinking").is_empty() => Vec::new(),
        "thinking" => of(Kind::Thinking, field_text("thinking")),
        "redacted_thinking" => Vec::new(),
        "image" | "document" => of(Kind::Text, &attached(block)),
        "compaction" => compaction(block),
        "fallback" => of(Kind::Notice, &Style::COMPACT.print(block)),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => vec![call(block)],
        _ if kind.ends_with("tool_result") => vec![result(block)],
        _ => vec![unknown(block.clone())],
    }
}

fn call(block: &Object) -> Entry {
    let name = text(block, "name").unwrap_or_default();
    if block.get("incomplete").is_some() {
        return Entry::new(Role::Assistant, Kind::Error, format!("call of {name} broke off"));
    }
    let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
    entry.tool_name = Some(name.to_owned());
    entry.tool_call_id = text(block, "id").map(str::to_owned);
    entry.tool_input = block.get("input").cloned();
    entry
}

fn result(block: &Object) -> Entry {
    let content = block.get("content").map(result_text).unwrap_or_default();
    let mut entry = Entry::new(Role::Tool, Kind::ToolResult, content);
    entry.tool_call_id = text(block, "tool_use_id").map(str::to_owned);
    if block.get("is_error") == Some(&Value::Bool(true)) {
        entry.metadata = Some(entries::failure());
    }
    entry
}

fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(part_text).collect::<Vec<_>>().join("\n"),
        Value::Null => String::new(),
        other => Style::COMPACT.print(other),
    }
}

fn part_text(part: &Value) -> String {
    let Value::Object(block) = part else {
        return Style::COMPACT.print(part);
    };
    match text(block, "type") {
        Some("text") => text(block, "text").unwrap_or_default().to_owned(),
        Some("image" | "document") => attached(block),
        _ => Style::COMPACT.print(block),
    }
}

fn attached(block: &Object) -> String {
    let kind = text(block, "type").unwrap_or_default();
    let Some(Value::Object(source)) = block.get("source") else {
        return format!("[{kind}]");
    };
    match (text(source, "data"), text(source, "url")) {
        (Some(data), _) if text(source, "type") == Some("text") => data.to_owned(),
        (Some(data), _) => attachment::media(text(source, "media_type").or(Some(kind)), data),
        (None, Some(url)) => attachment::url(kind, url),
        (None, None) => format!("[{kind}]"),
    }
}

fn compaction(block: &Object) -> Vec<Entry> {
    let seam = Entry::new(Role::System, Kind::Compaction, "");
    let summary = text(block, "content").filter(|summary| !summary.is_empty());
    let summary = summary.map(|summary| Entry::new(Role::User, Kind::Notice, summary));
    [Some(seam), summary].into_iter().flatten().collect()
}
