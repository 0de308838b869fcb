//! Files and folders below a path, for formats that look for their sessions there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::durable::{FileError, OnPath};

/// Folders that hold other people's files by the thousand and no transcripts.
const SKIPPED: [&str; 2] = [".git", "node_modules"];

/// A folder and the plain files that stand directly in it, sorted by name.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) files: Vec<PathBuf>,
}

/// `root` and all folders below it, in the order of their paths; links are not followed.
///
/// A folder below the root that cannot be opened is not ours to complain about.
pub(crate) fn folders(root: &Path) -> Result<Vec<Folder>, FileError> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let listing = match fs::read_dir(&path) {
            Err(_) if path != root => continue,
            other => other.on("open", &path)?,
        };
        let mut files = Vec::new();
        for item in listing.flatten() {
            match item.file_type() {
                Ok(kind) if kind.is_file() => files.push(item.path()),
                Ok(kind) if kind.is_dir() && !is_skipped(&item.path()) => waiting.push(item.path()),
                _ => {}
            }
        }
        files.sort();
        found.push(Folder { path, files });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The file `path` itself, or all plain files below the folder `path`, in the order of their paths.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    if !fs::metadata(path).on("open", path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files: Vec<_> = folders(path)?.into_iter().flat_map(|folder| folder.files).collect();
    files.sort();
    Ok(files)
}

fn is_skipped(path: &Path) -> bool {
    SKIPPED.iter().any(|name| path.ends_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("b/c")).unwrap();
        fs::create_dir_all(dir.path().join(".git/x")).unwrap();
        fs::write(dir.path().join("b/file"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(dir.path(), dir.path().join("b/loop")).unwrap();
        let found = folders(dir.path()).unwrap();
        let paths: Vec<_> = found.iter().map(|folder| folder.path.clone()).collect();
        assert_eq!(paths, [dir.path().to_owned(), dir.path().join("b"), dir.path().join("b/c")]);
        assert_eq!(found[1].files, [dir.path().join("b/file")]);
    }
}
