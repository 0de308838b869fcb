//! Gives an encrypted store another master key, without rewriting the files of its sessions.
//!
//! Names, the keys of sessions and the store's own files depend on the master key; the files of a session only on the
//! session's key. So a second folder gets links to those files under their new names, and new copies of the rest. One
//! rename of the key file makes the new folder valid, and the old one is removed. What can be derived, such as the index,
//! is made again when it is needed. A process that is killed before the rename leaves the old folder valid.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use steno_model::durable::{self, FileError, OnPath};

use crate::conversion::{
    CONVERTED, ConversionError, ConversionProgress, UNFINISHED_KEY_FILE, copy_chunks, is_lock_file,
    list_folder, lock_conversion, lock_writers, other_folders, remove_old_files, rename_durably,
};
use crate::key_file::{KEY_FILE, KeyFile};
use crate::master_key::MasterKey;
use crate::store_cipher::{KEYS_FOLDER, StoreCipher, encrypted_folder};
use crate::store_file::StoreFile;

/// A master key and the file that has it.
#[derive(Clone, Copy, Debug)]
pub struct StoreKeys<'a> {
    /// The key.
    pub master: &'a MasterKey,
    /// The file in which it is wrapped.
    pub file: &'a KeyFile,
}

/// Replaces the master key of a store. `new.file` is the next generation of `old.file`.
pub fn change_master_key(
    store: &Path,
    old: StoreKeys<'_>,
    new: StoreKeys<'_>,
    progress: ConversionProgress<'_>,
) -> Result<(), ConversionError> {
    let _lock = lock_conversion(store)?;
    let present = KeyFile::read(store)?;
    let is_expected =
        |keys: &KeyFile| keys.generation == old.file.generation && keys.slots == old.file.slots;
    let Some(present) = present.filter(is_expected) else {
        return Err(ConversionError::KeyChanged(store.to_owned()));
    };
    let present = remove_old_files(store, present)?;
    if let Some(folder) = other_folders(store, &present)?.pop() {
        return Err(ConversionError::Unexpected(folder));
    }
    let old_cipher = StoreCipher::new(store, old.master.clone(), old.file);
    let new_cipher = StoreCipher::new(store, new.master.clone(), new.file);
    let _writers = lock_writers(&store.join("vault"), &|path| old_cipher.physical_path(path))?;
    let unfinished = store.join(UNFINISHED_KEY_FILE);
    new.file.write_at(&unfinished)?;
    durable::create_private_dir(&encrypted_folder(store, new.file.generation))?;
    let mut change = KeyChange { old: old_cipher, new: new_cipher, progress };
    for name in CONVERTED.iter().chain(&[KEYS_FOLDER]) {
        change.convert_path(&store.join(name))?;
    }
    durable::sync_dir(&encrypted_folder(store, new.file.generation))?;
    rename_durably(&unfinished, &store.join(KEY_FILE))?;
    remove_old_files(store, new.file.clone())?;
    Ok(())
}

struct KeyChange<'a> {
    old: StoreCipher,
    new: StoreCipher,
    progress: ConversionProgress<'a>,
}

impl KeyChange<'_> {
    /// Converts a file, or a folder with all that is in it.
    fn convert_path(&mut self, path: &Path) -> Result<(), FileError> {
        let (from, to) = (self.old.physical_path(path), self.new.physical_path(path));
        if from.is_dir() {
            durable::create_private_dir(&to)?;
            for entry in list_folder(&from)?.iter().filter(|entry| !durable::is_leftover(entry)) {
                let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if let Some(name) = self.old.decrypt_entry(path, &from, name) {
                    self.convert_path(&path.join(name))?;
                }
            }
            return durable::sync_dir(&to);
        }
        if !from.exists() || is_lock_file(path) {
            return Ok(());
        }
        (self.progress)(path);
        match self.old.session_key_path(path) {
            Some(_) => link_or_copy(&from, &to).on("link", path),
            None => self.encrypt_again(path, &from, &to).on("encrypt", path),
        }
    }

    /// Copies a file that the old master key opens. Fails if it is damaged.
    fn encrypt_again(&self, path: &Path, from: &Path, to: &Path) -> io::Result<()> {
        let relative = self.old.relative_path(path);
        let input = File::open(from)?;
        let mut input = StoreFile::open_encrypted(input, &self.old.file_key(path)?, &relative)?
            .failing_on_damage();
        let output = durable::private_options().read(true).write(true).create_new(true).open(to)?;
        let mut output = StoreFile::create_encrypted(output, &self.new.file_key(path)?, &relative)?;
        copy_chunks(&mut input, &mut output)?;
        output.sync_data()
    }
}

/// Some file systems have no hard links.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}
