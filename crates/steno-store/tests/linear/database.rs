//! Databases with many rows: the rows of one table are repeated, each with a key of its own.

use std::fs;

use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};

use super::grow::FileShape;
use super::scratch_folder;

/// For every table of a database, the database with many rows in that table.
pub(crate) fn shapes(bytes: &[u8]) -> Vec<FileShape> {
    let tables = with_database(bytes, |connection| {
        let query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' \
                     AND name NOT LIKE 'sqlite_%'";
        let mut statement = connection.prepare(query).unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.collect::<rusqlite::Result<Vec<String>>>().unwrap()
    });
    let shape = |table: String| -> FileShape {
        let bytes = bytes.to_vec();
        let name = format!("table {table}");
        (name, Box::new(move |count| grown(&bytes, &table, count)))
    };
    tables.0.into_iter().map(shape).collect()
}

/// Changes a database in a file, and gives the result and the changed bytes.
fn with_database<T>(bytes: &[u8], change: impl FnOnce(&Connection) -> T) -> (T, Vec<u8>) {
    let folder = scratch_folder();
    let file = folder.path().join("database");
    fs::write(&file, bytes).unwrap();
    let connection = Connection::open(&file).unwrap();
    let result = change(&connection);
    connection.close().unwrap();
    (result, fs::read(&file).unwrap())
}

fn grown(bytes: &[u8], table: &str, count: usize) -> Vec<u8> {
    let ((), bytes) = with_database(bytes, |connection| {
        connection
            .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; BEGIN")
            .unwrap();
        let mut info =
            connection.prepare("SELECT pk > 0 FROM pragma_table_info(?1) ORDER BY cid").unwrap();
        let keys: Vec<bool> =
            info.query_map([table], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let rows = rows(connection, table, keys.len());
        let places: Vec<String> = (1..=keys.len()).map(|at| format!("?{at}")).collect();
        let insert = format!("INSERT OR IGNORE INTO \"{table}\" VALUES ({})", places.join(", "));
        let mut statement = connection.prepare(&insert).unwrap();
        for number in 0..count.div_ceil(rows.len().max(1)) {
            for row in &rows {
                let cells =
                    row.iter().zip(&keys).map(|(cell, is_key)| numbered(cell, *is_key, number));
                // A generated column takes no value; such a table does not grow.
                drop(statement.execute(params_from_iter(cells)));
            }
        }
        connection.execute_batch("COMMIT").unwrap();
    });
    bytes
}

fn rows(connection: &Connection, table: &str, columns: usize) -> Vec<Vec<Cell>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
    let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect());
    rows.unwrap().map(Result::unwrap).collect()
}

fn numbered(cell: &Cell, is_key: bool, number: usize) -> Cell {
    match cell {
        Cell::Text(text) if is_key => Cell::Text(format!("{text}-{number}")),
        Cell::Integer(integer) if is_key => Cell::Integer(integer + 1000 * (number as i64 + 1)),
        other => other.clone(),
    }
}
