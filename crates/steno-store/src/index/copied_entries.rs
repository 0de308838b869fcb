//! Entries that a session has from another one: a resumed or forked session begins with a copy of its parent's.
//!
//! Entries of two sessions are the same if text, recorded time, role and kind are equal. The first session that the
//! index got has the original, all others have copies. Entries without a time or a text are never copies.

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::stored_name::stored_value;
use super::{EntryFilter, Index};

/// An entry that another session has too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopiedEntry {
    pub(super) session: i64,
    pub(super) number: i64,
    /// In milliseconds since 1970.
    pub(super) time: i64,
    /// Whether a person wrote it.
    pub(super) is_prompt: bool,
    pub(super) is_tool_call: bool,
}

/// What equal entries have in common.
#[derive(PartialEq)]
pub(super) struct EntryIdentity {
    text: i64,
    time: i64,
    role: Value,
    kind: Value,
}

impl EntryIdentity {
    /// Reads the first four columns: text, time, role and kind. `None` for an entry without a time.
    pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let Some(time) = row.get(1)? else { return Ok(None) };
        Ok(Some(Self { text: row.get(0)?, time, role: row.get(2)?, kind: row.get(3)? }))
    }
}

impl Index {
    /// Finds the selected entries that repeat a selected entry of another session.
    pub(super) fn find_copied_entries(
        &self,
        filter: &EntryFilter,
    ) -> rusqlite::Result<Vec<CopiedEntry>> {
        let (conditions, mut values) = filter.sql_conditions();
        values.insert(0, Value::from(1));
        // The columns are those of the covering index, in its order, so that nothing is sorted.
        let sql = format!(
            "SELECT entry.text, entry.time, entry.role, entry.kind, entry.session, entry.number
             FROM entry INDEXED BY entry_text
             WHERE ?1 = ?1 AND entry.text IS NOT NULL AND entry.time IS NOT NULL{conditions}
             ORDER BY entry.text, entry.time, entry.role, entry.kind, entry.failed, entry.session"
        );
        let (user, text, call) =
            (stored_value("user"), stored_value("text"), stored_value("tool_call"));
        let mut query = self.connection.prepare(&sql)?;
        let mut rows = query.query(params_from_iter(values))?;
        let (mut copies, mut original) = (Vec::new(), None);
        while let Some(row) = rows.next()? {
            let Some(identity) = EntryIdentity::from_row(row)? else { continue };
            let session = row.get(4)?;
            match &original {
                Some((same, owner)) if *same == identity => {
                    if *owner != session {
                        copies.push(CopiedEntry {
                            session,
                            number: row.get(5)?,
                            time: identity.time,
                            is_prompt: identity.role == user && identity.kind == text,
                            is_tool_call: identity.kind == call,
                        });
                    }
                }
                _ => original = Some((identity, session)),
            }
        }
        Ok(copies)
    }
}
