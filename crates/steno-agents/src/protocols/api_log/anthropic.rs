//! Decodes messages of Anthropic's API, from requests and responses.

use crate::decoding::attachment;
use crate::decoding::entries::{self, unknown_entry};
use crate::decoding::json_fields::text_field;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{JsonStyle, Object, Value};

/// The entries of a message: one for a plain text, else one for each block.
pub(crate) fn message_entries(message: &Object) -> Vec<Entry> {
    let role = Role::from(text_field(message, "role").unwrap_or_default());
    match message.get("content") {
        Some(Value::String(text)) => vec![Entry::new(role, EntryKind::Text, text.as_str())],
        Some(Value::Array(blocks)) => {
            let blocks = blocks.iter().filter_map(Value::as_object);
            blocks.flat_map(|block| block_entries(block, &role)).collect()
        }
        _ => Vec::new(),
    }
}

fn block_entries(block: &Object, role: &Role) -> Vec<Entry> {
    let kind = text_field(block, "type").unwrap_or_default();
    let field_text = |field| text_field(block, field).unwrap_or_default();
    let of = |kind, content: &str| vec![Entry::new(role.clone(), kind, content)];
    match kind {
        "text" => of(EntryKind::Text, field_text("text")),
        "thinking" if field_text("thinking").is_empty() => Vec::new(),
        "thinking" => of(EntryKind::Thinking, field_text("thinking")),
        "redacted_thinking" => Vec::new(),
        "image" | "document" => of(EntryKind::Text, &attachment_text(block)),
        "compaction" => compaction_entries(block),
        "fallback" => of(EntryKind::Notice, &JsonStyle::COMPACT.print(block)),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => vec![tool_call_entry(block)],
        _ if kind.ends_with("tool_result") => vec![tool_result_entry(block)],
        _ => vec![unknown_entry(block.clone())],
    }
}

fn tool_call_entry(block: &Object) -> Entry {
    let name = text_field(block, "name").unwrap_or_default();
    if block.get("incomplete").is_some() {
        return Entry::new(Role::Assistant, EntryKind::Error, format!("call of {name} broke off"));
    }
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    entry.tool_name = Some(name.to_owned());
    entry.tool_call_id = text_field(block, "id").map(str::to_owned);
    entry.tool_input = block.get("input").cloned();
    entry
}

fn tool_result_entry(block: &Object) -> Entry {
    let content = block.get("content").map(result_text).unwrap_or_default();
    let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, content);
    entry.tool_call_id = text_field(block, "tool_use_id").map(str::to_owned);
    if block.get("is_error") == Some(&Value::Bool(true)) {
        entry.metadata = Some(entries::failure_metadata());
    }
    entry
}

fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(part_text).collect::<Vec<_>>().join("\n"),
        Value::Null => String::new(),
        other => JsonStyle::COMPACT.print(other),
    }
}

fn part_text(part: &Value) -> String {
    let Value::Object(block) = part else {
        return JsonStyle::COMPACT.print(part);
    };
    match text_field(block, "type") {
        Some("text") => text_field(block, "text").unwrap_or_default().to_owned(),
        Some("image" | "document") => attachment_text(block),
        _ => JsonStyle::COMPACT.print(block),
    }
}

fn attachment_text(block: &Object) -> String {
    let kind = text_field(block, "type").unwrap_or_default();
    let Some(Value::Object(source)) = block.get("source") else {
        return format!("[{kind}]");
    };
    match (text_field(source, "data"), text_field(source, "url")) {
        (Some(data), _) if text_field(source, "type") == Some("text") => data.to_owned(),
        (Some(data), _) => {
            attachment::describe_base64(text_field(source, "media_type").or(Some(kind)), data)
        }
        (None, Some(url)) => attachment::describe_url(kind, url),
        (None, None) => format!("[{kind}]"),
    }
}

fn compaction_entries(block: &Object) -> Vec<Entry> {
    let seam = Entry::new(Role::System, EntryKind::Compaction, "");
    let summary = text_field(block, "content").filter(|summary| !summary.is_empty());
    let summary = summary.map(|summary| Entry::new(Role::User, EntryKind::Notice, summary));
    [Some(seam), summary].into_iter().flatten().collect()
}
