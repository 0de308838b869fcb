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

pub use self::row::DatabaseRow;
use crate::database_schema::{DatabaseOrigin, DatabaseSchema};
use crate::database_snapshot::DatabaseSnapshot;
use crate::format_error::FormatError;
use crate::session_bundle::{SessionBundle, SessionFingerprint};
use crate::session_file::SessionFile;

const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// How long to wait for a lock on the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest value that readers load, in bytes. The same limit as for lines of a file.
const MAX_VALUE_BYTES: usize = steno_model::lines::MAX_LINE_LENGTH;

/// An open database.
#[derive(Debug)]
pub struct AgentDatabase {
    connection: Connection,
    path: PathBuf,
    /// Whether all column names are valid UTF-8. In a damaged file they may not be.
    has_utf8_names: bool,
    /// Whether values of more than [`MAX_VALUE_BYTES`] bytes read as null.
    hides_long_values: Cell<bool>,
    // Dropped after the connection.
    snapshot: Option<Arc<DatabaseSnapshot>>,
}

/// The sessions of one file. Empty if it is not a database with this schema.
///
/// If the sessions cannot be listed, returns a bundle without a key, so that reading it reports the error.
pub fn sessions_in_file(file: &Path, schema: &'static DatabaseSchema) -> Vec<SessionBundle> {
    sessions_by_schema(file, &[schema])
}

/// The sessions of one file for each of `schemas`. The file is opened, and copied if necessary, only once.
pub fn sessions_by_schema(file: &Path, schemas: &[&'static DatabaseSchema]) -> Vec<SessionBundle> {
    if !is_sqlite_file(file) || schemas.iter().all(|schema| has_foreign_schema(file, schema)) {
        return Vec::new();
    }
    let bundle = bundle_database(file);
    let Ok(database) = AgentDatabase::open(&bundle) else { return Vec::new() };
    let fitting = schemas.iter().filter(|schema| database.matches_schema(schema));
    let listed = fitting.flat_map(|schema| {
        let origin = Some(DatabaseOrigin { schema, snapshot: database.snapshot.clone() });
        let bundle = SessionBundle { origin, ..bundle.clone() };
        match database.query_texts(schema.session_query, &[]) {
            Ok(ids) => ids
                .into_iter()
                .map(|id| SessionBundle { key: Some(id), ..bundle.clone() })
                .collect(),
            Err(_) => vec![bundle],
        }
    });
    listed.collect()
}

/// The opened database with its bundle. `None` if the file is not a database with this schema.
pub fn open_known(
    file: &Path,
    schema: &'static DatabaseSchema,
) -> Option<(SessionBundle, AgentDatabase)> {
    if !is_sqlite_file(file) || has_foreign_schema(file, schema) {
        return None;
    }
    let mut bundle = bundle_database(file);
    let database = AgentDatabase::open(&bundle).ok()?;
    bundle.origin = Some(DatabaseOrigin { schema, snapshot: database.snapshot.clone() });
    database.matches_schema(schema).then_some((bundle, database))
}

/// The session of a bundle: its key, or the only session of the database.
pub fn session_id(
    bundle: &SessionBundle,
    database: &AgentDatabase,
    schema: &DatabaseSchema,
) -> Result<String, FormatError> {
    if let Some(key) = &bundle.key {
        return Ok(key.clone());
    }
    let mut ids = database.query_texts(schema.session_query, &[])?;
    match (ids.pop(), ids.is_empty()) {
        (Some(id), true) => Ok(id),
        (None, _) => Err(database.invalid_database("no session in the database")),
        (Some(_), false) => {
            Err(database.invalid_database("several sessions in the database, none selected"))
        }
    }
}

/// Whether a file starts with SQLite's magic bytes.
pub fn is_sqlite_file(file: &Path) -> bool {
    File::open(file).is_ok_and(|file| begins_with_magic(file).unwrap_or(false))
}

/// Whether the first file of a bundle is a database.
pub fn holds_sqlite_file(bundle: &SessionBundle) -> Result<bool, FormatError> {
    let Some(source) = bundle.files.first() else { return Ok(false) };
    Ok(begins_with_magic(source.open()?).on("read", source.path())?)
}

fn begins_with_magic(input: impl Read) -> io::Result<bool> {
    let mut head = Vec::with_capacity(SQLITE_MAGIC.len());
    input.take(SQLITE_MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(head == SQLITE_MAGIC)
}

/// Whether the main file, without its write-ahead log, has tables of another schema. Avoids a copy.
fn has_foreign_schema(file: &Path, schema: &DatabaseSchema) -> bool {
    let Ok(database) = AgentDatabase::open_in_place(file, file, true) else { return false };
    match database.query_texts("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1", &[]) {
        Ok(tables) => !tables.is_empty() && !database.matches_schema(schema),
        Err(_) => false,
    }
}

fn bundle_database(file: &Path) -> SessionBundle {
    let mut bundle = SessionBundle::from_file(file);
    let wal = wal_path(file);
    if let Some(name) = wal.file_name().filter(|_| wal.is_file()) {
        bundle.files.push(SessionFile::on_disk(name.to_string_lossy(), &wal));
    }
    bundle
}

fn wal_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

impl AgentDatabase {
    /// Opens a reader at the first byte.
    pub fn open(bundle: &SessionBundle) -> Result<Self, FormatError> {
        let is_beside = |name: &str| name.ends_with("-wal") || name.ends_with(".json");
        let main = bundle.files.iter().find(|source| !is_beside(source.name()));
        let Some(main) = main else {
            return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no database file")));
        };
        let wal = bundle.file_named(&format!("{}-wal", main.name()));
        let path = main.path();
        let snapshot = bundle.origin.as_ref().and_then(|origin| origin.snapshot.clone());
        if let Some(snapshot) = snapshot {
            return Self::open_snapshot(snapshot, path);
        }
        if main.is_on_disk() && wal.is_none_or(is_empty_wal) {
            // Opening a database in WAL mode would create a log file, unless it is opened as immutable.
            return Self::open_in_place(path, path, uses_wal(path));
        }
        Self::open_snapshot(DatabaseSnapshot::take(main, wal)?, path)
    }

    fn open_snapshot(snapshot: Arc<DatabaseSnapshot>, path: &Path) -> Result<Self, FormatError> {
        let mut database = Self::open_in_place(&snapshot.database_path(), path, false)?;
        database.snapshot = Some(snapshot);
        Ok(database)
    }

    fn open_in_place(file: &Path, path: &Path, immutable: bool) -> Result<Self, FormatError> {
        let invalid = |error| FormatError::Invalid(Problem::for_file(path, error));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = if immutable {
            Connection::open_with_flags(immutable_uri(file), flags)
        } else {
            Connection::open_with_flags(file, flags)
        };
        let connection = connection.map_err(invalid)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(invalid)?;
        connection.pragma_update(None, "trusted_schema", false).map_err(invalid)?;
        let has_names = has_utf8_names(&connection).unwrap_or(false);
        let hides_long_values = Cell::new(false);
        Ok(Self {
            connection,
            path: path.to_owned(),
            has_utf8_names: has_names,
            hides_long_values,
            snapshot: None,
        })
    }

    /// The connection, which must not be written to.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether all tables of the schema exist as plain tables.
    pub fn matches_schema(&self, schema: &DatabaseSchema) -> bool {
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
        self.query_texts(query, &[&table]).unwrap_or_default()
    }

    /// The first column of all rows, as text.
    pub fn query_texts(
        &self,
        query: &str,
        values: &[&dyn ToSql],
    ) -> Result<Vec<String>, FormatError> {
        let mut texts = Vec::new();
        self.for_each_row(query, values, |row| {
            texts.extend(row.first_text());
            Ok(())
        })?;
        Ok(texts)
    }

    /// Visits all rows. An overlong value is not loaded and reads as null.
    pub fn for_each_row(
        &self,
        query: &str,
        values: &[&dyn ToSql],
        mut visit: impl FnMut(&DatabaseRow<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut visited = 0;
        loop {
            match self.for_each_row_after(query, values, &mut visited, &mut visit) {
                Err(VisitError::Database(error))
                    if error.sqlite_error_code() == Some(ErrorCode::TooBig)
                        && !self.hides_long_values.replace(true) =>
                {
                    long_values::hide_long_values(&self.connection, MAX_VALUE_BYTES)
                        .map_err(|e| self.invalid_database(e))?;
                }
                Err(VisitError::Database(error)) => return Err(self.invalid_database(error)),
                Err(VisitError::Visitor(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Visits the rows after the first `visited` ones, and counts them.
    fn for_each_row_after(
        &self,
        query: &str,
        values: &[&dyn ToSql],
        visited: &mut usize,
        visit: &mut dyn FnMut(&DatabaseRow<'_>) -> Result<(), FormatError>,
    ) -> Result<(), VisitError> {
        let limit = i32::try_from(MAX_VALUE_BYTES).unwrap_or(i32::MAX);
        let before = self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, limit)?;
        let result = (|| {
            let mut statement = self.connection.prepare_cached(query)?;
            let mut rows = statement.query(values)?;
            let mut number = 0;
            while let Some(row) = rows.next()? {
                number += 1;
                if number > *visited {
                    *visited = number;
                    visit(&DatabaseRow::new(row, self.has_utf8_names))
                        .map_err(VisitError::Visitor)?;
                }
            }
            Ok(())
        })();
        self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, before)?;
        result
    }

    /// The row of a query, mapped by `read`. If there are several rows, the last one wins.
    pub fn query_row<T>(
        &self,
        query: &str,
        values: &[&dyn ToSql],
        mut read: impl FnMut(&DatabaseRow<'_>) -> T,
    ) -> Result<Option<T>, FormatError> {
        let mut found = None;
        self.for_each_row(query, values, |row| {
            found = Some(read(row));
            Ok(())
        })?;
        Ok(found)
    }

    /// The error for a database that cannot be read at all.
    pub fn invalid_database(&self, reason: impl std::fmt::Display) -> FormatError {
        FormatError::Invalid(Problem::for_file(&self.path, reason))
    }

    /// The problem of one row that cannot be read.
    pub fn row_problem(&self, row: &str, reason: impl std::fmt::Display) -> Problem {
        let note = if self.hides_long_values.get() {
            format!(" (values larger than {} MiB are kept but not read)", MAX_VALUE_BYTES >> 20)
        } else {
            String::new()
        };
        Problem::for_file(&self.path, format!("{row}: {reason}{note}"))
    }
}

impl SessionBundle {
    /// The fingerprint of the session's database rows or excerpts; `None` for a session with files. An unchanged
    /// fingerprint means that there is nothing new.
    pub fn fingerprint(&self) -> Result<Option<SessionFingerprint>, FormatError> {
        if self.has_only_excerpts() {
            let mut hasher = blake3::Hasher::new();
            for excerpt in &self.excerpts {
                hasher.update(&excerpt.read_bytes()?);
            }
            return Ok(Some(SessionFingerprint { bytes: hasher.count(), hash: hasher.finalize() }));
        }
        let Some(origin) = &self.origin else { return Ok(None) };
        let database = AgentDatabase::open(self)?;
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
fn has_utf8_names(connection: &Connection) -> rusqlite::Result<bool> {
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
fn uses_wal(file: &Path) -> bool {
    let mut head = [0; 20];
    File::open(file).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head[18] == 2
}

fn is_empty_wal(wal: &SessionFile) -> bool {
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
