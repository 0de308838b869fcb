//! Ids of secrets: keyed hashes, so that an id in a report or a log confirms no guess.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use steno_cipher::store_fs;
use uuid::Uuid;

/// The file with the key, in the store's folder.
const KEY_FILE: &str = "secret-ids.key";

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 12;

/// The id of a secret in one store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretId(String);

/// Not the id of a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a secret ({ID_DIGITS} digits and letters from a to f): {0:?}")]
pub struct SecretIdError(pub String);

impl SecretId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecretId {
    type Err = SecretIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_id = text.len() == ID_DIGITS
            && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_id.then(|| Self(text.to_owned())).ok_or_else(|| SecretIdError(text.to_owned()))
    }
}

impl fmt::Display for SecretId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The key of a store's secret ids.
#[derive(Clone)]
pub struct SecretIdKey([u8; KEY_BYTES]);

impl SecretIdKey {
    /// Reads the key of a store, or makes one. In a store that cannot be written, the ids hold for this process only.
    pub fn load_or_create(store: &Path) -> Self {
        let path = store.join(KEY_FILE);
        if let Some(key) = read_key(&path) {
            return key;
        }
        let key = Self::new_random();
        let _ = store_fs::create_atomic(&path, blake3::Hash::from(key.0).to_hex().as_bytes());
        // Another process may have been first.
        read_key(&path).unwrap_or(key)
    }

    fn new_random() -> Self {
        let mut seed = [0; KEY_BYTES];
        seed[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        seed[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        Self(blake3::derive_key("steno secret ids 2026", &seed))
    }

    /// The id of a secret.
    pub fn secret_id(&self, secret: &str) -> SecretId {
        let hash = blake3::keyed_hash(&self.0, secret.as_bytes()).to_hex();
        SecretId(hash[..ID_DIGITS].to_owned())
    }
}

impl fmt::Debug for SecretIdKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretIdKey")
    }
}

fn read_key(path: &Path) -> Option<SecretIdKey> {
    let text = store_fs::read(path).ok()?;
    Some(SecretIdKey(*blake3::Hash::from_hex(text.trim_ascii()).ok()?.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_stable_in_a_store_and_differ_between_stores() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let id = |store: &tempfile::TempDir| {
            SecretIdKey::load_or_create(store.path()).secret_id("hunter2")
        };
        assert_eq!(id(&one), id(&one));
        assert_ne!(id(&one), id(&two));
        assert_eq!(id(&one).to_string().parse(), Ok(id(&one)));
        assert!("hunter2".parse::<SecretId>().is_err());
    }

    #[test]
    fn a_store_that_cannot_be_written_has_ids_too() {
        let folder = tempfile::tempdir().unwrap();
        let key = SecretIdKey::load_or_create(&folder.path().join("missing/folder"));
        assert_eq!(key.secret_id("a"), key.secret_id("a"));
    }
}
