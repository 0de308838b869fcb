//! Decodes items of OpenAI's Responses API, from Codex's session files and from API logs.
//!
//! Callers decide which user messages are prompts, because an item alone does not show it.

use crate::decoding::attachment;
use crate::decoding::entries::{self, unknown_entry};
use crate::decoding::json_fields::text_field;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{JsonStyle, Object, Value};

/// Item types of tool calls, each with a tool name for items that state none.
const CALL_ITEMS: [(&str, &str); 12] = [
    ("function_call", "function"),
    ("custom_tool_call", "custom"),
    ("local_shell_call", "local_shell"),
    ("web_search_call", "web_search"),
    ("tool_search_call", "tool_search"),
    ("image_generation_call", "image_generation"),
    ("code_interpreter_call", "code_interpreter"),
    ("file_search_call", "file_search"),
    ("computer_call", "computer"),
    ("apply_patch_call", "apply_patch"),
    ("shell_call", "shell"),
    ("mcp_call", "mcp"),
];

const RESULT_ITEMS: [&str; 7] = [
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "tool_search_output",
    "computer_call_output",
    "apply_patch_call_output",
    "shell_call_output",
];

/// Fields of a call item outside of the tool's input.
const CALL_METADATA_FIELDS: [&str; 9] = [
    "type",
    "id",
    "call_id",
    "status",
    "name",
    "result",
    "outputs",
    "metadata",
    "internal_chat_message_metadata_passthrough",
];

/// The entry of an item. `None` for reasoning with encrypted content only.
pub(crate) fn item_entry(item: &Object) -> Option<Entry> {
    let kind = text_field(item, "type").unwrap_or_default();
    let call = CALL_ITEMS.iter().find(|(name, _)| *name == kind);
    Some(match (kind, call) {
        (_, Some((_, tool))) => call_entry(item, tool),
        (_, None) if RESULT_ITEMS.contains(&kind) => result_entry(item),
        ("message", None) => message_entry(item),
        ("reasoning", None) => return reasoning_entry(item),
        ("agent_message", None) => agent_message_entry(item),
        _ => unknown_entry(item.clone()),
    })
}

/// Whether items of this type are tool calls or results.
pub(crate) fn is_call_or_result(kind: &str) -> bool {
    RESULT_ITEMS.contains(&kind) || CALL_ITEMS.iter().any(|(name, _)| *name == kind)
}

/// The text of a string, of a list of parts, or of one part. Images are described.
pub(crate) fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<_> = parts.iter().filter_map(part_text).collect();
            texts.join("\n")
        }
        Value::Object(part) if part.contains_key("content") => content_text(&part["content"]),
        Value::Null => String::new(),
        part => part_text(part).unwrap_or_else(|| JsonStyle::COMPACT.print(part)),
    }
}

fn part_text(part: &Value) -> Option<String> {
    let Value::Object(part) = part else {
        return part.as_str().map(str::to_owned);
    };
    match text_field(part, "type").unwrap_or_default() {
        "input_image" | "image_url" | "input_file" | "input_audio" => Some(image_text(part)),
        "encrypted_content" => None,
        "refusal" => text_field(part, "refusal").map(str::to_owned),
        "file" => Some(file_text(part)),
        _ => text_field(part, "text")
            .map_or_else(|| unknown_part_text(part), |text| Some(text.to_owned())),
    }
}

/// A part of an unknown type as JSON. `None` if it has no field besides its type.
fn unknown_part_text(part: &Object) -> Option<String> {
    let is_empty = part.iter().all(|(name, value)| name == "type" || value.is_null());
    (!is_empty).then(|| JsonStyle::COMPACT.print(part))
}

fn file_text(part: &Object) -> String {
    let file = part.get("file").and_then(Value::as_object).unwrap_or(part);
    match (
        text_field(file, "file_data"),
        text_field(file, "filename").or(text_field(file, "file_id")),
    ) {
        (Some(data), _) => attachment::describe_url("file", data),
        (None, Some(name)) => format!("[file, {name}]"),
        (None, None) => "[file]".to_owned(),
    }
}

fn image_text(part: &Object) -> String {
    let image = part.get("image_url").map(|url| url.get("url").unwrap_or(url));
    let url = image.or(part.get("file_data")).and_then(Value::as_str);
    match url {
        Some(url) => attachment::describe_url("image", url),
        None => format!("[{}]", text_field(part, "type").unwrap_or_default()),
    }
}

fn message_entry(item: &Object) -> Entry {
    let content = item.get("content").map(content_text).unwrap_or_default();
    let (role, kind) = match text_field(item, "role").unwrap_or_default() {
        "user" => (Role::User, EntryKind::Text),
        "assistant" => (Role::Assistant, EntryKind::Text),
        _ => (Role::System, EntryKind::Notice),
    };
    let mut entry = Entry::new(role, kind, content);
    entry.message_id = text_field(item, "id").map(str::to_owned);
    if let Some(phase) = item.get("phase").filter(|phase| phase.is_string()) {
        entry.metadata.get_or_insert_default().insert("phase".to_owned(), phase.clone());
    }
    entry
}

fn reasoning_entry(item: &Object) -> Option<Entry> {
    let field_text = |field| item.get(field).map(content_text).filter(|text| !text.is_empty());
    let thought = field_text("content").or_else(|| field_text("summary"))?;
    Some(Entry::new(Role::Assistant, EntryKind::Thinking, thought))
}

fn agent_message_entry(item: &Object) -> Entry {
    let content = item.get("content").map(content_text).unwrap_or_default();
    let mut entry = Entry::new(Role::User, EntryKind::Notice, content);
    let ends = ["author", "recipient"]
        .into_iter()
        .filter_map(|end| Some((end.to_owned(), item.get(end)?.clone())));
    entry.metadata = Some(ends.collect());
    entry
}

fn call_entry(item: &Object, tool: &str) -> Entry {
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    let inner = item.get("function").and_then(|function| function.get("name"));
    let name = text_field(item, "name").or(inner.and_then(Value::as_str)).unwrap_or(tool);
    entry.tool_name = Some(name.to_owned());
    entry.tool_call_id = call_id(item);
    entry.tool_input = Some(tool_input(item));
    if let Some(namespace) = item.get("namespace").filter(|namespace| namespace.is_string()) {
        entry.metadata.get_or_insert_default().insert("namespace".to_owned(), namespace.clone());
    }
    entry
}

fn call_id(item: &Object) -> Option<String> {
    text_field(item, "call_id").or(text_field(item, "id")).map(str::to_owned)
}

fn tool_input(item: &Object) -> Value {
    for field in ["arguments", "input", "action", "operation"] {
        match item.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => return parse_arguments(text),
            Some(input) => return input.clone(),
        }
    }
    let input = item.iter().filter(|(field, _)| !CALL_METADATA_FIELDS.contains(&field.as_str()));
    Value::Object(input.map(|(field, value)| (field.clone(), value.clone())).collect())
}

/// Parses tool arguments: an object as JSON, anything else as text.
pub(crate) fn parse_arguments(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => Value::String(arguments.to_owned()),
    }
}

fn result_entry(item: &Object) -> Entry {
    let output = item.get("output").or(item.get("tools")).unwrap_or(&Value::Null);
    let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, content_text(output));
    if item.contains_key("tools") && !item.contains_key("output") {
        entry.content = JsonStyle::COMPACT.print(output);
    }
    entry.tool_call_id = call_id(item);
    let failed = output.get("success") == Some(&Value::Bool(false))
        || matches!(text_field(item, "status"), Some("failed" | "incomplete"))
        || parse_exit_code(&entry.content).is_some_and(|code| code != 0);
    if failed {
        entry.metadata = Some(entries::failure_metadata());
    }
    entry
}

/// The exit code at the start of a shell tool's output.
fn parse_exit_code(output: &str) -> Option<i64> {
    if output.starts_with("{\"output\":") {
        let output: Value = serde_json::from_str(output).ok()?;
        return output.get("metadata")?.get("exit_code")?.as_i64();
    }
    let head = output.lines().take(5).take_while(|line| *line != "Output:");
    let prefixes = ["Exit code: ", "Process exited with code "];
    head.flat_map(|line| prefixes.iter().filter_map(move |prefix| line.strip_prefix(prefix)))
        .find_map(|code| code.trim().parse().ok())
}

#[cfg(test)]
mod tests;
