//! Opens an index without writing, and counts the sessions that it lacks.
//!
//! For stores that cannot be written: a read-only file system, another user's store, a full disk. It takes no lock, and
//! creates, grows or removes no file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::pending_sessions::PendingSessions;
use super::{Index, IndexError, identity, schema, session_draft};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};
use steno_vault::{SessionDir, Vault};

/// The SQLite file system without locks.
const LOCKLESS_VFS: &str = if cfg!(windows) { "win32-none" } else { "unix-none" };

/// Why an index cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteObstacle {
    /// The file system is read-only, or the user may not write.
    ReadOnly,
    /// No space is left.
    DiskFull,
}

impl fmt::Display for WriteObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "the store is read-only",
            Self::DiskFull => "the disk is full",
        })
    }
}

/// How an index is opened, for this and further connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexAccess {
    /// The index can be written.
    Writable,
    /// Read-only, with the existing `-wal` and `-shm` files.
    ///
    /// `mode=ro` alone still opens `-shm` for writing, and truncates it when no other process has the index open. With
    /// `readonly_shm=1` SQLite only reads it, takes shared locks, and scans the `-wal` into memory when no process
    /// keeps `-shm` current. Other processes can write meanwhile.
    SharedLog,
    /// Read-only, with a `-wal` but no `-shm`, as in a copy: SQLite could not make the missing file.
    ///
    /// With `locking_mode = EXCLUSIVE`, SQLite holds the index of the `-wal` in memory. The exclusive lock that this
    /// mode takes needs a writable file, so the connection uses a file system without locks. Nobody has the index
    /// open, or `-shm` would exist.
    PrivateLog,
    /// Read-only, without a `-wal`: everything is in the main file. `immutable=1` makes SQLite open no other file.
    ///
    /// It would ignore a `-wal` and show old rows, so it is used only where there is none.
    Immutable,
    /// In the memory of this process, shared by all connections of the same name.
    Memory,
}

impl IndexAccess {
    /// How to read the index at `path` without writing.
    ///
    /// It does not open the files: closing them would drop the locks of this process's other connections.
    fn for_reading(path: &Path) -> Self {
        let log = store_fs::metadata(&path.with_extension("db-wal"));
        let has_shared_memory = store_fs::exists(&path.with_extension("db-shm"));
        match log {
            Ok(_) if has_shared_memory => Self::SharedLog,
            Ok(log) if log.len() > 0 => Self::PrivateLog,
            _ => Self::Immutable,
        }
    }

    /// Opens a connection for reading.
    pub(super) fn connect(self, path: &Path) -> rusqlite::Result<Connection> {
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let with_uri = read_only | OpenFlags::SQLITE_OPEN_URI;
        let options = match self {
            Self::Writable => return store_fs::open_database(path, read_only),
            Self::Memory => {
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                    | OpenFlags::SQLITE_OPEN_CREATE
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX
                    | OpenFlags::SQLITE_OPEN_URI;
                return Connection::open_with_flags(path, flags);
            }
            Self::SharedLog => "mode=ro&readonly_shm=1".to_owned(),
            // An encrypted index is opened through a file system of its own.
            Self::PrivateLog if store_fs::physical_path(path) != path => "mode=ro".to_owned(),
            Self::PrivateLog => format!("mode=ro&vfs={LOCKLESS_VFS}"),
            Self::Immutable => "mode=ro&immutable=1".to_owned(),
        };
        let uri = file_uri(&store_fs::physical_path(path), &options);
        let has_locks = self != Self::PrivateLog;
        let connection = store_fs::open_database_uri(path, uri.as_ref(), with_uri, has_locks)?;
        if self == Self::PrivateLog {
            // Before the first read, because SQLite then sets up shared memory.
            connection.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
        }
        Ok(connection)
    }
}

impl Index {
    /// Opens the index of the store at `store` as it is, without writing.
    ///
    /// Fails with [`IndexError::Absent`] if there is none that this version can read.
    pub fn open_read_only(store: &Path) -> Result<Self, IndexError> {
        let path = store.join("index.db");
        match store_fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(IndexError::Absent(path));
            }
            other => other.on("read", &path)?,
        };
        let index = Self::open_with_access(IndexAccess::for_reading(&path), store, path)?;
        match index.wrap_error(schema::schema_state(&index.connection))? {
            schema::SchemaState::Current => Ok(index),
            schema::SchemaState::Newer => Err(IndexError::Newer(index.path)),
            schema::SchemaState::Older | schema::SchemaState::NeedsMigration => {
                Err(IndexError::Absent(index.path))
            }
        }
    }

    /// Opens the index named `name` in this process's memory, or an empty one if there is none.
    pub(super) fn open_in_memory(name: &str, store: &Path) -> Result<Self, IndexError> {
        let path = PathBuf::from(format!("file:/{name}?vfs=memdb"));
        let index = Self::open_with_access(IndexAccess::Memory, store, path)?;
        if index.wrap_error(schema::schema_state(&index.connection))?
            == schema::SchemaState::NeedsMigration
        {
            index.wrap_error(schema::run_migrations(&index.connection))?;
        }
        Ok(index)
    }

    fn open_with_access(
        access: IndexAccess,
        store: &Path,
        path: PathBuf,
    ) -> Result<Self, IndexError> {
        let at = |source| IndexError::Database { path: path.clone(), source };
        let connection = access.connect(&path).map_err(at)?;
        connection.busy_timeout(super::LOCK_TIMEOUT).map_err(at)?;
        connection.set_prepared_statement_cache_capacity(64);
        schema::configure_connection(&connection).map_err(at)?;
        let (store, identity) = (store.to_owned(), identity(&path));
        Ok(Self {
            connection,
            path,
            access,
            store,
            rebuild_reason: None,
            identity,
            batch_bytes: session_draft::MAX_DRAFT_BYTES,
        })
    }

    /// Whether the index was opened read-only.
    pub fn is_read_only(&self) -> bool {
        !matches!(self.access, IndexAccess::Writable | IndexAccess::Memory)
    }

    /// Whether the index is only in the memory of this process.
    pub fn is_in_memory(&self) -> bool {
        self.access == IndexAccess::Memory
    }

    /// Counts the kept sessions that the index lacks or has only in part.
    ///
    /// It checks the same sessions as [`Index::catch_up`], and changes nothing.
    pub fn count_missing(&self, vault: &Vault, boot: Option<&str>) -> Result<usize, IndexError> {
        let mut candidates = Vec::new();
        if boot.is_some() && self.verified_boot()?.is_some_and(|known| Some(known.as_str()) != boot)
        {
            candidates = vault.list_sessions()?;
        } else {
            candidates.extend(PendingSessions::new(&self.store).marked_sessions(vault)?);
            for (agent, _) in self.changed_folders(vault)? {
                candidates.extend(self.compare_folder(vault, &agent)?.added);
            }
        }
        let mut counted = HashSet::new();
        let is_missing = |dir: &SessionDir| -> Result<bool, IndexError> {
            Ok(!dir.is_empty()? && !self.is_up_to_date(dir)?)
        };
        for dir in &candidates {
            if !counted.contains(dir.path()) && is_missing(dir)? {
                counted.insert(dir.path());
            }
        }
        Ok(counted.len())
    }
}

impl IndexError {
    /// Why a write failed, if this is an error of writing.
    pub fn write_obstacle(&self) -> Option<WriteObstacle> {
        match self {
            Self::File(FileError { source, .. }) => match source.kind() {
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                    Some(WriteObstacle::ReadOnly)
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some(WriteObstacle::DiskFull)
                }
                _ => None,
            },
            Self::Database { source, .. } => match source.sqlite_error()? {
                error if error.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
                    Some(WriteObstacle::DiskFull)
                }
                error => match error.code {
                    ErrorCode::DiskFull => Some(WriteObstacle::DiskFull),
                    ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                        Some(WriteObstacle::ReadOnly)
                    }
                    _ => None,
                },
            },
            _ => None,
        }
    }
}

/// A path as a `file:` URI. Special bytes become `%XX`.
fn file_uri(path: &Path, options: &str) -> String {
    let mut uri = String::from("file:");
    let path = path.as_os_str();
    if cfg!(windows) {
        uri.push('/');
    }
    for byte in path.as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'/' | b':' | b'.' | b'_' | b'-' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push('?');
    uri.push_str(options);
    uri
}
