//! Decodes a `UIMessage`: of version 5 with parts, or older with tool invocations.

use crate::decoding::attachment;
use crate::decoding::entries::{failure_metadata, unknown_entry};
use crate::decoding::json_fields::{self, text_field};
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{JsonStyle, Object, Value};

/// Whether a value is a message: it has an id, a role, and either typed parts or content.
pub(super) fn is_ui_message(value: &Value) -> bool {
    let Value::Object(message) = value else {
        return false;
    };
    let known =
        matches!(text_field(message, "role"), Some("system" | "user" | "assistant" | "data"));
    let typed = |part: &Value| part.get("type").is_some_and(Value::is_string);
    let has_content = match message.get("parts") {
        Some(Value::Array(parts)) => parts.iter().all(typed),
        None => message.get("content").is_some_and(Value::is_string),
        _ => false,
    };
    known && has_content && text_field(message, "id").is_some()
}

/// The entries of a message. All of them have its id.
pub(super) fn message_entries(message: &Object) -> Vec<Entry> {
    let role = Role::from(text_field(message, "role").unwrap_or_default());
    let metadata = message.get("metadata").and_then(Value::as_object);
    let mut entries = match message.get("parts") {
        Some(Value::Array(parts)) => {
            let parts = parts.iter().filter_map(Value::as_object);
            parts.flat_map(|part| part_entries(part, &role)).collect()
        }
        _ => legacy_entries(message, &role),
    };
    for entry in &mut entries {
        entry.message_id = text_field(message, "id").map(str::to_owned);
        let created_at = |object| json_fields::time_field(object, "createdAt");
        entry.created_at = created_at(message).or(metadata.and_then(created_at));
        if entry.role == Role::Assistant {
            entry.model =
                metadata.and_then(|metadata| text_field(metadata, "model")).map(str::to_owned);
        }
    }
    if let Some(last) = entries.last_mut() {
        last.usage = metadata.and_then(metadata_usage);
    }
    entries
}

fn part_entries(part: &Object, role: &Role) -> Vec<Entry> {
    let kind = text_field(part, "type").unwrap_or_default();
    let of = |kind, content: &str| vec![Entry::new(role.clone(), kind, content)];
    match kind {
        "text" => of(EntryKind::Text, text_field(part, "text").unwrap_or_default()),
        "reasoning" => of(EntryKind::Thinking, reasoning_text(part)),
        "file" => of(EntryKind::Text, &file_text(part)),
        "step-start" => Vec::new(),
        "source-url" | "source-document" => of(EntryKind::Notice, &JsonStyle::COMPACT.print(part)),
        "dynamic-tool" => tool_entries(part, text_field(part, "toolName").unwrap_or_default()),
        "tool-invocation" => match part.get("toolInvocation") {
            Some(Value::Object(invocation)) => invocation_entries(invocation),
            _ => vec![unknown_entry(part.clone())],
        },
        _ => match kind.strip_prefix("tool-") {
            Some(name) => tool_entries(part, name),
            None => vec![unknown_entry(part.clone())],
        },
    }
}

/// The text of a reasoning part. Older versions use the field `reasoning`.
fn reasoning_text(part: &Object) -> &str {
    text_field(part, "text").or(text_field(part, "reasoning")).unwrap_or_default()
}

fn file_text(part: &Object) -> String {
    let media_type =
        text_field(part, "mediaType").or(text_field(part, "mimeType")).unwrap_or("file");
    match (text_field(part, "url"), text_field(part, "data")) {
        (Some(url), _) => attachment::describe_url(media_type, url),
        (None, Some(data)) => attachment::describe_base64(Some(media_type), data),
        (None, None) => format!("[{media_type}]"),
    }
}

fn tool_entries(part: &Object, name: &str) -> Vec<Entry> {
    let input = part.get("input").or(part.get("rawInput"));
    let error = text_field(part, "errorText");
    let answer = match text_field(part, "state").unwrap_or_default() {
        "output-available" => part.get("output").map(result_text),
        "output-error" => Some(error.unwrap_or_default().to_owned()),
        "output-denied" => Some("denied".to_owned()),
        _ => None,
    };
    let failed = text_field(part, "state") != Some("output-available");
    call_and_result_entries(part, name, input.cloned(), answer.map(|answer| (answer, failed)))
}

/// Decodes a tool call of version 4 and older.
fn invocation_entries(invocation: &Object) -> Vec<Entry> {
    let name = text_field(invocation, "toolName").unwrap_or_default();
    let answer = invocation.get("result").map(|result| (result_text(result), false));
    call_and_result_entries(invocation, name, invocation.get("args").cloned(), answer)
}

fn call_and_result_entries(
    part: &Object,
    name: &str,
    input: Option<Value>,
    answer: Option<(String, bool)>,
) -> Vec<Entry> {
    let id = text_field(part, "toolCallId").map(str::to_owned);
    let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    call.tool_name = Some(name.to_owned());
    call.tool_call_id.clone_from(&id);
    call.tool_input = input;
    let result = answer.map(|(content, failed)| {
        let mut result = Entry::new(Role::Tool, EntryKind::ToolResult, content);
        result.tool_name = Some(name.to_owned());
        result.tool_call_id = id;
        result.metadata = failed.then(failure_metadata);
        result
    });
    [Some(call), result].into_iter().flatten().collect()
}

fn legacy_entries(message: &Object, role: &Role) -> Vec<Entry> {
    let thought = text_field(message, "reasoning").filter(|thought| !thought.is_empty());
    let thought = thought.map(|thought| Entry::new(role.clone(), EntryKind::Thinking, thought));
    let calls = message.get("toolInvocations").and_then(Value::as_array);
    let calls =
        calls.into_iter().flatten().filter_map(Value::as_object).flat_map(invocation_entries);
    let content = text_field(message, "content").filter(|content| !content.is_empty());
    let content = content.map(|content| Entry::new(role.clone(), EntryKind::Text, content));
    thought.into_iter().chain(calls).chain(content).collect()
}

fn result_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => JsonStyle::COMPACT.print(other),
    }
}

/// Parses usage, if the application stored it.
fn metadata_usage(metadata: &Object) -> Option<Usage> {
    let counts = metadata.get("totalUsage").or(metadata.get("usage"))?.as_object()?;
    let count = |name| json_fields::count_field(counts, name);
    let cache_read = count("cachedInputTokens");
    Some(Usage {
        input: count("inputTokens").max(count("promptTokens")).saturating_sub(cache_read),
        cache_read,
        output: count("outputTokens").max(count("completionTokens")),
        reasoning: count("reasoningTokens"),
        ..Usage::default()
    })
}
