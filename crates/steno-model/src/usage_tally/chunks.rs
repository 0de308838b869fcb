//! Usage records as bytes in chunks. Growth allocates a new chunk and moves nothing.

use super::{GlobalName, Usage};
use crate::name_hash::ShortNameHash;
use crate::varint;

/// The offset of a usage record: chunk number and offset in the chunk.
pub(super) type ChunkOffset = [u8; 5];

/// Maximum size of a chunk; the low two bytes of an offset address it.
const CHUNK_SIZE: usize = 1 << 16;

/// Maximum size of a usage record.
const MAX_RECORD_SIZE: usize = 1 + size_of::<ShortNameHash>() + 7 * 10;

/// Flag in the first byte of a record: a global name follows.
const HAS_GLOBAL_NAME: u8 = 0x80;

/// The encoding of [`GlobalName::Unknown`].
const UNKNOWN_NAME: ShortNameHash = 0;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UsageChunks {
    chunks: Vec<Vec<u8>>,
}

impl UsageChunks {
    /// The offset of the next record.
    pub(super) fn next_offset(&self) -> ChunkOffset {
        let (chunk, at) = match self.chunks.last() {
            Some(last) if has_free_space(last) => (self.chunks.len() - 1, last.len()),
            _ => (self.chunks.len(), 0),
        };
        let mut place = ChunkOffset::default();
        place.copy_from_slice(&((chunk * CHUNK_SIZE + at) as u64).to_le_bytes()[..5]);
        place
    }

    /// Writes the set of nonzero fields, then their values.
    pub(super) fn append_usage(&mut self, everywhere: GlobalName, usage: &Usage) {
        if !self.chunks.last().is_some_and(|last| has_free_space(last)) {
            self.chunks.push(Vec::new());
        }
        let Some(bytes) = self.chunks.last_mut() else { return };
        let numbers = usage.numbers();
        let first = (0..7).filter(|at| numbers[*at] > 0).fold(0, |first, at| first | 1 << at);
        let other = match everywhere {
            GlobalName::AsLocal => None,
            GlobalName::Named(name) => Some(name),
            GlobalName::Unknown => Some(UNKNOWN_NAME),
        };
        bytes.push(if other.is_some() { first | HAS_GLOBAL_NAME } else { first });
        bytes.extend(other.into_iter().flat_map(ShortNameHash::to_le_bytes));
        let stated = numbers.into_iter().filter(|number| *number > 0);
        stated.for_each(|number| varint::write_varint(bytes, number));
    }

    pub(super) fn read_usage(&self, place: ChunkOffset) -> (GlobalName, Usage) {
        let mut index = [0; 8];
        index[..5].copy_from_slice(&place);
        let index = u64::from_le_bytes(index) as usize;
        let mut bytes = &self.chunks[index / CHUNK_SIZE][index % CHUNK_SIZE..];
        let first = bytes.split_off_first().copied().unwrap_or_default();
        let everywhere = match first & HAS_GLOBAL_NAME {
            0 => GlobalName::AsLocal,
            _ => {
                let name = bytes.split_off(..size_of::<ShortNameHash>()).unwrap_or_default();
                match ShortNameHash::from_le_bytes(name.try_into().unwrap_or_default()) {
                    UNKNOWN_NAME => GlobalName::Unknown,
                    name => GlobalName::Named(name),
                }
            }
        };
        let mut numbers = [0; 7];
        for at in (0..7).filter(|at| first >> at & 1 == 1) {
            numbers[at] = varint::read_varint(&mut bytes).unwrap_or_default();
        }
        (everywhere, Usage::from_numbers(numbers))
    }
}

fn has_free_space(chunk: &[u8]) -> bool {
    chunk.len() + MAX_RECORD_SIZE <= CHUNK_SIZE
}
