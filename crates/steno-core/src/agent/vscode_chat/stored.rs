//! Reads chats of VS Code before March 2025: one value in the editor's database has all chats of a workspace.
//!
//! Editors built from VS Code have this value too, beside their own.

use std::path::Path;

use super::{AGENT, LISTED, WORKSPACE, describe, request, void_threads};
use crate::agent::fields;
use crate::agent::repair::parse;
use crate::agent::telling::Telling;
use crate::format::{Emit, FormatError};
use crate::json::{Object, Value};
use crate::session::Session;
use steno_vault::sqlite::{self, Database};
use steno_vault::{Bundle, Source};
use steno_vault::{Part, Schema};

/// The schema of the stored chats.
pub(in crate::agent) const SCHEMA: Schema = Schema {
    tables: &[("ItemTable", &["key", "value"])],
    sessions: "SELECT json_extract(chat.value, '$.sessionId') \
               FROM ItemTable AS item, json_each(CAST(item.value AS TEXT)) AS chat \
               WHERE item.key = 'interactive.sessions' \
               AND json_valid(CAST(item.value AS TEXT)) \
               AND json_array_length(chat.value, '$.requests') > 0",
    parts: &[Part::own("ItemTable", "key = 'interactive.sessions'")],
    owner: None,
};

/// The chats of a database, except those that later versions moved to files.
pub(super) fn find_chats(file: &Path) -> Vec<Bundle> {
    let mut bundles = sqlite::sessions_of_all(file, &[&SCHEMA, &void_threads::SCHEMA]);
    bundles.retain(|bundle| !bundle.key.as_deref().is_some_and(|id| was_moved(file, id)));
    let workspace = file.with_file_name(WORKSPACE);
    if workspace.is_file() {
        for bundle in &mut bundles {
            bundle.sources.push(Source::on_disk(WORKSPACE, &workspace));
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
pub(super) fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let database = Database::open(bundle)?;
    let id = sqlite::session_id(bundle, &database, &SCHEMA)?;
    let Some(chat) = find_chat(&database, &id)? else {
        let thread = void_threads::find_thread(&database, &id)?;
        let thread = thread.ok_or_else(|| database.invalid(format!("no chat {id}")))?;
        return void_threads::read(&thread, &id, bundle, emit);
    };
    let mut emitter = Telling::new(AGENT, &id, emit);
    describe(&mut emitter, &chat, bundle)?;
    for request in fields::list(&chat, LISTED) {
        match request {
            Value::Object(request) => request::tell(&mut emitter, request),
            _ => emitter.problem(database.problem("a request", "not a JSON object")),
        }
    }
    Ok(emitter.session)
}

fn find_chat(database: &Database, id: &str) -> Result<Option<Object>, FormatError> {
    let query = "SELECT value FROM ItemTable WHERE key = 'interactive.sessions'";
    let value = database.row(query, &[], |row| row.bytes("value").map(parse::<Vec<Value>>))?;
    let Some(chats) = value.flatten() else { return Ok(None) };
    let chats = chats.map_err(|reason| database.invalid(reason))?;
    let mut chats = chats.into_iter().filter_map(|chat| match chat {
        Value::Object(chat) => Some(chat),
        _ => None,
    });
    Ok(chats.find(|chat| fields::text(chat, "sessionId") == Some(id)))
}
