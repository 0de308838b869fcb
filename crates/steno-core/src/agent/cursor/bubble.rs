//! Decodes a bubble of the editor: a message, a thought or a tool call.

use crate::agent::entries::{tool_call, tool_result};
use crate::agent::fields::{as_count, filled, moment};
use crate::agent::message::Message;
use crate::agent::output::Output;
use crate::entry::{Kind, Role, Usage};
use crate::json::Value;
use crate::timestamp::Timestamp;

/// Emits the entries of one bubble.
pub(super) fn take(bubble: &Value, model: Option<String>, output: &mut Output<'_>) {
    let own_model = bubble.get("modelInfo").and_then(|info| filled(info, "modelName"));
    let mut message = Message {
        id: filled(bubble, "bubbleId").map(str::to_owned),
        model: own_model.map(str::to_owned).or(model),
        created_at: time(bubble),
        usage: bubble.get("tokenCount").map(usage).filter(|usage| !usage.is_empty()),
        ..Message::default()
    };
    let text = filled(bubble, "text").unwrap_or_default();
    match bubble.get("type").and_then(Value::as_u64) {
        Some(1) => {
            message.say(Role::User, Kind::Text, text);
            output.message(message);
        }
        Some(2) => {
            answer(&mut message, bubble, text);
            output.answer(message);
        }
        _ => {
            message.unknown(bubble.clone());
            output.message(message);
        }
    }
}

fn time(bubble: &Value) -> Option<Timestamp> {
    let timing = bubble.get("timingInfo");
    let sent = ["clientRpcSendTime", "clientStartTime"];
    // Some of these times count from the start of the editor.
    let sent = sent.iter().filter_map(|name| moment(timing?.get(name)?));
    let created = bubble.get("createdAt").and_then(moment);
    created.or_else(|| sent.into_iter().find(|at| at.unix_seconds() > 1_000_000_000))
}

fn usage(tokens: &Value) -> Usage {
    let count = |name| as_count(&tokens[name]);
    Usage { input: count("inputTokens"), output: count("outputTokens"), ..Usage::default() }
}

fn answer(message: &mut Message, bubble: &Value, text: &str) {
    if let Some(thought) = bubble.get("thinking").and_then(|thinking| filled(thinking, "text")) {
        message.say(Role::Assistant, Kind::Thinking, thought);
    }
    if !text.is_empty() {
        message.say(Role::Assistant, Kind::Text, text);
    }
    if let Some(call) = bubble.get("toolFormerData").filter(|call| filled(call, "name").is_some()) {
        tool(message, call);
    }
}

/// Adds a tool call and, once there is one, its result. Both arguments and result are JSON in strings.
fn tool(message: &mut Message, call: &Value) {
    let name = filled(call, "name").unwrap_or_default();
    let id = filled(call, "toolCallId");
    let arguments = filled(call, "rawArgs").or(filled(call, "params")).unwrap_or_default();
    let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
    message.push(tool_call(Some(name), id, Some(&input)));
    let error = call.get("error").filter(|error| !error.is_null());
    let failed = error.is_some() || filled(call, "status") == Some("error");
    let content = match (filled(call, "result"), error) {
        (Some(result), _) => result.to_owned(),
        (None, Some(Value::String(error))) => error.clone(),
        (None, Some(error)) => error.to_string(),
        (None, None) if failed || filled(call, "status") == Some("completed") => String::new(),
        (None, None) => return,
    };
    let mut result = tool_result(id, content, failed);
    result.tool_name = Some(name.to_owned());
    message.push(result);
}
