//! Reads Goose's sessions: a SQLite database, or one JSON Lines file per session in older versions.
//!
//! The columns changed with almost every version, so missing ones are ignored. Only the accumulated token columns are
//! totals; the others count the last turn.

mod decode;
mod lines;

use crate::agent::Agent;
use crate::agent::record_format::{ChatMessages, RecordFormat};
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::timestamp_from_seconds;
use crate::decoding::json_repair::parse_lenient;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::Usage;
use steno_model::json::Value;
use steno_model::session::{Session, SessionId};
use steno_vault::sqlite::{self, AgentDatabase, DatabaseRow};
use steno_vault::{DatabaseSchema, RowSelection, SessionBundle, SessionFile};

use decode::GooseMessage;

/// The agent's name.
pub const AGENT_NAME: &str = "goose";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Goose.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| {
        let data = user.path_variable("GOOSE_PATH_ROOT").map(|root| root.join("data"));
        let data = data.unwrap_or_else(|| user.data_folder().join("goose"));
        vec![user.home.join(".goose/sessions"), data.join("sessions")]
    },
    lines: Some(
        RecordFormat::by_records(|source| Ok(recognises_lines(source)))
            .with_messages(ChatMessages::Always),
    ),
    database_schemas: &[&SCHEMA],
    resume: Some(ResumeRule {
        program: "goose",
        arguments: &["session", "--resume", "--session-id", "{id}"],
        folder: FolderRule::Any,
    }),
    acp_word: Some("goose"),
    ..Agent::new("Goose", &READER)
};

const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[
        ("sessions", &["id", "working_dir"]),
        ("messages", &["id", "session_id", "role", "content_json"]),
    ],
    session_query: "SELECT id FROM sessions ORDER BY created_at, id",
    row_selections: &[
        RowSelection::own("sessions", "id = ?1"),
        RowSelection::whole("schema_version"),
    ],
    owner_column: Some("session_id"),
};

/// Columns of a session that map to fields of [`Session`].
const MAPPED_COLUMNS: [&str; 3] = ["id", "name", "working_dir"];

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        if sqlite::is_sqlite_file(file) {
            bundles.extend(sqlite::sessions_in_file(file, &SCHEMA));
            continue;
        }
        let bundle = SessionBundle::from_file(file);
        if recognises_lines(&bundle.files[0]) {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

/// Whether a file is a session of the older versions.
pub fn recognises_lines(source: &SessionFile) -> bool {
    lines::is_session_file(source)
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    match bundle.files.as_slice() {
        [only] if !sqlite::holds_sqlite_file(bundle)? => lines::read_line_file(only, emit),
        _ => read_database(bundle, emit),
    }
}

fn read_database(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let database = AgentDatabase::open(bundle)?;
    let id = sqlite::session_id(bundle, &database, &SCHEMA)?;
    let query = "SELECT * FROM sessions WHERE id = ?1";
    let session = database.query_row(query, &[&id], |row| session_from_row(row, &id))?;
    let session = session.ok_or_else(|| database.invalid_database(format!("no session {id}")))?;
    let model = session.models.first().cloned();
    let mut output = EntryEmitter::new(AGENT_NAME, &id, emit).naming_results();
    let messages = "SELECT * FROM messages WHERE session_id = ?1 ORDER BY id";
    database.for_each_row(messages, &[&id], |row| {
        match message_from_row(row, model.clone()) {
            Ok(message) => message.emit_entries(&mut output),
            Err(reason) => {
                let name = format!("message {}", row.text("id").unwrap_or_default());
                output.emit_problem(database.row_problem(&name, reason));
            }
        }
        Ok(())
    })?;
    Ok(session)
}

fn session_from_row(row: &DatabaseRow<'_>, id: &str) -> Session {
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, id), AGENT_NAME);
    session.native_id = Some(id.to_owned());
    session.title = row.text("name").or_else(|| row.text("description"));
    session.project = row.text("working_dir");
    session.models.extend(model_name(row));
    session.totals.usage = Usage {
        input: row.count("accumulated_input_tokens"),
        output: row.count("accumulated_output_tokens"),
        ..Usage::default()
    };
    session.extra = row.other_columns(&MAPPED_COLUMNS);
    session
}

fn model_name(row: &DatabaseRow<'_>) -> Option<String> {
    let config: Value = serde_json::from_slice(row.bytes("model_config_json")?).ok()?;
    config.get("model_name")?.as_str().map(str::to_owned)
}

fn message_from_row(row: &DatabaseRow<'_>, model: Option<String>) -> Result<GooseMessage, String> {
    let bytes = row.bytes("content_json").ok_or("no content")?;
    let metadata = row.bytes("metadata_json").and_then(|bytes| serde_json::from_slice(bytes).ok());
    Ok(GooseMessage {
        id: row.text("message_id").or_else(|| row.text("id")),
        role: row.text("role").unwrap_or_default(),
        content: parse_lenient(bytes)?,
        metadata: metadata.unwrap_or(Value::Null),
        created_at: row.integer("created_timestamp").and_then(timestamp_from_seconds),
        model,
    })
}

#[cfg(test)]
mod tests;
