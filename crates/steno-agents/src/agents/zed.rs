//! Reads Zed's threads: rows of one SQLite table, each with a JSON document, usually compressed with zstd.
//!
//! Messages have no times; the row has the time of the thread's last change. Usage is that of the whole thread.

mod decode;
mod legacy;

use std::io::Read;

use crate::agent::Agent;
use crate::agent::mcp_client::{McpClient, McpClientLocation, McpServerShape};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::nonempty_text;
use crate::decoding::json_repair::parse_lenient;
use crate::decoding::usage;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::json::Value;
use steno_model::session::{Session, SessionId};
use steno_vault::sqlite::{self, AgentDatabase, DatabaseRow};
use steno_vault::{DatabaseSchema, MAX_DOCUMENT_SIZE, RowSelection, SessionBundle};

/// The agent's name.
pub const AGENT_NAME: &str = "zed";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Zed.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| {
        let flatpak = user.path_variable("FLATPAK_XDG_DATA_HOME").into_iter();
        let data = flatpak.chain([user.data_folder()]).map(|base| base.join("zed/threads"));
        data.chain([user.application_support_folder().join("Zed/threads")]).collect()
    },
    database_schemas: &[&SCHEMA],
    mcp_client: Some(McpClient {
        locations: |user| {
            let folder = user.config_folder().join("zed");
            let location = McpClientLocation::in_folder(folder, "settings.json");
            vec![McpClientLocation { skills: None, ..location }]
        },
        shape: McpServerShape::ContextServers,
    }),
    ..Agent::new("Zed", &READER)
};

const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[("threads", &["id", "summary", "updated_at", "data_type", "data"])],
    session_query: "SELECT id FROM threads ORDER BY updated_at, id",
    row_selections: &[RowSelection::own("threads", "id = ?1")],
    owner_column: None,
};

/// Columns of a thread that map to fields of [`Session`].
const MAPPED_COLUMNS: [&str; 7] =
    ["id", "summary", "updated_at", "created_at", "data_type", "data", "parent_id"];

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    tree.find_databases(&SCHEMA)
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let database = AgentDatabase::open(bundle)?;
    let id = sqlite::session_id(bundle, &database, &SCHEMA)?;
    let query = "SELECT * FROM threads WHERE id = ?1";
    let row =
        database.query_row(query, &[&id], |row| (session_from_row(row, &id), parse_thread(row)))?;
    let (mut session, thread) =
        row.ok_or_else(|| database.invalid_database(format!("no thread {id}")))?;
    let mut output = EntryEmitter::new(AGENT_NAME, &id, emit);
    match thread {
        Ok(thread) => decode_thread(thread, &mut session, &mut output),
        Err(reason) => output.emit_problem(database.row_problem(&format!("thread {id}"), reason)),
    }
    Ok(session)
}

fn session_from_row(row: &DatabaseRow<'_>, id: &str) -> Session {
    let parse_time = |name| row.text(name).and_then(|text| text.parse().ok());
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, id), AGENT_NAME);
    session.native_id = Some(id.to_owned());
    session.title = row.text("summary");
    session.parent = row.text("parent_id");
    session.started = parse_time("created_at");
    session.ended = parse_time("updated_at");
    let folders = row.text("folder_paths").unwrap_or_default();
    session.project = folders.lines().next().map(str::to_owned);
    session.extra = row.other_columns(&MAPPED_COLUMNS);
    session
}

fn parse_thread(row: &DatabaseRow<'_>) -> Result<Value, String> {
    let data = row.bytes("data").ok_or("no data")?;
    let mut unpacked = Vec::new();
    let json = match row.text("data_type").as_deref() {
        Some("zstd") => {
            let frames = zstd::Decoder::new(data).map_err(|error| error.to_string())?;
            let read = frames.take(MAX_DOCUMENT_SIZE).read_to_end(&mut unpacked);
            read.map_err(|error| format!("not zstd: {error}"))?;
            unpacked.as_slice()
        }
        Some("json") => data,
        other => return Err(format!("unknown data type: {}", other.unwrap_or("none"))),
    };
    parse_lenient(json)
}

fn decode_thread(mut thread: Value, session: &mut Session, output: &mut EntryEmitter<'_>) {
    let model =
        thread.get("model").and_then(|model| nonempty_text(model, "model")).map(str::to_owned);
    session.models.extend(model.clone());
    if let Some(tokens) = thread.get("cumulative_token_usage") {
        session.totals.usage = tokens.as_object().map(usage::anthropic_usage).unwrap_or_default();
    }
    let messages = match thread.get_mut("messages").map(Value::take) {
        Some(Value::Array(messages)) => messages,
        _ => Vec::new(),
    };
    for (index, message) in messages.into_iter().enumerate() {
        let context = decode::ZedMessageContext { index, model: model.clone() };
        if message.get("role").is_some() {
            legacy::decode_legacy_message(message, context, output);
        } else {
            decode::decode_message(message, context, output);
        }
    }
}

#[cfg(test)]
mod tests;
