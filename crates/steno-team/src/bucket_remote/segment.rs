//! Segments: objects with many sealed pieces, so that a bucket has few and large objects.
//!
//! A segment has eight bytes that name the format and its version, and then pieces. Its name is the blake3 hash of its
//! bytes. Where a piece starts is stated by whoever refers to it ([`PiecePlace`]).

use serde::{Deserialize, Serialize};

use crate::frame_chain::FrameHash;

/// A segment is sent when it has this size. A single batch of frames can add up to 5 MiB more.
pub(crate) const SEGMENT_BYTES: usize = 16 << 20;

/// The first bytes of a segment, with its version.
pub(crate) const SEGMENT_MAGIC: [u8; 8] = *b"steno\0s\x01";

/// Where a sealed piece is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PiecePlace {
    /// The segment; `None` for the one that is still being packed, or that the record itself is in.
    pub(crate) segment: Option<FrameHash>,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// A segment that is being packed.
#[derive(Debug)]
pub(crate) struct SegmentPacker {
    bytes: Vec<u8>,
}

impl SegmentPacker {
    pub(crate) fn new() -> Self {
        Self { bytes: SEGMENT_MAGIC.to_vec() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() == SEGMENT_MAGIC.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= SEGMENT_BYTES
    }

    /// Adds a piece.
    pub(crate) fn push_piece(&mut self, sealed: &[u8]) -> PiecePlace {
        let place = PiecePlace {
            segment: None,
            offset: self.bytes.len() as u64,
            length: sealed.len() as u64,
        };
        self.bytes.extend_from_slice(sealed);
        place
    }

    /// The name and bytes of the segment. The packer is empty then.
    pub(crate) fn take_segment(&mut self) -> (FrameHash, Vec<u8>) {
        let bytes = std::mem::replace(self, Self::new()).bytes;
        (FrameHash::of(&bytes), bytes)
    }
}

impl PiecePlace {
    /// The place after the segment that was being packed got its name.
    pub(crate) fn in_segment(&self, name: FrameHash) -> Self {
        Self { segment: self.segment.or(Some(name)), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_where_they_were_put(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..20),
        ) {
            let mut packer = SegmentPacker::new();
            let places: Vec<PiecePlace> = pieces.iter().map(|piece| packer.push_piece(piece)).collect();
            prop_assert_eq!(packer.is_empty(), pieces.iter().all(Vec::is_empty));
            let (name, bytes) = packer.take_segment();
            prop_assert!(packer.is_empty());
            prop_assert_eq!(name, FrameHash::of(&bytes));
            prop_assert!(bytes.starts_with(&SEGMENT_MAGIC));
            for (place, piece) in places.iter().zip(&pieces) {
                let (start, length) = (place.offset as usize, place.length as usize);
                prop_assert_eq!(&bytes[start..start + length], &piece[..]);
                prop_assert_eq!(place.in_segment(name).segment, Some(name));
            }
        }
    }
}
