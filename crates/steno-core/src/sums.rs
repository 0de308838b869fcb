//! Short stand-ins for long names: two keyed sums of each, so that millions of names can be remembered.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use foldhash::quality::RandomState;

/// What stands for a name; no other name has the same, for all that chance can do.
pub(crate) type Sum = (u64, u64);

/// Makes sums, each maker its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    first: RandomState,
    second: RandomState,
}

impl Sums {
    pub(crate) fn of(&self, name: impl Hash + Copy) -> Sum {
        (self.first.hash_one(name), self.second.hash_one(name))
    }
}

/// How many sets a [`SumSet`] is made of.
const PARTS: usize = 64;

/// Names that were met. Each part grows by itself, so that there is never all of it twice.
pub(crate) struct SumSet {
    /// Of a sum no more is held than keeps chance away.
    parts: [HashSet<[u8; 11], FixedState>; PARTS],
    sums: Sums,
}

impl Default for SumSet {
    fn default() -> Self {
        let empty = |_| HashSet::with_hasher(FixedState::with_seed(0));
        Self { parts: std::array::from_fn(empty), sums: Sums::default() }
    }
}

impl SumSet {
    /// Whether a name is new.
    pub(crate) fn insert(&mut self, name: impl Hash + Copy) -> bool {
        let (first, second) = self.sums.of(name);
        let mut held = [0; 11];
        held[..8].copy_from_slice(&first.to_le_bytes());
        held[8..].copy_from_slice(&second.to_le_bytes()[..3]);
        self.parts[(second >> 32) as usize % PARTS].insert(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_new_once() {
        let mut set = SumSet::default();
        assert!((0..10_000).all(|name| set.insert(name)));
        assert!(!(0..10_000).any(|name| set.insert(name)));
        assert!(set.parts.iter().all(|part| part.len() > 50));
    }
}
