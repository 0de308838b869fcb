//! The layout of a table: what is needed to list its rows, to identify them and to restore them.

use rusqlite::{Connection, Result};

/// SQLite's names for the row id. A column may shadow each of them.
const ROWID_NAMES: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// A plain table.
#[derive(Debug)]
pub struct TableLayout {
    /// Its name.
    pub name: String,
    /// Its columns, except generated ones.
    pub columns: Vec<String>,
    /// Indices of the columns that identify a row. Empty if only the row id does.
    pub identity: Vec<usize>,
    /// The name of the row id, if it is not a column.
    pub rowid: Option<&'static str>,
    /// The name of the row id, even if a column holds it. `None` for a table without row ids.
    number: Option<&'static str>,
}

impl TableLayout {
    /// Reads the layout of a table. It has no columns if there is no such table.
    pub fn read(connection: &Connection, name: &str) -> Result<Self> {
        let query = "SELECT name, pk, type FROM pragma_table_info(?1) ORDER BY cid";
        let mut statement = connection.prepare_cached(query)?;
        let columns = statement
            .query_map([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<Vec<(String, i64, String)>>>()?;
        let mut primary: Vec<usize> =
            (0..columns.len()).filter(|index| columns[*index].1 > 0).collect();
        primary.sort_by_key(|index| columns[*index].1);
        let is_number = |index: &usize| columns[*index].2.eq_ignore_ascii_case("INTEGER");
        let is_numbered = primary.len() == 1 && primary.iter().all(is_number);
        let names: Vec<String> = columns.into_iter().map(|(name, ..)| name).collect();
        let identity =
            if primary.is_empty() { unique_columns(connection, name, &names)? } else { primary };
        let number = rowid_name(connection, name, &names);
        let rowid = number.filter(|_| !is_numbered);
        Ok(Self { name: name.to_owned(), columns: names, identity, rowid, number })
    }

    /// A query for rows: the row id or null, then all columns.
    pub fn select_query(&self, condition: &str) -> String {
        self.build_query(&self.quoted_columns(0..self.columns.len()).join(", "), condition)
    }

    fn build_query(&self, columns: &str, condition: &str) -> String {
        let identity = self.quoted_columns(self.identity.iter().copied()).join(", ");
        let rowid = self.rowid.unwrap_or("NULL");
        let order = self.rowid.unwrap_or(&identity);
        let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {order}") };
        let name = quote_name(&self.name);
        format!("SELECT {rowid}, {columns} FROM main.{name} WHERE {condition}{order}")
    }

    /// The same query with values longer than `limit` bytes replaced by null. After the columns follow, for each
    /// column, the type of a replaced value, and last the row id. `None` for a table without row ids.
    pub fn select_short_query(&self, condition: &str, limit: usize) -> Option<String> {
        let names = self.quoted_columns(0..self.columns.len());
        let is_long = |name: &String| format!("coalesce(octet_length({name}), 0) > {limit}");
        let values = names
            .iter()
            .map(|name| format!("CASE WHEN {} THEN NULL ELSE {name} END", is_long(name)));
        let types =
            names.iter().map(|name| format!("CASE WHEN {} THEN typeof({name}) END", is_long(name)));
        let columns: Vec<String> = values.chain(types).chain([self.number?.to_owned()]).collect();
        Some(self.build_query(&columns.join(", "), condition))
    }

    /// An SQL condition for the row with an identity, given as parameters starting with number `first`.
    pub fn identity_condition(&self, first: usize) -> String {
        let names = self.quoted_columns(self.identity.iter().copied());
        let parts = names.iter().enumerate();
        let parts: Vec<_> = parts.map(|(at, name)| format!("{name} IS ?{}", first + at)).collect();
        parts.join(" AND ")
    }

    fn quoted_columns(&self, indices: impl Iterator<Item = usize>) -> Vec<String> {
        indices.map(|index| quote_name(&self.columns[index])).collect()
    }
}

/// The columns of a unique index.
fn unique_columns(connection: &Connection, table: &str, columns: &[String]) -> Result<Vec<usize>> {
    let query = "SELECT name FROM pragma_index_list(?1) WHERE \"unique\" AND NOT partial \
                 ORDER BY origin DESC, name";
    let mut statement = connection.prepare_cached(query)?;
    let indices =
        statement.query_map([table], |row| row.get(0))?.collect::<Result<Vec<String>>>()?;
    let query = "SELECT name FROM pragma_index_info(?1) ORDER BY seqno";
    let mut statement = connection.prepare_cached(query)?;
    for index in indices {
        // A column of an index on an expression has no name.
        let names = statement.query_map([index], |row| row.get(0))?;
        let names = names.collect::<Result<Vec<Option<String>>>>()?;
        let positions =
            names.iter().map(|name| columns.iter().position(|c| Some(c) == name.as_ref()));
        if let Some(positions) = positions.collect() {
            return Ok(positions);
        }
    }
    Ok(Vec::new())
}

fn rowid_name(connection: &Connection, table: &str, columns: &[String]) -> Option<&'static str> {
    let is_free = |name: &&&str| !columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    let name = ROWID_NAMES.iter().find(is_free)?;
    let has_numbers =
        connection.prepare(&format!("SELECT {name} FROM {}", quote_name(table))).is_ok();
    has_numbers.then_some(name)
}

/// All plain tables, each with its `CREATE` statement. Excludes the shadow tables of virtual tables.
pub fn plain_tables(connection: &Connection) -> Result<Vec<(String, String)>> {
    let query = "SELECT name, sql FROM sqlite_master AS own \
                 WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' \
                 AND name NOT LIKE 'sqlite^_%' ESCAPE '^' AND NOT EXISTS ( \
                     SELECT 1 FROM sqlite_master AS other \
                     WHERE other.sql LIKE 'CREATE VIRTUAL%' \
                     AND substr(own.name, 1, length(other.name) + 1) = other.name || '_') \
                 ORDER BY name";
    let mut statement = connection.prepare_cached(query)?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Quotes an SQL identifier.
pub fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
