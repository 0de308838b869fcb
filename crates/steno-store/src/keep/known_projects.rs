//! Cache of the repository of each project folder, written at import, to find folders that have moved.
//!
//! Without the cache the user has to name a moved folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::repository::{CheckoutMatch, GitCheckout};
use steno_cipher::store_fs;
use steno_model::durable::FileError;

/// Limit of folders checked in one search.
const MAX_FOLDERS: usize = 20_000;

/// Repositories of all known project folders.
#[derive(Debug)]
pub struct KnownProjects {
    path: PathBuf,
    folders: BTreeMap<PathBuf, GitCheckout>,
    checked_folders: BTreeSet<PathBuf>,
}

/// Result of the search for a moved repository.
#[derive(Debug)]
pub struct ProjectSearch {
    /// The best matching folders.
    pub matches: Vec<PathBuf>,
    /// Number of folders checked.
    pub checked_count: usize,
}

impl KnownProjects {
    /// Reads the cache of the store; an unreadable one counts as empty.
    pub fn load(store: &Path) -> Self {
        let path = store.join("projects.json");
        Self { folders: read_projects(&path), path, checked_folders: BTreeSet::new() }
    }

    /// Returns the repository of `folder` at its last import.
    pub fn repository(&self, folder: &Path) -> Option<&GitCheckout> {
        self.folders.get(folder)
    }

    /// Returns the known folders and the roots of their repositories.
    pub fn folders_and_roots(&self) -> Vec<PathBuf> {
        let roots = self.folders.iter().flat_map(|(folder, known)| [folder, &known.root]);
        roots.cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the roots of the known checkouts of the same repository, whether or not they still exist.
    pub fn roots_of(&self, checkout: &GitCheckout) -> BTreeSet<PathBuf> {
        let same = self.folders.values().filter(|known| known.match_with(checkout).is_some());
        same.map(|known| known.root.clone()).collect()
    }

    /// Stores the repository of a folder, once per process. Other processes write too: the caller holds the lock.
    pub fn note_repository(&mut self, folder: &Path) -> Result<(), FileError> {
        if !folder.is_absolute() || !self.checked_folders.insert(folder.to_owned()) {
            return Ok(());
        }
        let Some(repository) = GitCheckout::containing_folder(folder) else { return Ok(()) };
        if self.folders.get(folder) == Some(&repository) {
            return Ok(());
        }
        self.folders = read_projects(&self.path);
        self.folders.insert(folder.to_owned(), repository);
        let text = serde_json::to_vec(&self.folders).expect("paths from text");
        store_fs::replace_unsynced(&self.path, &text)
    }

    /// Searches for `lost`: among the known folders, beside them, and up to two levels below its former parent.
    pub fn find_moved(&self, lost: &GitCheckout) -> ProjectSearch {
        let candidates = self.candidates(&lost.root);
        let mut best: Option<CheckoutMatch> = None;
        let mut matches = Vec::new();
        for repository in candidates.iter().filter_map(|folder| GitCheckout::at_root(folder)) {
            let likeness = lost.match_with(&repository);
            if likeness > best {
                matches.clear();
                best = likeness;
            }
            if likeness.is_some() && likeness == best {
                matches.push(repository.root);
            }
        }
        ProjectSearch { matches, checked_count: candidates.len() }
    }

    fn candidates(&self, lost: &Path) -> BTreeSet<PathBuf> {
        let known = self.folders.values().map(|repository| repository.root.clone());
        let mut folders: BTreeSet<PathBuf> = known.collect();
        let mut above: BTreeSet<PathBuf> =
            folders.iter().filter_map(|folder| folder.parent()).map(Path::to_owned).collect();
        if let Some(nearest) = lost.ancestors().skip(1).find(|folder| folder.is_dir()) {
            above.insert(nearest.to_owned());
            above.extend(subfolders(nearest));
        }
        for folder in above {
            folders.insert(folder.clone());
            folders.extend(subfolders(&folder));
            if folders.len() > MAX_FOLDERS {
                break;
            }
        }
        folders
    }
}

fn read_projects(path: &Path) -> BTreeMap<PathBuf, GitCheckout> {
    let bytes = store_fs::read(path).ok();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Returns the folders in a folder, without hidden ones and links.
fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let plain = entries.filter(|entry| {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    plain.take(MAX_FOLDERS).map(|entry| entry.path()).collect()
}
