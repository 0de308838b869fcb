//! Reads threads of Void, an editor built from VS Code: one value in the editor's database has all threads by id.

use super::{AGENT, describe_project};
use crate::agent::entries::{self, tool_call, tool_result};
use crate::agent::fields::{self, plain, text};
use crate::agent::repair::parse;
use crate::agent::telling::Telling;
use crate::entry::{Entry, Kind, Role};
use crate::format::{Emit, FormatError};
use crate::json::{Object, Value};
use crate::session::Session;
use steno_vault::Bundle;
use steno_vault::sqlite::Database;
use steno_vault::{Part, Schema};

/// The schema of the threads, with the keys of all versions of Void.
pub(super) const SCHEMA: Schema = Schema {
    tables: &[("ItemTable", &["key", "value"])],
    sessions: "SELECT DISTINCT thread.key \
               FROM ItemTable AS item, json_each(CAST(item.value AS TEXT)) AS thread \
               WHERE item.key IN ('void.chatThreadStorageII', 'void.chatThreadStorageI', \
                                  'void.chatThreadStorage') \
               AND json_valid(CAST(item.value AS TEXT)) \
               AND json_array_length(thread.value, '$.messages') > 0",
    parts: &[Part::own(
        "ItemTable",
        "key IN ('void.chatThreadStorageII', 'void.chatThreadStorageI', 'void.chatThreadStorage')",
    )],
    owner: None,
};

/// The thread with this id. The value of the newest version of Void is preferred.
pub(super) fn find_thread(database: &Database, id: &str) -> Result<Option<Object>, FormatError> {
    let query = "SELECT value FROM ItemTable WHERE key IN ('void.chatThreadStorageII', \
                 'void.chatThreadStorageI', 'void.chatThreadStorage') ORDER BY length(key) DESC";
    let mut found = None;
    database.each(query, &[], |row| {
        let threads: Result<Object, _> = parse(row.bytes("value").unwrap_or_default());
        let mut threads = threads.map_err(|reason| database.invalid(reason))?;
        if let (None, Some(Value::Object(thread))) = (&found, threads.shift_remove(id)) {
            found = Some(thread);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads one thread.
pub(super) fn read(
    thread: &Object,
    id: &str,
    bundle: &Bundle,
    emit: Emit<'_>,
) -> Result<Session, FormatError> {
    let mut emitter = Telling::new(AGENT, id, emit);
    emitter.time(fields::time(thread, "createdAt"));
    emitter.time(fields::time(thread, "lastModified"));
    describe_project(&mut emitter, bundle)?;
    for (index, message) in fields::list(thread, "messages").iter().enumerate() {
        for mut entry in message_entries(message, index) {
            // A tool run is part of an answer, so it has no message id of its own.
            let is_tool = matches!(entry.kind, Kind::ToolCall | Kind::ToolResult);
            entry.message_id = (!is_tool).then(|| format!("message {index}"));
            emitter.entry(entry);
        }
    }
    Ok(emitter.session)
}

fn message_entries(message: &Value, index: usize) -> Vec<Entry> {
    let Some(object) = message.as_object() else { return vec![entries::unknown(message.clone())] };
    let shown = text(object, "displayContent").filter(|shown| !shown.is_empty());
    let content = shown.or(text(object, "content")).unwrap_or_default();
    match text(object, "role") {
        Some("user") => vec![Entry::new(Role::User, Kind::Text, content)],
        Some("assistant") => {
            let thought = text(object, "reasoning").filter(|thought| !thought.is_empty());
            let thought = thought.map(|it| Entry::new(Role::Assistant, Kind::Thinking, it));
            let answer = Entry::new(Role::Assistant, Kind::Text, content);
            thought.into_iter().chain([answer]).collect()
        }
        Some("tool") => tool_entries(object, index),
        _ => vec![entries::unknown(object.clone())],
    }
}

/// The entries of a tool call, with its result once it has ended.
fn tool_entries(tool: &Object, index: usize) -> Vec<Entry> {
    let id = text(tool, "id").map_or_else(|| format!("call {index}"), str::to_owned);
    let name = text(tool, "name");
    let input = tool.get("rawParams").or(tool.get("params"));
    let mut entries = vec![tool_call(name, Some(&id), input)];
    let state = text(tool, "type").unwrap_or_default();
    if !matches!(state, "tool_request" | "running_now") {
        let content = tool.get("content").map(plain).unwrap_or_default();
        let mut result = tool_result(Some(&id), content, state != "success");
        result.tool_name = name.map(str::to_owned);
        entries.push(result);
    }
    entries
}
