//! Decodes a bubble of the editor: a message, a thought or a tool call.

use crate::decoding::agent_message::AgentMessage;
use crate::decoding::entries::{tool_call, tool_result};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{as_count, nonempty_text, parse_time};
use steno_model::entry::{EntryKind, Role, Usage};
use steno_model::json::Value;
use steno_model::timestamp::Timestamp;

/// Emits the entries of one bubble.
pub(super) fn emit_bubble(bubble: &Value, model: Option<String>, output: &mut EntryEmitter<'_>) {
    let own_model = bubble.get("modelInfo").and_then(|info| nonempty_text(info, "modelName"));
    let mut message = AgentMessage {
        id: nonempty_text(bubble, "bubbleId").map(str::to_owned),
        model: own_model.map(str::to_owned).or(model),
        created_at: bubble_time(bubble),
        usage: bubble.get("tokenCount").map(bubble_usage).filter(|usage| !usage.is_empty()),
        ..AgentMessage::default()
    };
    let text = nonempty_text(bubble, "text").unwrap_or_default();
    match bubble.get("type").and_then(Value::as_u64) {
        Some(1) => {
            message.add_text(Role::User, EntryKind::Text, text);
            output.emit_message(message);
        }
        Some(2) => {
            add_answer(&mut message, bubble, text);
            output.emit_answer(message);
        }
        _ => {
            message.add_unknown(bubble.clone());
            output.emit_message(message);
        }
    }
}

fn bubble_time(bubble: &Value) -> Option<Timestamp> {
    let timing = bubble.get("timingInfo");
    let sent = ["clientRpcSendTime", "clientStartTime"];
    // Some of these times count from the start of the editor.
    let sent = sent.iter().filter_map(|name| parse_time(timing?.get(name)?));
    let created = bubble.get("createdAt").and_then(parse_time);
    created.or_else(|| sent.into_iter().find(|at| at.unix_seconds() > 1_000_000_000))
}

fn bubble_usage(tokens: &Value) -> Usage {
    let count = |name| as_count(&tokens[name]);
    Usage { input: count("inputTokens"), output: count("outputTokens"), ..Usage::default() }
}

fn add_answer(message: &mut AgentMessage, bubble: &Value, text: &str) {
    if let Some(thought) =
        bubble.get("thinking").and_then(|thinking| nonempty_text(thinking, "text"))
    {
        message.add_text(Role::Assistant, EntryKind::Thinking, thought);
    }
    if !text.is_empty() {
        message.add_text(Role::Assistant, EntryKind::Text, text);
    }
    if let Some(call) =
        bubble.get("toolFormerData").filter(|call| nonempty_text(call, "name").is_some())
    {
        add_tool(message, call);
    }
}

/// Adds a tool call and, once there is one, its result. Both arguments and result are JSON in strings.
fn add_tool(message: &mut AgentMessage, call: &Value) {
    let name = nonempty_text(call, "name").unwrap_or_default();
    let id = nonempty_text(call, "toolCallId");
    let arguments =
        nonempty_text(call, "rawArgs").or(nonempty_text(call, "params")).unwrap_or_default();
    let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
    message.push(tool_call(Some(name), id, Some(&input)));
    let error = call.get("error").filter(|error| !error.is_null());
    let failed = error.is_some() || nonempty_text(call, "status") == Some("error");
    let content = match (nonempty_text(call, "result"), error) {
        (Some(result), _) => result.to_owned(),
        (None, Some(Value::String(error))) => error.clone(),
        (None, Some(error)) => error.to_string(),
        (None, None) if failed || nonempty_text(call, "status") == Some("completed") => {
            String::new()
        }
        (None, None) => return,
    };
    let mut result = tool_result(id, content, failed);
    result.tool_name = Some(name.to_owned());
    message.push(result);
}
