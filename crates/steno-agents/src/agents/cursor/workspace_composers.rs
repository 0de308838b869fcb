//! Reads composers of late 2024: one value has all composers of a workspace with their conversations.
//!
//! Later versions of Cursor moved the conversations to `cursorDiskKV` and left only the names here. Such composers
//! are not listed as sessions: [`super::composer`] reads them from their new location.

use crate::decoding::json_fields::{list_items, nonempty_text};
use crate::decoding::json_repair::parse_lenient;
use steno_model::json::Value;
use steno_vault::sqlite::AgentDatabase;
use steno_vault::{DatabaseSchema, FormatError, RowSelection};

/// The schema of the composers. Other programs have the same table, but not this key.
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[("ItemTable", &["key", "value"])],
    session_query: "SELECT json_extract(composer.value, '$.composerId') \
               FROM ItemTable AS item, \
               json_each(CAST(item.value AS TEXT), '$.allComposers') AS composer \
               WHERE item.key = 'composer.composerData' \
               AND json_valid(CAST(item.value AS TEXT)) \
               AND json_array_length(composer.value, '$.conversation') > 0",
    row_selections: &[RowSelection::own("ItemTable", "key = 'composer.composerData'")],
    owner_column: None,
};

/// The record of a composer, if it has a conversation here.
pub(super) fn find_composer(
    database: &AgentDatabase,
    id: &str,
) -> Result<Option<Value>, FormatError> {
    if !database.matches_schema(&SCHEMA) {
        return Ok(None);
    }
    let query = "SELECT value FROM ItemTable WHERE key = 'composer.composerData'";
    let value = database
        .query_row(query, &[], |row| row.bytes("value").map(parse_lenient::<Value>))?
        .flatten();
    let composers = match value {
        Some(value) => value.map_err(|reason| database.invalid_database(reason))?,
        None => return Ok(None),
    };
    let is_requested = |composer: &&Value| {
        nonempty_text(composer, "composerId") == Some(id)
            && !list_items(&composer["conversation"]).is_empty()
    };
    Ok(list_items(&composers["allComposers"]).iter().find(is_requested).cloned())
}
