//! Encrypts the pages of SQLite databases: a VFS (SQLite's file system interface) that delegates to another one.
//!
//! # What is encrypted
//! Each page of the database file and each page in the write-ahead log, with AES-256-GCM. Nonce and tag are in the last
//! [`RESERVED_BYTES`] of the page, which SQLite leaves unused; it sees zeros there. Headers of the log and of its
//! frames stay plain: page numbers, sizes, salts and checksums. Files have the same size as without encryption.
//!
//! # What is not written
//! Rollback journals and temporary files: opening one fails. Callers use write-ahead logging and temporary tables in
//! memory, which [`open_encrypted`] sets up. Pages are never mapped into memory.
//!
//! # Errors
//! A page that was changed, or was encrypted with another key, is `SQLITE_CORRUPT`. While SQLite recovers a log, such a
//! page is zeros: its checksum then differs, and recovery ends before it, as after a torn write.
//!
//! This is the only crate with unsafe code. `vfs` and `file_methods` have all of it that SQLite calls.

mod file_methods;
mod page_key;
mod vfs;

#[cfg(test)]
mod tests;

use std::path::Path;

use rusqlite::{Connection, OpenFlags, ffi};

pub use self::page_key::{PAGE_BYTES, PageKey, RESERVED_BYTES};
pub use self::vfs::BaseFileSystem;

/// Opens an encrypted database.
///
/// A new one gets pages of [`PAGE_BYTES`] with room for nonce and tag. The caller must use write-ahead logging. A path
/// may be a URI if `flags` allow it; the key is in neither.
pub fn open_encrypted(
    path: &Path,
    flags: OpenFlags,
    key: &PageKey,
    base: BaseFileSystem,
) -> rusqlite::Result<Connection> {
    let name = vfs::registered_name(key, base)?;
    let connection = Connection::open_with_flags_and_vfs(path, flags, name)?;
    reserve_bytes(&connection)?;
    connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;")?;
    if connection.is_readonly("main")? {
        return Ok(connection);
    }
    // Has no effect on an existing file. The journal in memory is for the step to write-ahead logging.
    connection.pragma_update(None, "page_size", PAGE_BYTES as i64)?;
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode != "wal" {
        connection.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(()))?;
    }
    Ok(connection)
}

/// Makes SQLite leave the end of each page unused. Has no effect on an existing file.
fn reserve_bytes(connection: &Connection) -> rusqlite::Result<()> {
    let mut reserved = RESERVED_BYTES as std::ffi::c_int;
    // SAFETY: the handle is open for the whole call, "main" is a C string, and the operation reads and writes one int.
    let code = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_RESERVE_BYTES,
            (&raw mut reserved).cast(),
        )
    };
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
    }
}
