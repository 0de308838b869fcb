//! Whose sessions a mirror has now. Another process may pull at any time, so the list is read again when it has changed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use steno_cipher::store_fs;
use steno_model::Clock;
use steno_store::session_owners::SessionOwners;

use crate::mirror::{PULLED_FILE, TeamMirror};

/// Length and time of the list of mirrored sessions.
type ListStamp = Option<(u64, SystemTime)>;

/// The owners of the sessions of a mirror.
#[derive(Debug)]
pub struct MirrorOwners {
    folder: PathBuf,
    clock: Clock,
    last: Mutex<(ListStamp, Arc<SessionOwners>)>,
}

impl MirrorOwners {
    /// The owners of the mirror in a folder. Reads nothing yet.
    pub fn new(folder: impl Into<PathBuf>, clock: Clock) -> Self {
        Self { folder: folder.into(), clock, last: Mutex::default() }
    }

    /// The present owners; none if the mirror has no list.
    pub fn load(&self) -> Arc<SessionOwners> {
        let metadata = store_fs::metadata(&self.folder.join(PULLED_FILE)).ok();
        let stamp = metadata.and_then(|data| Some((data.len(), data.modified().ok()?)));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != stamp || stamp.is_none() {
            let mirror = TeamMirror::open(&self.folder, self.clock.clone());
            *last = (stamp, Arc::new(mirror.owners()));
        }
        Arc::clone(&last.1)
    }
}
