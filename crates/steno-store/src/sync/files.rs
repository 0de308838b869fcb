//! Facts about session files without parsing them: paths, stamps, modification times.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::format::FoundSession;
use steno_vault::{SessionBundle, SessionFile, SessionFingerprint};

use crate::keep::file_stamp::FileStamp;

/// Returns the files on disk that contain a session.
pub(super) fn session_files(bundle: &SessionBundle) -> Vec<SessionFile> {
    bundle.shared_file().map_or_else(|| bundle.main_files().to_vec(), |file| vec![file])
}

/// Returns the name of a database session in the list of seen files.
pub(super) fn database_session_name(bundle: &SessionBundle) -> PathBuf {
    let mut name = bundle.root.clone().into_os_string();
    name.push("#");
    name.push(bundle.key.as_deref().unwrap_or_default());
    PathBuf::from(name)
}

/// Returns the hash of a session's rows as a stamp.
pub(super) fn fingerprint_stamp(print: &SessionFingerprint) -> FileStamp {
    let half = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&print.hash.as_bytes()[at..at + 8]);
        bytes
    };
    (u64::from_le_bytes(half(0)), i64::from_le_bytes(half(8)))
}

/// Returns whether a file is the shared memory of a database, which every reader changes.
pub(super) fn is_shared_memory(file: &Path) -> bool {
    file.as_os_str().as_encoded_bytes().ends_with(b"-shm")
}

/// Returns whether a file is the database of a session, or its write-ahead log.
pub(super) fn is_part_of_database(bundle: &SessionBundle, source: &SessionFile) -> bool {
    let database = bundle.files.first().map(SessionFile::path);
    database.is_some_and(|path| source.path() == path || source.path() == write_ahead_log(path))
}

/// Returns the path of a database's write-ahead log.
pub fn write_ahead_log(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Returns the folders below a root that contain changed files.
///
/// If the root itself contains files, returns the root: a session may have files there and in subfolders.
pub(super) fn folders_to_read<'a>(
    root: &Path,
    changed: impl Iterator<Item = &'a PathBuf>,
) -> BTreeSet<PathBuf> {
    let part = |file: &'a PathBuf| file.strip_prefix(root).ok()?.components().next();
    let parts: BTreeSet<_> =
        changed.map(|file| part(file).map_or(root.to_owned(), |part| root.join(part))).collect();
    // A write-ahead log alone contains no session.
    let database = root.to_str().and_then(|root| root.strip_suffix("-wal")).map(PathBuf::from);
    let database = database.filter(|database| database.is_file());
    let root = database.as_deref().unwrap_or(root);
    let mut items = fs::read_dir(root).into_iter().flatten().flatten();
    let is_one = root.is_file() || items.any(|item| is_file(&item));
    if is_one && !parts.is_empty() { BTreeSet::from([root.to_owned()]) } else { parts }
}

fn is_file(item: &fs::DirEntry) -> bool {
    item.file_type().is_ok_and(|kind| kind.is_file())
}

/// Returns the last modification time of a session's files.
pub fn last_modified(found: &FoundSession) -> Option<SystemTime> {
    found.bundle.files.iter().filter_map(|source| source.modified_time()).max()
}
