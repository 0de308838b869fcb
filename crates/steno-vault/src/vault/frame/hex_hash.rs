//! A hash as headers state it.

use serde::{Deserialize, Serialize};

/// A blake3 hash, written in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct HexHash(pub(crate) blake3::Hash);

impl From<HexHash> for String {
    fn from(hash: HexHash) -> Self {
        hash.0.to_hex().to_string()
    }
}

impl TryFrom<String> for HexHash {
    type Error = blake3::HexError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        blake3::Hash::from_hex(text).map(HexHash)
    }
}
