//! Builds entries that all agents have: tool calls, tool results, and records of unknown kinds.

use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// A tool call.
pub(crate) fn tool_call(name: Option<&str>, id: Option<&str>, input: Option<&Value>) -> Entry {
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    entry.tool_name = name.map(str::to_owned);
    entry.tool_call_id = id.map(str::to_owned);
    entry.tool_input = input.cloned();
    entry
}

/// A tool result.
pub(crate) fn tool_result(id: Option<&str>, content: String, is_error: bool) -> Entry {
    let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, content);
    entry.tool_call_id = id.map(str::to_owned);
    if is_error {
        entry.metadata = Some(failure_metadata());
    }
    entry
}

/// The metadata of a failed tool result.
pub(crate) fn failure_metadata() -> Object {
    Object::from_iter([("is_error".to_owned(), Value::Bool(true))])
}

/// An entry of kind `other` that holds the whole record.
pub(crate) fn unknown_entry(record: impl Into<Value>) -> Entry {
    let mut entry = Entry::new(Role::System, EntryKind::Other, "");
    entry.metadata = Some(match record.into() {
        Value::Object(object) => object,
        other => Object::from_iter([("value".to_owned(), other)]),
    });
    entry
}
