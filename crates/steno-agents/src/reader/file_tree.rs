//! The files and folders below a path, in which readers look for sessions.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use steno_model::backup;
use steno_model::durable::{self, FileError, OnPath};
use steno_vault::{DatabaseSchema, SessionBundle, sqlite};

/// Folders with many files and no sessions.
const SKIPPED_FOLDERS: [&str; 2] = [".git", "node_modules"];

/// A folder and the plain files directly in it, sorted by name.
pub(crate) struct ListedFolder {
    pub(crate) path: PathBuf,
    pub(crate) files: Vec<PathBuf>,
    /// Why the folder could not be listed.
    failure: Option<FileError>,
}

/// Lists `root` and all folders below it, sorted by path. Symlinks are not followed.
pub(crate) fn list_folders(root: &Path) -> Result<Vec<ListedFolder>, FileError> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let listing = match fs::read_dir(&path).on("open", &path) {
            Err(error) if path != root => {
                let failure = Some(error).filter(|error| !error.is_missing());
                found.push(ListedFolder { path, files: Vec::new(), failure });
                continue;
            }
            other => other?,
        };
        let mut files = Vec::new();
        for item in listing.flatten() {
            match item.file_type() {
                Ok(kind) if kind.is_file() && is_written_by_steno(&item.path()) => {}
                Ok(kind) if kind.is_file() => files.push(item.path()),
                Ok(kind) if kind.is_dir() && !is_skipped_folder(&item.path()) => {
                    waiting.push(item.path())
                }
                _ => {}
            }
        }
        files.sort();
        found.push(ListedFolder { path, files, failure: None });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Lists the file `path`, or all plain files below the folder `path`, sorted by path.
pub fn list_file_paths(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    FileTree::open(path).map(|tree| tree.files)
}

/// All files at or below a path, and the folders that could not be listed.
#[derive(Debug)]
pub struct FileListing {
    /// The files, sorted.
    pub files: Vec<PathBuf>,
    /// Folders that could not be listed.
    pub failures: Vec<FileError>,
}

/// Like [`list_file_paths`], and returns the folders that could not be listed.
pub fn list_files(path: &Path) -> Result<FileListing, FileError> {
    FileTree::open(path).map(|FileTree { files, failures, .. }| FileListing { files, failures })
}

/// The files at or below a path that no reader has claimed yet.
#[derive(Debug)]
pub struct FileTree {
    root: PathBuf,
    is_folder: bool,
    files: Vec<PathBuf>,
    failures: Vec<FileError>,
    /// Whether every file was opened once to check access. Set after the first failure.
    is_checked: bool,
}

impl FileTree {
    /// One bundle for each session of each database of this schema.
    pub(crate) fn find_databases(
        &self,
        schema: &'static DatabaseSchema,
    ) -> Result<Vec<SessionBundle>, FileError> {
        Ok(self.files().iter().flat_map(|file| sqlite::sessions_in_file(file, schema)).collect())
    }

    /// Lists one file, or a folder and everything below it. Symlinks are not followed.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let root = path.to_owned();
        if !fs::metadata(path).on("open", path)?.is_dir() {
            let (files, failures) = (vec![root.clone()], Vec::new());
            return Ok(Self { root, is_folder: false, files, failures, is_checked: false });
        }
        let (mut files, mut failures) = (Vec::new(), Vec::new());
        for folder in list_folders(path)? {
            failures.extend(folder.failure);
            files.extend(folder.files);
        }
        files.sort();
        Ok(Self { root, is_folder: true, files, failures, is_checked: false })
    }

    /// The path that was listed.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the path is a folder.
    pub fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// Returns the folders with an unclaimed file whose name satisfies `is_mark`, sorted by path.
    pub fn folders_containing(&self, is_mark: impl Fn(&str) -> bool) -> Vec<&Path> {
        let name =
            |file: &Path| file.file_name().and_then(|name| name.to_str()).is_some_and(&is_mark);
        let marked = self.files.iter().filter(|file| name(file));
        let folders: BTreeSet<&Path> = marked.filter_map(|file| file.parent()).collect();
        folders.into_iter().collect()
    }

    /// The files that no reader has claimed yet, sorted by path.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the failures to open or list files so far.
    pub(crate) fn into_failures(self) -> Vec<FileError> {
        self.failures
    }

    /// Removes the file that `error` is about, so that the other files can still be read. Returns whether it was
    /// below the root.
    pub(crate) fn skip_unreadable(&mut self, error: &FileError) -> bool {
        // Binary search works because the list stays sorted.
        let index = self.files.binary_search(&error.path).ok().filter(|_| self.is_folder);
        let Some(index) = index else { return false };
        self.files.remove(index);
        // A file that was deleted meanwhile is not a failure.
        self.failures.extend(Some(error.duplicate_error()).filter(|error| !error.is_missing()));
        if !std::mem::replace(&mut self.is_checked, true) {
            self.remove_unreadable();
        }
        true
    }

    /// Removes all files that cannot be opened.
    ///
    /// Where one file is unreadable, many may be, and a reader starts over after each of them.
    fn remove_unreadable(&mut self) {
        let failures = &mut self.failures;
        self.files.retain(|file| match fs::File::open(file).on("open", file) {
            Ok(_) => true,
            Err(error) => {
                failures.extend(Some(error).filter(|error| !error.is_missing()));
                false
            }
        });
    }

    /// Removes the files of sessions that were found. A database stays, because several programs may store sessions
    /// in it.
    pub(crate) fn remove_session_files(&mut self, bundles: &[SessionBundle]) {
        let sources = bundles
            .iter()
            .filter(|bundle| bundle.origin.is_none())
            .flat_map(SessionBundle::main_files);
        let taken: HashSet<&Path> = sources.map(|source| source.path()).collect();
        if !taken.is_empty() {
            self.files.retain(|file| !taken.contains(file.as_path()));
        }
    }
}

/// Whether Steno wrote the file: a backup, or a leftover of an interrupted write. The original is elsewhere.
fn is_written_by_steno(path: &Path) -> bool {
    backup::is_backup(path) || durable::is_leftover(path)
}

fn is_skipped_folder(path: &Path) -> bool {
    SKIPPED_FOLDERS.iter().any(|name| path.ends_with(name))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_costs_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["a", "b", "c"].map(|name| dir.path().join(name));
        files.iter().for_each(|file| fs::write(file, "").unwrap());
        let mut tree = FileTree::open(dir.path()).unwrap();
        let error = |kind: io::ErrorKind, path: &Path| {
            Err::<(), _>(io::Error::from(kind)).on("open", path).unwrap_err()
        };
        assert!(tree.skip_unreadable(&error(io::ErrorKind::PermissionDenied, &files[0])));
        assert!(tree.skip_unreadable(&error(io::ErrorKind::NotFound, &files[1])));
        assert!(!tree.skip_unreadable(&error(io::ErrorKind::PermissionDenied, dir.path())));
        assert!(!tree.skip_unreadable(&error(io::ErrorKind::PermissionDenied, &files[0])), "once");
        assert_eq!(tree.files(), [files[2].clone()]);
        let failures = tree.into_failures();
        assert_eq!(failures.iter().map(|error| &error.path).collect::<Vec<_>>(), [&files[0]]);
        let mut alone = FileTree::open(&files[0]).unwrap();
        assert!(!alone.skip_unreadable(&error(io::ErrorKind::PermissionDenied, &files[0])));
    }

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("b/c")).unwrap();
        fs::create_dir_all(dir.path().join(".git/x")).unwrap();
        fs::write(dir.path().join("b/file"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(dir.path(), dir.path().join("b/loop")).unwrap();
        let found = list_folders(dir.path()).unwrap();
        let paths: Vec<_> = found.iter().map(|folder| folder.path.clone()).collect();
        assert_eq!(paths, [dir.path().to_owned(), dir.path().join("b"), dir.path().join("b/c")]);
        assert_eq!(found[1].files, [dir.path().join("b/file")]);
    }
}
