//! The parts of a sealed file: skippable zstd frames with JSON headers, and zstd frames with the kept bytes.
//!
//! `zstd -dc` skips skippable frames, so it returns exactly the kept bytes. Parsing is strict: a header must be byte
//! for byte what Steno writes for its values, or it counts as damaged.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::exact_path;
use crate::attributes::FileAttributes;
use crate::compression;

/// The version of the sealed file format that this code writes. It reads this version and all earlier ones.
///
/// Version 1 chained the hashes of compressed frames, and overwrote the trailer when the file grew. Version 2 chains
/// pieces of the kept bytes, each by a salted hash: merging frames leaves every link unchanged, and a piece can be
/// removed later without breaking the chain. Version 2 only appends: new frames follow the trailer, and a new trailer
/// follows them.
pub(crate) const FORMAT_VERSION: u32 = 2;
/// Approximate uncompressed size of a frame. A frame ends with the line that reaches this size.
pub(crate) const FRAME_SIZE: usize = 1 << 20;

const SKIPPABLE_FRAME_MAGIC: [u8; 4] = 0x184D_2A53_u32.to_le_bytes();
const TRAILER_MARKER: &[u8; 8] = b"STENOEND";
const MAX_HEADER_SIZE: u32 = 64 << 20;
const FOOTER_SIZE: usize = 8 + 4 + TRAILER_MARKER.len();

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

/// The header of a sealed file: which session file its bytes come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedFileHeader {
    pub(crate) steno: VaultTag,
    pub(crate) version: u32,
    /// The agent that wrote the session file.
    pub agent: String,
    /// The session it belongs to.
    pub session: String,
    /// Its name inside the session.
    pub name: String,
    /// Its path when it was first kept. After opening, its last known path.
    pub path: String,
    /// The session's file or folder at that time.
    pub root: String,
    /// How often the agent had rewritten the file before.
    pub generation: u32,
    /// The session file was found deleted. Its content is in earlier generations.
    pub gone: bool,
    /// Selects the session where the file holds several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What the kept bytes are.
    #[serde(default, skip_serializing_if = "is_default_form")]
    pub form: ContentForm,
    /// The path in hexadecimal, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<String>,
    /// The kept length and the end of the chain before the upgrade from version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upgraded: Option<(u64, HexHash)>,
}

impl SealedFileHeader {
    /// The path of the session file.
    pub fn original_path(&self) -> PathBuf {
        exact_path::decode_path_bytes(self.bytes.as_deref(), &self.path)
    }
}

/// What the bytes of a sealed file are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentForm {
    /// The session file itself.
    #[default]
    Bytes,
    /// Rows of a database, as JSON Lines.
    Rows,
    /// The name of the session that keeps the file for this one too.
    Pointer,
    /// The lines of a shared file that concern this session.
    Excerpt,
}

fn is_default_form(form: &ContentForm) -> bool {
    *form == ContentForm::Bytes
}

/// Marks a header as Steno's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum VaultTag {
    #[serde(rename = "vault")]
    Vault,
}

/// The new location of a moved session file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileMove {
    pub(crate) path: String,
    pub(crate) root: String,
    /// The path in hexadecimal, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<String>,
}

impl FileMove {
    /// A session file found at `path` below `root`.
    pub(crate) fn from_paths(path: &Path, root: &Path) -> Self {
        let bytes = exact_path::encode_path_bytes(path);
        let [path, root] = [path, root].map(|path| path.to_string_lossy().into_owned());
        Self { path, root, bytes }
    }

    /// Whether a header already has this location.
    pub(crate) fn matches_header(&self, header: &SealedFileHeader) -> bool {
        (&self.path, &self.root, &self.bytes) == (&header.path, &header.root, &header.bytes)
    }
}

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
}

impl FramePiece {
    /// Hashes `raw` with a new salt.
    pub(crate) fn new(raw: &[u8], moved: Option<FileMove>) -> Self {
        let salt = Uuid::new_v4();
        let hash = HexHash(salted_hasher(salt).update(raw).finalize());
        Self { length: raw.len() as u64, salt, hash, moved }
    }

    /// A hasher that reproduces this piece's hash.
    pub(crate) fn hasher(&self) -> blake3::Hasher {
        salted_hasher(self.salt)
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
        let content = |piece: &FramePiece| ContentHash {
            length: piece.length,
            hasher: piece.hasher(),
            hash: piece.hash,
        };
        self.pieces.iter().map(content).collect()
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
    pub(crate) fn check_content(&self, raw: &[u8]) -> io::Result<()> {
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
        let mut bytes = encode_skippable_frame(&header, &[]);
        bytes.extend_from_slice(data);
        PackedFrame { header, bytes }
    })
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

/// Encodes the header of a sealed file, and computes the start of its chain.
pub(crate) fn encode_file_header(header: &SealedFileHeader) -> (Vec<u8>, HexHash) {
    let bytes = encode_skippable_frame(header, &[]);
    let chain = HexHash(blake3::hash(&bytes));
    (bytes, chain)
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
pub(crate) fn read_trailer(file: &mut File, size: u64) -> io::Result<Option<(u64, SealedTrailer)>> {
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

/// Whether `rest`, which follows the last complete frame, contains further frames after its first byte.
pub(crate) fn contains_frames(rest: &[u8]) -> bool {
    let mut starts =
        memchr::memmem::find_iter(rest.get(1..).unwrap_or_default(), &SKIPPABLE_FRAME_MAGIC);
    starts.any(|at| read_header::<FrameHeader>(&mut &rest[at + 1..]).is_ok())
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

/// Reads a skippable frame with a `T` as content. Returns its total size too.
pub(crate) fn read_header<T: Serialize + DeserializeOwned>(
    input: &mut impl Read,
) -> io::Result<(T, u64)> {
    let content = read_skippable_frame(input)?;
    let header = parse_canonical_json(&content)?;
    Ok((header, 8 + content.len() as u64))
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
    if content.ends_with(TRAILER_MARKER) && parse_stated_attributes(&content).is_some() {
        return Ok(NextFrame::Trailer(size));
    }
    Ok(NextFrame::Frame(Box::new(parse_canonical_json(&content)?), size))
}

fn read_skippable_frame(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = [0; 8];
    input.read_exact(&mut start)?;
    let length = u32::from_le_bytes([start[4], start[5], start[6], start[7]]);
    if start[..4] != SKIPPABLE_FRAME_MAGIC || length > MAX_HEADER_SIZE {
        return Err(damage_error("missing header"));
    }
    let mut content = Vec::new();
    input.take(u64::from(length)).read_to_end(&mut content)?;
    if content.len() == length as usize {
        Ok(content)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn parse_canonical_json<T: Serialize + DeserializeOwned>(json: &[u8]) -> io::Result<T> {
    let value = serde_json::from_slice(json).map_err(|_| damage_error("unreadable header"))?;
    if to_canonical_json(&value) == json {
        Ok(value)
    } else {
        Err(damage_error("the header is not in canonical form"))
    }
}

fn encode_skippable_frame<T: Serialize>(header: &T, footer: &[u8]) -> Vec<u8> {
    let json = to_canonical_json(header);
    let mut bytes = Vec::with_capacity(8 + json.len() + footer.len());
    bytes.extend_from_slice(&SKIPPABLE_FRAME_MAGIC);
    bytes.extend_from_slice(&((json.len() + footer.len()) as u32).to_le_bytes());
    bytes.extend_from_slice(&json);
    bytes.extend_from_slice(footer);
    bytes
}

fn to_canonical_json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("headers have string keys")
}

/// Turns damage into `None`. An I/O error of the system stays an error, because the bytes may be intact.
pub(crate) fn none_if_damaged<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.raw_os_error().is_some() => Err(error),
        Err(_) => Ok(None),
    }
}

pub(crate) fn damage_error(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
