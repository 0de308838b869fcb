//! Converts a store from plain to encrypted, and back.
//!
//! # Order
//! 1. All files are copied, from `STORE/vault` and the like to `STORE/encrypted` or the reverse, and synced.
//! 2. One rename makes the copy valid: `encryption.json.new` to `encryption.json`, or that to `encryption.json.removed`.
//! 3. The old files are removed.
//!
//! A process that is killed before step 2 leaves the old files valid, and a copy that the next conversion removes. After
//! step 2, [`finish_conversion`] completes step 3. Files are only removed if a key file says that they are copies.
//!
//! # Locking
//! The lock of the journal, without which nothing is acknowledged, is held during the conversion. A writer that waited
//! for it then finds that the store has changed, and fails. A store that is being recorded is not converted.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use steno_model::durable::{self, FileError, OnPath};

use crate::chunk_map::MAX_CHUNK_BYTES;
use crate::key_file::{KEY_FILE, KeyFile};
use crate::master_key::MasterKey;
use crate::store_cipher::{StoreCipher, all_encrypted_folders, encrypted_folder};
use crate::store_file::StoreFile;

/// Files and folders of a store that are converted.
pub(crate) const CONVERTED: [&str; 7] = [
    "vault",
    "forget.key",
    "secret-ids.key",
    "seen.json",
    "projects.json",
    "last-sync.json",
    "hook.log",
];

/// What is derived from them: it is removed, and made again when it is needed.
const DERIVED: [&str; 5] = ["pending", "remotes", "index.db", "index.db-wal", "index.db-shm"];

/// The key file of an encrypted copy that is not complete.
pub(crate) const UNFINISHED_KEY_FILE: &str = "encryption.json.new";

/// The key file of an encrypted copy that can be removed.
const REMOVED_KEY_FILE: &str = "encryption.json.removed";

const CONVERSION_LOCK: &str = "encryption.lock";

/// The lock that a writer of the journal holds.
const JOURNAL_LOCK: &str = ".journal.lock";

/// The lock that a recorder holds.
const RECORDING_LOCK: &str = ".open";

/// Lock files have no content.
const LOCK_FILES: [&str; 4] = [JOURNAL_LOCK, RECORDING_LOCK, ".lock", ".forgotten.lock"];

/// A conversion that was not started or not completed. The store is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ConversionError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// A session is being recorded.
    #[error("a session is being recorded: {0}")]
    Recording(PathBuf),
    /// Another process converts the store.
    #[error("another process is converting the store: {0}")]
    Busy(PathBuf),
    /// The key was changed since it was read.
    #[error("another process has changed the key of the store: {0}")]
    KeyChanged(PathBuf),
    /// There are files that nothing marks as copies.
    #[error("these files are not part of the store, and would be overwritten: {0}")]
    Unexpected(PathBuf),
}

/// Is called with each file before it is converted.
pub type ConversionProgress<'a> = &'a mut dyn FnMut(&Path);

/// Encrypts a plain store. Its files are only in the new form when this returns.
pub fn encrypt_store(
    store: &Path,
    keys: KeyFile,
    master: &MasterKey,
    progress: ConversionProgress<'_>,
) -> Result<(), ConversionError> {
    durable::create_private_dir(store)?;
    let _lock = lock_conversion(store)?;
    let unfinished = store.join(UNFINISHED_KEY_FILE);
    for folder in all_encrypted_folders(store).on("read folder", store)? {
        if !unfinished.exists() && !store.join(REMOVED_KEY_FILE).exists() {
            return Err(ConversionError::Unexpected(folder));
        }
        fs::remove_dir_all(&folder).on("remove", &folder)?;
    }
    durable::remove_file(&store.join(REMOVED_KEY_FILE))?;
    let _writers = lock_writers(&store.join("vault"), &|path| path.to_owned())?;
    let keys = KeyFile { has_plain_files: true, ..keys };
    keys.write_at(&unfinished)?;
    let cipher = StoreCipher::new(store, master.clone(), &keys);
    durable::create_private_dir(&encrypted_folder(store, keys.generation))?;
    for name in CONVERTED {
        encrypt_path(&cipher, &store.join(name), progress)?;
    }
    rename_durably(&unfinished, &store.join(KEY_FILE))?;
    remove_plain_files(store, keys)?;
    Ok(())
}

/// Decrypts an encrypted store. Its files are only in the new form when this returns.
pub fn decrypt_store(
    store: &Path,
    master: &MasterKey,
    progress: ConversionProgress<'_>,
) -> Result<(), ConversionError> {
    let _lock = lock_conversion(store)?;
    let key_path = store.join(KEY_FILE);
    let Some(keys) = KeyFile::read(store)? else { return Ok(()) };
    let keys = remove_old_files(store, keys)?;
    let all = CONVERTED.iter().chain(&DERIVED).map(|name| store.join(name));
    if let Some(unexpected) = all.into_iter().find(|path| path.exists()) {
        return Err(ConversionError::Unexpected(unexpected));
    }
    let cipher = StoreCipher::new(store, master.clone(), &keys);
    let _writers = lock_writers(&store.join("vault"), &|path| cipher.physical_path(path))?;
    // From here on, plain files are copies.
    KeyFile { has_plain_files: true, ..keys }.write(store)?;
    for name in CONVERTED {
        decrypt_path(&cipher, &store.join(name), progress)?;
    }
    rename_durably(&key_path, &store.join(REMOVED_KEY_FILE))?;
    remove_encrypted_files(store)?;
    Ok(())
}

/// Removes the old files of a conversion that was killed. Does nothing while a conversion runs.
pub fn finish_conversion(store: &Path) -> Result<(), FileError> {
    if let Some(keys) = KeyFile::read(store)? {
        let has_unfinished = store.join(UNFINISHED_KEY_FILE).exists();
        if (keys.has_plain_files || keys.has_old_files || has_unfinished)
            && let Ok(_lock) = lock_conversion(store)
            // The process that was waited for may have finished it.
            && let Some(keys) = KeyFile::read(store)?
        {
            remove_old_files(store, keys)?;
        }
    } else if store.join(REMOVED_KEY_FILE).exists()
        && let Ok(_lock) = lock_conversion(store)
        && !store.join(KEY_FILE).exists()
    {
        remove_encrypted_files(store)?;
    }
    Ok(())
}

fn remove_plain_files(store: &Path, keys: KeyFile) -> Result<KeyFile, FileError> {
    CONVERTED.iter().chain(&DERIVED).try_for_each(|name| remove_any(&store.join(name)))?;
    durable::sync_dir(store)?;
    let keys = KeyFile { has_plain_files: false, ..keys };
    keys.write(store)?;
    Ok(keys)
}

/// Removes what a conversion or a change of the key left.
pub(crate) fn remove_old_files(store: &Path, keys: KeyFile) -> Result<KeyFile, FileError> {
    let mut keys = match keys.has_plain_files {
        true => remove_plain_files(store, keys)?,
        false => keys,
    };
    let unfinished = store.join(UNFINISHED_KEY_FILE);
    if keys.has_old_files || unfinished.exists() {
        other_folders(store, &keys)?.iter().try_for_each(|folder| remove_any(folder))?;
        durable::sync_dir(store)?;
        durable::remove_file(&unfinished)?;
    }
    if keys.has_old_files {
        keys.has_old_files = false;
        keys.write(store)?;
    }
    Ok(keys)
}

/// The folders of encrypted files that are not those of this key file.
pub(crate) fn other_folders(store: &Path, keys: &KeyFile) -> Result<Vec<PathBuf>, FileError> {
    let current = encrypted_folder(store, keys.generation);
    let mut folders = all_encrypted_folders(store).on("read folder", store)?;
    folders.retain(|folder| *folder != current);
    Ok(folders)
}

fn remove_encrypted_files(store: &Path) -> Result<(), FileError> {
    let folders = all_encrypted_folders(store).on("read folder", store)?;
    folders.iter().try_for_each(|folder| remove_any(folder))?;
    durable::sync_dir(store)?;
    durable::remove_file(&store.join(REMOVED_KEY_FILE))
}

fn remove_any(path: &Path) -> Result<(), FileError> {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.on("remove", path),
    }
}

pub(crate) fn rename_durably(from: &Path, to: &Path) -> Result<(), FileError> {
    fs::rename(from, to).on("replace", to)?;
    durable::sync_dir(durable::parent_folder(to))
}

pub(crate) fn lock_conversion(store: &Path) -> Result<File, ConversionError> {
    let path = store.join(CONVERSION_LOCK);
    let file =
        durable::private_options().create(true).append(true).open(&path).on("open", &path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => Err(ConversionError::Busy(store.to_owned())),
    }
}

/// Locks the journal, and all sessions against recorders. Waits for writers, but not for recorders.
pub(crate) fn lock_writers(
    vault: &Path,
    to_disk: &dyn Fn(&Path) -> PathBuf,
) -> Result<Vec<File>, ConversionError> {
    let mut locks = Vec::new();
    let journal = to_disk(&vault.join(JOURNAL_LOCK));
    if journal.exists() {
        let file = File::options().write(true).open(&journal).on("open", &journal)?;
        file.lock().on("lock", &journal)?;
        locks.push(file);
    }
    for agent in list_folder(&to_disk(vault))? {
        for session in list_folder(&agent)? {
            // In an encrypted store, any of the small files may be the lock.
            for path in list_folder(&session)? {
                let is_lock = path.file_name() == Some(OsStr::new(RECORDING_LOCK));
                let is_empty = path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0);
                if !is_lock && !is_empty {
                    continue;
                }
                let file = File::open(&path).on("open", &path)?;
                if file.try_lock().is_err() {
                    return Err(ConversionError::Recording(session));
                }
                locks.push(file);
            }
        }
    }
    Ok(locks)
}

/// The entries of a folder; none if it is no folder.
pub(crate) fn list_folder(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    let entries = match fs::read_dir(path) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(Vec::new());
        }
        other => other.on("read folder", path)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.on("read folder", path)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Encrypts a file, or a folder with all that is in it.
fn encrypt_path(
    cipher: &StoreCipher,
    path: &Path,
    progress: ConversionProgress<'_>,
) -> Result<(), FileError> {
    let physical = cipher.physical_path(path);
    if path.is_dir() {
        durable::create_private_dir(&physical)?;
        for entry in list_folder(path)?.iter().filter(|entry| !durable::is_leftover(entry)) {
            encrypt_path(cipher, entry, progress)?;
        }
        return durable::sync_dir(&physical);
    }
    if !path.exists() || is_lock_file(path) {
        return Ok(());
    }
    progress(path);
    let input = File::open(path).on("open", path)?;
    let key = cipher.key_for_new_file(path).on("encrypt", path)?;
    let mut options = durable::private_options();
    let file = options.read(true).write(true).create(true).truncate(true).open(&physical);
    let file = file.on("write", path)?;
    let encrypted = StoreFile::create_encrypted(file, &key, &cipher.relative_path(path));
    let mut encrypted = encrypted.on("write", path)?;
    copy_chunks(input, &mut encrypted).on("write", path)?;
    encrypted.sync_data().on("sync", path)
}

/// Copies a file in large chunks. Those of logs end at a line end, where the log may be cut later.
pub(crate) fn copy_chunks(mut input: impl Read, output: &mut impl Write) -> io::Result<()> {
    let mut pending = Vec::new();
    loop {
        let missing = (MAX_CHUNK_BYTES - pending.len()) as u64;
        let read = input.by_ref().take(missing).read_to_end(&mut pending)?;
        if read == 0 {
            return output.write_all(&pending);
        }
        let line_end = pending.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        let end = line_end.unwrap_or(pending.len());
        output.write_all(&pending[..end])?;
        pending.drain(..end);
    }
}

/// Decrypts a file, or a folder with all that is in it. Fails if a file is damaged.
fn decrypt_path(
    cipher: &StoreCipher,
    path: &Path,
    progress: ConversionProgress<'_>,
) -> Result<(), FileError> {
    let physical = cipher.physical_path(path);
    if physical.is_dir() {
        durable::create_private_dir(path)?;
        for entry in list_folder(&physical)?.iter().filter(|entry| !durable::is_leftover(entry)) {
            let name = entry.file_name().and_then(OsStr::to_str).unwrap_or_default();
            if let Some(name) = cipher.decrypt_entry(path, &physical, name) {
                decrypt_path(cipher, &path.join(name), progress)?;
            }
        }
        return durable::sync_dir(path);
    }
    if !physical.exists() || is_lock_file(path) {
        return Ok(());
    }
    progress(path);
    let file = File::open(&physical).on("open", path)?;
    let key = cipher.file_key(path).on("decrypt", path)?;
    let encrypted = StoreFile::open_encrypted(file, &key, &cipher.relative_path(path));
    let mut encrypted = encrypted.on("decrypt", path)?.failing_on_damage();
    let mut options = durable::private_options();
    let file = options.write(true).create(true).truncate(true).open(path);
    let mut file = file.on("write", path)?;
    io::copy(&mut encrypted, &mut file).on("decrypt", path)?;
    file.sync_all().on("sync", path)
}

pub(crate) fn is_lock_file(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| LOCK_FILES.contains(&name))
}
