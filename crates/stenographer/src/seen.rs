//! What `sync` has seen: size and time of each source, so that what did not change is not opened again.
//!
//! It is a shortcut, not a record: without it everything is read once more and nothing is kept twice.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use steno_core::durable::{self, FileError};

/// Size and time of a file.
pub(crate) type Stamp = (u64, i64);

/// The files that were kept as they are now.
#[derive(Debug)]
pub(crate) struct Seen {
    path: PathBuf,
    files: HashMap<String, Stamp>,
    changed: bool,
}

impl Seen {
    /// Reads the list of the store at `store`; one that cannot be read is an empty one, and so is that of a vault
    /// that is gone.
    pub(crate) fn load(store: &Path) -> Self {
        let path = store.join("seen.json");
        let bytes = fs::read(&path).ok().filter(|_| store.join("vault").is_dir());
        let files = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { path, files: files.unwrap_or_default(), changed: false }
    }

    /// Whether the file was kept with this stamp.
    pub(crate) fn knows(&self, path: &Path, stamp: Stamp) -> bool {
        self.files.get(&*path.to_string_lossy()) == Some(&stamp)
    }

    /// Notes that the file was kept with this stamp.
    pub(crate) fn note(&mut self, path: &Path, stamp: Stamp) {
        let name = path.to_string_lossy().into_owned();
        self.changed |= self.files.insert(name, stamp) != Some(stamp);
    }

    /// Writes the list, if it has changed.
    pub(crate) fn save(&mut self) -> Result<(), FileError> {
        if std::mem::take(&mut self.changed) {
            let text = serde_json::to_vec(&self.files).expect("names are text");
            durable::create_private_dir(durable::parent(&self.path))?;
            durable::replace_unsynced(&self.path, &text)?;
        }
        Ok(())
    }
}

/// The stamp of a file; nothing for one that is gone.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    let modified = metadata.modified().ok()?;
    let (distance, sign) = match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => (after, 1),
        Err(before) => (before.duration(), -1),
    };
    Some((metadata.len(), i64::try_from(distance.as_nanos()).ok()? * sign))
}
