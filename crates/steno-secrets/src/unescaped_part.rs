//! A part of a text whose escapes, line breaks or colours were removed.

use std::ops::Range;

/// A part of a text with its escapes resolved, and the offset of each decoded byte.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnescapedPart {
    pub(crate) decoded: Vec<u8>,
    pub(crate) offsets: Vec<usize>,
}

impl UnescapedPart {
    /// The range in the text of a range of decoded bytes.
    pub(crate) fn original_range(&self, decoded: &Range<usize>) -> Range<usize> {
        self.offsets[decoded.start]..self.offsets[decoded.end]
    }
}
