//! Tools as they are shown: a text that is JSON, a command line or an address.

use super::super::fields::{string, unpacked};
use crate::agent::attachment;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// The call that a message of the sort `what` shows.
pub(super) fn call(what: &str, text: &str) -> Option<Entry> {
    let stated = unpacked(&text.into());
    let (name, input) = match what {
        "tool" => (string(&stated["tool"]).unwrap_or_else(|| what.to_owned()), stated),
        "command" => ("execute_command".to_owned(), one("command", text)),
        "browser_action_launch" => ("browser_action".to_owned(), one("url", text)),
        "browser_action" => (what.to_owned(), stated),
        "use_mcp_server" => mcp_call(&stated),
        _ => return None,
    };
    let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
    entry.tool_name = Some(name);
    entry.tool_input = Some(input);
    Some(entry)
}

/// The output that a message of the sort `what` shows.
pub(super) fn result(what: &str, text: &str) -> Option<Entry> {
    let content = match what {
        "command_output" | "mcp_server_response" => text.to_owned(),
        "browser_action_result" => browser_result(text),
        _ => return None,
    };
    Some(Entry::new(Role::Tool, Kind::ToolResult, content))
}

fn one(key: &str, value: &str) -> Value {
    Object::from_iter([(key.to_owned(), value.into())]).into()
}

fn mcp_call(stated: &Value) -> (String, Value) {
    let name = string(&stated["toolName"]).or_else(|| string(&stated["uri"]));
    let name = name.unwrap_or_else(|| "use_mcp_server".to_owned());
    let server = string(&stated["serverName"]);
    let name = server.map_or_else(|| name.clone(), |server| format!("{server}.{name}"));
    let input = stated.get("arguments").map_or_else(|| stated.clone(), unpacked);
    (name, input)
}

fn browser_result(text: &str) -> String {
    let mut stated = unpacked(&text.into());
    let Some(shown) = stated.get_mut("screenshot") else { return text.to_owned() };
    if let Some(url) = shown.as_str() {
        *shown = attachment::url("image", url).into();
    }
    stated.to_string()
}
