//! Operations on files and folders of a store, as of [`std::fs`] and [`durable`], plain or encrypted.
//!
//! Paths are those of a plain store. Only what is below the folder of an unlocked store is encrypted.

use std::ffi::OsString;
use std::fs::{self, DirEntry, File, Metadata};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use steno_model::durable::{self, FileError, OnPath};
use steno_page_cipher::BaseFileSystem;

use crate::chunk_map::MAX_CHUNK_BYTES;
use crate::key_file::KeyFile;
use crate::store_file::{self, StoreFile};
use crate::store_options::StoreOptions;
use crate::unlocked_stores::{check_unlocked, cipher_for};

/// The path on disk.
pub fn physical_path(path: &Path) -> PathBuf {
    cipher_for(path).map_or_else(|| path.to_owned(), |cipher| cipher.physical_path(path))
}

/// The path on disk of an empty lock file. Those in the folder of the store itself are plain, so that a process
/// without the key waits for them too.
pub fn lock_path(path: &Path) -> PathBuf {
    match cipher_for(path) {
        Some(cipher) if path.parent() != Some(cipher.store()) => cipher.physical_path(path),
        _ => path.to_owned(),
    }
}

/// Opens a file for reading.
pub fn open(path: &Path) -> io::Result<StoreFile> {
    StoreOptions::reading().open(path)
}

/// Reads a whole file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if cipher_for(path).is_none() {
        return fs::read(path);
    }
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The length of a file's content.
pub fn file_length(path: &Path) -> io::Result<u64> {
    if cipher_for(path).is_none() {
        return Ok(fs::metadata(path)?.len());
    }
    let file = File::open(physical_path(path))?;
    match store_file::stated_length(&file)? {
        Some(length) => Ok(length),
        None => open(path)?.length(),
    }
}

/// Times and inode of a file. Its size is that on disk.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    fs::metadata(physical_path(path))
}

/// Whether there is a file or folder.
pub fn exists(path: &Path) -> bool {
    physical_path(path).exists()
}

/// Whether there is a folder.
pub fn is_dir(path: &Path) -> bool {
    physical_path(path).is_dir()
}

/// An entry of a folder.
#[derive(Debug)]
pub struct StoreEntry {
    /// Its name in a plain store.
    pub name: OsString,
    /// The entry on disk.
    pub entry: DirEntry,
}

/// Lists a folder. In an encrypted store, foreign files are left out.
pub fn read_dir(path: &Path) -> io::Result<impl Iterator<Item = io::Result<StoreEntry>>> {
    let cipher = cipher_for(path);
    let physical = physical_path(path);
    let folder = path.to_owned();
    let entries = fs::read_dir(&physical)?;
    Ok(entries.filter_map(move |entry| {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Some(Err(error)),
        };
        let name = entry.file_name();
        let name = match &cipher {
            None => name,
            Some(cipher) => cipher.decrypt_entry(&folder, &physical, name.to_str()?)?.into(),
        };
        Some(Ok(StoreEntry { name, entry }))
    }))
}

/// Renames a file.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(physical_path(from), physical_path(to))
}

/// Removes a file durably. A missing file is not an error.
pub fn remove_file(path: &Path) -> Result<(), FileError> {
    durable::remove_file(&physical_path(path))
}

/// Removes a folder with all that is in it.
pub fn remove_dir_all(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(physical_path(path))
}

/// Removes an empty folder.
pub fn remove_dir(path: &Path) -> io::Result<()> {
    fs::remove_dir(physical_path(path))
}

/// Removes temporary files that killed processes left in a folder.
pub fn remove_leftovers(dir: &Path) {
    durable::remove_leftovers(&physical_path(dir));
}

/// Creates a folder and its parents, and syncs them. Fails in an encrypted store that is locked.
pub fn create_private_dir(path: &Path) -> Result<(), FileError> {
    make_private_dir(path)?.iter().try_for_each(|folder| durable::sync_dir(folder))
}

/// Creates a folder and its parents. Returns the folders on disk that the caller must sync.
pub fn make_private_dir(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    let physical = physical_path(path);
    if !physical.is_dir() {
        check_is_current(path)?;
    }
    durable::make_private_dir(&physical)
}

/// Fails if a path is in an encrypted store that is locked.
pub fn check_is_unlocked(path: &Path) -> Result<(), FileError> {
    check_unlocked(path).on("open", path)
}

/// Fails if the store of a path was encrypted or decrypted, or its key changed, since this process opened it.
pub fn check_is_current(path: &Path) -> Result<(), FileError> {
    match cipher_for(path) {
        None => check_unlocked(path),
        Some(cipher) => match KeyFile::read(cipher.store())? {
            None => Err(io::Error::other("the store is no longer encrypted")),
            Some(keys) if keys.generation == cipher.generation() => Ok(()),
            Some(_) => Err(io::Error::other("the key of the store was changed")),
        },
    }
    .on("write", path)
}

/// Syncs a folder, so that a rename, creation or removal in it is durable.
pub fn sync_dir(dir: &Path) -> Result<(), FileError> {
    durable::sync_dir(&physical_path(dir))
}

/// Atomically replaces a file.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let file = NewFile::at(path)?;
    durable::replace_atomic(&file.physical, |out| file.fill(out, |file| file.write_all(bytes)))
}

/// Atomically creates a file. Returns `false` if the name is taken.
pub fn create_atomic(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    let file = NewFile::at(path)?;
    durable::create_atomic_with(&file.physical, |out| file.fill(out, |file| file.write_all(bytes)))
}

/// Atomically replaces a file without a sync, for content that can be computed again.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace_unsynced_with(path, |file| file.write_all(bytes))
}

/// Like [`replace_unsynced`], with the content that `fill` writes.
pub fn replace_unsynced_with(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FileError> {
    let file = NewFile::at(path)?;
    durable::replace_unsynced_with(&file.physical, |out| file.fill(out, fill))
}

/// Appends complete lines and syncs them. First ends a torn last line with a newline.
pub fn append_lines(path: &Path, lines: &[u8]) -> Result<(), FileError> {
    if cipher_for(path).is_none() {
        check_unlocked(path).on("open", path)?;
        return durable::append_lines(path, lines);
    }
    let mut file = StoreOptions::appending().open(path).on("open", path)?;
    file.file_on_disk().lock().on("lock", path)?;
    let length = file.length().on("read", path)?;
    let mut last = [b'\n'];
    if let Some(at) = length.checked_sub(1) {
        file.seek(SeekFrom::Start(at)).on("read", path)?;
        file.read_exact(&mut last).on("read", path)?;
    }
    let separator: &[u8] = if last == *b"\n" { b"" } else { b"\n" };
    file.write_all(&[separator, lines].concat()).on("write", path)?;
    file.sync_data().on("sync", path)
}

/// Syncs a file that was written through another handle.
pub fn sync_file(path: &Path) -> Result<(), FileError> {
    File::open(physical_path(path)).and_then(|file| file.sync_data()).on("sync", path)
}

/// Writes everything from `offset` on again as it is on disk, and syncs it.
pub fn rewrite_from(file: &StoreFile, path: &Path, offset: u64) -> io::Result<()> {
    file.rewrite_from(offset, &physical_path(path))
}

/// Creates the key of a session in `folder`, in an encrypted store, unless it has one. Returns the file on disk that
/// the caller must sync, with its folders.
pub fn prepare_session_key(folder: &Path) -> io::Result<Option<PathBuf>> {
    match cipher_for(folder) {
        None => check_unlocked(folder).map(|()| None),
        Some(cipher) => cipher.prepare_session_key(folder),
    }
}

/// Times and inode of the key of a session in `folder`, in an encrypted store.
pub fn session_key_metadata(folder: &Path) -> Option<Metadata> {
    fs::metadata(cipher_for(folder)?.session_key_on_disk(folder)?).ok()
}

/// Where the key of a session in `folder` is on disk, in an encrypted store.
pub fn session_key_path(folder: &Path) -> Option<PathBuf> {
    cipher_for(folder)?.session_key_on_disk(folder)
}

/// Syncs the file of a session's key and its folders. Without the key, nothing of the session can be read.
pub fn sync_session_key(key: &Path) -> Result<(), FileError> {
    /// The folder of an agent's keys, that of all keys, and that of all encrypted files.
    const FOLDERS: usize = 3;
    File::open(key).and_then(|file| file.sync_data()).on("sync", key)?;
    let mut folders = key.ancestors().skip(1).take(FOLDERS);
    folders.try_for_each(durable::sync_dir)
}

/// Removes the key of a session in `folder`, in an encrypted store: nothing can decrypt its files any more.
pub fn remove_session_key(folder: &Path) -> Result<(), FileError> {
    match cipher_for(folder) {
        None => Ok(()),
        Some(cipher) => cipher.remove_session_key(folder).on("remove the key of", folder),
    }
}

/// Opens the database of a store.
pub fn open_database(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    match cipher_for(path) {
        None => Connection::open_with_flags(path, flags),
        Some(cipher) => {
            let (path, key) = (cipher.physical_path(path), &cipher.page_key);
            steno_page_cipher::open_encrypted(&path, flags, key, BaseFileSystem::Default)
        }
    }
}

/// Opens the database at `path` by a URI for its path on disk. Without locks, no process may write it.
pub fn open_database_uri(
    path: &Path,
    uri: &Path,
    flags: OpenFlags,
    has_locks: bool,
) -> rusqlite::Result<Connection> {
    match cipher_for(path) {
        None => Connection::open_with_flags(uri, flags),
        Some(cipher) => {
            let base = if has_locks { BaseFileSystem::Default } else { BaseFileSystem::Lockless };
            steno_page_cipher::open_encrypted(uri, flags, &cipher.page_key, base)
        }
    }
}

/// A file to create.
struct NewFile<'a> {
    path: &'a Path,
    physical: PathBuf,
}

impl<'a> NewFile<'a> {
    fn at(path: &'a Path) -> Result<Self, FileError> {
        check_unlocked(path).on("write", path)?;
        Ok(Self { path, physical: physical_path(path) })
    }

    fn fill(
        &self,
        out: &mut File,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        match cipher_for(self.path) {
            None => fill(out),
            Some(cipher) => {
                let key = cipher.key_for_new_file(self.path)?;
                let path = cipher.relative_path(self.path);
                let file = StoreFile::create_encrypted(out.try_clone()?, &key, &path)?;
                // One chunk for many small writes.
                let mut file = BufWriter::with_capacity(MAX_CHUNK_BYTES, file);
                fill(&mut file)?;
                file.flush()
            }
        }
    }
}
