//! Secret keys, and keys derived from them.

use std::fmt;

use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};

/// The length of every key.
pub(crate) const KEY_BYTES: usize = 32;

/// The key that all others of a store depend on.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey(pub(crate) [u8; KEY_BYTES]);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey")
    }
}

impl MasterKey {
    /// A new random key.
    pub fn generate() -> Self {
        Self(random_bytes())
    }

    /// The key for one use.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; KEY_BYTES] {
        derive_key(&self.0, b"", purpose.as_bytes())
    }
}

/// Random bytes of the system.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has a source of randomness");
    bytes
}

/// HKDF-SHA256.
pub(crate) fn derive_key(secret: &[u8], salt: &[u8], purpose: &[u8]) -> [u8; KEY_BYTES] {
    struct KeyLength;

    impl KeyType for KeyLength {
        fn len(&self) -> usize {
            KEY_BYTES
        }
    }

    let mut key = [0; KEY_BYTES];
    Salt::new(HKDF_SHA256, salt)
        .extract(secret)
        .expand(&[purpose], KeyLength)
        .and_then(|derived| derived.fill(&mut key))
        .expect("the length is one that HKDF can derive");
    key
}
