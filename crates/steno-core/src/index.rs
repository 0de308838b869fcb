//! The index: what was derived from the vault for finding and counting.
//!
//! # Derived
//! Everything in it can be made again from the vault. An index that is damaged or was made by other rules is
//! thrown away and built anew ([`Index::healed`] tells so).
//!
//! # Locking
//! Many processes use one index. Writers take SQLite's write lock at once (`BEGIN IMMEDIATE`) and hold it for some
//! dozen megabytes at most; readers never wait. A [`pending::Marker`] stands for each session while it is kept,
//! so that a process which dies before the index knows of it is noticed by the next one.
//!
//! # Read-only
//! A store that cannot be written is still read: [`IndexSource`] asks the index as it is, or one in memory.

mod activity;
mod ask;
pub mod attribution;
mod blocks;
mod charges;
mod draft;
pub mod fold;
pub mod mark;
mod parts;
pub mod pending;
mod put;
pub mod query;
mod rank;
mod read_only;
mod refresh;
mod scan;
mod schema;
pub mod search;
mod sessions;
mod source;
pub mod text;
mod usage;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

pub use self::activity::{Activity, Counted};
pub use self::draft::{Draft, Prepared};
pub use self::query::Query;
use self::read_only::IndexAccess;
pub use self::read_only::WriteObstacle;
pub use self::refresh::{GATHERED, Pass, Refreshed, TroubledSession};
pub use self::search::{Filter, Hit, Order, Search};
pub use self::sessions::{Heading, Listed};
pub use self::source::{IndexAnswer, IndexCondition, IndexSource};
use crate::durable::{self, FileError, OnPath};
use steno_vault::FormatError;

/// The first SQLite in which two connections cannot spoil each other's log.
const OLDEST_SQLITE: i32 = 3_051_003;

/// How long a writer waits for another.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open index.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
    path: PathBuf,
    access: IndexAccess,
    store: PathBuf,
    healed: Option<Healed>,
    identity: Option<u64>,
    /// How much of a session is held at once.
    room: usize,
}

/// Why an index was thrown away and is built anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Healed {
    /// It was damaged.
    Damaged,
    /// An older version made it by other rules.
    Older,
}

/// What can go wrong with an index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The database said no.
    #[error("index {path}: {source}")]
    Database {
        /// The index.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The file system said no.
    #[error(transparent)]
    File(#[from] FileError),
    /// A session could not be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The index was made by a later version of this program.
    #[error("the index was made by a newer steno, which can read it: {0}")]
    Newer(PathBuf),
    /// The SQLite that was built in is too old for several processes.
    #[error("SQLite {0} is too old for the index; 3.51.3 is needed")]
    OldSqlite(&'static str),
    /// Another process puts something else in for the same session.
    #[error("another process changes what the index has of {0}")]
    Overtaken(PathBuf),
    /// There is no index that this version can read, and none may be made.
    #[error("the store has no index that this version can read: {0}")]
    Absent(PathBuf),
    /// The store cannot be written, has no index, and holds too much for one in memory.
    #[error("{obstacle}, there is no usable index, and one in memory would be too large: {store}")]
    TooLarge {
        /// The store.
        store: PathBuf,
        /// Why no index can be written.
        obstacle: WriteObstacle,
    },
    /// What was asked for makes no sense.
    #[error(transparent)]
    Query(#[from] query::QueryError),
}

impl IndexError {
    /// Whether the index is damaged: it is to be built anew.
    pub fn is_damage(&self) -> bool {
        let Self::Database { source, .. } = self else { return false };
        let code = source.sqlite_error_code();
        matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
            // A table is missing: no version of ours left that.
            || source.to_string().contains("no such table")
    }
}

impl Index {
    /// Opens the index of the store at `store`; one that is damaged or older is emptied.
    pub fn open(store: &Path) -> Result<Self, IndexError> {
        if rusqlite::version_number() < OLDEST_SQLITE {
            return Err(IndexError::OldSqlite(rusqlite::version()));
        }
        durable::create_private_dir(store)?;
        match Self::connect(store) {
            Err(error) if error.is_damage() => Self::anew(store, Some(Healed::Damaged)),
            Ok(index) if index.healed == Some(Healed::Older) => {
                drop(index);
                Self::anew(store, Some(Healed::Older))
            }
            other => other,
        }
    }

    /// Throws the index of the store away, and opens an empty one.
    pub fn anew(store: &Path, healed: Option<Healed>) -> Result<Self, IndexError> {
        let _lock = locked(store)?;
        // Another process may have done it while this one waited.
        if healed.is_some()
            && let Ok(index) = Self::connect_locked(store, healed)
            && index.healed != Some(Healed::Older)
            && index.is_sound()
        {
            return Ok(index);
        }
        for name in ["index.db", "index.db-wal", "index.db-shm"] {
            durable::remove_file(&store.join(name))?;
        }
        Self::connect_locked(store, healed)
    }

    /// Whether and why the index had to be emptied when it was opened.
    pub fn healed(&self) -> Option<Healed> {
        self.healed
    }

    /// The same index, which holds about `room` bytes of a session at once.
    pub fn with_room(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// The connection, for questions that no method answers.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn connect(store: &Path) -> Result<Self, IndexError> {
        // Nobody may throw the files away while they are being opened: one would be taken for another's.
        let lock = lock(store)?;
        lock.lock_shared().on("lock", store)?;
        let index = Self::bare(store, None)?;
        match index.on(schema::state(&index.connection))? {
            schema::State::Current => Ok(index),
            schema::State::Newer => Err(IndexError::Newer(index.path)),
            schema::State::Older => Ok(Self { healed: Some(Healed::Older), ..index }),
            schema::State::ToMigrate => {
                drop((index, lock));
                let _lock = locked(store)?;
                Self::connect_locked(store, None)
            }
        }
    }

    /// The same for who holds the lock alone.
    fn connect_locked(store: &Path, healed: Option<Healed>) -> Result<Self, IndexError> {
        let index = Self::bare(store, healed)?;
        match index.on(schema::state(&index.connection))? {
            schema::State::Newer => return Err(IndexError::Newer(index.path)),
            schema::State::Older => return Ok(Self { healed: Some(Healed::Older), ..index }),
            _ => index.on(schema::migrate(&index.connection))?,
        }
        Ok(index)
    }

    fn bare(store: &Path, healed: Option<Healed>) -> Result<Self, IndexError> {
        let path = store.join("index.db");
        if !path.exists() {
            // SQLite gives its further files the mode of this one. One that is there is not opened: closing it
            // would take the locks of other connections away.
            durable::private_options().create(true).append(true).open(&path).on("open", &path)?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let at = |source| IndexError::Database { path: path.clone(), source };
        let connection = Connection::open_with_flags(&path, flags).map_err(at)?;
        connection.busy_timeout(PATIENCE).map_err(at)?;
        connection.set_prepared_statement_cache_capacity(64);
        schema::settings(&connection).map_err(at)?;
        let identity = identity(&path);
        let (access, store) = (IndexAccess::Writable, store.to_owned());
        Ok(Self { connection, path, access, store, healed, identity, room: draft::ROOM })
    }

    /// Moves what was written out of the log, if that is much and nobody is in the way.
    ///
    /// Whoever opens an index that nobody else has open goes through all of its log first.
    pub fn settle(&self) {
        const MUCH: u64 = 1 << 20;
        let log = self.path.with_extension("db-wal");
        if fs::metadata(log).is_ok_and(|log| log.len() > MUCH) {
            // Where it does not work out, another time will do.
            let _ = self.connection.busy_timeout(Duration::ZERO);
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            let _ = self.connection.busy_timeout(PATIENCE);
        }
    }

    /// Whether the file is the one that the store has now: another process may have thrown it away.
    pub fn is_in_place(&self) -> bool {
        identity(&self.path) == self.identity
    }

    fn is_sound(&self) -> bool {
        let check = "PRAGMA quick_check(1)";
        let told = self.connection.query_row(check, [], |row| row.get::<_, String>(0));
        told.is_ok_and(|told| told == "ok")
    }

    /// Says which index a failure is about.
    fn on<T>(&self, result: rusqlite::Result<T>) -> Result<T, IndexError> {
        result.map_err(|source| IndexError::Database { path: self.path.clone(), source })
    }

    /// Does `work` under the write lock: all of it holds, or nothing.
    fn transaction<T>(
        &self,
        work: impl FnOnce() -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.on(self.connection.execute_batch("BEGIN IMMEDIATE"))?;
        let done = work().and_then(|done| {
            self.on(self.connection.execute_batch("COMMIT"))?;
            Ok(done)
        });
        if done.is_err() {
            // The failure that is told is the first one.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        done
    }
}

/// What tells a file from another that takes its place.
#[cfg(unix)]
fn identity(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| metadata.ino())
}

/// What tells a file from another that takes its place; elsewhere one that is open cannot be removed.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<u64> {
    path.exists().then_some(0)
}

/// Held alone while the index is made or thrown away, shared while it is opened.
fn lock(store: &Path) -> Result<File, FileError> {
    let path = store.join("index.lock");
    durable::private_options().create(true).append(true).open(&path).on("open", &path)
}

fn locked(store: &Path) -> Result<File, FileError> {
    let lock = lock(store)?;
    lock.lock().on("lock", store)?;
    Ok(lock)
}
