//! Composers of late 2024: one value with all composers of a workspace, each with its whole conversation.
//!
//! Later versions of Cursor moved the conversations into `cursorDiskKV` and left only the composers' names here. Those are
//! no sessions: [`super::composer`] reads them from where they went.

use crate::agent::fields::{filled, items};
use crate::agent::repair::parse;
use crate::json::Value;
use steno_vault::FormatError;
use steno_vault::sqlite::Database;
use steno_vault::{Part, Schema};

/// The table in which the composers are; other programs have it too, but not with this key.
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

/// The record of one composer, if the workspace has it with its conversation.
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
    let wanted = |composer: &&Value| {
        filled(composer, "composerId") == Some(id) && !items(&composer["conversation"]).is_empty()
    };
    Ok(items(&composers["allComposers"]).iter().find(wanted).cloned())
}
