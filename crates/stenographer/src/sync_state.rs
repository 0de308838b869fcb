//! When the last sync ended, and the lock that keeps two syncs from doing the same work.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use steno_cipher::store_fs;
use steno_model::Timestamp;
use steno_model::durable::{self, FileError};

/// The last sync of all agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastSync {
    /// When it ended.
    pub(crate) finished: Timestamp,
    /// The home folder whose sessions were copied.
    pub(crate) home: String,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub(crate) took_ms: u64,
}

impl LastSync {
    /// Returns a sync of this home folder that ends now.
    pub(crate) fn now(home: &Path, started: Instant) -> Self {
        Self {
            finished: Timestamp::from_instant(jiff::Timestamp::now(), 3),
            home: home.to_string_lossy().into_owned(),
            took_ms: started.elapsed().as_millis() as u64,
        }
    }

    /// Returns whether the sessions of this home folder were copied.
    pub(crate) fn is_of_home(&self, home: &Path) -> bool {
        self.home == home.to_string_lossy()
    }

    /// Reads the last sync of a store; `None` if there was none, or if its file is unreadable.
    pub(crate) fn load(store: &Path) -> Option<Self> {
        serde_json::from_slice(&store_fs::read(&state_path(store)).ok()?).ok()
    }

    /// Writes the last sync.
    pub(crate) fn save(&self, store: &Path) -> Result<(), FileError> {
        store_fs::create_private_dir(store)?;
        let text = serde_json::to_vec(self).expect("a text and a time are always valid JSON");
        store_fs::replace_unsynced(&state_path(store), &text)
    }

    /// Returns whether a version that did not write this file has synced to the store.
    pub(crate) fn is_of_older_version(store: &Path) -> bool {
        store_fs::exists(&store.join("seen.json")) && !store_fs::exists(&state_path(store))
    }
}

fn state_path(store: &Path) -> PathBuf {
    store.join("last-sync.json")
}

/// Held during a sync. Other commands work without it; it only saves work.
pub(crate) struct SyncLock {
    _file: Option<File>,
}

/// Whether a sync could start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncLockState {
    /// No process syncs.
    Free,
    /// Another process syncs.
    Held,
    /// The store cannot be written.
    Unwritable,
}

impl SyncLock {
    /// Takes the lock; `None` if another process has it.
    pub(crate) fn try_acquire(store: &Path) -> Option<Self> {
        let Ok(file) = open_lock_file(store) else { return Some(Self { _file: None }) };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            // A file system without locks has no second sync either, as far as we can tell.
            Ok(()) | Err(TryLockError::Error(_)) => Some(Self { _file: Some(file) }),
        }
    }

    /// Waits for the lock.
    pub(crate) fn acquire(store: &Path) -> Self {
        let file = open_lock_file(store).ok();
        if let Some(file) = &file {
            let _ = file.lock();
        }
        Self { _file: file }
    }

    /// Returns whether a sync could start now. Creates the lock's file, which shows whether the store can be written.
    pub(crate) fn probe(store: &Path) -> SyncLockState {
        match open_lock_file(store).map(|file| file.try_lock()) {
            Err(_) => SyncLockState::Unwritable,
            Ok(Err(TryLockError::WouldBlock)) => SyncLockState::Held,
            Ok(_) => SyncLockState::Free,
        }
    }
}

fn lock_path(store: &Path) -> PathBuf {
    store.join("sync.lock")
}

fn open_lock_file(store: &Path) -> std::io::Result<File> {
    let created = durable::create_private_dir(store);
    created.map_err(|error| std::io::Error::other(error.to_string()))?;
    durable::private_options().create(true).append(true).open(lock_path(store))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_last_sync_is_read_back() {
        let store = tempfile::tempdir().unwrap();
        assert_eq!(LastSync::load(store.path()), None);
        let last = LastSync {
            finished: "2026-01-05T09:15:32Z".parse().unwrap(),
            home: "/home/x".to_owned(),
            took_ms: 20,
        };
        assert!(last.is_of_home(Path::new("/home/x")) && !last.is_of_home(Path::new("/home/y")));
        last.save(store.path()).unwrap();
        assert_eq!(LastSync::load(store.path()), Some(last));
        fs::write(store.path().join("last-sync.json"), "{").unwrap();
        assert_eq!(LastSync::load(store.path()), None);
    }

    #[test]
    fn one_process_syncs_at_a_time() {
        let store = tempfile::tempdir().unwrap();
        assert_eq!(SyncLock::probe(store.path()), SyncLockState::Free);
        let lock = SyncLock::try_acquire(store.path()).unwrap();
        assert_eq!(SyncLock::probe(store.path()), SyncLockState::Held);
        assert!(SyncLock::try_acquire(store.path()).is_none());
        drop(lock);
        assert_eq!(SyncLock::probe(store.path()), SyncLockState::Free);
        fs::write(store.path().join("file"), "").unwrap();
        assert_eq!(SyncLock::probe(&store.path().join("file")), SyncLockState::Unwritable);
        drop(SyncLock::acquire(store.path()));
    }
}
