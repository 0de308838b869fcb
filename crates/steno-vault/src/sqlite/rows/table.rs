//! The layout of a table: what is needed to list its rows, to identify them and to restore them.

use rusqlite::{Connection, Result};

/// SQLite's names for the row id. A column may shadow each of them.
const ROWID: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// A plain table.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, without those that are computed.
    pub columns: Vec<String>,
    /// Which of the columns tell rows apart; none where only their numbers do.
    pub identity: Vec<usize>,
    /// The name of the rows' numbers, where they are no column.
    pub rowid: Option<&'static str>,
    /// The name of the rows' numbers, also where a column holds them; none where rows have no numbers.
    number: Option<&'static str>,
}

impl Table {
    /// The table of this name; without columns if there is none.
    pub fn of(connection: &Connection, name: &str) -> Result<Self> {
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
        let identity = if primary.is_empty() { unique(connection, name, &names)? } else { primary };
        let number = rowid(connection, name, &names);
        let rowid = number.filter(|_| !is_numbered);
        Ok(Self { name: name.to_owned(), columns: names, identity, rowid, number })
    }

    /// A query for rows: their number, or null, then all columns.
    pub fn select(&self, condition: &str) -> String {
        self.query(&self.names(0..self.columns.len()).join(", "), condition)
    }

    fn query(&self, columns: &str, condition: &str) -> String {
        let identity = self.names(self.identity.iter().copied()).join(", ");
        let rowid = self.rowid.unwrap_or("NULL");
        let order = self.rowid.unwrap_or(&identity);
        let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {order}") };
        let name = quoted(&self.name);
        format!("SELECT {rowid}, {columns} FROM main.{name} WHERE {condition}{order}")
    }

    /// The same query without values of more than `limit` bytes, which are null. After all columns stands for each of them
    /// the type of such a value, and last the row's number. None where rows have no numbers.
    pub fn select_short(&self, condition: &str, limit: usize) -> Option<String> {
        let names = self.names(0..self.columns.len());
        let is_long = |name: &String| format!("coalesce(octet_length({name}), 0) > {limit}");
        let values = names
            .iter()
            .map(|name| format!("CASE WHEN {} THEN NULL ELSE {name} END", is_long(name)));
        let types =
            names.iter().map(|name| format!("CASE WHEN {} THEN typeof({name}) END", is_long(name)));
        let columns: Vec<String> = values.chain(types).chain([self.number?.to_owned()]).collect();
        Some(self.query(&columns.join(", "), condition))
    }

    /// The condition that finds the row of an identity, given as parameters from number `first` on.
    pub fn condition(&self, first: usize) -> String {
        let names = self.names(self.identity.iter().copied());
        let parts = names.iter().enumerate();
        let parts: Vec<_> = parts.map(|(at, name)| format!("{name} IS ?{}", first + at)).collect();
        parts.join(" AND ")
    }

    fn names(&self, indices: impl Iterator<Item = usize>) -> Vec<String> {
        indices.map(|index| quoted(&self.columns[index])).collect()
    }
}

/// The columns of a unique index.
fn unique(connection: &Connection, table: &str, columns: &[String]) -> Result<Vec<usize>> {
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

fn rowid(connection: &Connection, table: &str, columns: &[String]) -> Option<&'static str> {
    let is_free = |name: &&&str| !columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    let name = ROWID.iter().find(is_free)?;
    let has_numbers = connection.prepare(&format!("SELECT {name} FROM {}", quoted(table))).is_ok();
    has_numbers.then_some(name)
}

/// All plain tables, each with the statement that made it. Tables that a virtual one keeps for itself are not.
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

/// A name that stands for itself in a statement, whatever is in it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
