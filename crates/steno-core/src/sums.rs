//! Short stand-ins for long names: two keyed sums of each, so that millions of names can be remembered.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
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

/// A sum of which no more is held than keeps chance away.
pub(crate) type Short = [u8; 11];

impl Sums {
    pub(crate) fn short(&self, name: impl Hash + Copy) -> Short {
        let (first, second) = self.of(name);
        let mut held = [0; 11];
        held[..8].copy_from_slice(&first.to_le_bytes());
        held[8..].copy_from_slice(&second.to_le_bytes()[..3]);
        held
    }
}

/// How many maps a [`SumMap`] is made of.
const PARTS: usize = 64;

/// Something for each name. Each part grows by itself, so that there is never all of it twice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SumMap<V> {
    parts: Vec<HashMap<Short, V, FixedState>>,
}

impl<V> Default for SumMap<V> {
    fn default() -> Self {
        Self { parts: Vec::new() }
    }
}

impl<V> SumMap<V> {
    /// What there is for a name.
    pub(crate) fn entry(&mut self, name: Short) -> Entry<'_, Short, V> {
        if self.parts.is_empty() {
            let empty = || HashMap::with_hasher(FixedState::with_seed(0));
            self.parts.resize_with(PARTS, empty);
        }
        self.parts[usize::from(name[0]) % PARTS].entry(name)
    }

    /// All names with what there is for them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Short, &V)> {
        self.parts.iter().flatten()
    }
}

/// Names that were met.
#[derive(Default)]
pub(crate) struct SumSet {
    met: SumMap<()>,
    sums: Sums,
}

impl SumSet {
    /// Whether a name is new.
    pub(crate) fn insert(&mut self, name: impl Hash + Copy) -> bool {
        match self.met.entry(self.sums.short(name)) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(());
                true
            }
        }
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
        assert!(set.met.parts.iter().all(|part| part.len() > 50));
        assert_eq!(set.met.iter().count(), 10_000);
    }
}
