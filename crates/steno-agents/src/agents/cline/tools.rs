//! Decodes tool messages of the UI. Their text is JSON, a command line or a URL.

use crate::decoding::attachment;
use crate::decoding::json_fields::{owned_text, unpack_json};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// Decodes a message of type `what` as a tool call, if it is one.
pub(super) fn decode_tool_call(what: &str, text: &str) -> Option<Entry> {
    let value = unpack_json(&text.into());
    let (name, input) = match what {
        "tool" => (owned_text(&value["tool"]).unwrap_or_else(|| what.to_owned()), value),
        "command" => ("execute_command".to_owned(), single_field("command", text)),
        "browser_action_launch" => ("browser_action".to_owned(), single_field("url", text)),
        "browser_action" => (what.to_owned(), value),
        "use_mcp_server" => decode_mcp_call(&value),
        _ => return None,
    };
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    entry.tool_name = Some(name);
    entry.tool_input = Some(input);
    Some(entry)
}

/// Decodes a message of type `what` as tool output, if it is such.
pub(super) fn decode_tool_output(what: &str, text: &str) -> Option<Entry> {
    let content = match what {
        "command_output" | "mcp_server_response" => text.to_owned(),
        "browser_action_result" => describe_browser_result(text),
        _ => return None,
    };
    Some(Entry::new(Role::Tool, EntryKind::ToolResult, content))
}

fn single_field(name: &str, text: &str) -> Value {
    Object::from_iter([(name.to_owned(), text.into())]).into()
}

fn decode_mcp_call(value: &Value) -> (String, Value) {
    let name = owned_text(&value["toolName"]).or_else(|| owned_text(&value["uri"]));
    let name = name.unwrap_or_else(|| "use_mcp_server".to_owned());
    let server = owned_text(&value["serverName"]);
    let name = server.map_or_else(|| name.clone(), |server| format!("{server}.{name}"));
    let input = value.get("arguments").map_or_else(|| value.clone(), unpack_json);
    (name, input)
}

fn describe_browser_result(text: &str) -> String {
    let mut value = unpack_json(&text.into());
    let Some(screenshot) = value.get_mut("screenshot") else { return text.to_owned() };
    if let Some(url) = screenshot.as_str() {
        *screenshot = attachment::describe_url("image", url).into();
    }
    value.to_string()
}
