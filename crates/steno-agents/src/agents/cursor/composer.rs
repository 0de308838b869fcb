//! Reads conversations of the editor: one record per composer, with its bubbles inside or, since 2025, in rows of
//! their own.

use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{list_items, nonempty_text, parse_time};
use crate::decoding::json_repair::parse_lenient;
use crate::reader::{FormatError, ItemSink};
use steno_model::json::Value;
use steno_model::session::{Session, SessionId};
use steno_vault::sqlite::AgentDatabase;
use steno_vault::{DatabaseSchema, RowSelection};

use super::{AGENT_NAME, bubble};

/// The schema of an editor database. Values may be null.
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[("cursorDiskKV", &["key", "value"])],
    session_query: "SELECT substr(key, 14) FROM cursorDiskKV \
               WHERE key > 'composerData:' AND key < 'composerData;' AND value IS NOT NULL \
               ORDER BY key",
    row_selections: &[RowSelection::own(
        "cursorDiskKV",
        "key = 'composerData:' || ?1 \
         OR key = 'agentKv:checkpoint:' || ?1 \
         OR (key > 'bubbleId:' || ?1 || ':' AND key < 'bubbleId:' || ?1 || ';') \
         OR (key > 'checkpointId:' || ?1 || ':' AND key < 'checkpointId:' || ?1 || ';') \
         OR (key > 'codeBlockDiff:' || ?1 || ':' AND key < 'codeBlockDiff:' || ?1 || ';') \
         OR (key > 'messageRequestContext:' || ?1 || ':' \
             AND key < 'messageRequestContext:' || ?1 || ';') \
         OR (key > 'agentKv:bubbleCheckpoint:' || ?1 || ':' \
             AND key < 'agentKv:bubbleCheckpoint:' || ?1 || ';') \
         OR (key > 'codeBlockPartialInlineDiffFates:' || ?1 || ':' \
             AND key < 'codeBlockPartialInlineDiffFates:' || ?1 || ';') \
         OR (key > 'ofsContent:' || ?1 || ':' AND key < 'ofsContent:' || ?1 || ';')",
    )],
    // The table `composerHeaders` of 2026 has one row per composer.
    owner_column: Some("composerId"),
};

/// The record of a composer. `None` if there is none.
pub(super) fn find_composer(
    database: &AgentDatabase,
    id: &str,
) -> Result<Option<Value>, FormatError> {
    if !database.matches_schema(&SCHEMA) {
        return Ok(None);
    }
    match read_json_row(database, &format!("composerData:{id}"))? {
        Some(Ok(mut record)) => {
            if let Some(fields) = record.as_object_mut() {
                fields.insert("composerId".to_owned(), id.into());
            }
            Ok(Some(record))
        }
        Some(Err(reason)) => Err(database.invalid_database(format!("composer {id}: {reason}"))),
        None => Ok(None),
    }
}

/// Reads one composer, bubble by bubble.
pub(super) fn read_composer(
    database: &AgentDatabase,
    record: &Value,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let id = nonempty_text(record, "composerId").unwrap_or_default();
    let session = describe_composer(record, &header_row(database, id)?, id);
    let model = session.models.first().cloned();
    let mut output = EntryEmitter::new(AGENT_NAME, id, emit);
    for inside in list_items(&record["conversation"]) {
        bubble::emit_bubble(inside, model.clone(), &mut output);
    }
    for key in bubble_keys(database, record, id)? {
        match read_json_row(database, &key)? {
            Some(Ok(bubble)) => bubble::emit_bubble(&bubble, model.clone(), &mut output),
            Some(Err(reason)) => output.emit_problem(database.row_problem(&key, reason)),
            None => {}
        }
    }
    Ok(session)
}

/// The keys of a composer's bubble rows: in the order of its headers, or in row order if it has no headers.
fn bubble_keys(
    database: &AgentDatabase,
    record: &Value,
    id: &str,
) -> Result<Vec<String>, FormatError> {
    let listed = list_items(&record["fullConversationHeadersOnly"]);
    if !listed.is_empty() || !list_items(&record["conversation"]).is_empty() {
        let bubbles = listed.iter().filter_map(|header| nonempty_text(header, "bubbleId"));
        return Ok(bubbles.map(|bubble| format!("bubbleId:{id}:{bubble}")).collect());
    }
    if !database.matches_schema(&SCHEMA) {
        return Ok(Vec::new());
    }
    let query = "SELECT key FROM cursorDiskKV \
                 WHERE key > 'bubbleId:' || ?1 || ':' AND key < 'bubbleId:' || ?1 || ';' \
                 ORDER BY rowid";
    database.query_texts(query, &[&id])
}

fn describe_composer(record: &Value, header: &Value, id: &str) -> Session {
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, id), AGENT_NAME);
    let either = |name| nonempty_text(record, name).or(nonempty_text(header, name));
    session.native_id = Some(id.to_owned());
    session.title = either("name").or(either("subtitle")).map(str::to_owned);
    session.project = workspace_folder(record).or(workspace_folder(header)).map(str::to_owned);
    session.started = record.get("createdAt").and_then(parse_time);
    session.ended = record.get("lastUpdatedAt").and_then(parse_time);
    let model = record.get("modelConfig").and_then(|config| nonempty_text(config, "modelName"));
    // `default` lets the editor choose the model.
    session.models.extend(model.filter(|model| *model != "default").map(str::to_owned));
    session
}

fn workspace_folder(record: &Value) -> Option<&str> {
    nonempty_text(record.get("workspaceIdentifier")?.get("uri")?, "fsPath")
}

/// The composer's row of the header table, which Cursor has since 2026. Null if there is none.
fn header_row(database: &AgentDatabase, id: &str) -> Result<Value, FormatError> {
    if database.columns("composerHeaders").is_empty() {
        return Ok(Value::Null);
    }
    let query = "SELECT value FROM composerHeaders WHERE composerId = ?1";
    let header = database.query_row(query, &[&id], |row| row.bytes("value").map(parse_lenient))?;
    Ok(header.flatten().and_then(Result::ok).unwrap_or_default())
}

/// Parses the JSON of one row. `None` if the row is missing or null.
fn read_json_row(
    database: &AgentDatabase,
    key: &str,
) -> Result<Option<Result<Value, String>>, FormatError> {
    let query = "SELECT value FROM cursorDiskKV WHERE key = ?1";
    Ok(database.query_row(query, &[&key], |row| row.bytes("value").map(parse_lenient))?.flatten())
}
