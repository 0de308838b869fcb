//! Frames of a pushed file: named by the hash of their content, and linked by a chain.
//!
//! The chain starts with the description of the file. So a frame that is removed, swapped or moved to another file is
//! found, and a machine that wants to append must know all that is there.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Size of a frame. The last one of a push is smaller.
pub(crate) const FRAME_BYTES: usize = 1 << 20;

/// A frame is decompressed to at most this size.
pub(crate) const MAX_FRAME_BYTES: usize = 4 << 20;

/// The blake3 hash of a frame's content, or a link of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameHash(pub(crate) [u8; 32]);

/// A text that is no hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a hash of 64 hexadecimal digits")]
pub struct FrameHashError;

/// A frame in a file, with the link of the chain after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameLink {
    /// The hash of its content.
    pub hash: FrameHash,
    /// The length of its content.
    pub length: u64,
    /// The link after it.
    pub chain: FrameHash,
}

/// A frame that is sent: its hash and its compressed content.
pub(crate) type SentFrame = (FrameHash, Vec<u8>);

impl FrameHash {
    /// The hash of a content.
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    /// The link after this one and a frame.
    pub(crate) fn next_link(&self, hash: &FrameHash, length: u64) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(&hash.0).update(&length.to_le_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// The frame with this content after this link.
    pub(crate) fn link_frame(&self, content: &[u8]) -> FrameLink {
        let (hash, length) = (Self::of(content), content.len() as u64);
        FrameLink { chain: self.next_link(&hash, length), hash, length }
    }
}

impl fmt::Display for FrameHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl FromStr for FrameHash {
    type Err = FrameHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hash = blake3::Hash::from_hex(text).map_err(|_| FrameHashError)?;
        Ok(Self(*hash.as_bytes()))
    }
}

impl Serialize for FrameHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FrameHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Compresses the content of a frame.
pub(crate) fn compress(content: &[u8]) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(content, 3)
}

/// Decompresses a frame and checks its hash and length. `None` if it is damaged.
pub(crate) fn decompress(stored: &[u8], link: &FrameLink) -> Option<Vec<u8>> {
    let length = usize::try_from(link.length).ok().filter(|length| *length <= MAX_FRAME_BYTES)?;
    let content = zstd::bulk::decompress(stored, length).ok()?;
    (content.len() == length && FrameHash::of(&content) == link.hash).then_some(content)
}
