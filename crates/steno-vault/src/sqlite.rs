//! Reads SQLite databases of agents without changing or locking them.
//!
//! A database with rows in its write-ahead log is read from a copy of both files, because opening it in place would
//! create files beside it. A database from the vault is also read from a copy.

mod long_values;
mod row;
pub mod rows;

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql};

use steno_model::durable::OnPath;
use steno_model::problem::Problem;

pub use self::row::Row;
use crate::database_schema::{Origin, Schema};
use crate::database_snapshot::Snapshot;
use crate::format_error::FormatError;
use crate::session_bundle::{Bundle, Fingerprint};
use crate::session_file::Source;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// How long to wait for a lock on the database.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest value that readers load, in bytes. The same limit as for lines of a file.
const VALUE_LIMIT: usize = steno_model::lines::LINE_LIMIT;

/// An open database.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    path: PathBuf,
    /// Whether all column names are valid UTF-8. In a damaged file they may not be.
    has_names: bool,
    /// Whether values of more than [`VALUE_LIMIT`] bytes read as null.
    hides_long_values: Cell<bool>,
    // Dropped after the connection.
    snapshot: Option<Arc<Snapshot>>,
}

/// The sessions of one file. Empty if it is not a database with this schema.
///
/// If the sessions cannot be listed, returns a bundle without a key, so that reading it reports the error.
pub fn sessions(file: &Path, schema: &'static Schema) -> Vec<Bundle> {
    sessions_of_all(file, &[schema])
}

/// The sessions of one file for each of `schemas`. The file is opened, and copied if necessary, only once.
pub fn sessions_of_all(file: &Path, schemas: &[&'static Schema]) -> Vec<Bundle> {
    if !is_database(file) || schemas.iter().all(|schema| is_foreign(file, schema)) {
        return Vec::new();
    }
    let bundle = bundle(file);
    let Ok(database) = Database::open(&bundle) else { return Vec::new() };
    let fitting = schemas.iter().filter(|schema| database.fits(schema));
    let listed = fitting.flat_map(|schema| {
        let origin = Some(Origin { schema, snapshot: database.snapshot.clone() });
        let bundle = Bundle { origin, ..bundle.clone() };
        match database.texts(schema.sessions, &[]) {
            Ok(ids) => {
                ids.into_iter().map(|id| Bundle { key: Some(id), ..bundle.clone() }).collect()
            }
            Err(_) => vec![bundle],
        }
    });
    listed.collect()
}

/// The opened database with its bundle. `None` if the file is not a database with this schema.
pub fn known(file: &Path, schema: &'static Schema) -> Option<(Bundle, Database)> {
    if !is_database(file) || is_foreign(file, schema) {
        return None;
    }
    let mut bundle = bundle(file);
    let database = Database::open(&bundle).ok()?;
    bundle.origin = Some(Origin { schema, snapshot: database.snapshot.clone() });
    database.fits(schema).then_some((bundle, database))
}

/// The session of a bundle: its key, or the only session of the database.
pub fn session_id(
    bundle: &Bundle,
    database: &Database,
    schema: &Schema,
) -> Result<String, FormatError> {
    if let Some(key) = &bundle.key {
        return Ok(key.clone());
    }
    let mut ids = database.texts(schema.sessions, &[])?;
    match (ids.pop(), ids.is_empty()) {
        (Some(id), true) => Ok(id),
        (None, _) => Err(database.invalid("no session in the database")),
        (Some(_), false) => {
            Err(database.invalid("several sessions in the database, none selected"))
        }
    }
}

/// Whether a file starts with SQLite's magic bytes.
pub fn is_database(file: &Path) -> bool {
    File::open(file).is_ok_and(|file| begins_with_magic(file).unwrap_or(false))
}

/// Whether the first file of a bundle is a database.
pub fn holds_database(bundle: &Bundle) -> Result<bool, FormatError> {
    let Some(source) = bundle.sources.first() else { return Ok(false) };
    Ok(begins_with_magic(source.open()?).on("read", source.path())?)
}

fn begins_with_magic(input: impl Read) -> io::Result<bool> {
    let mut head = Vec::with_capacity(MAGIC.len());
    input.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(head == MAGIC)
}

/// Whether the main file, without its write-ahead log, has tables of another schema. Avoids a copy.
fn is_foreign(file: &Path, schema: &Schema) -> bool {
    let Ok(database) = Database::in_place(file, file, true) else { return false };
    match database.texts("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1", &[]) {
        Ok(tables) => !tables.is_empty() && !database.fits(schema),
        Err(_) => false,
    }
}

fn bundle(file: &Path) -> Bundle {
    let mut bundle = Bundle::file(file);
    let wal = log_of(file);
    if let Some(name) = wal.file_name().filter(|_| wal.is_file()) {
        bundle.sources.push(Source::on_disk(name.to_string_lossy(), &wal));
    }
    bundle
}

fn log_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

impl Database {
    /// Opens a reader at the first byte.
    pub fn open(bundle: &Bundle) -> Result<Self, FormatError> {
        let is_beside = |name: &str| name.ends_with("-wal") || name.ends_with(".json");
        let main = bundle.sources.iter().find(|source| !is_beside(source.name()));
        let Some(main) = main else {
            return Err(FormatError::Invalid(Problem::of(&bundle.root, "no database file")));
        };
        let wal = bundle.get(&format!("{}-wal", main.name()));
        let path = main.path();
        let snapshot = bundle.origin.as_ref().and_then(|origin| origin.snapshot.clone());
        if let Some(snapshot) = snapshot {
            return Self::in_snapshot(snapshot, path);
        }
        if main.is_on_disk() && wal.is_none_or(is_empty) {
            // Opening a database in WAL mode would create a log file, unless it is opened as immutable.
            return Self::in_place(path, path, expects_log(path));
        }
        Self::in_snapshot(Snapshot::of(main, wal)?, path)
    }

    fn in_snapshot(snapshot: Arc<Snapshot>, path: &Path) -> Result<Self, FormatError> {
        let mut database = Self::in_place(&snapshot.database(), path, false)?;
        database.snapshot = Some(snapshot);
        Ok(database)
    }

    fn in_place(file: &Path, path: &Path, immutable: bool) -> Result<Self, FormatError> {
        let invalid = |error| FormatError::Invalid(Problem::of(path, error));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = if immutable {
            Connection::open_with_flags(immutable_uri(file), flags)
        } else {
            Connection::open_with_flags(file, flags)
        };
        let connection = connection.map_err(invalid)?;
        connection.busy_timeout(PATIENCE).map_err(invalid)?;
        connection.pragma_update(None, "trusted_schema", false).map_err(invalid)?;
        let has_names = has_names(&connection).unwrap_or(false);
        let hides_long_values = Cell::new(false);
        Ok(Self { connection, path: path.to_owned(), has_names, hides_long_values, snapshot: None })
    }

    /// The connection, which must not be written to.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether all tables of the schema exist as plain tables.
    pub fn fits(&self, schema: &Schema) -> bool {
        schema.tables.iter().all(|(table, columns)| {
            let has = self.columns(table);
            columns.iter().all(|column| has.iter().any(|name| name == column))
        })
    }

    /// The columns of a plain table. Empty if there is no such table.
    pub fn columns(&self, table: &str) -> Vec<String> {
        // A view or virtual table could run code of its author.
        let query = "SELECT info.name FROM sqlite_master AS master, pragma_table_info(?1) AS info \
                     WHERE master.name = ?1 AND master.type = 'table' \
                     AND master.sql LIKE 'CREATE TABLE%'";
        self.texts(query, &[&table]).unwrap_or_default()
    }

    /// The first column of all rows, as text.
    pub fn texts(&self, query: &str, values: &[&dyn ToSql]) -> Result<Vec<String>, FormatError> {
        let mut texts = Vec::new();
        self.each(query, values, |row| {
            texts.extend(row.first_text());
            Ok(())
        })?;
        Ok(texts)
    }

    /// Visits all rows. An overlong value is not loaded and reads as null.
    pub fn each(
        &self,
        query: &str,
        values: &[&dyn ToSql],
        mut visit: impl FnMut(&Row<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut visited = 0;
        loop {
            match self.each_after(query, values, &mut visited, &mut visit) {
                Err(VisitError::Database(error))
                    if error.sqlite_error_code() == Some(ErrorCode::TooBig)
                        && !self.hides_long_values.replace(true) =>
                {
                    long_values::hide(&self.connection, VALUE_LIMIT)
                        .map_err(|e| self.invalid(e))?;
                }
                Err(VisitError::Database(error)) => return Err(self.invalid(error)),
                Err(VisitError::Visitor(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Visits the rows after the first `visited` ones, and counts them.
    fn each_after(
        &self,
        query: &str,
        values: &[&dyn ToSql],
        visited: &mut usize,
        visit: &mut dyn FnMut(&Row<'_>) -> Result<(), FormatError>,
    ) -> Result<(), VisitError> {
        let limit = i32::try_from(VALUE_LIMIT).unwrap_or(i32::MAX);
        let before = self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, limit)?;
        let result = (|| {
            let mut statement = self.connection.prepare_cached(query)?;
            let mut rows = statement.query(values)?;
            let mut number = 0;
            while let Some(row) = rows.next()? {
                number += 1;
                if number > *visited {
                    *visited = number;
                    visit(&Row::new(row, self.has_names)).map_err(VisitError::Visitor)?;
                }
            }
            Ok(())
        })();
        self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, before)?;
        result
    }

    /// The row of a query, mapped by `read`. If there are several rows, the last one wins.
    pub fn row<T>(
        &self,
        query: &str,
        values: &[&dyn ToSql],
        mut read: impl FnMut(&Row<'_>) -> T,
    ) -> Result<Option<T>, FormatError> {
        let mut found = None;
        self.each(query, values, |row| {
            found = Some(read(row));
            Ok(())
        })?;
        Ok(found)
    }

    /// The error for a database that cannot be read at all.
    pub fn invalid(&self, reason: impl std::fmt::Display) -> FormatError {
        FormatError::Invalid(Problem::of(&self.path, reason))
    }

    /// The problem of one row that cannot be read.
    pub fn problem(&self, row: &str, reason: impl std::fmt::Display) -> Problem {
        let note = if self.hides_long_values.get() {
            format!(" (values larger than {} MiB are kept but not read)", VALUE_LIMIT >> 20)
        } else {
            String::new()
        };
        Problem::of(&self.path, format!("{row}: {reason}{note}"))
    }
}

impl Bundle {
    /// The fingerprint of the session's database rows or excerpts; `None` for a session with files. An unchanged
    /// fingerprint means that there is nothing new.
    pub fn fingerprint(&self) -> Result<Option<Fingerprint>, FormatError> {
        if self.is_only_told() {
            let mut hasher = blake3::Hasher::new();
            for excerpt in &self.excerpts {
                hasher.update(&excerpt.bytes()?);
            }
            return Ok(Some(Fingerprint { bytes: hasher.count(), sum: hasher.finalize() }));
        }
        let Some(origin) = &self.origin else { return Ok(None) };
        let database = Database::open(self)?;
        database.fingerprint(origin.schema, self.key.as_deref()).map(Some)
    }
}

/// Why not all rows were visited.
#[derive(Debug)]
enum VisitError {
    Database(rusqlite::Error),
    Visitor(FormatError),
}

impl From<rusqlite::Error> for VisitError {
    fn from(error: rusqlite::Error) -> Self {
        VisitError::Database(error)
    }
}

/// Whether all table definitions are valid UTF-8. rusqlite panics on a column name that is not.
fn has_names(connection: &Connection) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare("SELECT sql FROM sqlite_master")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let ValueRef::Text(sql) = row.get_ref(0)?
            && std::str::from_utf8(sql).is_err()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the header says that the database is in WAL mode.
fn expects_log(file: &Path) -> bool {
    let mut head = [0; 20];
    File::open(file).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head[18] == 2
}

fn is_empty(wal: &Source) -> bool {
    wal.is_on_disk() && wal.path().metadata().is_ok_and(|metadata| metadata.len() == 0)
}

fn immutable_uri(file: &Path) -> String {
    let mut uri = "file:".to_owned();
    for c in file.to_string_lossy().chars() {
        match c {
            '%' | '?' | '#' => uri.push_str(&format!("%{:02X}", u32::from(c))),
            '\\' => uri.push('/'),
            c => uri.push(c),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

#[cfg(test)]
mod tests;
