//! A key for the pieces of one session where others keep them, such as in a bucket.
//!
//! Removing all copies of the key makes every piece unreadable, also those in backups.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::master_key::{KEY_BYTES, MasterKey, derive_key, random_bytes};

/// The key of one session's pieces: AES-256-GCM with random nonces.
#[derive(Clone, PartialEq, Eq)]
pub struct DataKey([u8; KEY_BYTES]);

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey")
    }
}

impl DataKey {
    /// A new random key.
    pub fn generate() -> Self {
        Self(random_bytes())
    }

    /// A kept key; `None` if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The secret bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Encrypts a piece. It can be opened only with the same `context`, which is not secret.
    pub fn seal_piece(&self, context: &str, content: &[u8]) -> Vec<u8> {
        seal_with(&derive_key(&self.0, b"", b"session pieces"), context, content)
    }

    /// Decrypts a piece. `None` if it was changed, or was sealed with another key or context.
    pub fn open_piece(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        open_with(&derive_key(&self.0, b"", b"session pieces"), context, sealed)
    }

    /// Encrypts the key with that of a team.
    pub fn wrap_for_team(&self, team: &MasterKey, context: &str) -> Vec<u8> {
        seal_with(&team.derive("data keys"), context, &self.0)
    }

    /// Decrypts a key that was wrapped for a team.
    pub fn unwrap_for_team(wrapped: &[u8], team: &MasterKey, context: &str) -> Option<Self> {
        Self::from_bytes(&open_with(&team.derive("data keys"), context, wrapped)?)
    }
}

/// A random nonce, the ciphertext and its tag.
fn seal_with(key: &[u8; KEY_BYTES], context: &str, content: &[u8]) -> Vec<u8> {
    let nonce: [u8; NONCE_LEN] = random_bytes();
    let mut sealed = Vec::with_capacity(NONCE_LEN + content.len() + AES_256_GCM.tag_len());
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(content);
    let tag = piece_cipher(key)
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(context.as_bytes()),
            &mut sealed[NONCE_LEN..],
        )
        .expect("a piece is shorter than the limit of the cipher");
    sealed.extend_from_slice(tag.as_ref());
    sealed
}

fn open_with(key: &[u8; KEY_BYTES], context: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let mut bytes = sealed.to_vec();
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let context = Aad::from(context.as_bytes());
    let length = piece_cipher(key).open_in_place(nonce, context, &mut bytes).ok()?.len();
    bytes.truncate(length);
    Some(bytes)
}

fn piece_cipher(key: &[u8; KEY_BYTES]) -> LessSafeKey {
    let key = UnboundKey::new(&AES_256_GCM, key);
    LessSafeKey::new(key.expect("the key has the cipher's length"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_piece_opens_only_as_it_was_sealed(
            content in proptest::collection::vec(any::<u8>(), 0..300),
            at in any::<prop::sample::Index>(),
        ) {
            let key = DataKey::generate();
            let sealed = key.seal_piece("ada 1", &content);
            prop_assert_eq!(key.open_piece("ada 1", &sealed), Some(content));
            prop_assert_eq!(key.open_piece("ada 2", &sealed), None);
            prop_assert_eq!(DataKey::generate().open_piece("ada 1", &sealed), None);
            prop_assert_eq!(key.open_piece("ada 1", &sealed[..at.index(sealed.len())]), None);
            let mut flipped = sealed;
            let at = at.index(flipped.len());
            flipped[at] ^= 1;
            prop_assert_eq!(key.open_piece("ada 1", &flipped), None);
        }
    }

    #[test]
    fn a_key_is_unwrapped_by_its_team_only() {
        let (key, team) = (DataKey::generate(), MasterKey::generate());
        let wrapped = key.wrap_for_team(&team, "ada 1");
        assert_eq!(DataKey::unwrap_for_team(&wrapped, &team, "ada 1"), Some(key));
        assert_eq!(DataKey::unwrap_for_team(&wrapped, &team, "bob 1"), None);
        assert_eq!(DataKey::unwrap_for_team(&wrapped, &MasterKey::generate(), "ada 1"), None);
    }

    #[test]
    fn equal_pieces_are_sealed_differently_and_keys_are_not_shown() {
        let key = DataKey::generate();
        assert_ne!(key.seal_piece("", b"same"), key.seal_piece("", b"same"));
        assert_eq!(format!("{key:?}"), "DataKey");
    }
}
