//! Skippable zstd frames with JSON as content. `zstd -dc` passes over them.

use std::io::{self, Read};

use serde::Serialize;
use serde::de::DeserializeOwned;

const SKIPPABLE_FRAME_MAGIC: [u8; 4] = 0x184D_2A53_u32.to_le_bytes();
const MAX_HEADER_SIZE: u32 = 64 << 20;

/// Reads a skippable frame with a `T` as content. Returns its total size too.
pub(crate) fn read_header<T: Serialize + DeserializeOwned>(
    input: &mut impl Read,
) -> io::Result<(T, u64)> {
    let content = read_skippable_frame(input)?;
    let header = parse_canonical_json(&content)?;
    Ok((header, 8 + content.len() as u64))
}

pub(super) fn read_skippable_frame(input: &mut impl Read) -> io::Result<Vec<u8>> {
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

pub(super) fn parse_canonical_json<T: Serialize + DeserializeOwned>(json: &[u8]) -> io::Result<T> {
    let value = serde_json::from_slice(json).map_err(|_| damage_error("unreadable header"))?;
    if to_canonical_json(&value) == json {
        Ok(value)
    } else {
        Err(damage_error("the header is not in canonical form"))
    }
}

pub(super) fn encode_skippable_frame<T: Serialize>(header: &T, footer: &[u8]) -> Vec<u8> {
    let json = to_canonical_json(header);
    let mut bytes = Vec::with_capacity(8 + json.len() + footer.len());
    bytes.extend_from_slice(&SKIPPABLE_FRAME_MAGIC);
    bytes.extend_from_slice(&((json.len() + footer.len()) as u32).to_le_bytes());
    bytes.extend_from_slice(&json);
    bytes.extend_from_slice(footer);
    bytes
}

pub(super) fn to_canonical_json<T: Serialize>(value: &T) -> Vec<u8> {
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

/// The offsets in `bytes` at which a skippable frame may start.
pub(super) fn find_skippable_frames(bytes: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memmem::find_iter(bytes, &SKIPPABLE_FRAME_MAGIC)
}
