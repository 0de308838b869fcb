//! Short keyed hashes of long names, and compact maps and sets of them, for millions of names.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::mem;

use foldhash::fast::FixedState;
use foldhash::quality::RandomState;

/// The hash of a name. Collisions are practically impossible.
pub type Sum = (u64, u64);

/// Hashes names with random keys. Hashes of different hashers cannot be compared.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    first: RandomState,
    second: RandomState,
}

impl Sums {
    /// Hashes a name.
    pub fn of(&self, name: impl Hash + Copy) -> Sum {
        (self.first.hash_one(name), self.second.hash_one(name))
    }
}

/// Half of a hash, to save memory. Ten million names collide with a probability of about one in 370,000.
pub type Short = u64;

impl Sums {
    /// Hashes a name to 64 bits.
    pub fn short(&self, name: impl Hash + Copy) -> Short {
        self.first.hash_one(name)
    }
}

/// Names per block.
const BLOCK: usize = 512;

/// Minimum number of unpacked names before packing.
const FEW: usize = 4096;

/// Packed names per unpacked one before the next packing.
const PACKED: usize = 16;

/// A compact map from name hashes to values. Most names are in sorted blocks without gaps, so each needs little more
/// than its own bytes. Packing proceeds block by block and never copies the whole map.
#[derive(Clone, Debug, PartialEq)]
pub struct SumMap<V> {
    packed: Vec<Block<V>>,
    /// The latest names.
    fresh: HashMap<Short, V, FixedState>,
}

/// A sorted block of names.
#[derive(Clone, Debug, PartialEq)]
struct Block<V> {
    last: Short,
    names: Vec<Short>,
    values: Vec<V>,
}

impl<V> Default for SumMap<V> {
    fn default() -> Self {
        Self { packed: Vec::new(), fresh: HashMap::with_hasher(FixedState::with_seed(0)) }
    }
}

impl<V> SumMap<V> {
    /// The value of a name.
    pub fn get(&self, name: Short) -> Option<&V> {
        match self.find(name) {
            Some((block, at)) => Some(&self.packed[block].values[at]),
            None => self.fresh.get(&name),
        }
    }

    /// Returns the value of a name, or inserts `value` and returns `None`.
    pub fn put(&mut self, name: Short, value: V) -> Option<&mut V> {
        if self.fresh.len() >= FEW.max(self.packed.len() * BLOCK / PACKED) {
            self.pack();
        }
        if let Some((block, at)) = self.find(name) {
            return Some(&mut self.packed[block].values[at]);
        }
        match self.fresh.entry(name) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(free) => {
                free.insert(value);
                None
            }
        }
    }

    /// All names with their values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Short, &V)> {
        let packed = self.packed.iter().flat_map(|block| block.names.iter().zip(&block.values));
        packed.chain(&self.fresh).map(|(name, value)| (*name, value))
    }

    /// Finds a packed name: its block and its index.
    fn find(&self, name: Short) -> Option<(usize, usize)> {
        let block = self.packed.partition_point(|block| block.last < name);
        let at = self.packed.get(block)?.names.binary_search(&name).ok()?;
        Some((block, at))
    }

    /// Merges the latest names into the blocks.
    fn pack(&mut self) {
        let mut fresh: Vec<_> = self.fresh.drain().collect();
        fresh.sort_unstable_by_key(|(name, _)| *name);
        let mut fresh = fresh.into_iter().peekable();
        for block in mem::take(&mut self.packed) {
            for (name, value) in block.names.into_iter().zip(block.values) {
                while let Some((name, value)) = fresh.next_if(|(fresh, _)| *fresh < name) {
                    self.push(name, value);
                }
                self.push(name, value);
            }
        }
        fresh.for_each(|(name, value)| self.push(name, value));
    }

    /// Appends a name after all packed ones.
    fn push(&mut self, name: Short, value: V) {
        if self.packed.last().is_none_or(|block| block.names.len() == BLOCK) {
            let (names, values) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK));
            self.packed.push(Block { last: name, names, values });
        }
        if let Some(block) = self.packed.last_mut() {
            block.last = name;
            block.names.push(name);
            block.values.push(value);
        }
    }
}

/// A compact set of names.
#[derive(Debug, Default)]
pub struct SumSet {
    met: SumMap<()>,
    sums: Sums,
}

impl SumSet {
    /// Adds a name. Returns whether it is new.
    pub fn insert(&mut self, name: impl Hash + Copy) -> bool {
        self.met.put(self.sums.short(name), ()).is_none()
    }

    /// Whether the set contains a name.
    pub fn contains(&self, name: impl Hash + Copy) -> bool {
        self.met.get(self.sums.short(name)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_new_once() {
        let mut set = SumSet::default();
        assert!((0..100_000).all(|name| set.insert(name)));
        assert!(!(0..100_000).any(|name| set.insert(name)));
        assert!((0..100_000).all(|name| set.contains(name)) && !set.contains(100_000));
        assert_eq!(set.met.iter().count(), 100_000);
    }

    #[test]
    fn what_is_packed_is_found_and_can_be_changed() {
        let (sums, mut map) = (Sums::default(), SumMap::default());
        for number in 0..50_000_u32 {
            assert_eq!(map.put(sums.short(number), number), None);
            assert_eq!(map.put(sums.short(number / 2), 0).copied(), Some(number / 2));
        }
        assert!(map.packed.len() > 80 && map.fresh.len() <= FEW);
        let packed: Vec<_> = map.packed.iter().flat_map(|block| &block.names).collect();
        assert!(packed.is_sorted());
        for number in 0..50_000 {
            map.put(sums.short(number), 0).into_iter().for_each(|value| *value += 1);
        }
        assert!((0..50_000).all(|number| map.get(sums.short(number)) == Some(&(number + 1))));
        assert_eq!(map.get(sums.short(50_000)), None);
    }
}
