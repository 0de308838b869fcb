//! Usage records as bytes in chunks. Growth allocates a new chunk and moves nothing.

use super::{Everywhere, Usage};
use crate::sums::Short;
use crate::varint;

/// The offset of a usage record: chunk number and offset in the chunk.
pub(super) type Place = [u8; 5];

/// Maximum size of a chunk; the low two bytes of an offset address it.
const CHUNK: usize = 1 << 16;

/// Maximum size of a usage record.
const MOST: usize = 1 + size_of::<Short>() + 7 * 10;

/// Flag in the first byte of a record: a global name follows.
const IS_OTHER: u8 = 0x80;

/// The encoding of [`Everywhere::Unknown`].
const UNKNOWN: Short = 0;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Chunks {
    chunks: Vec<Vec<u8>>,
}

impl Chunks {
    /// The offset of the next record.
    pub(super) fn end(&self) -> Place {
        let (chunk, at) = match self.chunks.last() {
            Some(last) if has_room(last) => (self.chunks.len() - 1, last.len()),
            _ => (self.chunks.len(), 0),
        };
        let mut place = Place::default();
        place.copy_from_slice(&((chunk * CHUNK + at) as u64).to_le_bytes()[..5]);
        place
    }

    /// Writes the set of nonzero fields, then their values.
    pub(super) fn write(&mut self, everywhere: Everywhere, usage: &Usage) {
        if !self.chunks.last().is_some_and(|last| has_room(last)) {
            self.chunks.push(Vec::new());
        }
        let Some(bytes) = self.chunks.last_mut() else { return };
        let numbers = usage.numbers();
        let first = (0..7).filter(|at| numbers[*at] > 0).fold(0, |first, at| first | 1 << at);
        let other = match everywhere {
            Everywhere::Same => None,
            Everywhere::Other(name) => Some(name),
            Everywhere::Unknown => Some(UNKNOWN),
        };
        bytes.push(if other.is_some() { first | IS_OTHER } else { first });
        bytes.extend(other.into_iter().flat_map(Short::to_le_bytes));
        let stated = numbers.into_iter().filter(|number| *number > 0);
        stated.for_each(|number| varint::write(bytes, number));
    }

    pub(super) fn read(&self, place: Place) -> (Everywhere, Usage) {
        let mut index = [0; 8];
        index[..5].copy_from_slice(&place);
        let index = u64::from_le_bytes(index) as usize;
        let mut bytes = &self.chunks[index / CHUNK][index % CHUNK..];
        let first = bytes.split_off_first().copied().unwrap_or_default();
        let everywhere = match first & IS_OTHER {
            0 => Everywhere::Same,
            _ => {
                let name = bytes.split_off(..size_of::<Short>()).unwrap_or_default();
                match Short::from_le_bytes(name.try_into().unwrap_or_default()) {
                    UNKNOWN => Everywhere::Unknown,
                    name => Everywhere::Other(name),
                }
            }
        };
        let mut numbers = [0; 7];
        for at in (0..7).filter(|at| first >> at & 1 == 1) {
            numbers[at] = varint::read(&mut bytes).unwrap_or_default();
        }
        (everywhere, Usage::from_numbers(numbers))
    }
}

fn has_room(chunk: &[u8]) -> bool {
    chunk.len() + MOST <= CHUNK
}
