//! The editor's conversations: a record per composer, whose bubbles stand in it or, since 2025, in rows of their own.

use crate::agent::fields::{filled, items, moment};
use crate::agent::output::Output;
use crate::agent::repair::parse;
use crate::agent::sqlite::{Database, Part, Schema};
use crate::format::{Emit, FormatError};
use crate::json::Value;
use crate::session::{Session, SessionId};

use super::{AGENT, bubble};

/// The table that makes a database an editor's. Its values may be null.
pub(super) const SCHEMA: Schema = Schema {
    tables: &[("cursorDiskKV", &["key", "value"])],
    sessions: "SELECT substr(key, 14) FROM cursorDiskKV \
               WHERE key > 'composerData:' AND key < 'composerData;' AND value IS NOT NULL \
               ORDER BY key",
    parts: &[Part::own(
        "cursorDiskKV",
        "key = 'composerData:' || ?1 \
         OR (key > 'bubbleId:' || ?1 || ':' AND key < 'bubbleId:' || ?1 || ';') \
         OR (key > 'checkpointId:' || ?1 || ':' AND key < 'checkpointId:' || ?1 || ';') \
         OR (key > 'codeBlockDiff:' || ?1 || ':' AND key < 'codeBlockDiff:' || ?1 || ';') \
         OR (key > 'messageRequestContext:' || ?1 || ':' \
             AND key < 'messageRequestContext:' || ?1 || ';')",
    )],
    owner: None,
};

/// The record of one composer, if there is one.
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

/// Reads one composer, a bubble at a time.
pub(super) fn read(
    database: &Database,
    record: &Value,
    emit: Emit<'_>,
) -> Result<Session, FormatError> {
    let id = filled(record, "composerId").unwrap_or_default();
    let session = stated(record, id);
    let model = session.models.first().cloned();
    let mut output = Output::new(AGENT, id, emit);
    for inside in items(&record["conversation"]) {
        bubble::take(inside, model.clone(), &mut output);
    }
    for header in items(&record["fullConversationHeadersOnly"]) {
        let Some(bubble) = filled(header, "bubbleId") else { continue };
        match value(database, &format!("bubbleId:{id}:{bubble}"))? {
            Some(Ok(bubble)) => bubble::take(&bubble, model.clone(), &mut output),
            Some(Err(reason)) => {
                output.problem(database.problem(&format!("bubble {bubble}"), reason));
            }
            None => {}
        }
    }
    Ok(session)
}

fn stated(record: &Value, id: &str) -> Session {
    let mut session = Session::new(SessionId::for_native(AGENT, id), AGENT);
    let folder = record.get("workspaceIdentifier").and_then(|workspace| workspace.get("uri"));
    session.native_id = Some(id.to_owned());
    session.title = filled(record, "name").map(str::to_owned);
    session.project = folder.and_then(|uri| filled(uri, "fsPath")).map(str::to_owned);
    session.started = record.get("createdAt").and_then(moment);
    session.ended = record.get("lastUpdatedAt").and_then(moment);
    let model = record.get("modelConfig").and_then(|config| filled(config, "modelName"));
    session.models.extend(model.map(str::to_owned));
    session
}

/// The JSON of one row, or what is wrong with it; nothing where the row is missing or null.
fn value(database: &Database, key: &str) -> Result<Option<Result<Value, String>>, FormatError> {
    let query = "SELECT value FROM cursorDiskKV WHERE key = ?1";
    Ok(database.row(query, &[&key], |row| row.bytes("value").map(parse))?.flatten())
}
