//! Reads the store of the command line: blobs named by their hash. Messages are JSON, index nodes list them in order.
//!
//! Only blobs below the latest root belong to the session. The others are older states of it.

use std::collections::HashSet;

use crate::agent::attachment;
use crate::agent::entries::{tool_call, tool_result};
use crate::agent::fields::{filled, from_millis};
use crate::agent::message::Message;
use crate::agent::output::Output;
use crate::agent::repair::parse;
use crate::entry::{Kind, Role};
use crate::format::{Emit, FormatError};
use crate::json::Value;
use crate::session::{Session, SessionId};
use steno_vault::sqlite::{Database, Row};
use steno_vault::{Part, Schema};

use super::transcript::words;
use super::{AGENT, prompt, tree_node};

/// The schema of a store.
pub(super) const SCHEMA: Schema = Schema {
    tables: &[("meta", &["key", "value"]), ("blobs", &["id", "data"])],
    sessions: "SELECT key FROM meta WHERE key = '0'",
    parts: &[Part::own("meta", "true"), Part::own("blobs", "true")],
    owner: None,
};

/// Reads the session of a store.
pub(super) fn read(database: &Database, emit: Emit<'_>) -> Result<Session, FormatError> {
    let meta = meta(database)?;
    let id = filled(&meta, "agentId").unwrap_or_default();
    let mut session = Session::new(SessionId::for_native(AGENT, id), AGENT);
    session.native_id = filled(&meta, "agentId").map(str::to_owned);
    session.title = filled(&meta, "name").map(str::to_owned);
    session.started = meta.get("createdAt").and_then(Value::as_i64).and_then(from_millis);
    session.models.extend(filled(&meta, "lastUsedModel").map(str::to_owned));
    let mut output = Output::new(AGENT, id, emit);
    let root = filled(&meta, "latestRootBlobId").unwrap_or_default().to_owned();
    let mut waiting = vec![root];
    let mut seen = HashSet::new();
    while let Some(id) = waiting.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let Some(bytes) = blob(database, &id)? else {
            output.problem(database.problem(&format!("blob {id}"), "missing"));
            continue;
        };
        match parse::<Value>(&bytes) {
            Ok(record) if record.get("role").is_some() => take(record, id, &mut output),
            _ => waiting.extend(tree_node::children(&bytes).into_iter().rev()),
        }
    }
    if let Value::Object(fields) = meta {
        session.extra = fields;
    }
    Ok(session)
}

/// The session's metadata: JSON encoded as hexadecimal digits.
fn meta(database: &Database) -> Result<Value, FormatError> {
    let texts = database.texts("SELECT value FROM meta WHERE key = '0'", &[])?;
    let value = texts.first().ok_or_else(|| database.invalid("no session metadata"))?;
    let json =
        if value.starts_with('{') { Some(value.clone().into_bytes()) } else { digits(value) };
    let record = json.and_then(|json| serde_json::from_slice(&json).ok());
    record.ok_or_else(|| database.invalid("the session metadata is not JSON"))
}

fn digits(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = text.chars().map(|c| c.to_digit(16)).collect();
    let pairs = digits?;
    Some(
        pairs
            .chunks_exact(2)
            .filter_map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok())
            .collect(),
    )
}

fn blob(database: &Database, id: &str) -> Result<Option<Vec<u8>>, FormatError> {
    let query = "SELECT data FROM blobs WHERE id = ?1";
    let data = |row: &Row<'_>| row.bytes("data").map(<[u8]>::to_vec);
    Ok(database.row(query, &[&id], data)?.flatten())
}

fn take(record: Value, id: String, output: &mut Output<'_>) {
    let mut message = Message { id: Some(id), ..Message::default() };
    let role = Role::from(filled(&record, "role").unwrap_or_default());
    match record.get("content") {
        Some(Value::String(text)) => prompt::say(&mut message, &role, text),
        Some(Value::Array(blocks)) => {
            blocks.iter().for_each(|block| add(&mut message, &role, block));
        }
        _ => message.unknown(record),
    }
    match role {
        Role::Assistant => output.answer(message),
        _ => output.message(message),
    }
}

fn add(message: &mut Message, role: &Role, block: &Value) {
    let field = |name| filled(block, name).unwrap_or_default();
    match field("type") {
        "text" => prompt::say(message, role, field("text")),
        "reasoning" => message.say(Role::Assistant, Kind::Thinking, field("text")),
        "redacted-reasoning" => message.say(Role::Assistant, Kind::Thinking, ""),
        "tool-call" => {
            let input = block.get("args").or(block.get("input"));
            message.push(tool_call(filled(block, "toolName"), filled(block, "toolCallId"), input));
        }
        "tool-result" => {
            let result = block.get("result").or(block.get("output")).unwrap_or(&Value::Null);
            let failed = block.get("isError") == Some(&Value::Bool(true));
            let mut entry = tool_result(filled(block, "toolCallId"), words(result), failed);
            entry.tool_name = filled(block, "toolName").map(str::to_owned);
            message.push(entry);
        }
        "image" | "file" => {
            let mime = filled(block, "mimeType").or(filled(block, "mediaType"));
            let data = filled(block, "image").or(filled(block, "data")).unwrap_or_default();
            message.say(role.clone(), Kind::Notice, attachment::media(mime, data));
        }
        _ => message.unknown(block.clone()),
    }
}
