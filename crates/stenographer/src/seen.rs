//! What `sync` and `watch` have seen: size and time of each source, so that what did not change is not opened again.
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
    /// What was noted since the list was last read or written.
    fresh: HashMap<String, Stamp>,
}

impl Seen {
    /// Reads the list of the store at `store`; one that cannot be read is an empty one, and so is that of a vault
    /// that is gone.
    pub(crate) fn load(store: &Path) -> Self {
        let path = store.join("seen.json");
        Self { files: read(&path), path, fresh: HashMap::new() }
    }

    /// Whether the file was kept with this stamp.
    pub(crate) fn knows(&self, path: &Path, stamp: Stamp) -> bool {
        self.files.get(&*path.to_string_lossy()) == Some(&stamp)
    }

    /// Notes that the file was kept with this stamp.
    pub(crate) fn note(&mut self, path: &Path, stamp: Stamp) {
        let name = path.to_string_lossy().into_owned();
        if self.files.insert(name.clone(), stamp) != Some(stamp) {
            self.fresh.insert(name, stamp);
        }
    }

    /// Writes the list, if it has changed, together with what other processes noted meanwhile.
    pub(crate) fn save(&mut self) -> Result<(), FileError> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        self.files.extend(read(&self.path));
        self.files.extend(self.fresh.drain());
        let text = serde_json::to_vec(&self.files).expect("names are text");
        durable::create_private_dir(durable::parent(&self.path))?;
        durable::replace_unsynced(&self.path, &text)
    }
}

fn read(path: &Path) -> HashMap<String, Stamp> {
    let bytes = fs::read(path).ok().filter(|_| path.with_file_name("vault").is_dir());
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// The stamp of a file; nothing for one that is gone.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    let modified = metadata.modified().ok()?;
    let (distance, sign) = match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => (after, 1),
        Err(before) => (before.duration(), -1),
    };
    // Times that are centuries away wrap around: they only have to differ.
    Some((metadata.len(), (distance.as_nanos() as i64).wrapping_mul(sign)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_gives_a_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = fs::File::create(&path).unwrap();
        let century = std::time::Duration::from_secs(100 * 365 * 86_400);
        let mut stamps = Vec::new();
        for time in [UNIX_EPOCH - century / 2, UNIX_EPOCH, UNIX_EPOCH + century * 4] {
            file.set_modified(time).unwrap();
            stamps.push(stamp(&path).unwrap());
        }
        assert!(stamps[0] != stamps[1] && stamps[1] != stamps[2], "{stamps:?}");
    }

    #[test]
    fn notes_of_two_processes_are_both_saved() {
        let store = tempfile::tempdir().unwrap();
        fs::create_dir(store.path().join("vault")).unwrap();
        let mut first = Seen::load(store.path());
        let mut second = Seen::load(store.path());
        first.note(Path::new("a"), (1, 1));
        second.note(Path::new("b"), (2, 2));
        first.save().unwrap();
        second.save().unwrap();
        for seen in [second, Seen::load(store.path())] {
            assert!(seen.knows(Path::new("a"), (1, 1)) && seen.knows(Path::new("b"), (2, 2)));
        }
    }
}
