//! Decodes messages of OpenAI's chat completions, from requests and responses.

use crate::decoding::json_fields::text_field;
use crate::protocols::responses::{content_text, parse_arguments};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// The entries of a message: reasoning, text and tool calls.
pub(crate) fn message_entries(message: &Object) -> Vec<Entry> {
    let content = message.get("content").map(content_text).unwrap_or_default();
    match text_field(message, "role").unwrap_or_default() {
        "tool" | "function" => vec![tool_result_entry(message, content)],
        "system" | "developer" => vec![Entry::new(Role::System, EntryKind::Text, content)],
        "assistant" => answer_entries(message, content),
        role => vec![Entry::new(Role::from(role), EntryKind::Text, content)],
    }
}

/// The entries of all choices of a completion.
pub(super) fn choice_entries(completion: &Object) -> Vec<Entry> {
    let choices = completion.get("choices").and_then(Value::as_array);
    let messages = choices.into_iter().flatten().filter_map(|choice| choice.get("message"));
    messages.filter_map(Value::as_object).flat_map(message_entries).collect()
}

fn answer_entries(message: &Object, content: String) -> Vec<Entry> {
    let thought = text_field(message, "reasoning_content").or(text_field(message, "reasoning"));
    let thought = thought.filter(|thought| !thought.is_empty());
    let refusal = text_field(message, "refusal").filter(|refusal| !refusal.is_empty());
    let visible_text = Some(content.as_str()).filter(|content| !content.is_empty()).or(refusal);
    let of = |kind| move |content: &str| Entry::new(Role::Assistant, kind, content);
    let spoken = thought
        .map(of(EntryKind::Thinking))
        .into_iter()
        .chain(visible_text.map(of(EntryKind::Text)));
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten().filter_map(Value::as_object).map(tool_call_entry);
    let older = message.get("function_call").and_then(Value::as_object).map(function_call_entry);
    spoken.chain(calls).chain(older).collect()
}

fn tool_call_entry(call: &Object) -> Entry {
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    entry.tool_call_id = text_field(call, "id").map(str::to_owned);
    let function = call.get("function").or(call.get("custom")).and_then(Value::as_object);
    if let Some(function) = function {
        let Entry { tool_name, tool_input, .. } = function_call_entry(function);
        (entry.tool_name, entry.tool_input) = (tool_name, tool_input);
    }
    entry
}

/// A call without an id, from the field `function_call` that preceded `tool_calls`.
fn function_call_entry(function: &Object) -> Entry {
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    entry.tool_name = text_field(function, "name").map(str::to_owned);
    let arguments = function.get("arguments").or(function.get("input"));
    entry.tool_input = match arguments {
        Some(Value::String(arguments)) => Some(parse_arguments(arguments)),
        other => other.cloned(),
    };
    entry
}

fn tool_result_entry(message: &Object, content: String) -> Entry {
    let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, content);
    entry.tool_call_id = text_field(message, "tool_call_id").map(str::to_owned);
    entry.tool_name = text_field(message, "name").map(str::to_owned);
    entry
}
