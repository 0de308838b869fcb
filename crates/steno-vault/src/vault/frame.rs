//! The frames of a sealed file: each is a header with hashes and a zstd frame with kept bytes.
//!
//! A sealed file has a [`SealedFileHeader`], frames and a [`SealedTrailer`]. Headers and trailers are in skippable zstd
//! frames, so `zstd -dc` returns exactly the kept bytes. Parsing is strict: a header must be byte for byte what Steno
//! writes for its values, or it counts as damaged.

mod file_header;
mod hex_hash;
mod skippable_frame;
mod trailer;

use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(crate) use self::file_header::{
    ContentForm, FileMove, SealedFileHeader, VaultTag, encode_file_header,
};
pub(crate) use self::hex_hash::HexHash;
pub(crate) use self::skippable_frame::{damage_error, none_if_damaged, read_header};
use self::skippable_frame::{
    encode_skippable_frame, find_skippable_frames, parse_canonical_json, read_skippable_frame,
    to_canonical_json,
};
pub(crate) use self::trailer::{
    SealedTrailer, encode_trailer, read_stated_attributes, read_trailer,
};
use crate::compression;

/// The version of the sealed file format that this code writes. It reads this version and all earlier ones.
///
/// Version 1 chained the hashes of compressed frames, and overwrote the trailer when the file grew. Version 2 chains
/// pieces of the kept bytes, each by a salted hash: merging frames leaves every link unchanged, and so does forgetting
/// a part of a piece ([`MaskedContent`]). Version 2 only appends: new frames follow the trailer, and a new trailer
/// follows them.
pub(crate) const FORMAT_VERSION: u32 = 2;
/// Approximate uncompressed size of a frame. A frame ends with the line that reaches this size.
pub(crate) const FRAME_SIZE: usize = 1 << 20;

/// The header of a frame of kept bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FrameHeader {
    /// Offset of the frame's first byte in the session file.
    pub(crate) offset: u64,
    /// Uncompressed length.
    pub(crate) length: u64,
    /// Compressed length.
    pub(crate) stored: u64,
    /// Version 1: hash of the uncompressed bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blake3: Option<HexHash>,
    /// Version 2: hash of the compressed bytes. The chain does not cover it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<HexHash>,
    /// Version 2: the pieces in this frame, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pieces: Vec<FramePiece>,
    /// End of the chain after this frame.
    pub(crate) chain: HexHash,
    /// Version 1: the new location, if the session file was moved. The frame may then be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) moved: Option<FileMove>,
}

/// Bytes kept together: one link of the chain.
///
/// The hash is keyed with a random salt, so it cannot confirm a guess of the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FramePiece {
    pub(crate) length: u64,
    pub(crate) salt: Uuid,
    pub(crate) hash: HexHash,
    /// The new location, if the session file was moved. The piece may then be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) moved: Option<FileMove>,
    /// The present content, if a part of the piece was forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) masked: Option<MaskedContent>,
}

/// The present content of a piece of which a part was forgotten: masks of the same length replace the forgotten bytes.
///
/// The piece's own hash stays in the chain, but its salt is replaced, so the hash cannot confirm a guess of the
/// forgotten bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaskedContent {
    /// Hash of the ranges and of the present bytes, keyed with the new salt.
    pub(crate) hash: HexHash,
    /// Offset in the piece, and length, of each forgotten part.
    pub(crate) ranges: Vec<(u64, u64)>,
}

impl FramePiece {
    /// Hashes `raw` with a new salt.
    pub(crate) fn new(raw: &[u8], moved: Option<FileMove>) -> Self {
        let salt = Uuid::new_v4();
        let hash = HexHash(salted_hasher(salt).update(raw).finalize());
        Self { length: raw.len() as u64, salt, hash, moved, masked: None }
    }

    /// The same link with other content: `raw` has masks at `ranges`, and at the ranges that had one before.
    pub(crate) fn with_masks(&self, raw: &[u8], ranges: &[(u64, u64)]) -> Self {
        let salt = Uuid::new_v4();
        let earlier = self.masked.iter().flat_map(|masked| &masked.ranges);
        let ranges = merge_ranges(earlier.chain(ranges).copied().collect());
        let hash = HexHash(masked_hasher(salt, &ranges).update(raw).finalize());
        Self { salt, masked: Some(MaskedContent { hash, ranges }), ..self.clone() }
    }

    /// The hash over the present bytes.
    fn content_hash(&self) -> ContentHash {
        let length = self.length;
        match &self.masked {
            None => ContentHash { length, hasher: salted_hasher(self.salt), hash: self.hash },
            Some(MaskedContent { hash, ranges }) => {
                ContentHash { length, hasher: masked_hasher(self.salt, ranges), hash: *hash }
            }
        }
    }

    /// The link of this piece, which follows the link `before`.
    fn next_link(&self, before: HexHash) -> HexHash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(before.0.as_bytes());
        hasher.update(&self.length.to_le_bytes());
        hasher.update(self.hash.0.as_bytes());
        if let Some(moved) = &self.moved {
            hasher.update(blake3::hash(&to_canonical_json(moved)).as_bytes());
        }
        HexHash(hasher.finalize())
    }
}

/// Sorts ranges of offset and length, and joins those that touch.
pub(crate) fn merge_ranges(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (begin, length) in ranges {
        match merged.last_mut() {
            Some((last, last_length)) if begin <= *last + *last_length => {
                *last_length = (*last_length).max(begin + length - *last);
            }
            _ => merged.push((begin, length)),
        }
    }
    merged
}

fn masked_hasher(salt: Uuid, ranges: &[(u64, u64)]) -> blake3::Hasher {
    let mut hasher = salted_hasher(salt);
    hasher.update(&(ranges.len() as u64).to_le_bytes());
    for (begin, length) in ranges {
        hasher.update(&begin.to_le_bytes()).update(&length.to_le_bytes());
    }
    hasher
}

fn salted_hasher(salt: Uuid) -> blake3::Hasher {
    let mut key = [0; blake3::KEY_LEN];
    key[..16].copy_from_slice(salt.as_bytes());
    blake3::Hasher::new_keyed(&key)
}

impl FrameHeader {
    /// The last location that the frame records, if any.
    pub(crate) fn last_move(&self) -> Option<&FileMove> {
        self.pieces.iter().rev().find_map(|piece| piece.moved.as_ref()).or(self.moved.as_ref())
    }

    /// The hashes over the uncompressed bytes: the length each one covers, its hasher and its expected value.
    pub(crate) fn content_hashes(&self) -> Vec<ContentHash> {
        if let Some(hash) = self.blake3 {
            return vec![ContentHash { length: self.length, hasher: blake3::Hasher::new(), hash }];
        }
        self.pieces.iter().map(FramePiece::content_hash).collect()
    }

    /// Checks that the frame follows the link `before` and that `data` are its compressed bytes.
    pub(crate) fn check_link(&self, before: HexHash, data: &[u8]) -> io::Result<()> {
        let chain = match self.blake3 {
            Some(_) if self.pieces.is_empty() => link_version_1(before, self, data),
            None if self.data == Some(HexHash(blake3::hash(data))) => {
                self.chain_links(before).last().map_or(before, |(_, link)| link)
            }
            _ => return Err(damage_error(CHANGED_FRAME)),
        };
        let length: u64 = self.pieces.iter().map(|piece| piece.length).sum();
        if chain != self.chain || (self.blake3.is_none() && length != self.length) {
            return Err(damage_error(CHANGED_FRAME));
        }
        Ok(())
    }

    /// All links of the frame, each with the length of the session file at that link.
    pub(crate) fn chain_links(&self, before: HexHash) -> impl Iterator<Item = (u64, HexHash)> {
        let mut at = (self.offset, before);
        let own = self.blake3.map(|_| (self.offset + self.length, self.chain));
        own.into_iter().chain(self.pieces.iter().map(move |piece| {
            at = (at.0 + piece.length, piece.next_link(at.1));
            at
        }))
    }

    /// Checks the uncompressed bytes against the frame's hashes.
    pub(crate) fn check_frame_content(&self, raw: &[u8]) -> io::Result<()> {
        let mut rest = raw;
        for ContentHash { length, mut hasher, hash } in self.content_hashes() {
            let length = usize::try_from(length).map_err(io::Error::other)?;
            let Some((piece, after)) = rest.split_at_checked(length) else {
                return Err(damage_error("the frame has fewer bytes than were kept"));
            };
            if hasher.update(piece).finalize() != hash.0 {
                return Err(damage_error("the frame's bytes differ from the kept ones"));
            }
            rest = after;
        }
        Ok(())
    }
}

/// The error for a frame that does not follow the one before it.
pub(crate) const CHANGED_FRAME: &str = "the frame was changed, or one is missing before it";

/// A hash over the next `length` bytes of a session file.
pub(crate) struct ContentHash {
    pub(crate) length: u64,
    pub(crate) hasher: blake3::Hasher,
    pub(crate) hash: HexHash,
}

/// An encoded frame.
pub(crate) struct PackedFrame {
    pub(crate) header: FrameHeader,
    pub(crate) bytes: Vec<u8>,
}

/// The content of a new frame.
pub(crate) struct FrameContent<'a> {
    /// Offset of its first byte in the session file.
    pub(crate) offset: u64,
    pub(crate) raw: &'a [u8],
    pub(crate) pieces: Vec<FramePiece>,
}

/// Compresses a frame that follows the link `chain`.
pub(crate) fn pack_frame(chain: HexHash, content: FrameContent<'_>) -> io::Result<PackedFrame> {
    let FrameContent { offset, raw, pieces } = content;
    let mut header = FrameHeader {
        offset,
        length: raw.len() as u64,
        stored: 0,
        blake3: None,
        data: None,
        pieces,
        chain,
        moved: None,
    };
    compression::compress_frame(raw, |data| {
        header.stored = data.len() as u64;
        header.data = Some(HexHash(blake3::hash(data)));
        header.chain = header.chain_links(chain).last().map_or(chain, |(_, link)| link);
        let bytes = encode_frame(&header, data);
        PackedFrame { header, bytes }
    })
}

/// Encodes a frame with the header and the compressed bytes that it has.
pub(crate) fn encode_frame(header: &FrameHeader, data: &[u8]) -> Vec<u8> {
    let mut bytes = encode_skippable_frame(header, &[]);
    bytes.extend_from_slice(data);
    bytes
}

/// Encodes a piece as headers state it.
pub(crate) fn encode_piece(piece: &FramePiece) -> Vec<u8> {
    to_canonical_json(piece)
}

/// The next link of a version 1 chain. It covers all previous links and every byte of this frame.
fn link_version_1(before: HexHash, header: &FrameHeader, data: &[u8]) -> HexHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(before.0.as_bytes());
    for number in [header.offset, header.length, header.stored] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(header.blake3.map_or([0; 32], |hash| *hash.0.as_bytes()).as_slice());
    if let Some(moved) = &header.moved {
        hasher.update(blake3::hash(&to_canonical_json(moved)).as_bytes());
    }
    hasher.update(data);
    HexHash(hasher.finalize())
}

/// Encodes a file of version 1 with one frame, for tests. Returns its chain end too.
#[cfg(test)]
pub(crate) fn encode_version_1(header: &SealedFileHeader, raw: &[u8]) -> (Vec<u8>, HexHash) {
    let (mut bytes, chain) = encode_file_header(&SealedFileHeader { version: 1, ..header.clone() });
    let frame_offset = bytes.len() as u64;
    let length = raw.len() as u64;
    let packed = pack_frame(chain, FrameContent { offset: 0, raw, pieces: Vec::new() });
    let mut frame = packed.expect("memory").header;
    let data = compression::compress_frame(raw, <[u8]>::to_vec).expect("memory");
    (frame.blake3, frame.data) = (Some(HexHash(blake3::hash(raw))), None);
    frame.chain = link_version_1(chain, &frame, &data);
    bytes.extend(encode_frame(&frame, &data));
    let frames = vec![(frame_offset, 0)];
    let trailer = SealedTrailer::without_frames(frame.chain);
    bytes.extend(encode_trailer(&SealedTrailer { frames, length, ..trailer }));
    (bytes, frame.chain)
}

/// Decompresses a frame.
pub(crate) fn unpack_frame(header: &FrameHeader, data: &[u8]) -> io::Result<Vec<u8>> {
    // Checked before allocating: a damaged header must not cost more memory than the frame.
    let content_size = zstd::zstd_safe::get_frame_content_size(data).ok().flatten();
    if content_size != Some(header.length) {
        return Err(damage_error("the frame's length differs from its header"));
    }
    let length = usize::try_from(header.length).map_err(io::Error::other)?;
    compression::decompress_frame(data, length)
}

/// Whether `rest`, which follows the last complete frame, contains further frames after its first byte.
pub(crate) fn contains_frames(rest: &[u8]) -> bool {
    let after_first = rest.get(1..).unwrap_or_default();
    find_skippable_frames(after_first)
        .any(|at| read_header::<FrameHeader>(&mut &after_first[at..]).is_ok())
}

/// What follows a frame.
pub(crate) enum NextFrame {
    /// The header of another frame, and the size of that header.
    Frame(Box<FrameHeader>, u64),
    /// A trailer of this size, from an earlier end of the file.
    Trailer(u64),
}

/// Reads the header of the next frame, or skips a trailer.
pub(crate) fn read_next_header(input: &mut impl Read) -> io::Result<NextFrame> {
    let content = read_skippable_frame(input)?;
    let size = 8 + content.len() as u64;
    if trailer::is_trailer(&content) {
        return Ok(NextFrame::Trailer(size));
    }
    Ok(NextFrame::Frame(Box::new(parse_canonical_json(&content)?), size))
}
