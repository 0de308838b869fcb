//! Reads Goose's sessions: a SQLite database, or one JSON Lines file per session in older versions.
//!
//! The columns changed with almost every version, so missing ones are ignored. Only the accumulated token columns are
//! totals; the others count the last turn.

mod content;
mod lines;

use crate::agent::fields::from_seconds;
use crate::agent::output::Output;
use crate::agent::repair::parse;
use crate::durable::FileError;
use crate::entry::Usage;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Value;
use crate::session::{Session, SessionId};
use steno_vault::sqlite::{self, Database, Row};
use steno_vault::{Bundle, Source};
use steno_vault::{Part, Schema};

use content::Said;

/// The agent's name.
pub const AGENT: &str = "goose";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

pub(super) const SCHEMA: Schema = Schema {
    tables: &[
        ("sessions", &["id", "working_dir"]),
        ("messages", &["id", "session_id", "role", "content_json"]),
    ],
    sessions: "SELECT id FROM sessions ORDER BY created_at, id",
    parts: &[Part::own("sessions", "id = ?1"), Part::whole("schema_version")],
    owner: Some("session_id"),
};

/// Columns of a session that map to fields of [`Session`].
const KNOWN: [&str; 3] = ["id", "name", "working_dir"];

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        if sqlite::is_database(file) {
            bundles.extend(sqlite::sessions(file, &SCHEMA));
            continue;
        }
        let bundle = Bundle::file(file);
        if recognises_lines(&bundle.sources[0]) {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

/// Whether a file is a session of the older versions.
pub(crate) fn recognises_lines(source: &Source) -> bool {
    lines::is_session(source)
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    match bundle.sources.as_slice() {
        [only] if !sqlite::holds_database(bundle)? => lines::read(only, emit),
        _ => read_database(bundle, emit),
    }
}

fn read_database(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let database = Database::open(bundle)?;
    let id = sqlite::session_id(bundle, &database, &SCHEMA)?;
    let query = "SELECT * FROM sessions WHERE id = ?1";
    let session = database.row(query, &[&id], |row| stated(row, &id))?;
    let session = session.ok_or_else(|| database.invalid(format!("no session {id}")))?;
    let model = session.models.first().cloned();
    let mut output = Output::new(AGENT, &id, emit);
    let messages = "SELECT * FROM messages WHERE session_id = ?1 ORDER BY id";
    database.each(messages, &[&id], |row| {
        match said(row, model.clone()) {
            Ok(message) => message.hand_out(&mut output),
            Err(reason) => {
                let name = format!("message {}", row.text("id").unwrap_or_default());
                output.problem(database.problem(&name, reason));
            }
        }
        Ok(())
    })?;
    Ok(session)
}

fn stated(row: &Row<'_>, id: &str) -> Session {
    let mut session = Session::new(SessionId::for_native(AGENT, id), AGENT);
    session.native_id = Some(id.to_owned());
    session.title = row.text("name").or_else(|| row.text("description"));
    session.project = row.text("working_dir");
    session.models.extend(model(row));
    session.totals.usage = Usage {
        input: row.count("accumulated_input_tokens"),
        output: row.count("accumulated_output_tokens"),
        ..Usage::default()
    };
    session.extra = row.rest(&KNOWN);
    session
}

fn model(row: &Row<'_>) -> Option<String> {
    let config: Value = serde_json::from_slice(row.bytes("model_config_json")?).ok()?;
    config.get("model_name")?.as_str().map(str::to_owned)
}

fn said(row: &Row<'_>, model: Option<String>) -> Result<Said, String> {
    let bytes = row.bytes("content_json").ok_or("no content")?;
    let metadata = row.bytes("metadata_json").and_then(|bytes| serde_json::from_slice(bytes).ok());
    Ok(Said {
        id: row.text("message_id").or_else(|| row.text("id")),
        role: row.text("role").unwrap_or_default(),
        content: parse(bytes)?,
        metadata: metadata.unwrap_or(Value::Null),
        created_at: row.integer("created_timestamp").and_then(from_seconds),
        model,
    })
}

#[cfg(test)]
mod tests;
