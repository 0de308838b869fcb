//! Reads Zed's threads: rows of one SQLite table, each with a JSON document, usually compressed with zstd.
//!
//! Messages have no times; the row has the time of the thread's last change. Usage is that of the whole thread.

mod legacy;
mod thread;

use std::io::Read;

use crate::agent::fields::filled;
use crate::agent::output::Output;
use crate::agent::repair::parse;
use crate::agent::usage;
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Value;
use crate::session::{Session, SessionId};
use steno_vault::sqlite::{self, Database, Row};
use steno_vault::{Bundle, DOCUMENT_LIMIT};
use steno_vault::{Part, Schema};

/// The agent's name.
pub const AGENT: &str = "zed";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

pub(super) const SCHEMA: Schema = Schema {
    tables: &[("threads", &["id", "summary", "updated_at", "data_type", "data"])],
    sessions: "SELECT id FROM threads ORDER BY updated_at, id",
    parts: &[Part::own("threads", "id = ?1")],
    owner: None,
};

/// Columns of a thread that map to fields of [`Session`].
const KNOWN: [&str; 7] =
    ["id", "summary", "updated_at", "created_at", "data_type", "data", "parent_id"];

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    tree.find_databases(&SCHEMA)
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let database = Database::open(bundle)?;
    let id = sqlite::session_id(bundle, &database, &SCHEMA)?;
    let query = "SELECT * FROM threads WHERE id = ?1";
    let row = database.row(query, &[&id], |row| (stated(row, &id), document(row)))?;
    let (mut session, thread) = row.ok_or_else(|| database.invalid(format!("no thread {id}")))?;
    let mut output = Output::new(AGENT, &id, emit);
    match thread {
        Ok(thread) => take(thread, &mut session, &mut output),
        Err(reason) => output.problem(database.problem(&format!("thread {id}"), reason)),
    }
    Ok(session)
}

fn stated(row: &Row<'_>, id: &str) -> Session {
    let parse_time = |name| row.text(name).and_then(|text| text.parse().ok());
    let mut session = Session::new(SessionId::for_native(AGENT, id), AGENT);
    session.native_id = Some(id.to_owned());
    session.title = row.text("summary");
    session.parent = row.text("parent_id");
    session.started = parse_time("created_at");
    session.ended = parse_time("updated_at");
    let folders = row.text("folder_paths").unwrap_or_default();
    session.project = folders.lines().next().map(str::to_owned);
    session.extra = row.rest(&KNOWN);
    session
}

fn document(row: &Row<'_>) -> Result<Value, String> {
    let data = row.bytes("data").ok_or("no data")?;
    let mut unpacked = Vec::new();
    let json = match row.text("data_type").as_deref() {
        Some("zstd") => {
            let frames = zstd::Decoder::new(data).map_err(|error| error.to_string())?;
            let read = frames.take(DOCUMENT_LIMIT).read_to_end(&mut unpacked);
            read.map_err(|error| format!("not zstd: {error}"))?;
            unpacked.as_slice()
        }
        Some("json") => data,
        other => return Err(format!("unknown data type: {}", other.unwrap_or("none"))),
    };
    parse(json)
}

fn take(mut thread: Value, session: &mut Session, output: &mut Output<'_>) {
    let model = thread.get("model").and_then(|model| filled(model, "model")).map(str::to_owned);
    session.models.extend(model.clone());
    if let Some(tokens) = thread.get("cumulative_token_usage") {
        session.totals.usage = tokens.as_object().map(usage::anthropic).unwrap_or_default();
    }
    let messages = match thread.get_mut("messages").map(Value::take) {
        Some(Value::Array(messages)) => messages,
        _ => Vec::new(),
    };
    for (index, message) in messages.into_iter().enumerate() {
        let context = thread::Place { index, model: model.clone() };
        if message.get("role").is_some() {
            legacy::take(message, context, output);
        } else {
            thread::take(message, context, output);
        }
    }
}

#[cfg(test)]
mod tests;
