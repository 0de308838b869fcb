//! A temporary copy of a database and its write-ahead log.
//!
//! The last copy is cached, because the sessions of one database are read one after another.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tempfile::TempDir;

use crate::session_file::Source;
use steno_model::durable::{FileError, OnPath};

/// How often to retry a copy if the files change meanwhile.
const ATTEMPTS: usize = 5;

thread_local! {
    static LAST: RefCell<Option<Arc<Snapshot>>> = const { RefCell::new(None) };
}

/// A folder with the copied files, removed on drop.
#[derive(Debug)]
pub(crate) struct Snapshot {
    folder: TempDir,
    stamp: Option<Stamp>,
}

/// Path, length and modification time of each file, to detect changes.
type Stamp = Vec<(PathBuf, u64, Option<SystemTime>)>;

impl Snapshot {
    /// A copy of both files as they are now, from the cache if they are unchanged.
    pub(crate) fn of(main: &Source, wal: Option<&Source>) -> Result<Arc<Self>, FileError> {
        let stamp = stamp(main, wal);
        let last = LAST.with_borrow(Option::clone);
        if let Some(last) = last.filter(|last| stamp.is_some() && last.stamp == stamp) {
            return Ok(last);
        }
        LAST.set(None);
        let snapshot = Arc::new(Self::make(main, wal)?);
        if snapshot.stamp.is_some() {
            LAST.set(Some(Arc::clone(&snapshot)));
        }
        Ok(snapshot)
    }

    /// The path of the copied database.
    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("database")
    }

    fn make(main: &Source, wal: Option<&Source>) -> Result<Self, FileError> {
        let folder = tempfile::tempdir().on("create a folder for", main.path())?;
        let mut attempt = 1;
        loop {
            let before = stamp(main, wal);
            fill(main, &folder.path().join("database"))?;
            if let Some(wal) = wal {
                fill(wal, &folder.path().join("database-wal"))?;
            }
            if before == stamp(main, wal) || attempt == ATTEMPTS {
                return Ok(Self { folder, stamp: before });
            }
            attempt += 1;
        }
    }
}

fn stamp(main: &Source, wal: Option<&Source>) -> Option<Stamp> {
    [Some(main), wal].into_iter().flatten().map(stamp_of).collect()
}

fn stamp_of(source: &Source) -> Option<(PathBuf, u64, Option<SystemTime>)> {
    let metadata = source.is_on_disk().then(|| fs::metadata(source.path()).ok())??;
    Some((source.path().to_owned(), metadata.len(), metadata.modified().ok()))
}

fn fill(source: &Source, target: &Path) -> Result<(), FileError> {
    if source.is_on_disk() {
        // A copy by path lets the file system share the data.
        let _ = fs::remove_file(target);
        fs::copy(source.path(), target).on("copy", source.path())?;
        return make_writable(target);
    }
    let mut file = File::create(target).on("create", target)?;
    io::copy(&mut source.open()?, &mut file).on("copy", source.path())?;
    Ok(())
}

/// Makes a copy writable. It has the mode of the original, but SQLite must write to use a log.
fn make_writable(file: &Path) -> Result<(), FileError> {
    let mut permissions = fs::metadata(file).on("open", file)?.permissions();
    #[cfg(unix)]
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    #[cfg(not(unix))]
    permissions.set_readonly(false);
    fs::set_permissions(file, permissions).on("change", file)
}
