//! Reads Crush's sessions: one SQLite database per project. Often all rows are still in its write-ahead log.
//!
//! Times are in seconds, although the schema's comments say milliseconds. A session's token columns count its last
//! request, so they are no totals; only the cost is a total.

use crate::agent::attachment;
use crate::agent::entries::{tool_call, tool_result};
use crate::agent::fields::{filled, from_seconds};
use crate::agent::message::Message;
use crate::agent::output::Output;
use crate::agent::repair::parse;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, Role};
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Value;
use crate::session::{Session, SessionId};
use steno_vault::Bundle;
use steno_vault::sqlite::{self, Database, Row};
use steno_vault::{Part, Schema};

/// The agent's name.
pub const AGENT: &str = "crush";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

pub(super) const SCHEMA: Schema = Schema {
    tables: &[
        ("sessions", &["id", "parent_session_id", "title"]),
        ("messages", &["id", "session_id", "role", "parts"]),
    ],
    sessions: "SELECT id FROM sessions ORDER BY created_at, rowid",
    parts: &[Part::own("sessions", "id = ?1"), Part::whole("goose_db_version")],
    owner: Some("session_id"),
};

/// Columns of a session that map to fields of [`Session`].
const KNOWN: [&str; 4] = ["id", "parent_session_id", "title", "cost"];

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    tree.find_databases(&SCHEMA)
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let database = Database::open(bundle)?;
    let id = sqlite::session_id(bundle, &database, &SCHEMA)?;
    let query = "SELECT * FROM sessions WHERE id = ?1";
    let session = database.row(query, &[&id], |row| stated(row, &id))?;
    let mut session = session.ok_or_else(|| database.invalid(format!("no session {id}")))?;
    let mut output = Output::new(AGENT, &id, emit);
    let messages = "SELECT * FROM messages WHERE session_id = ?1 ORDER BY created_at, rowid";
    database.each(messages, &[&id], |row| {
        if let Err(reason) = message(row, &mut session, &mut output) {
            let name = format!("message {}", row.text("id").unwrap_or_default());
            output.problem(database.problem(&name, reason));
        }
        Ok(())
    })?;
    Ok(session)
}

fn stated(row: &Row<'_>, id: &str) -> Session {
    let mut session = Session::new(SessionId::for_native(AGENT, id), AGENT);
    session.native_id = Some(id.to_owned());
    session.title = row.text("title");
    session.parent = row.text("parent_session_id");
    session.totals.cost = row.number("cost");
    session.extra = row.rest(&KNOWN);
    session
}

fn message(row: &Row<'_>, session: &mut Session, output: &mut Output<'_>) -> Result<(), String> {
    let bytes = row.bytes("parts").ok_or("no parts")?;
    let parts: Vec<Value> = parse(bytes)?;
    let mut message = Message {
        id: row.text("id"),
        model: row.text("model"),
        created_at: row.integer("created_at").and_then(from_seconds),
        ..Message::default()
    };
    if is_summary(row, session) {
        message.say(Role::System, Kind::Compaction, "");
    }
    let role = Role::from(row.text("role").unwrap_or_default());
    for part in parts {
        if let Some(reason) = part.get("data").and_then(|data| filled(data, "reason")) {
            session.stop_reason = Some(reason.to_owned());
        }
        add(&mut message, &role, part);
    }
    match role {
        Role::Assistant => output.answer(message),
        _ => output.message(message),
    }
    Ok(())
}

fn is_summary(row: &Row<'_>, session: &Session) -> bool {
    let summary = session.extra.get("summary_message_id").and_then(Value::as_str);
    row.integer("is_summary_message").is_some_and(|flag| flag != 0)
        || summary.is_some_and(|summary| row.text("id").as_deref() == Some(summary))
}

fn add(message: &mut Message, role: &Role, part: Value) {
    let data = part.get("data").unwrap_or(&Value::Null);
    let text = |name| filled(data, name).unwrap_or_default();
    match part.get("type").and_then(Value::as_str).unwrap_or_default() {
        "text" => message.say(role.clone(), Kind::Text, text("text")),
        "reasoning" => message.say(Role::Assistant, Kind::Thinking, text("thinking")),
        "tool_call" => {
            message.push(tool_call(
                filled(data, "name"),
                filled(data, "id"),
                Some(&arguments(text("input"))),
            ));
        }
        "tool_result" => message.push(result(data)),
        "finish" => message.entries.extend(failure(data)),
        "image_url" => {
            message.say(role.clone(), Kind::Notice, attachment::url("image", text("url")))
        }
        "binary" => {
            let content = attachment::media(filled(data, "MIMEType"), text("Data"));
            message.say(role.clone(), Kind::Notice, content);
        }
        _ => message.unknown(part),
    }
}

/// Parses arguments, which are JSON in a string. A string cut off by streaming stays a string.
fn arguments(input: &str) -> Value {
    serde_json::from_str(input).unwrap_or_else(|_| input.into())
}

fn result(data: &Value) -> Entry {
    let is_error = data.get("is_error") == Some(&Value::Bool(true));
    let content = filled(data, "content").unwrap_or_default();
    let mut entry = tool_result(filled(data, "tool_call_id"), content.to_owned(), is_error);
    entry.tool_name = filled(data, "name").map(str::to_owned);
    entry
}

/// The entry of the error that ended a message, from its `finish` part.
fn failure(data: &Value) -> Option<Entry> {
    if filled(data, "reason") != Some("error") {
        return None;
    }
    let texts: Vec<_> =
        ["message", "details"].iter().filter_map(|name| filled(data, name)).collect();
    Some(Entry::new(Role::Assistant, Kind::Error, texts.join(": ")))
}

#[cfg(test)]
mod tests;
