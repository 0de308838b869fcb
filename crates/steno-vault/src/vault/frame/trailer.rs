//! The end of a sealed file: an index of its frames, which is found from the file's last bytes.

use std::io::{self, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};
use steno_cipher::StoreFile;

use super::file_header::FileMove;
use super::hex_hash::HexHash;
use super::skippable_frame::{
    encode_skippable_frame, none_if_damaged, parse_canonical_json, read_skippable_frame,
    to_canonical_json,
};
use crate::attributes::FileAttributes;

/// The last bytes of a trailer.
const TRAILER_MARKER: &[u8; 8] = b"STENOEND";
/// Size of what follows a trailer's JSON: hash, total size and marker.
const FOOTER_SIZE: usize = 8 + 4 + TRAILER_MARKER.len();

/// The end of a sealed file: an index of its frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SealedTrailer {
    /// For each frame, the offset of its header in the sealed file and of its first byte in the session file.
    pub(crate) frames: Vec<(u64, u64)>,
    /// Kept length of the session file.
    pub(crate) length: u64,
    /// End of the chain.
    pub(crate) chain: HexHash,
    /// Modification time of the session file, in nanoseconds since the Unix epoch.
    pub(crate) modified: Option<i128>,
    /// Permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<u32>,
    /// The last location that a frame records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) moved: Option<FileMove>,
}

impl SealedTrailer {
    /// The trailer of a file without frames, with the chain that its header starts.
    pub(crate) fn without_frames(chain: HexHash) -> Self {
        Self { frames: Vec::new(), length: 0, chain, modified: None, mode: None, moved: None }
    }

    /// The file system attributes of the session file.
    pub(crate) fn file_attributes(&self) -> FileAttributes {
        FileAttributes { modified: self.modified, mode: self.mode }
    }

    /// The same trailer with other attributes.
    pub(crate) fn with_attributes(self, FileAttributes { modified, mode }: FileAttributes) -> Self {
        Self { modified, mode, ..self }
    }
}

/// Encodes the trailer of a sealed file.
pub(crate) fn encode_trailer(trailer: &SealedTrailer) -> Vec<u8> {
    let json = to_canonical_json(trailer);
    let mut footer = blake3::hash(&json).as_bytes()[..8].to_vec();
    footer.extend_from_slice(&((8 + json.len() + FOOTER_SIZE) as u32).to_le_bytes());
    footer.extend_from_slice(TRAILER_MARKER);
    encode_skippable_frame(trailer, &footer)
}

/// Reads the trailer of a file of `size` bytes, and returns its offset too; `None` if there is no complete trailer.
pub(crate) fn read_trailer(
    file: &mut StoreFile,
    size: u64,
) -> io::Result<Option<(u64, SealedTrailer)>> {
    let mut footer = [0; FOOTER_SIZE];
    if size < FOOTER_SIZE as u64 {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(size - FOOTER_SIZE as u64))?;
    file.read_exact(&mut footer)?;
    let total = u64::from(u32::from_le_bytes([footer[8], footer[9], footer[10], footer[11]]));
    if &footer[12..] != TRAILER_MARKER || total > size || total < (8 + FOOTER_SIZE) as u64 {
        return Ok(None);
    }
    let at = size - total;
    file.seek(SeekFrom::Start(at))?;
    let Some(content) = none_if_damaged(read_skippable_frame(file))? else {
        return Ok(None);
    };
    let json = &content[..content.len().saturating_sub(FOOTER_SIZE)];
    if blake3::hash(json).as_bytes()[..8] != footer[..8] {
        return Ok(None);
    }
    Ok(parse_canonical_json(json).ok().map(|trailer| (at, trailer)))
}

/// The attributes stored in a trailer. All its other fields can be recomputed.
pub(crate) fn read_stated_attributes(end: &[u8]) -> Option<FileAttributes> {
    parse_stated_attributes(end.get(8..)?)
}

/// The same, without the prefix of the skippable frame.
fn parse_stated_attributes(content: &[u8]) -> Option<FileAttributes> {
    let json = content.get(..content.len().checked_sub(FOOTER_SIZE)?)?;
    parse_canonical_json::<SealedTrailer>(json).ok().map(|trailer| trailer.file_attributes())
}

/// Whether the content of a skippable frame is a trailer.
pub(super) fn is_trailer(content: &[u8]) -> bool {
    content.ends_with(TRAILER_MARKER) && parse_stated_attributes(content).is_some()
}
