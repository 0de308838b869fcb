//! Reads Crush's sessions: one SQLite database per project. Often all rows are still in its write-ahead log.
//!
//! Times are in seconds, although the schema's comments say milliseconds. A session's token columns count its last
//! request, so they are no totals; only the cost is a total.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::agent::Agent;
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::agent::user_folders::UserFolders;
use crate::decoding::agent_message::AgentMessage;
use crate::decoding::attachment;
use crate::decoding::entries::{tool_call, tool_result};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{nonempty_text, timestamp_from_seconds};
use crate::decoding::json_repair::parse_lenient;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Value;
use steno_model::session::{Session, SessionId};
use steno_vault::sqlite::{self, AgentDatabase, DatabaseRow};
use steno_vault::{DatabaseSchema, RowSelection, SessionBundle};

/// The agent's name.
pub const AGENT_NAME: &str = "crush";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Crush.
pub(crate) const AGENT: Agent = Agent {
    project_locations: |user, projects| {
        let searched = projects.iter().map(|project| project.join(".crush"));
        let listed = listed_projects(user).into_iter();
        searched.chain(listed.map(|project| project.path.join(project.data_dir))).collect()
    },
    database_schemas: &[&SCHEMA],
    resume: Some(ResumeRule {
        program: "crush",
        arguments: &["-s", "{id}"],
        folder: FolderRule::Inside,
    }),
    ..Agent::new("Crush", &READER)
};

/// Crush's list of the projects it was used in.
#[derive(Deserialize)]
struct CrushProjectList {
    projects: Vec<CrushProject>,
}

#[derive(Deserialize)]
struct CrushProject {
    path: PathBuf,
    data_dir: PathBuf,
}

/// The projects that Crush lists. Empty if there is no list.
fn listed_projects(user: &UserFolders<'_>) -> Vec<CrushProject> {
    let data = user.path_variable("CRUSH_GLOBAL_DATA");
    let data = data.unwrap_or_else(|| user.data_folder().join("crush"));
    let bytes = fs::read(data.join("projects.json")).ok();
    let list = bytes.and_then(|bytes| serde_json::from_slice::<CrushProjectList>(&bytes).ok());
    list.map(|list| list.projects).unwrap_or_default()
}

const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[
        ("sessions", &["id", "parent_session_id", "title"]),
        ("messages", &["id", "session_id", "role", "parts"]),
    ],
    session_query: "SELECT id FROM sessions ORDER BY created_at, rowid",
    row_selections: &[
        RowSelection::own("sessions", "id = ?1"),
        RowSelection::whole("goose_db_version"),
    ],
    owner_column: Some("session_id"),
};

/// Columns of a session that map to fields of [`Session`].
const MAPPED_COLUMNS: [&str; 4] = ["id", "parent_session_id", "title", "cost"];

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    tree.find_databases(&SCHEMA)
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let database = AgentDatabase::open(bundle)?;
    let id = sqlite::session_id(bundle, &database, &SCHEMA)?;
    let query = "SELECT * FROM sessions WHERE id = ?1";
    let session = database.query_row(query, &[&id], |row| session_from_row(row, &id))?;
    let mut session =
        session.ok_or_else(|| database.invalid_database(format!("no session {id}")))?;
    let mut output = EntryEmitter::new(AGENT_NAME, &id, emit).naming_results();
    let messages = "SELECT * FROM messages WHERE session_id = ?1 ORDER BY created_at, rowid";
    database.for_each_row(messages, &[&id], |row| {
        if let Err(reason) = decode_message(row, &mut session, &mut output) {
            let name = format!("message {}", row.text("id").unwrap_or_default());
            output.emit_problem(database.row_problem(&name, reason));
        }
        Ok(())
    })?;
    Ok(session)
}

fn session_from_row(row: &DatabaseRow<'_>, id: &str) -> Session {
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, id), AGENT_NAME);
    session.native_id = Some(id.to_owned());
    session.title = row.text("title");
    session.parent = row.text("parent_session_id");
    session.totals.cost = row.float("cost");
    session.extra = row.other_columns(&MAPPED_COLUMNS);
    session
}

fn decode_message(
    row: &DatabaseRow<'_>,
    session: &mut Session,
    output: &mut EntryEmitter<'_>,
) -> Result<(), String> {
    let bytes = row.bytes("parts").ok_or("no parts")?;
    let parts: Vec<Value> = parse_lenient(bytes)?;
    let mut message = AgentMessage {
        id: row.text("id"),
        model: row.text("model"),
        created_at: row.integer("created_at").and_then(timestamp_from_seconds),
        ..AgentMessage::default()
    };
    if is_summary(row, session) {
        message.add_text(Role::System, EntryKind::Compaction, "");
    }
    let role = Role::from(row.text("role").unwrap_or_default());
    for part in parts {
        if let Some(reason) = part.get("data").and_then(|data| nonempty_text(data, "reason")) {
            session.stop_reason = Some(reason.to_owned());
        }
        push_part(&mut message, &role, part);
    }
    match role {
        Role::Assistant => output.emit_answer(message),
        _ => output.emit_message(message),
    }
    Ok(())
}

fn is_summary(row: &DatabaseRow<'_>, session: &Session) -> bool {
    let summary = session.extra.get("summary_message_id").and_then(Value::as_str);
    row.integer("is_summary_message").is_some_and(|flag| flag != 0)
        || summary.is_some_and(|summary| row.text("id").as_deref() == Some(summary))
}

fn push_part(message: &mut AgentMessage, role: &Role, part: Value) {
    let data = part.get("data").unwrap_or(&Value::Null);
    let text = |name| nonempty_text(data, name).unwrap_or_default();
    match part.get("type").and_then(Value::as_str).unwrap_or_default() {
        "text" => message.add_text(role.clone(), EntryKind::Text, text("text")),
        "reasoning" => message.add_text(Role::Assistant, EntryKind::Thinking, text("thinking")),
        "tool_call" => {
            message.push(tool_call(
                nonempty_text(data, "name"),
                nonempty_text(data, "id"),
                Some(&parse_arguments(text("input"))),
            ));
        }
        "tool_result" => message.push(tool_result_entry(data)),
        "finish" => message.entries.extend(error_entry(data)),
        "image_url" => message.add_text(
            role.clone(),
            EntryKind::Notice,
            attachment::describe_url("image", text("url")),
        ),
        "binary" => {
            let content =
                attachment::describe_base64(nonempty_text(data, "MIMEType"), text("Data"));
            message.add_text(role.clone(), EntryKind::Notice, content);
        }
        _ => message.add_unknown(part),
    }
}

/// Parses arguments, which are JSON in a string. A string cut off by streaming stays a string.
fn parse_arguments(input: &str) -> Value {
    serde_json::from_str(input).unwrap_or_else(|_| input.into())
}

fn tool_result_entry(data: &Value) -> Entry {
    let is_error = data.get("is_error") == Some(&Value::Bool(true));
    let content = nonempty_text(data, "content").unwrap_or_default();
    let mut entry = tool_result(nonempty_text(data, "tool_call_id"), content.to_owned(), is_error);
    entry.tool_name = nonempty_text(data, "name").map(str::to_owned);
    entry
}

/// The entry of the error that ended a message, from its `finish` part.
fn error_entry(data: &Value) -> Option<Entry> {
    if nonempty_text(data, "reason") != Some("error") {
        return None;
    }
    let texts: Vec<_> =
        ["message", "details"].iter().filter_map(|name| nonempty_text(data, name)).collect();
    Some(Entry::new(Role::Assistant, EntryKind::Error, texts.join(": ")))
}

#[cfg(test)]
mod tests;
