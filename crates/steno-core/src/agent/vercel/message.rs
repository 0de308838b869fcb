//! Decodes a `UIMessage`: of version 5 with parts, or older with tool invocations.

use crate::agent::attachment;
use crate::agent::entries::{failure, unknown};
use crate::agent::fields::{self, text};
use crate::entry::{Entry, Kind, Role, Usage};
use crate::json::{Object, Style, Value};

/// Whether a value is a message: it has an id, a role, and either typed parts or content.
pub(super) fn is_message(value: &Value) -> bool {
    let Value::Object(message) = value else {
        return false;
    };
    let known = matches!(text(message, "role"), Some("system" | "user" | "assistant" | "data"));
    let typed = |part: &Value| part.get("type").is_some_and(Value::is_string);
    let has_content = match message.get("parts") {
        Some(Value::Array(parts)) => parts.iter().all(typed),
        None => message.get("content").is_some_and(Value::is_string),
        _ => false,
    };
    known && has_content && text(message, "id").is_some()
}

/// The entries of a message. All of them have its id.
pub(super) fn entries(message: &Object) -> Vec<Entry> {
    let role = Role::from(text(message, "role").unwrap_or_default());
    let metadata = message.get("metadata").and_then(Value::as_object);
    let mut entries = match message.get("parts") {
        Some(Value::Array(parts)) => {
            let parts = parts.iter().filter_map(Value::as_object);
            parts.flat_map(|part| part_entries(part, &role)).collect()
        }
        _ => older(message, &role),
    };
    for entry in &mut entries {
        entry.message_id = text(message, "id").map(str::to_owned);
        let created_at = |object| fields::time(object, "createdAt");
        entry.created_at = created_at(message).or(metadata.and_then(created_at));
        if entry.role == Role::Assistant {
            entry.model = metadata.and_then(|metadata| text(metadata, "model")).map(str::to_owned);
        }
    }
    if let Some(last) = entries.last_mut() {
        last.usage = metadata.and_then(usage);
    }
    entries
}

fn part_entries(part: &Object, role: &Role) -> Vec<Entry> {
    let kind = text(part, "type").unwrap_or_default();
    let of = |kind, content: &str| vec![Entry::new(role.clone(), kind, content)];
    match kind {
        "text" => of(Kind::Text, text(part, "text").unwrap_or_default()),
        "reasoning" => of(Kind::Thinking, part_thought(part)),
        "file" => of(Kind::Text, &file(part)),
        "step-start" => Vec::new(),
        "source-url" | "source-document" => of(Kind::Notice, &Style::COMPACT.print(part)),
        "dynamic-tool" => tool(part, text(part, "toolName").unwrap_or_default()),
        "tool-invocation" => match part.get("toolInvocation") {
            Some(Value::Object(invocation)) => invoked(invocation),
            _ => vec![unknown(part.clone())],
        },
        _ => match kind.strip_prefix("tool-") {
            Some(name) => tool(part, name),
            None => vec![unknown(part.clone())],
        },
    }
}

/// The text of a reasoning part. Older versions use the field `reasoning`.
fn part_thought(part: &Object) -> &str {
    text(part, "text").or(text(part, "reasoning")).unwrap_or_default()
}

fn file(part: &Object) -> String {
    let media_type = text(part, "mediaType").or(text(part, "mimeType")).unwrap_or("file");
    match (text(part, "url"), text(part, "data")) {
        (Some(url), _) => attachment::url(media_type, url),
        (None, Some(data)) => attachment::media(Some(media_type), data),
        (None, None) => format!("[{media_type}]"),
    }
}

fn tool(part: &Object, name: &str) -> Vec<Entry> {
    let input = part.get("input").or(part.get("rawInput"));
    let error = text(part, "errorText");
    let answer = match text(part, "state").unwrap_or_default() {
        "output-available" => part.get("output").map(plain),
        "output-error" => Some(error.unwrap_or_default().to_owned()),
        "output-denied" => Some("denied".to_owned()),
        _ => None,
    };
    let failed = text(part, "state") != Some("output-available");
    call_and_result(part, name, input.cloned(), answer.map(|answer| (answer, failed)))
}

/// Decodes a tool call of version 4 and older.
fn invoked(invocation: &Object) -> Vec<Entry> {
    let name = text(invocation, "toolName").unwrap_or_default();
    let answer = invocation.get("result").map(|result| (plain(result), false));
    call_and_result(invocation, name, invocation.get("args").cloned(), answer)
}

fn call_and_result(
    part: &Object,
    name: &str,
    input: Option<Value>,
    answer: Option<(String, bool)>,
) -> Vec<Entry> {
    let id = text(part, "toolCallId").map(str::to_owned);
    let mut call = Entry::new(Role::Assistant, Kind::ToolCall, "");
    call.tool_name = Some(name.to_owned());
    call.tool_call_id.clone_from(&id);
    call.tool_input = input;
    let result = answer.map(|(content, failed)| {
        let mut result = Entry::new(Role::Tool, Kind::ToolResult, content);
        result.tool_name = Some(name.to_owned());
        result.tool_call_id = id;
        result.metadata = failed.then(failure);
        result
    });
    [Some(call), result].into_iter().flatten().collect()
}

fn older(message: &Object, role: &Role) -> Vec<Entry> {
    let thought = text(message, "reasoning").filter(|thought| !thought.is_empty());
    let thought = thought.map(|thought| Entry::new(role.clone(), Kind::Thinking, thought));
    let calls = message.get("toolInvocations").and_then(Value::as_array);
    let calls = calls.into_iter().flatten().filter_map(Value::as_object).flat_map(invoked);
    let content = text(message, "content").filter(|content| !content.is_empty());
    let content = content.map(|content| Entry::new(role.clone(), Kind::Text, content));
    thought.into_iter().chain(calls).chain(content).collect()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => Style::COMPACT.print(other),
    }
}

/// Parses usage, if the application stored it.
fn usage(metadata: &Object) -> Option<Usage> {
    let counts = metadata.get("totalUsage").or(metadata.get("usage"))?.as_object()?;
    let count = |name| fields::count(counts, name);
    let cache_read = count("cachedInputTokens");
    Some(Usage {
        input: count("inputTokens").max(count("promptTokens")).saturating_sub(cache_read),
        cache_read,
        output: count("outputTokens").max(count("completionTokens")),
        reasoning: count("reasoningTokens"),
        ..Usage::default()
    })
}
