//! Reads conversations of the editor: one record per composer, with its bubbles inside or, since 2025, in rows of
//! their own.

use crate::agent::fields::{filled, items, moment};
use crate::agent::output::Output;
use crate::agent::repair::parse;
use crate::format::{Emit, FormatError};
use crate::json::Value;
use crate::session::{Session, SessionId};
use steno_vault::sqlite::Database;
use steno_vault::{Part, Schema};

use super::{AGENT, bubble};

/// The schema of an editor database. Values may be null.
pub(super) const SCHEMA: Schema = Schema {
    tables: &[("cursorDiskKV", &["key", "value"])],
    sessions: "SELECT substr(key, 14) FROM cursorDiskKV \
               WHERE key > 'composerData:' AND key < 'composerData;' AND value IS NOT NULL \
               ORDER BY key",
    parts: &[Part::own(
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
    owner: Some("composerId"),
};

/// The record of a composer. `None` if there is none.
pub(super) fn record(database: &Database, id: &str) -> Result<Option<Value>, FormatError> {
    if !database.fits(&SCHEMA) {
        return Ok(None);
    }
    match value(database, &format!("composerData:{id}"))? {
        Some(Ok(mut record)) => {
            if let Some(fields) = record.as_object_mut() {
                fields.insert("composerId".to_owned(), id.into());
            }
            Ok(Some(record))
        }
        Some(Err(reason)) => Err(database.invalid(format!("composer {id}: {reason}"))),
        None => Ok(None),
    }
}

/// Reads one composer, bubble by bubble.
pub(super) fn read(
    database: &Database,
    record: &Value,
    emit: Emit<'_>,
) -> Result<Session, FormatError> {
    let id = filled(record, "composerId").unwrap_or_default();
    let session = describe_composer(record, &header_row(database, id)?, id);
    let model = session.models.first().cloned();
    let mut output = Output::new(AGENT, id, emit);
    for inside in items(&record["conversation"]) {
        bubble::take(inside, model.clone(), &mut output);
    }
    for key in bubble_keys(database, record, id)? {
        match value(database, &key)? {
            Some(Ok(bubble)) => bubble::take(&bubble, model.clone(), &mut output),
            Some(Err(reason)) => output.problem(database.problem(&key, reason)),
            None => {}
        }
    }
    Ok(session)
}

/// The keys of a composer's bubble rows: in the order of its headers, or in row order if it has no headers.
fn bubble_keys(database: &Database, record: &Value, id: &str) -> Result<Vec<String>, FormatError> {
    let listed = items(&record["fullConversationHeadersOnly"]);
    if !listed.is_empty() || !items(&record["conversation"]).is_empty() {
        let bubbles = listed.iter().filter_map(|header| filled(header, "bubbleId"));
        return Ok(bubbles.map(|bubble| format!("bubbleId:{id}:{bubble}")).collect());
    }
    if !database.fits(&SCHEMA) {
        return Ok(Vec::new());
    }
    let query = "SELECT key FROM cursorDiskKV \
                 WHERE key > 'bubbleId:' || ?1 || ':' AND key < 'bubbleId:' || ?1 || ';' \
                 ORDER BY rowid";
    database.texts(query, &[&id])
}

fn describe_composer(record: &Value, header: &Value, id: &str) -> Session {
    let mut session = Session::new(SessionId::for_native(AGENT, id), AGENT);
    let either = |name| filled(record, name).or(filled(header, name));
    session.native_id = Some(id.to_owned());
    session.title = either("name").or(either("subtitle")).map(str::to_owned);
    session.project = workspace_folder(record).or(workspace_folder(header)).map(str::to_owned);
    session.started = record.get("createdAt").and_then(moment);
    session.ended = record.get("lastUpdatedAt").and_then(moment);
    let model = record.get("modelConfig").and_then(|config| filled(config, "modelName"));
    // `default` lets the editor choose the model.
    session.models.extend(model.filter(|model| *model != "default").map(str::to_owned));
    session
}

fn workspace_folder(record: &Value) -> Option<&str> {
    filled(record.get("workspaceIdentifier")?.get("uri")?, "fsPath")
}

/// The composer's row of the header table, which Cursor has since 2026. Null if there is none.
fn header_row(database: &Database, id: &str) -> Result<Value, FormatError> {
    if database.columns("composerHeaders").is_empty() {
        return Ok(Value::Null);
    }
    let query = "SELECT value FROM composerHeaders WHERE composerId = ?1";
    let header = database.row(query, &[&id], |row| row.bytes("value").map(parse))?;
    Ok(header.flatten().and_then(Result::ok).unwrap_or_default())
}

/// Parses the JSON of one row. `None` if the row is missing or null.
fn value(database: &Database, key: &str) -> Result<Option<Result<Value, String>>, FormatError> {
    let query = "SELECT value FROM cursorDiskKV WHERE key = ?1";
    Ok(database.row(query, &[&key], |row| row.bytes("value").map(parse))?.flatten())
}
