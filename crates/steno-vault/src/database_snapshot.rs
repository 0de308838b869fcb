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

use crate::session_file::SessionFile;
use steno_model::durable::{FileError, OnPath};

/// How often to retry a copy if the files change meanwhile.
const MAX_COPY_ATTEMPTS: usize = 5;

thread_local! {
    static LAST: RefCell<Option<Arc<DatabaseSnapshot>>> = const { RefCell::new(None) };
}

/// A folder with the copied files, removed on drop.
#[derive(Debug)]
pub(crate) struct DatabaseSnapshot {
    folder: TempDir,
    stamps: Option<FileStamps>,
}

/// Path, length and modification time of each file, to detect changes.
type FileStamps = Vec<(PathBuf, u64, Option<SystemTime>)>;

impl DatabaseSnapshot {
    /// A copy of both files as they are now, from the cache if they are unchanged.
    pub(crate) fn take(
        main: &SessionFile,
        wal: Option<&SessionFile>,
    ) -> Result<Arc<Self>, FileError> {
        let stamp = file_stamps(main, wal);
        let last = LAST.with_borrow(Option::clone);
        if let Some(last) = last.filter(|last| stamp.is_some() && last.stamps == stamp) {
            return Ok(last);
        }
        LAST.set(None);
        let snapshot = Arc::new(Self::copy_files(main, wal)?);
        if snapshot.stamps.is_some() {
            LAST.set(Some(Arc::clone(&snapshot)));
        }
        Ok(snapshot)
    }

    /// The path of the copied database.
    pub(crate) fn database_path(&self) -> PathBuf {
        self.folder.path().join("database")
    }

    fn copy_files(main: &SessionFile, wal: Option<&SessionFile>) -> Result<Self, FileError> {
        let folder = tempfile::tempdir().on("create a folder for", main.path())?;
        let mut attempt = 1;
        loop {
            let before = file_stamps(main, wal);
            copy_file(main, &folder.path().join("database"))?;
            if let Some(wal) = wal {
                copy_file(wal, &folder.path().join("database-wal"))?;
            }
            if before == file_stamps(main, wal) || attempt == MAX_COPY_ATTEMPTS {
                return Ok(Self { folder, stamps: before });
            }
            attempt += 1;
        }
    }
}

fn file_stamps(main: &SessionFile, wal: Option<&SessionFile>) -> Option<FileStamps> {
    [Some(main), wal].into_iter().flatten().map(file_stamp).collect()
}

fn file_stamp(source: &SessionFile) -> Option<(PathBuf, u64, Option<SystemTime>)> {
    let metadata = source.is_on_disk().then(|| fs::metadata(source.path()).ok())??;
    Some((source.path().to_owned(), metadata.len(), metadata.modified().ok()))
}

fn copy_file(source: &SessionFile, target: &Path) -> Result<(), FileError> {
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
