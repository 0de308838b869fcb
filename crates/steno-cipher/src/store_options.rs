//! Opens files of a store, plain or encrypted.

use std::io;
use std::path::Path;

use steno_model::durable;

use crate::store_file::{StoreFile, has_no_bytes};
use crate::unlocked_stores::cipher_for;

/// Options for opening a file of a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreOptions {
    read: bool,
    write: bool,
    append: bool,
    create: bool,
    truncate: bool,
}

impl StoreOptions {
    /// Opens an existing file for reading.
    pub fn reading() -> Self {
        Self { read: true, ..Self::default() }
    }

    /// Opens an existing file for reading and writing.
    pub fn writing() -> Self {
        Self { read: true, write: true, ..Self::default() }
    }

    /// Opens or creates a file for reading and appending.
    pub fn appending() -> Self {
        Self { read: true, append: true, create: true, ..Self::default() }
    }

    /// Creates a file for reading and writing, or empties the one that exists.
    pub fn replacing() -> Self {
        Self { read: true, write: true, create: true, truncate: true, ..Self::default() }
    }

    /// Opens the file at a path of a plain store.
    pub fn open(self, path: &Path) -> io::Result<StoreFile> {
        let mut options = durable::private_options();
        let Some(cipher) = cipher_for(path) else {
            options.read(self.read).write(self.write).append(self.append);
            options.create(self.create).truncate(self.truncate);
            return options.open(path).map(StoreFile::plain);
        };
        let is_writing = self.write || self.append;
        options.read(true).write(is_writing).create(self.create).truncate(self.truncate);
        let file = options.open(cipher.physical_path(path))?;
        let relative = cipher.relative_path(path);
        let opened = match has_no_bytes(&file)? {
            // A new file, or one whose creation was interrupted.
            true if is_writing => {
                file.set_len(0)?;
                StoreFile::create_encrypted(file, &cipher.key_for_new_file(path)?, &relative)?
            }
            true => StoreFile::without_content(file)?,
            false => StoreFile::open_encrypted(file, &cipher.file_key(path)?, &relative)?,
        };
        Ok(if self.append { opened.appending() } else { opened })
    }
}
