//! The keys of one unlocked store, and where its files are.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use steno_model::durable;
use steno_page_cipher::PageKey;

use crate::key_file::KeyFile;
use crate::master_key::{KEY_BYTES, MasterKey, random_bytes};
use crate::name_cipher::{HASHED_NAME_MARK, NameCipher};
use crate::store_file::{self, StoreFile};

/// The folder of the keys of sessions.
pub(crate) const KEYS_FOLDER: &str = "keys";

/// The folder of the files of a store's first master key.
const FOLDER: &str = "encrypted";

/// Names that SQLite extends, so they must stay as they are. They reveal nothing.
const PLAIN_NAMES: [&str; 3] = ["index.db", "index.db-wal", "index.db-shm"];

pub(crate) struct StoreCipher {
    store: PathBuf,
    /// Which master key this is.
    generation: u32,
    names: NameCipher,
    /// For all files that belong to no session.
    store_key: [u8; KEY_BYTES],
    pub(crate) page_key: PageKey,
    session_keys: Mutex<HashMap<PathBuf, [u8; KEY_BYTES]>>,
}

impl fmt::Debug for StoreCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreCipher").field("store", &self.store).finish_non_exhaustive()
    }
}

impl StoreCipher {
    /// The cipher of a store with its master key, which is that of `keys`.
    pub(crate) fn new(store: &Path, master: MasterKey, keys: &KeyFile) -> Self {
        Self {
            store: store.to_owned(),
            generation: keys.generation,
            names: NameCipher::new(&master),
            store_key: master.derive("store files"),
            page_key: PageKey::new(master.derive("index pages")),
            session_keys: Mutex::default(),
        }
    }

    pub(crate) fn store(&self) -> &Path {
        &self.store
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Where the file or folder `path` of the store really is.
    pub(crate) fn physical_path(&self, path: &Path) -> PathBuf {
        let mut physical = encrypted_folder(&self.store, self.generation);
        let mut parent = String::new();
        for name in self.relative_names(path) {
            physical.push(self.encrypt_name(&parent, &name));
            append_name(&mut parent, &name);
        }
        physical
    }

    /// The path relative to the store, with `/` between names.
    pub(crate) fn relative_path(&self, path: &Path) -> String {
        let mut relative = String::new();
        self.relative_names(path).for_each(|name| append_name(&mut relative, &name));
        relative
    }

    fn relative_names<'a>(&self, path: &'a Path) -> impl Iterator<Item = String> + use<'a> {
        let below = path.strip_prefix(&self.store).unwrap_or(path);
        below.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
    }

    fn encrypt_name(&self, parent: &str, name: &str) -> String {
        match is_plain_name(name) {
            true => name.to_owned(),
            false => self.names.encrypt_name(parent, name),
        }
    }

    /// The name of an entry of the folder at `folder`, which is at `physical` on disk. `None` for a foreign file.
    pub(crate) fn decrypt_entry(
        &self,
        folder: &Path,
        physical: &Path,
        encrypted: &str,
    ) -> Option<String> {
        if is_plain_name(encrypted) {
            return Some(encrypted.to_owned());
        }
        if encrypted.starts_with(HASHED_NAME_MARK) {
            let key = self.file_key(&folder.join(encrypted)).ok()?;
            let name = store_file::read_stated_name(&physical.join(encrypted), &key).ok()?;
            return name.rsplit('/').next().map(str::to_owned);
        }
        self.names.decrypt_name(&self.relative_path(folder), encrypted)
    }

    /// The key for the file at `path`: the session's, or the store's.
    pub(crate) fn file_key(&self, path: &Path) -> io::Result<[u8; KEY_BYTES]> {
        match self.session_key_path(path) {
            None => Ok(self.store_key),
            Some(key_path) => self.session_key(&key_path),
        }
    }

    /// The key for a new file at `path`. Creates a session's key if there is none.
    pub(crate) fn key_for_new_file(&self, path: &Path) -> io::Result<[u8; KEY_BYTES]> {
        let Some(key_path) = self.session_key_path(path) else { return Ok(self.store_key) };
        match self.session_key(&key_path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.create_session_key(&key_path, true)?;
                self.session_key(&key_path)
            }
            found => found,
        }
    }

    /// Creates the key of the session in `folder`, unless it has one. Returns the path on disk of a new key, which the
    /// caller must sync with its folders.
    pub(crate) fn prepare_session_key(&self, folder: &Path) -> io::Result<Option<PathBuf>> {
        let Some(key_path) = self.session_key_path(&folder.join("file")) else { return Ok(None) };
        match self.session_key(&key_path) {
            Ok(_) => Ok(None),
            Err(_) => self.create_session_key(&key_path, false),
        }
    }

    /// Where the key of the session in `folder` is on disk.
    pub(crate) fn session_key_on_disk(&self, folder: &Path) -> Option<PathBuf> {
        let key_path = self.session_key_path(&folder.join("file"))?;
        Some(self.physical_path(&key_path))
    }

    /// Removes the key of the session in `folder`: nothing can decrypt its files any more.
    pub(crate) fn remove_session_key(&self, folder: &Path) -> io::Result<()> {
        let Some(key_path) = self.session_key_path(&folder.join("file")) else { return Ok(()) };
        self.lock_keys().remove(&key_path);
        let physical = self.physical_path(&key_path);
        durable::remove_file(&physical).map_err(|error| error.source)?;
        // Other sessions of the agent keep the folder.
        let _ = std::fs::remove_dir(durable::parent_folder(&physical));
        Ok(())
    }

    /// The path of the key for a file of a session; `None` for other files.
    pub(crate) fn session_key_path(&self, path: &Path) -> Option<PathBuf> {
        let names: Vec<String> = self.relative_names(path).take(4).collect();
        match &names[..] {
            [vault, agent, session, _] if vault == "vault" => {
                Some(self.store.join(KEYS_FOLDER).join(agent).join(session))
            }
            _ => None,
        }
    }

    /// Reads a session's key. Without one, nothing of the session can be read, which is damage.
    fn session_key(&self, key_path: &Path) -> io::Result<[u8; KEY_BYTES]> {
        if let Some(key) = self.lock_keys().get(key_path) {
            return Ok(*key);
        }
        let mut key = [0; KEY_BYTES];
        let missing =
            |_| io::Error::new(io::ErrorKind::InvalidData, "the session's key is missing");
        let file = std::fs::File::open(self.physical_path(key_path)).map_err(missing)?;
        let relative = self.relative_path(key_path);
        // The bytes that stand for a damaged key must not become a key.
        let file = StoreFile::open_encrypted(file, &self.store_key, &relative)?;
        file.failing_on_damage().read_exact(&mut key)?;
        self.lock_keys().insert(key_path.to_owned(), key);
        Ok(key)
    }

    fn create_session_key(&self, key_path: &Path, sync: bool) -> io::Result<Option<PathBuf>> {
        let physical = self.physical_path(key_path);
        let relative = self.relative_path(key_path);
        let fill = |file: &mut std::fs::File| {
            let file = file.try_clone()?;
            let key: [u8; KEY_BYTES] = random_bytes();
            let mut stored = StoreFile::create_encrypted(file, &self.store_key, &relative)?;
            stored.write_all(&key)?;
            // A power failure must leave no part of a key under its name: it would not be replaced.
            stored.sync_data()
        };
        durable::create_private_dir(durable::parent_folder(&physical))
            .and_then(|()| match sync {
                true => durable::create_atomic_with(&physical, fill),
                false => durable::create_unsynced_with(&physical, fill),
            })
            .map(|is_new| is_new.then_some(physical))
            .map_err(|error| error.source)
    }

    fn lock_keys(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, [u8; KEY_BYTES]>> {
        self.session_keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folder of an encrypted store that has its files.
pub(crate) fn encrypted_folder(store: &Path, generation: u32) -> PathBuf {
    match generation {
        0 => store.join(FOLDER),
        number => store.join(format!("{FOLDER}-{number}")),
    }
}

/// All folders of encrypted files, of any master key.
pub(crate) fn all_encrypted_folders(store: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(store)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(FOLDER));
        let is_folder = number.is_some_and(|number| {
            let digits = number.strip_prefix('-').unwrap_or_default();
            number.is_empty()
                || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        if is_folder && entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    Ok(folders)
}

fn append_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(name);
}

/// Whether a name is the same on disk: files of SQLite, and temporary files.
fn is_plain_name(name: &str) -> bool {
    PLAIN_NAMES.contains(&name) || durable::is_leftover(Path::new(name))
}
