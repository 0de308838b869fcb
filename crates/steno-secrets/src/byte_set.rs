//! A set of bytes.

/// A set of bytes, one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    /// All bytes.
    pub(crate) const ALL: Self = Self([u64::MAX; 4]);

    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    pub(crate) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    pub(crate) fn insert_range(&mut self, first: u8, last: u8) {
        (first..=last).for_each(|byte| self.insert(byte));
    }

    pub(crate) fn insert_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(bits, other)| *bits |= other);
    }

    /// The bytes that are not in the set.
    pub(crate) fn complement(&self) -> Self {
        Self(self.0.map(|bits| !bits))
    }

    /// Adds the other case of each letter.
    pub(crate) fn fold_case(&mut self) {
        for small in b'a'..=b'z' {
            let capital = small.to_ascii_uppercase();
            if self.contains(small) || self.contains(capital) {
                self.insert(small);
                self.insert(capital);
            }
        }
    }
}
