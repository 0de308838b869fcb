//! Lists what belongs to a session in a database: its rows, those that it needs, and what made the tables.

use rusqlite::types::ValueRef;
use serde::Serialize;

use super::field::to_json;
use super::table::{Table, plain_tables, quoted};
use super::{About, Create, Part, Share, VERSION};
use crate::agent::sqlite::{Database, Schema};
use crate::format::FormatError;
use crate::json::{Object, Value};
use crate::source::Fingerprint;

/// A line for a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// The slot that it fills.
    pub(crate) slot: &'a [u8],
    /// The line, without its newline.
    pub(crate) bytes: &'a [u8],
}

#[derive(Serialize)]
struct RowLine<'a> {
    of: Vec<Value>,
    #[serde(skip_serializing_if = "Share::is_own")]
    share: Share,
    #[serde(skip_serializing_if = "Value::is_null")]
    rowid: Value,
    values: &'a Object,
}

/// The rows of one table that belong to a session.
struct Rows {
    table: Table,
    query: String,
    share: Share,
}

impl Database {
    /// Hands out every line of a session: what made the tables, then the rows.
    pub(crate) fn each_line(
        &self,
        schema: &Schema,
        key: Option<&str>,
        take: &mut dyn FnMut(Line<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let _view = self.connection.unchecked_transaction().map_err(|e| self.invalid(e))?;
        for (slot, line) in self.made_by().map_err(|error| self.invalid(error))? {
            take(Line { slot: &slot, bytes: &line })?;
        }
        for rows in self.parts(schema)? {
            self.each_row(&rows, key, &mut |row| {
                let (slot, line) = row_line(&rows, row).map_err(|error| self.invalid(error))?;
                take(Line { slot: &slot, bytes: &line })
            })?;
        }
        Ok(())
    }

    /// Sums up the session's own rows: as long as that stays the same, nothing in the session is new.
    pub(crate) fn fingerprint(
        &self,
        schema: &Schema,
        key: Option<&str>,
    ) -> Result<Fingerprint, FormatError> {
        let _view = self.connection.unchecked_transaction().map_err(|e| self.invalid(e))?;
        let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
        for rows in self.parts(schema)?.iter().filter(|rows| rows.share == Share::Own) {
            add(&mut hasher, rows.query.as_bytes(), b'q');
            self.each_row(rows, key, &mut |row| {
                for index in 0..=rows.table.columns.len() {
                    let value = row.get_ref(index).map_err(|error| self.invalid(error))?;
                    bytes += add_value(&mut hasher, value);
                }
                Ok(())
            })?;
        }
        Ok(Fingerprint { bytes, sum: hasher.finalize() })
    }

    /// Lines for the database as a whole and for its tables, indices and triggers.
    fn made_by(&self) -> rusqlite::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let number = |name| self.connection.pragma_query_value(None, name, |row| row.get(0));
        let about = About {
            of: ["database".to_owned()],
            version: VERSION,
            user_version: number("user_version")?,
            application_id: number("application_id")?,
        };
        let mut lines = vec![(print(&about.of), print(&about))];
        let tables = plain_tables(&self.connection)?;
        let query = "SELECT type, name, sql FROM sqlite_master \
                     WHERE type IN ('index', 'trigger') AND sql IS NOT NULL AND tbl_name = ?1 \
                     ORDER BY type, name";
        let mut statement = self.connection.prepare_cached(query)?;
        for (name, sql) in tables {
            let create = Create { of: ["table".to_owned(), name.clone()], sql };
            lines.push((print(&create.of), print(&create)));
            let mut rows = statement.query([name])?;
            while let Some(row) = rows.next()? {
                let create = Create { of: [row.get(0)?, row.get(1)?], sql: row.get(2)? };
                lines.push((print(&create.of), print(&create)));
            }
        }
        Ok(lines)
    }

    /// The tables that have rows of a session: those that the schema names, and those that name the session.
    fn parts(&self, schema: &Schema) -> Result<Vec<Rows>, FormatError> {
        let invalid = |error| self.invalid(error);
        let mut parts = Vec::new();
        for (name, _) in plain_tables(&self.connection).map_err(invalid)? {
            let table = Table::of(&self.connection, &name).map_err(invalid)?;
            let named = schema.parts.iter().find(|part| part.table == name);
            let owner = schema.owner.filter(|owner| table.columns.iter().any(|c| c == owner));
            let (condition, share) = match (named, owner) {
                (Some(Part { rows, share, .. }), _) => ((*rows).to_owned(), *share),
                (None, Some(owner)) => (format!("{} = ?1", quoted(owner)), Share::Own),
                (None, None) => continue,
            };
            let query = table.select(&condition);
            // Another version of the agent may lack a column, but not in what makes the database its own.
            let is_needed = schema.tables.iter().any(|(needed, _)| *needed == name);
            match self.connection.prepare(&query) {
                Err(error) if is_needed => return Err(self.invalid(error)),
                Err(_) => {}
                Ok(_) => parts.push(Rows { table, query, share }),
            }
        }
        Ok(parts)
    }

    fn each_row(
        &self,
        rows: &Rows,
        key: Option<&str>,
        visit: &mut dyn FnMut(&rusqlite::Row<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let invalid = |error| self.invalid(error);
        let mut statement = self.connection.prepare_cached(&rows.query).map_err(invalid)?;
        let parameters = key.into_iter().take(statement.parameter_count());
        let mut found = statement.query(rusqlite::params_from_iter(parameters)).map_err(invalid)?;
        while let Some(row) = found.next().map_err(invalid)? {
            visit(row)?;
        }
        Ok(())
    }
}

fn row_line(rows: &Rows, row: &rusqlite::Row<'_>) -> rusqlite::Result<(Vec<u8>, Vec<u8>)> {
    let table = &rows.table;
    let rowid = to_json(row.get_ref(0)?);
    let mut values = Object::new();
    for (index, column) in table.columns.iter().enumerate() {
        values.insert(column.clone(), to_json(row.get_ref(index + 1)?));
    }
    let mut of = vec!["row".into(), table.name.as_str().into()];
    of.extend(table.identity.iter().map(|index| values[&table.columns[*index]].clone()));
    // Rows whose identity is null are not one another's.
    if of.len() == 2 || of.contains(&Value::Null) {
        of.push(rowid.clone());
    }
    let slot = print(&of);
    Ok((slot, print(&RowLine { of, share: rows.share, rowid, values: &values })))
}

fn print<T: Serialize>(line: &T) -> Vec<u8> {
    serde_json::to_vec(line).expect("keys are text")
}

fn add_value(hasher: &mut blake3::Hasher, value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Null => add(hasher, b"", b'n'),
        ValueRef::Integer(number) => add(hasher, &number.to_le_bytes(), b'i'),
        ValueRef::Real(number) => add(hasher, &number.to_le_bytes(), b'r'),
        ValueRef::Text(bytes) => add(hasher, bytes, b't'),
        ValueRef::Blob(bytes) => add(hasher, bytes, b'b'),
    }
}

/// Adds bytes so that no other bytes give the same sum.
fn add(hasher: &mut blake3::Hasher, bytes: &[u8], kind: u8) -> u64 {
    let length = bytes.len() as u64;
    hasher.update(&[kind]).update(&length.to_le_bytes()).update(bytes);
    length
}
