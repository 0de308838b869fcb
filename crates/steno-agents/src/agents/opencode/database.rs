//! Reads the database. Sessions, messages and parts are rows; the column `data` holds the record without its ids.

use serde_json::json;

use crate::decoding::json_repair::parse_lenient;
use crate::reader::{FormatError, ItemSink};
use steno_model::json::Value;
use steno_model::session::Session;
use steno_vault::sqlite::{self, AgentDatabase, DatabaseRow};
use steno_vault::{DatabaseSchema, RowSelection, SessionBundle};

use super::decode::OpenCodeConversation;

/// The tables of OpenCode's database.
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[
        ("session", &["id", "directory"]),
        ("message", &["id", "session_id", "data"]),
        ("part", &["id", "message_id", "data"]),
    ],
    session_query: "SELECT id FROM session ORDER BY time_created, id",
    row_selections: &[
        RowSelection::own("session", "id = ?1"),
        RowSelection::own("part", "message_id IN (SELECT id FROM message WHERE session_id = ?1)"),
        RowSelection::own("event", "aggregate_id = ?1"),
        RowSelection::own("event_sequence", "aggregate_id = ?1"),
        RowSelection::shared("project", "id IN (SELECT project_id FROM session WHERE id = ?1)"),
        RowSelection::whole("migration"),
        RowSelection::whole("__drizzle_migrations"),
    ],
    owner_column: Some("session_id"),
};

/// Reads one session, one message at a time.
pub(super) fn read_database(
    bundle: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let database = AgentDatabase::open(bundle)?;
    let id = sqlite::session_id(bundle, &database, &SCHEMA)?;
    let info = database.query_row("SELECT * FROM session WHERE id = ?1", &[&id], session_info)?;
    let info = info.ok_or_else(|| database.invalid_database(format!("no session {id}")))?;
    let mut conversation = OpenCodeConversation::new(&info, emit);
    let messages = "SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id";
    database
        .for_each_row(messages, &[&id], |row| read_message(&database, row, &mut conversation))?;
    Ok(conversation.finish())
}

fn read_message(
    database: &AgentDatabase,
    row: &DatabaseRow<'_>,
    conversation: &mut OpenCodeConversation<'_>,
) -> Result<(), FormatError> {
    let Some(id) = row.text("id") else { return Ok(()) };
    let info = match parse_record(row, &id) {
        Ok(info) => info,
        Err(reason) => {
            conversation.report_problem(database.row_problem(&format!("message {id}"), reason));
            return Ok(());
        }
    };
    let mut parts = Vec::new();
    let query = "SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id";
    database.for_each_row(query, &[&id], |row| {
        let id = row.text("id").unwrap_or_default();
        match parse_record(row, &id) {
            Ok(part) => parts.push(part),
            Err(reason) => {
                conversation.report_problem(database.row_problem(&format!("part {id}"), reason));
            }
        }
        Ok(())
    })?;
    conversation.push_message(&info, parts);
    Ok(())
}

fn parse_record(row: &DatabaseRow<'_>, id: &str) -> Result<Value, String> {
    let bytes = row.bytes("data").ok_or("no data")?;
    let mut record: Value = parse_lenient(bytes)?;
    let fields = record.as_object_mut().ok_or("not a JSON object")?;
    fields.insert("id".to_owned(), id.into());
    Ok(record)
}

/// Converts a session row to the field names of the JSON files.
fn session_info(row: &DatabaseRow<'_>) -> Value {
    let mut info = row.other_columns(&["parent_id", "project_id"]);
    info.insert("parentID".to_owned(), json!(row.text("parent_id")));
    info.insert("projectID".to_owned(), json!(row.text("project_id")));
    Value::Object(info)
}
