//! `STORE/encryption.json`: the master key, wrapped once for each recipient. Its presence makes a store encrypted.
//!
//! Each [`KeySlot`] has an age file with the master key. Adding or removing one rewrites only this file.

use std::fs;
use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use steno_model::durable::{self, FileError, OnPath};

use crate::key_error::KeyWrapError;
use crate::key_wrapping::UnlockSecret;
use crate::master_key::MasterKey;
use crate::recipient::AgeRecipient;

/// The name of the file.
pub const KEY_FILE: &str = "encryption.json";

/// Version 2 has a generation, and an older steno would look for the files in another folder.
const KEY_FILE_VERSION: u32 = 2;

/// An error in a key file, or while reading it.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// No secret fits.
    #[error(transparent)]
    Key(#[from] KeyWrapError),
    /// There would be no key left.
    #[error("the last key of a store cannot be removed")]
    LastKey,
    /// There is no such key.
    #[error("the store has no such key: {0}")]
    Absent(String),
    /// There is already such a key.
    #[error("the store has this key already: {0}")]
    Present(String),
}

/// The content of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyFile {
    pub(crate) version: u32,
    /// Whether plain files of the store may still have to be removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_plain_files: bool,
    /// How often the master key was changed. Each has a folder of its own for the files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) generation: u32,
    /// Whether files of an earlier master key may still have to be removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_old_files: bool,
    /// The wrapped keys.
    pub slots: Vec<KeySlot>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One wrapped copy of the master key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum KeySlot {
    /// For an age recipient.
    Recipient {
        /// The recipient: `age1…`.
        recipient: String,
        /// An age file, as Base64.
        key: String,
    },
    /// For a recipient whose identity is in the system's keyring.
    Keyring {
        /// The recipient: `age1…`.
        recipient: String,
        /// An age file, as Base64.
        key: String,
    },
    /// For a passphrase.
    Passphrase {
        /// An age file, as Base64.
        key: String,
    },
}

impl KeySlot {
    /// Wraps the key for a recipient.
    pub fn for_recipient(key: &MasterKey, to: &AgeRecipient) -> Result<Self, KeyWrapError> {
        let key = STANDARD.encode(key.wrap_for(to)?);
        Ok(Self::Recipient { recipient: to.to_string(), key })
    }

    /// Wraps the key for a recipient with an identity in the system's keyring.
    pub fn for_keyring(key: &MasterKey, to: &AgeRecipient) -> Result<Self, KeyWrapError> {
        let key = STANDARD.encode(key.wrap_for(to)?);
        Ok(Self::Keyring { recipient: to.to_string(), key })
    }

    /// Wraps the key with a passphrase.
    pub fn for_passphrase(key: &MasterKey, passphrase: &str) -> Result<Self, KeyWrapError> {
        Ok(Self::Passphrase { key: STANDARD.encode(key.wrap_with_passphrase(passphrase)?) })
    }

    /// The recipient, or `passphrase`: what the key is listed as.
    pub fn name(&self) -> &str {
        match self {
            Self::Recipient { recipient, .. } | Self::Keyring { recipient, .. } => recipient,
            Self::Passphrase { .. } => "passphrase",
        }
    }

    fn wrapped(&self) -> Option<Vec<u8>> {
        match self {
            Self::Recipient { key, .. } | Self::Keyring { key, .. } | Self::Passphrase { key } => {
                STANDARD.decode(key).ok()
            }
        }
    }
}

impl KeyFile {
    /// A file with one key.
    pub fn new(slot: KeySlot) -> Self {
        Self {
            version: 1,
            has_plain_files: true,
            generation: 0,
            has_old_files: false,
            slots: vec![slot],
        }
    }

    /// The file of the next master key, which `slots` wrap.
    pub fn next_generation(&self, slots: Vec<KeySlot>) -> Self {
        Self {
            version: KEY_FILE_VERSION,
            has_plain_files: false,
            generation: self.generation + 1,
            has_old_files: true,
            slots,
        }
    }

    /// Reads the key file of a store; `None` for a plain store.
    pub fn read(store: &Path) -> Result<Option<Self>, FileError> {
        Self::read_at(&store.join(KEY_FILE))
    }

    pub(crate) fn read_at(path: &Path) -> Result<Option<Self>, FileError> {
        let bytes = match fs::read(path) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            other => other.on("read", path)?,
        };
        Self::from_json(&bytes).on("read", path).map(Some)
    }

    /// Parses the content of a key file.
    pub fn from_json(bytes: &[u8]) -> io::Result<Self> {
        let file: Self = serde_json::from_slice(bytes)?;
        if file.version > KEY_FILE_VERSION {
            let reason = format!("its version is {}; a newer steno can read it", file.version);
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        Ok(file)
    }

    /// The content of the file.
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("keys are text");
        text.push(b'\n');
        text
    }

    /// Writes the file. It is on disk when this returns.
    pub fn write(&self, store: &Path) -> Result<(), FileError> {
        self.write_at(&store.join(KEY_FILE))
    }

    pub(crate) fn write_at(&self, path: &Path) -> Result<(), FileError> {
        durable::write_atomic(path, &self.to_json())
    }

    /// Unwraps the master key with the first secret that fits.
    pub fn unwrap_key(&self, secret: &UnlockSecret) -> Result<MasterKey, KeyWrapError> {
        let mut result = Err(KeyWrapError::WrongKey);
        for slot in &self.slots {
            let wrapped = slot.wrapped().ok_or(KeyWrapError::Damaged);
            match wrapped.and_then(|wrapped| MasterKey::unwrap_with(&wrapped, secret)) {
                Ok(key) => return Ok(key),
                Err(KeyWrapError::Damaged) => result = Err(KeyWrapError::Damaged),
                Err(KeyWrapError::WrongKey) => {}
            }
        }
        result
    }

    /// Whether a passphrase opens the store.
    pub fn has_passphrase(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot, KeySlot::Passphrase { .. }))
    }

    /// Adds a key. A passphrase replaces the one before.
    pub fn add_slot(&mut self, slot: KeySlot) -> Result<(), KeyFileError> {
        if matches!(slot, KeySlot::Passphrase { .. }) {
            self.slots.retain(|known| !matches!(known, KeySlot::Passphrase { .. }));
        } else if self.slots.iter().any(|known| known.name() == slot.name()) {
            return Err(KeyFileError::Present(slot.name().to_owned()));
        }
        self.slots.push(slot);
        Ok(())
    }

    /// Removes a key by its name.
    pub fn remove_slot(&mut self, name: &str) -> Result<(), KeyFileError> {
        if !self.slots.iter().any(|slot| slot.name() == name) {
            return Err(KeyFileError::Absent(name.to_owned()));
        }
        if self.slots.iter().all(|slot| slot.name() == name) {
            return Err(KeyFileError::LastKey);
        }
        self.slots.retain(|slot| slot.name() != name);
        Ok(())
    }
}
