//! Reads the store of the command line: blobs named by their hash. Messages are JSON, index nodes list them in order.
//!
//! Only blobs below the latest root belong to the session. The others are older states of it.

use std::collections::HashSet;

use crate::decoding::agent_message::AgentMessage;
use crate::decoding::attachment;
use crate::decoding::entries::{tool_call, tool_result};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{nonempty_text, timestamp_from_millis};
use crate::decoding::json_repair::parse_lenient;
use crate::reader::{FormatError, ItemSink};
use steno_model::entry::{EntryKind, Role};
use steno_model::json::Value;
use steno_model::session::{Session, SessionId};
use steno_vault::sqlite::{AgentDatabase, DatabaseRow};
use steno_vault::{DatabaseSchema, RowSelection};

use super::transcript::result_text;
use super::{AGENT_NAME, prompt, tree_node};

/// The schema of a store.
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[("meta", &["key", "value"]), ("blobs", &["id", "data"])],
    session_query: "SELECT key FROM meta WHERE key = '0'",
    row_selections: &[RowSelection::own("meta", "true"), RowSelection::own("blobs", "true")],
    owner_column: None,
};

/// Reads the session of a store.
pub(super) fn read_store(
    database: &AgentDatabase,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let meta = read_meta(database)?;
    let id = nonempty_text(&meta, "agentId").unwrap_or_default();
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, id), AGENT_NAME);
    session.native_id = nonempty_text(&meta, "agentId").map(str::to_owned);
    session.title = nonempty_text(&meta, "name").map(str::to_owned);
    session.started = meta.get("createdAt").and_then(Value::as_i64).and_then(timestamp_from_millis);
    session.models.extend(nonempty_text(&meta, "lastUsedModel").map(str::to_owned));
    let mut output = EntryEmitter::new(AGENT_NAME, id, emit);
    let root = nonempty_text(&meta, "latestRootBlobId").unwrap_or_default().to_owned();
    let mut waiting = vec![root];
    let mut seen = HashSet::new();
    while let Some(id) = waiting.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let Some(bytes) = read_blob(database, &id)? else {
            output.emit_problem(database.row_problem(&format!("blob {id}"), "missing"));
            continue;
        };
        match parse_lenient::<Value>(&bytes) {
            Ok(record) if record.get("role").is_some() => emit_message(record, id, &mut output),
            _ => waiting.extend(tree_node::child_ids(&bytes).into_iter().rev()),
        }
    }
    if let Value::Object(fields) = meta {
        session.extra = fields;
    }
    Ok(session)
}

/// The session's metadata: JSON encoded as hexadecimal digits.
fn read_meta(database: &AgentDatabase) -> Result<Value, FormatError> {
    let texts = database.query_texts("SELECT value FROM meta WHERE key = '0'", &[])?;
    let value = texts.first().ok_or_else(|| database.invalid_database("no session metadata"))?;
    let json =
        if value.starts_with('{') { Some(value.clone().into_bytes()) } else { decode_hex(value) };
    let record = json.and_then(|json| serde_json::from_slice(&json).ok());
    record.ok_or_else(|| database.invalid_database("the session metadata is not JSON"))
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = text.chars().map(|c| c.to_digit(16)).collect();
    let pairs = digits?;
    Some(
        pairs
            .chunks_exact(2)
            .filter_map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok())
            .collect(),
    )
}

fn read_blob(database: &AgentDatabase, id: &str) -> Result<Option<Vec<u8>>, FormatError> {
    let query = "SELECT data FROM blobs WHERE id = ?1";
    let data = |row: &DatabaseRow<'_>| row.bytes("data").map(<[u8]>::to_vec);
    Ok(database.query_row(query, &[&id], data)?.flatten())
}

fn emit_message(record: Value, id: String, output: &mut EntryEmitter<'_>) {
    let mut message = AgentMessage { id: Some(id), ..AgentMessage::default() };
    let role = Role::from(nonempty_text(&record, "role").unwrap_or_default());
    match record.get("content") {
        Some(Value::String(text)) => prompt::add_text(&mut message, &role, text),
        Some(Value::Array(blocks)) => {
            blocks.iter().for_each(|block| add_block(&mut message, &role, block));
        }
        _ => message.add_unknown(record),
    }
    match role {
        Role::Assistant => output.emit_answer(message),
        _ => output.emit_message(message),
    }
}

fn add_block(message: &mut AgentMessage, role: &Role, block: &Value) {
    let field = |name| nonempty_text(block, name).unwrap_or_default();
    match field("type") {
        "text" => prompt::add_text(message, role, field("text")),
        "reasoning" => message.add_text(Role::Assistant, EntryKind::Thinking, field("text")),
        "redacted-reasoning" => message.add_text(Role::Assistant, EntryKind::Thinking, ""),
        "tool-call" => {
            let input = block.get("args").or(block.get("input"));
            message.push(tool_call(
                nonempty_text(block, "toolName"),
                nonempty_text(block, "toolCallId"),
                input,
            ));
        }
        "tool-result" => {
            let result = block.get("result").or(block.get("output")).unwrap_or(&Value::Null);
            let failed = block.get("isError") == Some(&Value::Bool(true));
            let mut entry =
                tool_result(nonempty_text(block, "toolCallId"), result_text(result), failed);
            entry.tool_name = nonempty_text(block, "toolName").map(str::to_owned);
            message.push(entry);
        }
        "image" | "file" => {
            let mime = nonempty_text(block, "mimeType").or(nonempty_text(block, "mediaType"));
            let data =
                nonempty_text(block, "image").or(nonempty_text(block, "data")).unwrap_or_default();
            message.add_text(
                role.clone(),
                EntryKind::Notice,
                attachment::describe_base64(mime, data),
            );
        }
        _ => message.add_unknown(block.clone()),
    }
}
