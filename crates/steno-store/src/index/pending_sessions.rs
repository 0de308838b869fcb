//! Markers of sessions that are being kept and not yet indexed.
//!
//! A process that keeps a session first creates an empty file `pending/<agent>/<session>`, holds a shared lock on it,
//! and removes it when the session is indexed. A file without a lock means that its process died in between.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use steno_model::durable;

use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};
use steno_vault::{SessionDir, Vault};

/// The sessions that wait for the index.
#[derive(Clone, Debug)]
pub struct PendingSessions {
    root: PathBuf,
}

/// Marks a session that is about to change. If dropped without [`PendingMarker::remove`], the session stays pending.
#[derive(Debug)]
pub struct PendingMarker {
    file: File,
    path: PathBuf,
}

impl PendingSessions {
    /// The pending sessions of the store at `store`.
    pub fn new(store: &Path) -> Self {
        Self { root: store.join("pending") }
    }

    /// Marks a session. Call it before anything of the session is written.
    pub fn mark_session(&self, dir: &SessionDir) -> Result<PendingMarker, FileError> {
        let path = self.root.join(dir.agent()).join(dir.id().as_str());
        store_fs::create_private_dir(durable::parent_folder(&path))?;
        loop {
            let mut options = durable::private_options();
            let file = options
                .create(true)
                .append(true)
                .open(store_fs::physical_path(&path))
                .on("mark", &path)?;
            file.lock_shared().on("lock", &path)?;
            let marker = PendingMarker { file, path: path.clone() };
            // The previous holder may have removed the file while we waited for the lock.
            if marker.is_in_place() {
                return Ok(marker);
            }
        }
    }

    /// All marked sessions.
    pub(super) fn marked_sessions(&self, vault: &Vault) -> Result<Vec<SessionDir>, FileError> {
        // A vault outside the store uses the same names.
        let mut sessions = Vec::new();
        for agent in list_file_names(&self.root)? {
            for id in list_file_names(&self.root.join(&agent))? {
                if let (Ok(agent), Ok(id)) = (agent.parse(), id.parse()) {
                    sessions.push(vault.session_dir(&agent, &id));
                }
            }
        }
        Ok(sessions)
    }

    /// Takes over the marker of a session that no process holds.
    pub(super) fn claim_marker(&self, dir: &SessionDir) -> Option<PendingMarker> {
        let path = self.root.join(dir.agent()).join(dir.id().as_str());
        let file = File::options().append(true).open(store_fs::physical_path(&path)).ok()?;
        file.try_lock().ok()?;
        Some(PendingMarker { file, path }).filter(PendingMarker::is_in_place)
    }
}

impl PendingMarker {
    /// Removes the marker, because the session is indexed. If another process holds it too, the marker stays.
    pub fn remove(self) {
        if self.file.try_lock().is_ok() && self.is_in_place() {
            // If this fails, the session is only checked again.
            let _ = fs::remove_file(store_fs::physical_path(&self.path));
        }
    }

    #[cfg(unix)]
    fn is_in_place(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let (mine, there) = (self.file.metadata(), store_fs::metadata(&self.path));
        matches!((mine, there), (Ok(mine), Ok(there)) if mine.ino() == there.ino())
    }

    #[cfg(not(unix))]
    fn is_in_place(&self) -> bool {
        store_fs::exists(&self.path)
    }
}

fn list_file_names(dir: &Path) -> Result<Vec<String>, FileError> {
    let entries = match store_fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.on("read folder", dir)?,
    };
    Ok(entries.flatten().filter_map(|entry| entry.name.into_string().ok()).collect())
}
