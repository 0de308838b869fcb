//! Reads chats of VS Code before March 2025: one value in the editor's database has all chats of a workspace.
//!
//! Editors built from VS Code have this value too, beside their own.

use std::path::Path;

use super::{AGENT_NAME, REQUESTS_FIELD, WORKSPACE_FILE, decode, describe_chat, void_threads};
use crate::decoding::json_fields;
use crate::decoding::json_repair::parse_lenient;
use crate::decoding::session_emitter::SessionEmitter;
use crate::reader::{FormatError, ItemSink};
use steno_model::json::{Object, Value};
use steno_model::session::Session;
use steno_vault::sqlite::{self, AgentDatabase};
use steno_vault::{DatabaseSchema, RowSelection, SessionBundle, SessionFile};

/// The schema of the stored chats.
pub(in crate::agents) const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[("ItemTable", &["key", "value"])],
    session_query: "SELECT json_extract(chat.value, '$.sessionId') \
               FROM ItemTable AS item, json_each(CAST(item.value AS TEXT)) AS chat \
               WHERE item.key = 'interactive.sessions' \
               AND json_valid(CAST(item.value AS TEXT)) \
               AND json_array_length(chat.value, '$.requests') > 0",
    row_selections: &[RowSelection::own("ItemTable", "key = 'interactive.sessions'")],
    owner_column: None,
};

/// The chats of a database, except those that later versions moved to files.
pub(super) fn find_chats(file: &Path) -> Vec<SessionBundle> {
    let mut bundles = sqlite::sessions_by_schema(file, &[&SCHEMA, &void_threads::SCHEMA]);
    bundles.retain(|bundle| !bundle.key.as_deref().is_some_and(|id| was_moved(file, id)));
    let workspace = file.with_file_name(WORKSPACE_FILE);
    if workspace.is_file() {
        for bundle in &mut bundles {
            bundle.files.push(SessionFile::on_disk(WORKSPACE_FILE, &workspace));
        }
    }
    bundles
}

fn was_moved(database: &Path, id: &str) -> bool {
    let has_file = |extension| {
        let folder = database.with_file_name("chatSessions");
        folder.join(format!("{id}.{extension}")).is_file()
    };
    !id.contains(['/', '\\']) && (has_file("json") || has_file("jsonl"))
}

/// Reads one chat.
pub(super) fn read_stored_chat(
    bundle: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let database = AgentDatabase::open(bundle)?;
    let id = sqlite::session_id(bundle, &database, &SCHEMA)?;
    let Some(chat) = find_chat(&database, &id)? else {
        let thread = void_threads::find_thread(&database, &id)?;
        let thread = thread.ok_or_else(|| database.invalid_database(format!("no chat {id}")))?;
        return void_threads::read_thread(&thread, &id, bundle, emit);
    };
    let mut emitter = SessionEmitter::new(AGENT_NAME, &id, emit);
    describe_chat(&mut emitter, &chat, bundle)?;
    for request in json_fields::list_field(&chat, REQUESTS_FIELD) {
        match request {
            Value::Object(request) => decode::emit_request(&mut emitter, request),
            _ => emitter.emit_problem(database.row_problem("a request", "not a JSON object")),
        }
    }
    Ok(emitter.session)
}

fn find_chat(database: &AgentDatabase, id: &str) -> Result<Option<Object>, FormatError> {
    let query = "SELECT value FROM ItemTable WHERE key = 'interactive.sessions'";
    let value = database
        .query_row(query, &[], |row| row.bytes("value").map(parse_lenient::<Vec<Value>>))?;
    let Some(chats) = value.flatten() else { return Ok(None) };
    let chats = chats.map_err(|reason| database.invalid_database(reason))?;
    let mut chats = chats.into_iter().filter_map(|chat| match chat {
        Value::Object(chat) => Some(chat),
        _ => None,
    });
    Ok(chats.find(|chat| json_fields::text_field(chat, "sessionId") == Some(id)))
}
