//! Backs up a file before it is replaced, beside it under an unused name.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::durable::{self, FileError, OnPath};

/// The suffix of a backup.
const BACKUP_SUFFIX: &str = ".steno-backup";

/// The suffix of a restored earlier generation.
const EARLIER_SUFFIX: &str = ".steno-earlier";

/// The possible backup names of `path`, in order of use.
pub fn backup_names(path: &Path) -> impl Iterator<Item = PathBuf> {
    let base = path.file_name().unwrap_or_default().to_owned();
    (0_u32..).map(move |number| {
        let mut name = base.clone();
        name.push(BACKUP_SUFFIX);
        if number > 0 {
            name.push(format!(".{number}"));
        }
        path.with_file_name(name)
    })
}

/// The name for generation `generation` of `path`, counted from 0.
pub fn earlier_name(path: &Path, generation: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("{EARLIER_SUFFIX}.{generation}"));
    path.with_file_name(name)
}

/// Whether a file is a backup or an earlier generation, by its name.
pub fn is_backup(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_number = |number: &str| {
        number.is_empty() || number.strip_prefix('.').is_some_and(|it| it.parse::<u32>().is_ok())
    };
    [BACKUP_SUFFIX, EARLIER_SUFFIX]
        .iter()
        .filter_map(|suffix| name.rsplit_once(suffix))
        .any(|(_, number)| is_number(number))
}

/// Copies the file at `path` to the first free backup name, and returns that name. A link stays a link.
///
/// Never overwrites a backup. An existing one with the same bytes is reused.
pub fn back_up(path: &Path) -> Result<PathBuf, FileError> {
    for name in backup_names(path) {
        if has_same_bytes(path, &name) || create_backup(path, &name)? {
            return Ok(name);
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists)).on("back up", path)
}

/// Creates the backup; `false` if the name is taken.
fn create_backup(path: &Path, backup: &Path) -> Result<bool, FileError> {
    if path.is_symlink() {
        if fs::symlink_metadata(backup).is_ok() {
            return Ok(false);
        }
        // A link is renamed, because not every platform can copy one.
        fs::rename(path, backup).on("rename", path)?;
        return durable::sync_dir(durable::parent_folder(path)).map(|()| true);
    }
    let mut input = File::open(path).on("open", path)?;
    let modified = input.metadata().and_then(|metadata| metadata.modified()).on("read", path)?;
    durable::create_atomic_with(backup, |file| {
        io::copy(&mut input, file)?;
        file.set_modified(modified)
    })
}

fn has_same_bytes(path: &Path, backup: &Path) -> bool {
    let plain = |path: &Path| {
        let is_file = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
        is_file.then(|| File::open(path).ok()).flatten()
    };
    let (Some(mut original), Some(mut copy)) = (plain(path), plain(backup)) else { return false };
    let hash = |file: &mut dyn Read| {
        let mut hasher = blake3::Hasher::new();
        io::copy(file, &mut hasher).map(|_| hasher.finalize()).ok()
    };
    let hashes = [hash(&mut original), hash(&mut copy)];
    hashes[0].is_some() && hashes[0] == hashes[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_of_a_file_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let keep = |text: &str| {
            fs::write(&path, text).unwrap();
            let backup = back_up(&path).unwrap();
            assert_eq!(fs::read_to_string(&backup).unwrap(), text);
            assert!(is_backup(&backup) && !is_backup(&path));
            backup.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(keep("one"), "file.steno-backup");
        assert_eq!(keep("two"), "file.steno-backup.1");
        assert_eq!(keep("one"), "file.steno-backup");
        assert!(!is_backup(Path::new("notes.steno-backup.txt")));
        assert!(is_backup(&earlier_name(Path::new("a/file"), 2)));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_kept_as_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        let backup = back_up(&path).unwrap();
        assert_eq!(fs::read_link(backup).unwrap(), Path::new("nowhere"));
        assert!(!path.is_symlink());
    }
}
