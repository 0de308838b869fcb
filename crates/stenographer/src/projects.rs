//! Which repository each project folder was, noted when its sessions are kept, so that a folder that moved is found.
//!
//! It is a shortcut, not a record: without it a moved folder has to be named.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use steno_core::durable::{self, FileError};
use steno_core::repository::{Likeness, Repository};

/// So many folders are looked at for one that moved, and no more.
const MOST: usize = 20_000;

/// The repositories of all project folders that are known.
#[derive(Debug)]
pub(crate) struct Projects {
    path: PathBuf,
    folders: BTreeMap<PathBuf, Repository>,
    looked_at: BTreeSet<PathBuf>,
}

/// Where a repository was found again.
#[derive(Debug)]
pub(crate) struct Search {
    /// The folders that are most like it.
    pub(crate) found: Vec<PathBuf>,
    /// How many folders were looked at.
    pub(crate) looked_at: usize,
}

impl Projects {
    /// Reads the notes of the store at `store`; those that cannot be read are none.
    pub(crate) fn load(store: &Path) -> Self {
        let path = store.join("projects.json");
        Self { folders: read(&path), path, looked_at: BTreeSet::new() }
    }

    /// The repository that `folder` was in when a session in it was kept.
    pub(crate) fn repository(&self, folder: &Path) -> Option<&Repository> {
        self.folders.get(folder)
    }

    /// The folders that are known, and the roots of their repositories.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let roots = self.folders.iter().flat_map(|(folder, known)| [folder, &known.root]);
        roots.cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Notes the repository of a folder, once as long as the program runs. Others may note theirs: the caller holds
    /// the lock.
    pub(crate) fn note(&mut self, folder: &Path) -> Result<(), FileError> {
        if !folder.is_absolute() || !self.looked_at.insert(folder.to_owned()) {
            return Ok(());
        }
        let Some(repository) = Repository::of(folder) else { return Ok(()) };
        if self.folders.get(folder) == Some(&repository) {
            return Ok(());
        }
        self.folders = read(&self.path);
        self.folders.insert(folder.to_owned(), repository);
        let text = serde_json::to_vec(&self.folders).expect("paths from text");
        durable::replace_unsynced(&self.path, &text)
    }

    /// Looks for `lost`: among the folders that are known, beside them, and up to two levels below where it was.
    pub(crate) fn search(&self, lost: &Repository) -> Search {
        let candidates = self.candidates(&lost.root);
        let mut best: Option<Likeness> = None;
        let mut found = Vec::new();
        for repository in candidates.iter().filter_map(|folder| Repository::at(folder)) {
            let likeness = lost.likeness(&repository);
            if likeness > best {
                found.clear();
                best = likeness;
            }
            if likeness.is_some() && likeness == best {
                found.push(repository.root);
            }
        }
        Search { found, looked_at: candidates.len() }
    }

    fn candidates(&self, lost: &Path) -> BTreeSet<PathBuf> {
        let known = self.folders.values().map(|repository| repository.root.clone());
        let mut folders: BTreeSet<PathBuf> = known.collect();
        let mut above: BTreeSet<PathBuf> =
            folders.iter().filter_map(|folder| folder.parent()).map(Path::to_owned).collect();
        if let Some(nearest) = lost.ancestors().skip(1).find(|folder| folder.is_dir()) {
            above.insert(nearest.to_owned());
            above.extend(folders_in(nearest));
        }
        for folder in above {
            folders.insert(folder.clone());
            folders.extend(folders_in(&folder));
            if folders.len() > MOST {
                break;
            }
        }
        folders
    }
}

fn read(path: &Path) -> BTreeMap<PathBuf, Repository> {
    let bytes = fs::read(path).ok();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// The folders in a folder, but no hidden ones and no links.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let plain = entries.filter(|entry| {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    plain.take(MOST).map(|entry| entry.path()).collect()
}
