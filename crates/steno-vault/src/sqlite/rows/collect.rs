//! Lists the row log lines of a session: its own rows, shared rows that it needs, and table definitions.

use std::io;

use blake3::{Hash, Hasher};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde::Serialize;
use serde_json::json;

use super::row_value::sqlite_to_json;
use super::table_layout::{TableLayout, plain_tables, quote_name};
use super::{CreateLine, DatabaseLine, ROW_LOG_VERSION};
use crate::database_schema::{RowSelection, RowShare};
use crate::format_error::FormatError;
use crate::session_bundle::SessionFingerprint;
use crate::sqlite::long_values::{LongValue, TakePiece};
use crate::sqlite::{AgentDatabase, DatabaseSchema};
use steno_model::json::Value;

/// Values above this size, in bytes, are not held in memory but read in chunks.
const MIN_LONG_VALUE: usize = 1 << 20;

/// A line of the row log.
#[derive(Clone, Copy, Debug)]
pub struct RowLogLine<'a> {
    /// The slot that the line fills.
    pub slot: &'a [u8],
    parts: &'a [LinePart],
    connection: &'a Connection,
}

/// A part of a line.
#[derive(Debug)]
enum LinePart {
    Bytes(Vec<u8>),
    Value(LongValue),
}

impl RowLogLine<'_> {
    /// Passes the line to `take` in chunks, without a newline.
    pub fn for_each_piece(&self, take: TakePiece<'_>) -> io::Result<()> {
        for part in self.parts {
            match part {
                LinePart::Bytes(bytes) => take(bytes)?,
                LinePart::Value(value) => value.write_json(self.connection, take)?,
            }
        }
        Ok(())
    }

    /// The hash of the line without a newline.
    pub fn hash(&self) -> io::Result<Hash> {
        let mut hasher = Hasher::new();
        self.for_each_piece(&mut |piece| {
            hasher.update(piece);
            Ok(())
        })?;
        Ok(hasher.finalize())
    }
}

/// The rows of one table that belong to a session.
struct SelectedRows {
    table: TableLayout,
    query: String,
    share: RowShare,
    /// Whether the query replaces long values by null and returns their types.
    is_short: bool,
}

impl AgentDatabase {
    /// Passes each line of a session to `take`: table definitions first, then rows.
    pub fn for_each_line(
        &self,
        schema: &DatabaseSchema,
        key: Option<&str>,
        take: &mut dyn FnMut(RowLogLine<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let _view =
            self.connection.unchecked_transaction().map_err(|e| self.invalid_database(e))?;
        for (slot, line) in self.schema_lines().map_err(|error| self.invalid_database(error))? {
            let parts = [LinePart::Bytes(line)];
            take(RowLogLine { slot: &slot, parts: &parts, connection: &self.connection })?;
        }
        for rows in self.select_tables(schema)? {
            self.for_each_selected_row(&rows, key, &mut |row| {
                let (slot, parts) =
                    row_line(self, &rows, row).map_err(|error| self.invalid_database(error))?;
                take(RowLogLine { slot: &slot, parts: &parts, connection: &self.connection })
            })?;
        }
        Ok(())
    }

    /// The fingerprint of the session's own rows. While it is unchanged, the session has nothing new.
    pub fn fingerprint(
        &self,
        schema: &DatabaseSchema,
        key: Option<&str>,
    ) -> Result<SessionFingerprint, FormatError> {
        let _view =
            self.connection.unchecked_transaction().map_err(|e| self.invalid_database(e))?;
        let (mut hasher, mut bytes) = (Hasher::new(), 0);
        for rows in self.select_tables(schema)?.iter().filter(|rows| rows.share == RowShare::Own) {
            hash_bytes(&mut hasher, rows.query.as_bytes(), b'q');
            self.for_each_selected_row(rows, key, &mut |row| {
                let added = self.hash_row(&mut hasher, rows, row);
                bytes += added.map_err(|error| self.invalid_database(error))?;
                Ok(())
            })?;
        }
        Ok(SessionFingerprint { bytes, hash: hasher.finalize() })
    }

    fn hash_row(
        &self,
        hasher: &mut Hasher,
        rows: &SelectedRows,
        row: &rusqlite::Row<'_>,
    ) -> rusqlite::Result<u64> {
        let mut bytes = hash_value(hasher, row.get_ref(0)?);
        for index in 0..rows.table.columns.len() {
            bytes += match rows.long_value(row, index)? {
                Some(value) => self.hash_long_value(hasher, &value).map_err(to_sqlite_error)?,
                None => hash_value(hasher, row.get_ref(index + 1)?),
            };
        }
        Ok(bytes)
    }

    /// The hash that replaces a long value in a slot name.
    fn long_value_hash(&self, value: &LongValue) -> io::Result<Value> {
        let mut hasher = Hasher::new();
        self.hash_long_value(&mut hasher, value)?;
        Ok(json!({"blake3": hasher.finalize().to_hex().as_str()}))
    }

    fn hash_long_value(&self, hasher: &mut Hasher, value: &LongValue) -> io::Result<u64> {
        let length = value.length(&self.connection)?;
        let kind = if value.is_text { b't' } else { b'b' };
        hasher.update(&[kind]).update(&length.to_le_bytes());
        value.for_each_piece(&self.connection, &mut |piece| {
            hasher.update(piece);
            Ok(())
        })?;
        Ok(length)
    }

    /// Lines for the database, its tables, indices and triggers.
    fn schema_lines(&self) -> rusqlite::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let number = |name| self.connection.pragma_query_value(None, name, |row| row.get(0));
        let about = DatabaseLine {
            of: ["database".to_owned()],
            version: ROW_LOG_VERSION,
            user_version: number("user_version")?,
            application_id: number("application_id")?,
        };
        let mut lines = vec![(to_json_bytes(&about.of), to_json_bytes(&about))];
        let tables = plain_tables(&self.connection)?;
        let query = "SELECT type, name, sql FROM sqlite_master \
                     WHERE type IN ('index', 'trigger') AND sql IS NOT NULL AND tbl_name = ?1 \
                     ORDER BY type, name";
        let mut statement = self.connection.prepare_cached(query)?;
        for (name, sql) in tables {
            let create = CreateLine { of: ["table".to_owned(), name.clone()], sql };
            lines.push((to_json_bytes(&create.of), to_json_bytes(&create)));
            let mut rows = statement.query([name])?;
            while let Some(row) = rows.next()? {
                let create = CreateLine { of: [row.get(0)?, row.get(1)?], sql: row.get(2)? };
                lines.push((to_json_bytes(&create.of), to_json_bytes(&create)));
            }
        }
        Ok(lines)
    }

    /// The tables with rows of a session: those in the schema, and those with the owner column.
    fn select_tables(&self, schema: &DatabaseSchema) -> Result<Vec<SelectedRows>, FormatError> {
        let invalid = |error| self.invalid_database(error);
        let encoding: rusqlite::Result<String> =
            self.connection.pragma_query_value(None, "encoding", |row| row.get(0));
        // Text in another encoding must be converted as a whole.
        let is_utf8 = encoding.map_err(invalid)? == "UTF-8";
        let mut parts = Vec::new();
        for (name, _) in plain_tables(&self.connection).map_err(invalid)? {
            let table = TableLayout::read(&self.connection, &name).map_err(invalid)?;
            let named = schema.row_selections.iter().find(|part| part.table == name);
            let owner =
                schema.owner_column.filter(|owner| table.columns.iter().any(|c| c == owner));
            let (condition, share) = match (named, owner) {
                (Some(RowSelection { rows, share, .. }), _) => ((*rows).to_owned(), *share),
                (None, Some(owner)) => (format!("{} = ?1", quote_name(owner)), RowShare::Own),
                (None, None) => continue,
            };
            let short = table.select_short_query(&condition, MIN_LONG_VALUE).filter(|_| is_utf8);
            let is_short = short.is_some();
            let query = short.unwrap_or_else(|| table.select_query(&condition));
            // Another version of the agent may lack a column, but not in a required table.
            let is_needed = schema.tables.iter().any(|(needed, _)| *needed == name);
            match self.connection.prepare(&query) {
                Err(error) if is_needed => return Err(self.invalid_database(error)),
                Err(_) => {}
                Ok(_) => parts.push(SelectedRows { table, query, share, is_short }),
            }
        }
        Ok(parts)
    }

    fn for_each_selected_row(
        &self,
        rows: &SelectedRows,
        key: Option<&str>,
        visit: &mut dyn FnMut(&rusqlite::Row<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let invalid = |error| self.invalid_database(error);
        let mut statement = self.connection.prepare_cached(&rows.query).map_err(invalid)?;
        let parameters = key.into_iter().take(statement.parameter_count());
        let mut found = statement.query(rusqlite::params_from_iter(parameters)).map_err(invalid)?;
        while let Some(row) = found.next().map_err(invalid)? {
            visit(row)?;
        }
        Ok(())
    }
}

impl SelectedRows {
    /// The value of a column that the query replaced by null.
    fn long_value(
        &self,
        row: &rusqlite::Row<'_>,
        index: usize,
    ) -> rusqlite::Result<Option<LongValue>> {
        let count = self.table.columns.len();
        if !self.is_short {
            return Ok(None);
        }
        let ValueRef::Text(kind) = row.get_ref(1 + count + index)? else { return Ok(None) };
        Ok(Some(LongValue {
            table: self.table.name.clone(),
            column: self.table.columns[index].clone(),
            rowid: row.get(1 + 2 * count)?,
            is_text: kind == b"text",
        }))
    }
}

/// The slot of a row and the parts of its line.
fn row_line(
    database: &AgentDatabase,
    rows: &SelectedRows,
    row: &rusqlite::Row<'_>,
) -> rusqlite::Result<(Vec<u8>, Vec<LinePart>)> {
    let table = &rows.table;
    let rowid = sqlite_to_json(row.get_ref(0)?);
    let mut values = Vec::new();
    for index in 0..table.columns.len() {
        values.push(match rows.long_value(row, index)? {
            Some(value) => Err(value),
            None => Ok(sqlite_to_json(row.get_ref(index + 1)?)),
        });
    }
    let mut of = vec!["row".into(), table.name.as_str().into()];
    for index in &table.identity {
        of.push(match &values[*index] {
            Ok(value) => value.clone(),
            Err(long) => database.long_value_hash(long).map_err(to_sqlite_error)?,
        });
    }
    // Rows with a null in their identity are distinct.
    if of.len() == 2 || of.contains(&Value::Null) {
        of.push(rowid.clone());
    }
    let slot = to_json_bytes(&of);
    let mut line = [b"{\"of\":", slot.as_slice()].concat();
    if !rows.share.is_own() {
        line.extend([b",\"share\":".to_vec(), to_json_bytes(&rows.share)].concat());
    }
    if !rowid.is_null() {
        line.extend([b",\"rowid\":".to_vec(), to_json_bytes(&rowid)].concat());
    }
    line.extend_from_slice(b",\"values\":{");
    let mut parts = Vec::new();
    for (column, value) in table.columns.iter().zip(values) {
        if !line.ends_with(b"{") {
            line.push(b',');
        }
        line.extend([to_json_bytes(column), b":".to_vec()].concat());
        match value {
            Ok(value) => line.extend(to_json_bytes(&value)),
            Err(long) => {
                parts.extend([LinePart::Bytes(std::mem::take(&mut line)), LinePart::Value(long)]);
            }
        }
    }
    line.extend_from_slice(b"}}");
    parts.push(LinePart::Bytes(line));
    Ok((slot, parts))
}

fn to_sqlite_error(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}

fn to_json_bytes<T: Serialize>(line: &T) -> Vec<u8> {
    serde_json::to_vec(line).expect("keys are text")
}

fn hash_value(hasher: &mut Hasher, value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Null => hash_bytes(hasher, b"", b'n'),
        ValueRef::Integer(number) => hash_bytes(hasher, &number.to_le_bytes(), b'i'),
        ValueRef::Real(number) => hash_bytes(hasher, &number.to_le_bytes(), b'r'),
        ValueRef::Text(bytes) => hash_bytes(hasher, bytes, b't'),
        ValueRef::Blob(bytes) => hash_bytes(hasher, bytes, b'b'),
    }
}

/// Hashes bytes with their type and length, so that different sequences of values cannot give the same input.
fn hash_bytes(hasher: &mut Hasher, bytes: &[u8], kind: u8) -> u64 {
    let length = bytes.len() as u64;
    hasher.update(&[kind]).update(&length.to_le_bytes()).update(bytes);
    length
}
