//! Public and secret keys in the notation of age: `age1…` and `AGE-SECRET-KEY-1…`.

use std::fmt;
use std::str::FromStr;

use bech32::{Bech32, Hrp};

use crate::master_key::{KEY_BYTES, random_bytes};

const RECIPIENT_PREFIX: &str = "age";
const IDENTITY_PREFIX: &str = "AGE-SECRET-KEY-";

/// A text that is not a key of age.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecipientError {
    /// Not a recipient.
    #[error("not an age recipient (age1...): {0:?}")]
    Recipient(String),
    /// Not an identity. The text is secret, so it is not repeated.
    #[error("no age identity (AGE-SECRET-KEY-1...) in the file")]
    Identity,
}

/// A public X25519 key that the master key can be wrapped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgeRecipient(pub(crate) [u8; KEY_BYTES]);

impl FromStr for AgeRecipient {
    type Err = RecipientError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = decode_key(text.trim(), RECIPIENT_PREFIX);
        bytes.map(Self).ok_or_else(|| RecipientError::Recipient(text.to_owned()))
    }
}

impl fmt::Display for AgeRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode_key(&self.0, RECIPIENT_PREFIX))
    }
}

/// A secret X25519 key.
#[derive(Clone, PartialEq, Eq)]
pub struct AgeIdentity(pub(crate) [u8; KEY_BYTES]);

impl fmt::Debug for AgeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgeIdentity")
    }
}

impl AgeIdentity {
    /// A new random identity.
    pub fn generate() -> Self {
        Self(random_bytes())
    }

    /// The recipient of this identity.
    pub fn recipient(&self) -> AgeRecipient {
        AgeRecipient(x25519_dalek::x25519(self.0, x25519_dalek::X25519_BASEPOINT_BYTES))
    }

    /// The identities in a file as `age-keygen` writes it: one on each line, and comments.
    pub fn parse_file(text: &str) -> Result<Vec<Self>, RecipientError> {
        let lines = text.lines().map(str::trim);
        let keys = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let identities: Vec<Self> =
            keys.filter_map(|line| decode_key(line, IDENTITY_PREFIX).map(Self)).collect();
        if identities.is_empty() { Err(RecipientError::Identity) } else { Ok(identities) }
    }

    /// The secret text, for an identity file.
    pub fn to_secret_text(&self) -> String {
        encode_key(&self.0, IDENTITY_PREFIX).to_uppercase()
    }
}

fn decode_key(text: &str, prefix: &str) -> Option<[u8; KEY_BYTES]> {
    let (stated, bytes) = bech32::decode(text).ok()?;
    let is_named = stated.to_lowercase() == prefix.to_lowercase();
    bytes.try_into().ok().filter(|_| is_named)
}

fn encode_key(bytes: &[u8; KEY_BYTES], prefix: &str) -> String {
    let prefix = Hrp::parse_unchecked(&prefix.to_lowercase());
    bech32::encode::<Bech32>(prefix, bytes).expect("a key is short")
}
