//! Encryption at rest: reads and writes the files of a store that may be encrypted.
//!
//! All code that opens, lists or removes files of a store uses [`store_fs`]. Paths are always those of a plain store,
//! such as `STORE/vault/AGENT/ID/log.jsonl.zst`. If the store is encrypted and was unlocked ([`unlock_store`]), the file
//! is below `STORE/encrypted`, under an encrypted name, in chunks of authenticated ciphertext ([`StoreFile`]). Otherwise
//! it is the file at that path, with the same system calls as without this crate.
//!
//! # Keys
//! A random [`MasterKey`] is stored in `STORE/encryption.json`, wrapped for each recipient ([`KeyFile`]). Keys for names,
//! the index and the store's own files are derived from it. Each session has a random key of its own in `STORE/keys`;
//! removing that file makes all copies of the session unreadable. [`key_change`] replaces the master key.

mod age_stanza;
mod chunk_map;
pub mod conversion;
mod data_key;
pub mod key_change;
mod key_error;
mod key_file;
mod key_wrapping;
mod master_key;
mod name_cipher;
mod recipient;
mod store_cipher;
mod store_file;
pub mod store_fs;
mod store_options;
mod unlocked_stores;

#[cfg(test)]
mod tests;

pub use self::data_key::DataKey;
pub use self::key_error::KeyWrapError;
pub use self::key_file::{KEY_FILE, KeyFile, KeyFileError, KeySlot};
pub use self::key_wrapping::UnlockSecret;
pub use self::master_key::MasterKey;
pub use self::recipient::{AgeIdentity, AgeRecipient, RecipientError};
pub use self::store_file::StoreFile;
pub use self::store_options::StoreOptions;
pub use self::unlocked_stores::{LockedStoreError, is_encrypted, lock_store, unlock_store};
