//! Reads chats of 2024: one value has all tabs of a workspace, and each tab is a session.

use crate::agent::fields::{filled, moment};
use crate::agent::message::Message;
use crate::agent::output::Output;
use crate::agent::repair::parse;
use crate::entry::{Kind, Role};
use crate::format::{Emit, FormatError};
use crate::json::Value;
use crate::session::{Session, SessionId};
use steno_vault::sqlite::Database;
use steno_vault::{Part, Schema};

use super::AGENT;

/// The schema of the tabs. Other programs have the same table, but not this key.
pub(super) const SCHEMA: Schema = Schema {
    tables: &[("ItemTable", &["key", "value"])],
    sessions: "SELECT json_extract(tab.value, '$.tabId') \
               FROM ItemTable AS item, json_each(CAST(item.value AS TEXT), '$.tabs') AS tab \
               WHERE item.key = 'workbench.panel.aichat.view.aichat.chatdata' \
               AND json_valid(CAST(item.value AS TEXT))",
    parts: &[Part::own("ItemTable", "key = 'workbench.panel.aichat.view.aichat.chatdata'")],
    owner: None,
};

/// Reads one tab.
pub(super) fn read(database: &Database, id: &str, emit: Emit<'_>) -> Result<Session, FormatError> {
    let tabs = tabs(database)?;
    let tab = tabs.iter().find(|tab| filled(tab, "tabId") == Some(id));
    let tab = tab.ok_or_else(|| database.invalid(format!("no conversation {id}")))?;
    let mut session = Session::new(SessionId::for_native(AGENT, id), AGENT);
    session.native_id = Some(id.to_owned());
    session.title = filled(tab, "chatTitle").map(str::to_owned);
    session.ended = tab.get("lastSendTime").and_then(moment);
    let mut output = Output::new(AGENT, id, emit);
    let bubbles = tab.get("bubbles").and_then(Value::as_array);
    for (index, bubble) in bubbles.into_iter().flatten().enumerate() {
        take(bubble, index, &mut output);
    }
    Ok(session)
}

fn tabs(database: &Database) -> Result<Vec<Value>, FormatError> {
    let query = "SELECT value FROM ItemTable \
                 WHERE key = 'workbench.panel.aichat.view.aichat.chatdata'";
    let mut tabs = Vec::new();
    database.each(query, &[], |row| {
        let bytes = row.bytes("value").unwrap_or_default();
        let mut chats: Value = parse(bytes).map_err(|reason| database.invalid(reason))?;
        if let Some(Value::Array(found)) = chats.get_mut("tabs").map(Value::take) {
            tabs = found;
        }
        Ok(())
    })?;
    Ok(tabs)
}

fn take(bubble: &Value, index: usize, output: &mut Output<'_>) {
    let id = filled(bubble, "id").map_or_else(|| format!("bubble {index}"), str::to_owned);
    let mut message = Message { id: Some(id), ..Message::default() };
    let text = filled(bubble, "text").or(filled(bubble, "rawText")).unwrap_or_default();
    match filled(bubble, "type") {
        Some("user") => {
            message.say(Role::User, Kind::Text, text);
            output.message(message);
        }
        Some("ai") => {
            message.model = filled(bubble, "modelType").map(str::to_owned);
            message.say(Role::Assistant, Kind::Text, text);
            output.answer(message);
        }
        _ => {
            message.unknown(bubble.clone());
            output.message(message);
        }
    }
}
