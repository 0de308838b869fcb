//! The index: data derived from the vault, for search and counts.
//!
//! # Derived
//! The index can be rebuilt from the vault at any time. An index that is corrupt, or was built by another version's
//! rules, is deleted and rebuilt ([`Index::rebuild_reason`] gives the reason).
//!
//! # Writing
//! `session_indexer` reads a session of the vault into a [`SessionDraft`] and prepares its rows, `index_writer` writes
//! them, `refresh` finds the sessions that lack some. `keep::Indexer` does this while sessions are kept: it queues them
//! for a thread with an `IndexUpdater`.
//!
//! # Locking
//! Many processes share one index. A writer takes SQLite's write lock at once (`BEGIN IMMEDIATE`) and commits after
//! some dozen megabytes; readers never wait. A [`pending_sessions::PendingMarker`] exists for each session while it is
//! being kept. If a process dies before it has indexed the session, the next process sees the marker.
//!
//! # Read-only
//! A store that cannot be written is still readable: [`StoreIndex`] queries the index as it is, or one in memory.

mod activity;
mod agent_summary;
pub mod attribution;
mod catch_up;
mod charges;
mod copied_entries;
mod damaged_sessions;
mod edit_calls;
pub mod entry_text;
mod index_writer;
pub mod match_lines;
mod match_trend;
pub mod pending_sessions;
mod phrase_search;
mod private_rows;
pub mod query;
mod ranking;
mod read_only;
mod refresh;
mod schema;
pub mod search;
mod search_counts;
mod session_draft;
mod session_facets;
mod session_filter;
mod session_indexer;
mod session_list;
pub mod session_rows;
mod shared_entries;
mod store_index;
mod stored_name;
mod team_charges;
mod text_blocks;
pub mod text_folding;
mod text_scan;
pub mod trends;
mod usage_tables;
mod word_counts;
pub mod word_query;
pub mod word_tokens;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

pub use self::activity::{ActivityReport, SessionActivity};
pub use self::agent_summary::AgentSummary;
pub use self::damaged_sessions::DamagedSession;
pub use self::edit_calls::{EditCallRequest, EditCalls};
pub use self::match_trend::MatchTrend;
pub use self::phrase_search::{EntryFacts, PhraseHit, SessionOfHit};
pub use self::query::SearchQuery;
use self::read_only::IndexAccess;
pub use self::read_only::WriteObstacle;
pub use self::refresh::{MAX_BATCH_BYTES, RefreshProgress, RefreshSummary};
pub use self::search::{SearchHit, SearchOrder, SearchRequest};
pub use self::search_counts::{CountedSearch, MAX_LOOKED_UP, MatchGroup, ToolMatchGroup};
pub use self::session_draft::{PreparedSession, SessionDraft};
pub use self::session_facets::SessionFacet;
pub use self::session_filter::{SessionFilter, SessionText};
pub use self::session_list::{ListedSession, SessionHeading};
pub use self::shared_entries::SharedEntries;
pub use self::store_index::{IndexCondition, IndexQueryResult, StoreIndex};
pub use self::word_counts::{MAX_EXAMINED_ENTRIES, WordCount};
pub use crate::entry_filter::EntryFilter;
use steno_cipher::store_fs;
use steno_model::durable::{self, FileError, OnPath};
use steno_vault::FormatError;

/// The first SQLite without the bug that lets two connections corrupt the write-ahead log.
const MIN_SQLITE_VERSION: i32 = 3_051_003;

/// How long a writer waits for the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The files of an index.
const INDEX_FILES: [&str; 3] = ["index.db", "index.db-wal", "index.db-shm"];

/// An open index.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
    path: PathBuf,
    access: IndexAccess,
    store: PathBuf,
    rebuild_reason: Option<RebuildReason>,
    identity: Option<u64>,
    /// How many bytes of a session are held in memory at once.
    batch_bytes: usize,
}

/// Why an index was deleted and rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebuildReason {
    /// The index was corrupt.
    Damaged,
    /// An older version built it by other rules.
    Older,
}

/// An error of the index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// SQLite failed.
    #[error("index {path}: {source}")]
    Database {
        /// The index.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// A session could not be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A newer version built the index.
    #[error("the index was written by a newer version of steno: {0}")]
    Newer(PathBuf),
    /// The bundled SQLite is too old for concurrent processes.
    #[error("SQLite {0} is too old for the index; 3.51.3 or later is required")]
    SqliteTooOld(&'static str),
    /// Another process writes different entries for the same session.
    #[error("another process is indexing the same session: {0}")]
    ConcurrentChange(PathBuf),
    /// There is no index that this version can read, and none may be created.
    #[error("the store has no index that this version can read: {0}")]
    Absent(PathBuf),
    /// The store cannot be written, has no index, and is too large for an index in memory.
    #[error("{obstacle}, there is no usable index, and one in memory would be too large: {store}")]
    TooLarge {
        /// The store.
        store: PathBuf,
        /// Why no index can be written.
        obstacle: WriteObstacle,
    },
    /// The query is invalid.
    #[error(transparent)]
    Query(#[from] query::QueryError),
}

impl IndexError {
    /// Whether the index is corrupt and must be rebuilt.
    pub fn is_corruption(&self) -> bool {
        let Self::Database { source, .. } = self else { return false };
        let code = source.sqlite_error_code();
        matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
            // No version of ours leaves out a table.
            || source.to_string().contains("no such table")
    }
}

impl Index {
    /// Opens the index of the store at `store`. Deletes and recreates one that is corrupt or older.
    pub fn open(store: &Path) -> Result<Self, IndexError> {
        if rusqlite::version_number() < MIN_SQLITE_VERSION {
            return Err(IndexError::SqliteTooOld(rusqlite::version()));
        }
        store_fs::check_is_current(store)?;
        store_fs::create_private_dir(store)?;
        match Self::connect(store) {
            Err(error) if error.is_corruption() => {
                Self::rebuild(store, Some(RebuildReason::Damaged))
            }
            Ok(index) if index.rebuild_reason == Some(RebuildReason::Older) => {
                drop(index);
                Self::rebuild(store, Some(RebuildReason::Older))
            }
            other => other,
        }
    }

    /// Deletes the index of the store and opens an empty one.
    pub fn rebuild(store: &Path, healed: Option<RebuildReason>) -> Result<Self, IndexError> {
        let _lock = lock_exclusively(store)?;
        // Another process may have rebuilt it while this one waited for the lock.
        if healed.is_some()
            && let Ok(index) = Self::connect_locked(store, healed)
            && index.rebuild_reason != Some(RebuildReason::Older)
            && index.passes_quick_check()
        {
            return Ok(index);
        }
        for name in INDEX_FILES {
            store_fs::remove_file(&store.join(name))?;
        }
        Self::connect_locked(store, healed)
    }

    /// Whether any file of an index exists. A process that was killed while it deleted one may have left its log.
    pub(crate) fn has_files(store: &Path) -> bool {
        INDEX_FILES.iter().any(|name| store_fs::exists(&store.join(name)))
    }

    /// Why the index was emptied when it was opened, if it was.
    pub fn rebuild_reason(&self) -> Option<RebuildReason> {
        self.rebuild_reason
    }

    /// Sets how many bytes of a session are held in memory at once.
    pub fn with_batch_bytes(self, room: usize) -> Self {
        Self { batch_bytes: room, ..self }
    }

    /// The SQLite connection, for queries without a method here.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn connect(store: &Path) -> Result<Self, IndexError> {
        // A shared lock keeps other processes from deleting the files while they are opened. SQLite would mix up old
        // and new ones.
        let lock = open_lock_file(store)?;
        lock.lock_shared().on("lock", store)?;
        let index = Self::open_file(store, None)?;
        match index.wrap_error(schema::schema_state(&index.connection))? {
            schema::SchemaState::Current => Ok(index),
            schema::SchemaState::Newer => Err(IndexError::Newer(index.path)),
            schema::SchemaState::Older => {
                Ok(Self { rebuild_reason: Some(RebuildReason::Older), ..index })
            }
            schema::SchemaState::NeedsMigration => {
                drop((index, lock));
                let _lock = lock_exclusively(store)?;
                Self::connect_locked(store, None)
            }
        }
    }

    /// As [`Self::connect`], for a caller that holds the exclusive lock.
    fn connect_locked(store: &Path, healed: Option<RebuildReason>) -> Result<Self, IndexError> {
        let index = Self::open_file(store, healed)?;
        match index.wrap_error(schema::schema_state(&index.connection))? {
            schema::SchemaState::Newer => return Err(IndexError::Newer(index.path)),
            schema::SchemaState::Older => {
                return Ok(Self { rebuild_reason: Some(RebuildReason::Older), ..index });
            }
            _ => index.wrap_error(schema::run_migrations(&index.connection))?,
        }
        Ok(index)
    }

    fn open_file(store: &Path, healed: Option<RebuildReason>) -> Result<Self, IndexError> {
        let path = store.join("index.db");
        let disk_path = store_fs::physical_path(&path);
        if !disk_path.exists() {
            // SQLite gives its other files the mode of this one. An existing file is not opened here: closing it would
            // drop the locks of this process's other connections.
            durable::private_options()
                .create(true)
                .append(true)
                .open(&disk_path)
                .on("open", &path)?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let at = |source| IndexError::Database { path: path.clone(), source };
        let connection = store_fs::open_database(&path, flags).map_err(at)?;
        connection.busy_timeout(LOCK_TIMEOUT).map_err(at)?;
        connection.set_prepared_statement_cache_capacity(64);
        schema::configure_connection(&connection).map_err(at)?;
        let identity = identity(&path);
        let (access, store) = (IndexAccess::Writable, store.to_owned());
        Ok(Self {
            connection,
            path,
            access,
            store,
            rebuild_reason: healed,
            identity,
            batch_bytes: session_draft::MAX_DRAFT_BYTES,
        })
    }

    /// Checkpoints a large write-ahead log if no other process is in the way.
    ///
    /// Without this, the next process that opens the index alone must read the whole log first.
    pub fn checkpoint_log(&self) {
        const MUCH: u64 = 1 << 20;
        let log = self.path.with_extension("db-wal");
        if store_fs::metadata(&log).is_ok_and(|log| log.len() > MUCH) {
            // If it fails, a later call succeeds.
            let _ = self.connection.busy_timeout(Duration::ZERO);
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            let _ = self.connection.busy_timeout(LOCK_TIMEOUT);
        }
    }

    /// Whether the open file is still the store's index. Another process may have replaced it.
    pub fn is_current_file(&self) -> bool {
        identity(&self.path) == self.identity
    }

    fn passes_quick_check(&self) -> bool {
        let check = "PRAGMA quick_check(1)";
        let result = self.connection.query_row(check, [], |row| row.get::<_, String>(0));
        result.is_ok_and(|result| result == "ok")
    }

    /// Adds the index's path to an error.
    fn wrap_error<T>(&self, result: rusqlite::Result<T>) -> Result<T, IndexError> {
        result.map_err(|source| IndexError::Database { path: self.path.clone(), source })
    }

    /// Runs `work` in a transaction. Rolls back if it fails.
    fn run_transaction<T>(
        &self,
        work: impl FnOnce() -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.wrap_error(self.connection.execute_batch("BEGIN IMMEDIATE"))?;
        let done = work().and_then(|done| {
            self.wrap_error(self.connection.execute_batch("COMMIT"))?;
            Ok(done)
        });
        if done.is_err() {
            // The first error is returned; one of the rollback is ignored.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        done
    }
}

/// Identifies a file, to detect that another has replaced it.
#[cfg(unix)]
fn identity(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    store_fs::metadata(path).ok().map(|metadata| metadata.ino())
}

/// Identifies a file. Outside Unix an open file cannot be removed, so existence is enough.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<u64> {
    store_fs::exists(path).then_some(0)
}

/// Opens the lock file. It is locked exclusively while the index is created or deleted, and shared while it is opened.
fn open_lock_file(store: &Path) -> Result<File, FileError> {
    let path = store_fs::lock_path(&store.join("index.lock"));
    durable::private_options().create(true).append(true).open(&path).on("open", &path)
}

fn lock_exclusively(store: &Path) -> Result<File, FileError> {
    let lock = open_lock_file(store)?;
    lock.lock().on("lock", store)?;
    Ok(lock)
}
