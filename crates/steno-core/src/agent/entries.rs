//! Entries that every agent has: calls of tools, their answers, and records of unknown kinds.

use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// A call of a tool.
pub(crate) fn tool_call(name: Option<&str>, id: Option<&str>, input: Option<&Value>) -> Entry {
    let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
    entry.tool_name = name.map(str::to_owned);
    entry.tool_call_id = id.map(str::to_owned);
    entry.tool_input = input.cloned();
    entry
}

/// A tool's answer.
pub(crate) fn tool_result(id: Option<&str>, content: String, is_error: bool) -> Entry {
    let mut entry = Entry::new(Role::Tool, Kind::ToolResult, content);
    entry.tool_call_id = id.map(str::to_owned);
    if is_error {
        entry.metadata = Some(failure());
    }
    entry
}

/// What the answer of a tool that failed says about itself.
pub(crate) fn failure() -> Object {
    Object::from_iter([("is_error".to_owned(), Value::Bool(true))])
}

/// A record whose kind is not known, kept whole.
pub(crate) fn unknown(record: impl Into<Value>) -> Entry {
    let mut entry = Entry::new(Role::System, Kind::Other, "");
    entry.metadata = Some(match record.into() {
        Value::Object(object) => object,
        other => Object::from_iter([("value".to_owned(), other)]),
    });
    entry
}
