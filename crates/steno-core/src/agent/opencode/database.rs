//! Reads the database. Sessions, messages and parts are rows; the column `data` holds the record without its ids.

use serde_json::json;

use crate::agent::repair::parse;
use crate::format::{Emit, FormatError};
use crate::json::Value;
use crate::session::Session;
use steno_vault::Bundle;
use steno_vault::sqlite::{self, Database, Row};
use steno_vault::{Part, Schema};

use super::conversation::Conversation;

/// The tables of OpenCode's database.
pub(super) const SCHEMA: Schema = Schema {
    tables: &[
        ("session", &["id", "directory"]),
        ("message", &["id", "session_id", "data"]),
        ("part", &["id", "message_id", "data"]),
    ],
    sessions: "SELECT id FROM session ORDER BY time_created, id",
    parts: &[
        Part::own("session", "id = ?1"),
        Part::own("part", "message_id IN (SELECT id FROM message WHERE session_id = ?1)"),
        Part::own("event", "aggregate_id = ?1"),
        Part::own("event_sequence", "aggregate_id = ?1"),
        Part::shared("project", "id IN (SELECT project_id FROM session WHERE id = ?1)"),
        Part::whole("migration"),
        Part::whole("__drizzle_migrations"),
    ],
    owner: Some("session_id"),
};

/// Reads one session, one message at a time.
pub(super) fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let database = Database::open(bundle)?;
    let id = sqlite::session_id(bundle, &database, &SCHEMA)?;
    let info = database.row("SELECT * FROM session WHERE id = ?1", &[&id], session_info)?;
    let info = info.ok_or_else(|| database.invalid(format!("no session {id}")))?;
    let mut conversation = Conversation::new(&info, emit);
    let messages = "SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id";
    database.each(messages, &[&id], |row| message(&database, row, &mut conversation))?;
    Ok(conversation.finish())
}

fn message(
    database: &Database,
    row: &Row<'_>,
    conversation: &mut Conversation<'_>,
) -> Result<(), FormatError> {
    let Some(id) = row.text("id") else { return Ok(()) };
    let info = match record(row, &id) {
        Ok(info) => info,
        Err(reason) => {
            conversation.problem(database.problem(&format!("message {id}"), reason));
            return Ok(());
        }
    };
    let mut parts = Vec::new();
    let query = "SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id";
    database.each(query, &[&id], |row| {
        let id = row.text("id").unwrap_or_default();
        match record(row, &id) {
            Ok(part) => parts.push(part),
            Err(reason) => {
                conversation.problem(database.problem(&format!("part {id}"), reason));
            }
        }
        Ok(())
    })?;
    conversation.message(&info, parts);
    Ok(())
}

fn record(row: &Row<'_>, id: &str) -> Result<Value, String> {
    let bytes = row.bytes("data").ok_or("no data")?;
    let mut record: Value = parse(bytes)?;
    let fields = record.as_object_mut().ok_or("not a JSON object")?;
    fields.insert("id".to_owned(), id.into());
    Ok(record)
}

/// Converts a session row to the field names of the JSON files.
fn session_info(row: &Row<'_>) -> Value {
    let mut info = row.rest(&["parent_id", "project_id"]);
    info.insert("parentID".to_owned(), json!(row.text("parent_id")));
    info.insert("projectID".to_owned(), json!(row.text("project_id")));
    Value::Object(info)
}
