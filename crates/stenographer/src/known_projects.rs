//! Which repository each project folder was, noted when its sessions are kept, so that a folder that moved is found.
//!
//! It is a shortcut, not a record: without it a moved folder has to be named.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use steno_core::durable::{self, FileError};
use steno_core::repository::{Likeness, Repository};

/// So many folders are looked at for one that moved, and no more.
const MAX_FOLDERS: usize = 20_000;

/// The repositories of all project folders that are known.
#[derive(Debug)]
pub(crate) struct KnownProjects {
    path: PathBuf,
    folders: BTreeMap<PathBuf, Repository>,
    checked_folders: BTreeSet<PathBuf>,
}

/// Where a repository was found again.
#[derive(Debug)]
pub(crate) struct ProjectSearch {
    /// The folders that are most like it.
    pub(crate) matches: Vec<PathBuf>,
    /// How many folders were looked at.
    pub(crate) checked_count: usize,
}

impl KnownProjects {
    /// Reads the notes of the store at `store`; those that cannot be read are none.
    pub(crate) fn load(store: &Path) -> Self {
        let path = store.join("projects.json");
        Self { folders: read_projects(&path), path, checked_folders: BTreeSet::new() }
    }

    /// The repository that `folder` was in when a session in it was kept.
    pub(crate) fn repository(&self, folder: &Path) -> Option<&Repository> {
        self.folders.get(folder)
    }

    /// The folders that are known, and the roots of their repositories.
    pub(crate) fn folders_and_roots(&self) -> Vec<PathBuf> {
        let roots = self.folders.iter().flat_map(|(folder, known)| [folder, &known.root]);
        roots.cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Notes the repository of a folder, once as long as the program runs. Others may note theirs: the caller holds
    /// the lock.
    pub(crate) fn note_repository(&mut self, folder: &Path) -> Result<(), FileError> {
        if !folder.is_absolute() || !self.checked_folders.insert(folder.to_owned()) {
            return Ok(());
        }
        let Some(repository) = Repository::of(folder) else { return Ok(()) };
        if self.folders.get(folder) == Some(&repository) {
            return Ok(());
        }
        self.folders = read_projects(&self.path);
        self.folders.insert(folder.to_owned(), repository);
        let text = serde_json::to_vec(&self.folders).expect("paths from text");
        durable::replace_unsynced(&self.path, &text)
    }

    /// Looks for `lost`: among the folders that are known, beside them, and up to two levels below where it was.
    pub(crate) fn find_moved(&self, lost: &Repository) -> ProjectSearch {
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
        ProjectSearch { matches: found, checked_count: candidates.len() }
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

fn read_projects(path: &Path) -> BTreeMap<PathBuf, Repository> {
    let bytes = fs::read(path).ok();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// The folders in a folder, but no hidden ones and no links.
fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let plain = entries.filter(|entry| {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    plain.take(MAX_FOLDERS).map(|entry| entry.path()).collect()
}
