//! Encrypted names of files and folders.
//!
//! A name is encrypted deterministically, so that a path can be opened without listing its folder: a keyed hash of
//! parent and name is the nonce of a key stream (SIV), and proves the name when it is decrypted. Equal names in
//! different folders differ. Names that would become too long for a file system are replaced by their hash; the
//! encrypted header of the file has the name.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::master_key::{KEY_BYTES, MasterKey};

/// The length of the keyed hash in a name.
const HASH_BYTES: usize = 16;

/// The longest name that is encrypted: as Base64 with its hash, it has at most 255 characters.
const MAX_NAME_BYTES: usize = 170;

/// The first character of a hashed name. Base64 has no such character.
pub(crate) const HASHED_NAME_MARK: char = '~';

#[derive(Clone)]
pub(crate) struct NameCipher {
    hash_key: [u8; KEY_BYTES],
    stream_key: [u8; KEY_BYTES],
}

impl NameCipher {
    pub(crate) fn new(master: &MasterKey) -> Self {
        let [hash_key, stream_key] = ["name hash", "name stream"].map(|use_| master.derive(use_));
        Self { hash_key, stream_key }
    }

    /// Encrypts the name of an entry of the folder `parent`, a path relative to the store.
    pub(crate) fn encrypt_name(&self, parent: &str, name: &str) -> String {
        let hash = self.name_hash(parent, name);
        if name.len() > MAX_NAME_BYTES {
            return format!("{HASHED_NAME_MARK}{}", URL_SAFE_NO_PAD.encode(hash));
        }
        let mut bytes = hash.to_vec();
        bytes.extend_from_slice(name.as_bytes());
        self.apply_stream(&hash, &mut bytes[HASH_BYTES..]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decrypts a name; `None` if it was not encrypted for this folder with this key.
    pub(crate) fn decrypt_name(&self, parent: &str, encrypted: &str) -> Option<String> {
        let mut bytes = URL_SAFE_NO_PAD.decode(encrypted).ok()?;
        let (hash, name) = bytes.split_first_chunk_mut::<HASH_BYTES>()?;
        self.apply_stream(hash, name);
        let name = std::str::from_utf8(name).ok()?;
        (self.name_hash(parent, name) == *hash).then(|| name.to_owned())
    }

    fn name_hash(&self, parent: &str, name: &str) -> [u8; HASH_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.hash_key);
        hasher.update(&(parent.len() as u64).to_le_bytes());
        hasher.update(parent.as_bytes());
        hasher.update(name.as_bytes());
        *hasher.finalize().as_bytes().first_chunk().expect("a hash is longer")
    }

    fn apply_stream(&self, hash: &[u8; HASH_BYTES], bytes: &mut [u8]) {
        let mut stream = vec![0; bytes.len()];
        let mut hasher = blake3::Hasher::new_keyed(&self.stream_key);
        hasher.update(hash).finalize_xof().fill(&mut stream);
        bytes.iter_mut().zip(stream).for_each(|(byte, mask)| *byte ^= mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_in_their_folder_only() {
        let cipher = NameCipher::new(&MasterKey::generate());
        for name in ["a", "record.jsonl.zst", &"n".repeat(MAX_NAME_BYTES), "ü@1.zst"] {
            let encrypted = cipher.encrypt_name("vault/x", name);
            assert!(encrypted.len() <= 255 && !encrypted.contains(name) || name == "a");
            assert_eq!(cipher.decrypt_name("vault/x", &encrypted).as_deref(), Some(name));
            assert_eq!(cipher.decrypt_name("vault/y", &encrypted), None);
            assert_ne!(cipher.encrypt_name("vault/y", name), encrypted);
        }
        let long = cipher.encrypt_name("vault", &"n".repeat(MAX_NAME_BYTES + 1));
        assert!(long.starts_with(HASHED_NAME_MARK) && long.len() < 30);
    }
}
