//! List of files that `sync` and `watch` have seen, with size and time, so that unchanged files are not opened again.
//!
//! This is a cache: without it every file is read once more, and nothing is stored twice. An entry is valid only
//! while the vault has its sessions and the readers' version is the same.

use std::collections::{HashMap, HashSet};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::format;
use crate::keep::file_stamp::FileStamp;
use serde::{Deserialize, Serialize};
use steno_cipher::store_fs;
use steno_model::SessionId;
use steno_model::durable::{self, FileError};

/// A seen file: its stamp, and the sessions it was imported with.
#[derive(Debug, Serialize, Deserialize)]
struct SeenFile(u64, i64, Vec<SessionId>, #[serde(skip)] IsFresh);

/// Whether the file was added since the list was last read or written.
type IsFresh = bool;

type SeenFileMap = HashMap<String, SeenFile>;

/// Files that are unchanged since their import.
#[derive(Debug)]
pub struct SeenFiles {
    path: PathBuf,
    files: SeenFileMap,
    has_fresh: bool,
    /// Sessions in the list that the vault does not have.
    lost: HashSet<SessionId>,
}

#[derive(Serialize)]
struct SeenListForWriting<'a> {
    /// Version of the readers.
    readers: u32,
    files: &'a SeenFileMap,
}

#[derive(Deserialize)]
struct SeenListFromDisk {
    readers: u32,
    files: SeenFileMap,
}

impl SeenFiles {
    /// Reads the list of the store. Entries of sessions that the vault does not have are dropped. An unreadable list,
    /// or one of another reader version, counts as empty.
    pub fn load(store: &Path, is_kept: impl Fn(&SessionId) -> bool) -> Self {
        let path = store.join("seen.json");
        let mut files = read_seen_files(&path);
        let sessions = files.values().flat_map(|SeenFile(_, _, sessions, _)| sessions);
        let lost = sessions.filter(|id| !is_kept(id)).cloned().collect();
        remove_lost(&mut files, &lost);
        Self { path, files, has_fresh: false, lost }
    }

    /// Returns whether the file was imported with this stamp.
    pub fn is_unchanged(&self, path: &Path, stamp: FileStamp) -> bool {
        let known = self.files.get(&*path.to_string_lossy());
        known.is_some_and(|SeenFile(size, time, ..)| (*size, *time) == stamp)
    }

    /// Records that the file was imported with this stamp, for these sessions.
    pub fn record_file(&mut self, path: &Path, (size, time): FileStamp, sessions: Vec<SessionId>) {
        let name = path.to_string_lossy().into_owned();
        for session in &sessions {
            self.lost.remove(session);
        }
        let is_same = |known: &SeenFile| (known.0, known.1) == (size, time) && known.2 == sessions;
        if !self.files.get(&name).is_some_and(is_same) {
            self.has_fresh = true;
            self.files.insert(name, SeenFile(size, time, sessions, true));
        }
    }

    /// Writes the list if it has changed, merged with the changes of other processes.
    pub fn save(&mut self) -> Result<(), FileError> {
        if !self.has_fresh {
            return Ok(());
        }
        let mut noted = read_seen_files(&self.path);
        remove_lost(&mut noted, &self.lost);
        noted.retain(|name, _| !self.files.get(name).is_some_and(|known| known.3));
        self.files.extend(noted);
        self.files.values_mut().for_each(|known| known.3 = false);
        self.has_fresh = false;
        let written = SeenListForWriting { readers: format::reader_version(), files: &self.files };
        store_fs::create_private_dir(durable::parent_folder(&self.path))?;
        store_fs::replace_unsynced_with(&self.path, |file| {
            let mut out = BufWriter::new(file);
            serde_json::to_writer(&mut out, &written)?;
            out.flush()
        })
    }
}

fn read_seen_files(path: &Path) -> SeenFileMap {
    let read = store_fs::read(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<SeenListFromDisk>(&bytes).ok());
    let read = read.filter(|read| read.readers == format::reader_version());
    read.map(|read| read.files).unwrap_or_default()
}

/// Removes the entries of lost sessions, and of the databases that contain them.
fn remove_lost(files: &mut SeenFileMap, lost: &HashSet<SessionId>) {
    let is_lost = |known: &SeenFile| known.2.iter().any(|session| lost.contains(session));
    let mut names: Vec<String> = Vec::new();
    for (name, _) in files.iter().filter(|(_, known)| is_lost(known)) {
        names.extend(name.rsplit_once('#').map(|(database, _)| database.to_owned()));
        names.push(name.clone());
    }
    for name in names {
        files.remove(&name);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn id(name: &str) -> SessionId {
        name.parse().unwrap()
    }

    #[test]
    fn notes_of_two_processes_are_both_saved() {
        let store = tempfile::tempdir().unwrap();
        let load = || SeenFiles::load(store.path(), |_| true);
        let (mut first, mut second) = (load(), load());
        first.record_file(Path::new("a"), (1, 1), vec![]);
        second.record_file(Path::new("b"), (2, 2), vec![id("s")]);
        first.save().unwrap();
        second.save().unwrap();
        for seen in [second, load()] {
            assert!(
                seen.is_unchanged(Path::new("a"), (1, 1))
                    && seen.is_unchanged(Path::new("b"), (2, 2))
            );
        }
    }

    #[test]
    fn files_of_a_lost_session_are_dropped_from_the_list() {
        let store = tempfile::tempdir().unwrap();
        let mut seen = SeenFiles::load(store.path(), |_| true);
        seen.record_file(Path::new("db"), (1, 1), vec![]);
        seen.record_file(Path::new("db#lost"), (2, 2), vec![id("lost")]);
        seen.record_file(Path::new("db#kept"), (3, 3), vec![id("kept")]);
        seen.record_file(Path::new("none"), (4, 4), vec![]);
        seen.save().unwrap();
        let mut seen = SeenFiles::load(store.path(), |session| *session == id("kept"));
        let known = |seen: &SeenFiles| {
            let stamps =
                [("db", (1, 1)), ("db#lost", (2, 2)), ("db#kept", (3, 3)), ("none", (4, 4))];
            stamps.map(|(name, stamp)| seen.is_unchanged(Path::new(name), stamp))
        };
        assert_eq!(known(&seen), [false, false, true, true]);
        seen.record_file(Path::new("new"), (5, 5), vec![]);
        seen.save().unwrap();
        assert_eq!(known(&seen), [false, false, true, true], "not taken from the list again");
    }

    #[test]
    fn what_other_readers_saw_is_looked_at_again() {
        let store = tempfile::tempdir().unwrap();
        let mut seen = SeenFiles::load(store.path(), |_| true);
        seen.record_file(Path::new("a"), (1, 1), vec![]);
        seen.save().unwrap();
        let path = store.path().join("seen.json");
        let (now, other) = (format!("\"readers\":{}", format::reader_version()), "\"readers\":0");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(&now), "{text}");
        fs::write(&path, text.replace(&now, other)).unwrap();
        assert!(!SeenFiles::load(store.path(), |_| true).is_unchanged(Path::new("a"), (1, 1)));
    }
}
