//! Decodes messages of OpenAI's chat completions, from requests and responses.

use crate::agent::fields::text;
use crate::agent::responses::{content_text, structured};
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// The entries of a message: reasoning, text and tool calls.
pub(crate) fn entries(message: &Object) -> Vec<Entry> {
    let content = message.get("content").map(content_text).unwrap_or_default();
    match text(message, "role").unwrap_or_default() {
        "tool" | "function" => vec![result(message, content)],
        "system" | "developer" => vec![Entry::new(Role::System, Kind::Text, content)],
        "assistant" => answer(message, content),
        role => vec![Entry::new(Role::from(role), Kind::Text, content)],
    }
}

/// The entries of all choices of a completion.
pub(super) fn choices(completion: &Object) -> Vec<Entry> {
    let choices = completion.get("choices").and_then(Value::as_array);
    let messages = choices.into_iter().flatten().filter_map(|choice| choice.get("message"));
    messages.filter_map(Value::as_object).flat_map(entries).collect()
}

fn answer(message: &Object, content: String) -> Vec<Entry> {
    let thought = text(message, "reasoning_content").or(text(message, "reasoning"));
    let thought = thought.filter(|thought| !thought.is_empty());
    let refusal = text(message, "refusal").filter(|refusal| !refusal.is_empty());
    let visible_text = Some(content.as_str()).filter(|content| !content.is_empty()).or(refusal);
    let of = |kind| move |content: &str| Entry::new(Role::Assistant, kind, content);
    let spoken =
        thought.map(of(Kind::Thinking)).into_iter().chain(visible_text.map(of(Kind::Text)));
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten().filter_map(Value::as_object).map(call);
    let older = message.get("function_call").and_then(Value::as_object).map(function_call);
    spoken.chain(calls).chain(older).collect()
}

fn call(call: &Object) -> Entry {
    let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
    entry.tool_call_id = text(call, "id").map(str::to_owned);
    let function = call.get("function").or(call.get("custom")).and_then(Value::as_object);
    if let Some(function) = function {
        let Entry { tool_name, tool_input, .. } = function_call(function);
        (entry.tool_name, entry.tool_input) = (tool_name, tool_input);
    }
    entry
}

/// A call without an id, from the field `function_call` that preceded `tool_calls`.
fn function_call(function: &Object) -> Entry {
    let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
    entry.tool_name = text(function, "name").map(str::to_owned);
    let arguments = function.get("arguments").or(function.get("input"));
    entry.tool_input = match arguments {
        Some(Value::String(arguments)) => Some(structured(arguments)),
        other => other.cloned(),
    };
    entry
}

fn result(message: &Object, content: String) -> Entry {
    let mut entry = Entry::new(Role::Tool, Kind::ToolResult, content);
    entry.tool_call_id = text(message, "tool_call_id").map(str::to_owned);
    entry.tool_name = text(message, "name").map(str::to_owned);
    entry
}
