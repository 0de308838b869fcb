//! Reads threads of Void, an editor built from VS Code: one value in the editor's database has all threads by id.

use super::{AGENT_NAME, describe_project};
use crate::decoding::entries::{self, tool_call, tool_result};
use crate::decoding::json_fields::{self, plain_text, text_field};
use crate::decoding::json_repair::parse_lenient;
use crate::decoding::session_emitter::SessionEmitter;
use crate::reader::{FormatError, ItemSink};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};
use steno_model::session::Session;
use steno_vault::sqlite::AgentDatabase;
use steno_vault::{DatabaseSchema, RowSelection, SessionBundle};

/// The schema of the threads, with the keys of all versions of Void.
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[("ItemTable", &["key", "value"])],
    session_query: "SELECT DISTINCT thread.key \
               FROM ItemTable AS item, json_each(CAST(item.value AS TEXT)) AS thread \
               WHERE item.key IN ('void.chatThreadStorageII', 'void.chatThreadStorageI', \
                                  'void.chatThreadStorage') \
               AND json_valid(CAST(item.value AS TEXT)) \
               AND json_array_length(thread.value, '$.messages') > 0",
    row_selections: &[RowSelection::own(
        "ItemTable",
        "key IN ('void.chatThreadStorageII', 'void.chatThreadStorageI', 'void.chatThreadStorage')",
    )],
    owner_column: None,
};

/// The thread with this id. The value of the newest version of Void is preferred.
pub(super) fn find_thread(
    database: &AgentDatabase,
    id: &str,
) -> Result<Option<Object>, FormatError> {
    let query = "SELECT value FROM ItemTable WHERE key IN ('void.chatThreadStorageII', \
                 'void.chatThreadStorageI', 'void.chatThreadStorage') ORDER BY length(key) DESC";
    let mut found = None;
    database.for_each_row(query, &[], |row| {
        let threads: Result<Object, _> = parse_lenient(row.bytes("value").unwrap_or_default());
        let mut threads = threads.map_err(|reason| database.invalid_database(reason))?;
        if let (None, Some(Value::Object(thread))) = (&found, threads.shift_remove(id)) {
            found = Some(thread);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads one thread.
pub(super) fn read_thread(
    thread: &Object,
    id: &str,
    bundle: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let mut emitter = SessionEmitter::new(AGENT_NAME, id, emit);
    emitter.note_time(json_fields::time_field(thread, "createdAt"));
    emitter.note_time(json_fields::time_field(thread, "lastModified"));
    describe_project(&mut emitter, bundle)?;
    for (index, message) in json_fields::list_field(thread, "messages").iter().enumerate() {
        for mut entry in message_entries(message, index) {
            // A tool run is part of an answer, so it has no message id of its own.
            let is_tool = matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult);
            entry.message_id = (!is_tool).then(|| format!("message {index}"));
            emitter.emit_entry(entry);
        }
    }
    Ok(emitter.session)
}

fn message_entries(message: &Value, index: usize) -> Vec<Entry> {
    let Some(object) = message.as_object() else {
        return vec![entries::unknown_entry(message.clone())];
    };
    let shown = text_field(object, "displayContent").filter(|shown| !shown.is_empty());
    let content = shown.or(text_field(object, "content")).unwrap_or_default();
    match text_field(object, "role") {
        Some("user") => vec![Entry::new(Role::User, EntryKind::Text, content)],
        Some("assistant") => {
            let thought = text_field(object, "reasoning").filter(|thought| !thought.is_empty());
            let thought = thought.map(|it| Entry::new(Role::Assistant, EntryKind::Thinking, it));
            let answer = Entry::new(Role::Assistant, EntryKind::Text, content);
            thought.into_iter().chain([answer]).collect()
        }
        Some("tool") => tool_entries(object, index),
        _ => vec![entries::unknown_entry(object.clone())],
    }
}

/// The entries of a tool call, with its result once it has ended.
fn tool_entries(tool: &Object, index: usize) -> Vec<Entry> {
    let id = text_field(tool, "id").map_or_else(|| format!("call {index}"), str::to_owned);
    let name = text_field(tool, "name");
    let input = tool.get("rawParams").or(tool.get("params"));
    let mut entries = vec![tool_call(name, Some(&id), input)];
    let state = text_field(tool, "type").unwrap_or_default();
    if !matches!(state, "tool_request" | "running_now") {
        let content = tool.get("content").map(plain_text).unwrap_or_default();
        let mut result = tool_result(Some(&id), content, state != "success");
        result.tool_name = name.map(str::to_owned);
        entries.push(result);
    }
    entries
}
