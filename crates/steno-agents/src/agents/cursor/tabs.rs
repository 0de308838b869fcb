//! Reads chats of 2024: one value has all tabs of a workspace, and each tab is a session.

use crate::decoding::agent_message::AgentMessage;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{nonempty_text, parse_time};
use crate::decoding::json_repair::parse_lenient;
use crate::reader::{FormatError, ItemSink};
use steno_model::entry::{EntryKind, Role};
use steno_model::json::Value;
use steno_model::session::{Session, SessionId};
use steno_vault::sqlite::AgentDatabase;
use steno_vault::{DatabaseSchema, RowSelection};

use super::AGENT_NAME;

/// The schema of the tabs. Other programs have the same table, but not this key.
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[("ItemTable", &["key", "value"])],
    session_query: "SELECT json_extract(tab.value, '$.tabId') \
               FROM ItemTable AS item, json_each(CAST(item.value AS TEXT), '$.tabs') AS tab \
               WHERE item.key = 'workbench.panel.aichat.view.aichat.chatdata' \
               AND json_valid(CAST(item.value AS TEXT))",
    row_selections: &[RowSelection::own(
        "ItemTable",
        "key = 'workbench.panel.aichat.view.aichat.chatdata'",
    )],
    owner_column: None,
};

/// Reads one tab.
pub(super) fn read_tab(
    database: &AgentDatabase,
    id: &str,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let tabs = read_tabs(database)?;
    let tab = tabs.iter().find(|tab| nonempty_text(tab, "tabId") == Some(id));
    let tab = tab.ok_or_else(|| database.invalid_database(format!("no conversation {id}")))?;
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, id), AGENT_NAME);
    session.native_id = Some(id.to_owned());
    session.title = nonempty_text(tab, "chatTitle").map(str::to_owned);
    session.ended = tab.get("lastSendTime").and_then(parse_time);
    let mut output = EntryEmitter::new(AGENT_NAME, id, emit);
    let bubbles = tab.get("bubbles").and_then(Value::as_array);
    for (index, bubble) in bubbles.into_iter().flatten().enumerate() {
        emit_bubble(bubble, index, &mut output);
    }
    Ok(session)
}

fn read_tabs(database: &AgentDatabase) -> Result<Vec<Value>, FormatError> {
    let query = "SELECT value FROM ItemTable \
                 WHERE key = 'workbench.panel.aichat.view.aichat.chatdata'";
    let mut tabs = Vec::new();
    database.for_each_row(query, &[], |row| {
        let bytes = row.bytes("value").unwrap_or_default();
        let mut chats: Value =
            parse_lenient(bytes).map_err(|reason| database.invalid_database(reason))?;
        if let Some(Value::Array(found)) = chats.get_mut("tabs").map(Value::take) {
            tabs = found;
        }
        Ok(())
    })?;
    Ok(tabs)
}

fn emit_bubble(bubble: &Value, index: usize, output: &mut EntryEmitter<'_>) {
    let id = nonempty_text(bubble, "id").map_or_else(|| format!("bubble {index}"), str::to_owned);
    let mut message = AgentMessage { id: Some(id), ..AgentMessage::default() };
    let text =
        nonempty_text(bubble, "text").or(nonempty_text(bubble, "rawText")).unwrap_or_default();
    match nonempty_text(bubble, "type") {
        Some("user") => {
            message.add_text(Role::User, EntryKind::Text, text);
            output.emit_message(message);
        }
        Some("ai") => {
            message.model = nonempty_text(bubble, "modelType").map(str::to_owned);
            message.add_text(Role::Assistant, EntryKind::Text, text);
            output.emit_answer(message);
        }
        _ => {
            message.add_unknown(bubble.clone());
            output.emit_message(message);
        }
    }
}
