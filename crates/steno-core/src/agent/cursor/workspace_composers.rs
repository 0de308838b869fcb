//! Reads composers of late 2024: one value has all composers of a workspace with their conversations.
//!
//! Later versions of Cursor moved the conversations to `cursorDiskKV` and left only the names here. Such composers
//! are not listed as sessions: [`super::composer`] reads them from their new location.

use crate::agent::fields::{filled, items};
use crate::agent::repair::parse;
use crate::json::Value;
use steno_vault::FormatError;
use steno_vault::sqlite::Database;
use steno_vault::{Part, Schema};

/// The schema of the composers. Other programs have the same table, but not this key.
pub(super) const SCHEMA: Schema = Schema {
    tables: &[("ItemTable", &["key", "value"])],
    sessions: "SELECT json_extract(composer.value, '$.composerId') \
               FROM ItemTable AS item, \
               json_each(CAST(item.value AS TEXT), '$.allComposers') AS composer \
               WHERE item.key = 'composer.composerData' \
               AND json_valid(CAST(item.value AS TEXT)) \
               AND json_array_length(composer.value, '$.conversation') > 0",
    parts: &[Part::own("ItemTable", "key = 'composer.composerData'")],
    owner: None,
};

/// The record of a composer, if it has a conversation here.
pub(super) fn find_record(database: &Database, id: &str) -> Result<Option<Value>, FormatError> {
    if !database.fits(&SCHEMA) {
        return Ok(None);
    }
    let query = "SELECT value FROM ItemTable WHERE key = 'composer.composerData'";
    let value = database.row(query, &[], |row| row.bytes("value").map(parse::<Value>))?.flatten();
    let composers = match value {
        Some(value) => value.map_err(|reason| database.invalid(reason))?,
        None => return Ok(None),
    };
    let is_requested = |composer: &&Value| {
        filled(composer, "composerId") == Some(id) && !items(&composer["conversation"]).is_empty()
    };
    Ok(items(&composers["allComposers"]).iter().find(is_requested).cloned())
}
