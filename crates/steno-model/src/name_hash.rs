//! Short keyed hashes of long names, and compact maps and sets of them, for millions of names.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::mem;

use foldhash::fast::FixedState;
use foldhash::quality::RandomState;

/// The hash of a name. Collisions are practically impossible.
pub type NameHash = (u64, u64);

/// Hashes names with random keys. Hashes of different hashers cannot be compared.
#[derive(Clone, Debug, Default)]
pub struct NameHasher {
    first: RandomState,
    second: RandomState,
}

impl NameHasher {
    /// Hashes a name.
    pub fn hash_name(&self, name: impl Hash + Copy) -> NameHash {
        (self.first.hash_one(name), self.second.hash_one(name))
    }
}

/// Half of a hash, to save memory. Ten million names collide with a probability of about one in 370,000.
pub type ShortNameHash = u64;

impl NameHasher {
    /// Hashes a name to 64 bits.
    pub fn hash_short(&self, name: impl Hash + Copy) -> ShortNameHash {
        self.first.hash_one(name)
    }
}

/// Names per block.
const BLOCK_NAMES: usize = 512;

/// Minimum number of unpacked names before packing.
const MIN_RECENT_LIMIT: usize = 4096;

/// Packed names per unpacked one before the next packing.
const PACKED_PER_RECENT: usize = 16;

/// A compact map from name hashes to values. Most names are in sorted blocks without gaps, so each needs little more
/// than its own bytes. Packing proceeds block by block and never copies the whole map.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactNameMap<V> {
    packed: Vec<PackedBlock<V>>,
    /// The latest names.
    recent: HashMap<ShortNameHash, V, FixedState>,
}

/// A sorted block of names.
#[derive(Clone, Debug, PartialEq)]
struct PackedBlock<V> {
    last: ShortNameHash,
    names: Vec<ShortNameHash>,
    values: Vec<V>,
}

impl<V> Default for CompactNameMap<V> {
    fn default() -> Self {
        Self { packed: Vec::new(), recent: HashMap::with_hasher(FixedState::with_seed(0)) }
    }
}

impl<V> CompactNameMap<V> {
    /// The value of a name.
    pub fn get(&self, name: ShortNameHash) -> Option<&V> {
        match self.find_packed(name) {
            Some((block, at)) => Some(&self.packed[block].values[at]),
            None => self.recent.get(&name),
        }
    }

    /// Returns the value of a name, or inserts `value` and returns `None`.
    pub fn get_mut_or_insert(&mut self, name: ShortNameHash, value: V) -> Option<&mut V> {
        if self.recent.len()
            >= MIN_RECENT_LIMIT.max(self.packed.len() * BLOCK_NAMES / PACKED_PER_RECENT)
        {
            self.pack_recent();
        }
        if let Some((block, at)) = self.find_packed(name) {
            return Some(&mut self.packed[block].values[at]);
        }
        match self.recent.entry(name) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(free) => {
                free.insert(value);
                None
            }
        }
    }

    /// All names with their values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (ShortNameHash, &V)> {
        let packed = self.packed.iter().flat_map(|block| block.names.iter().zip(&block.values));
        packed.chain(&self.recent).map(|(name, value)| (*name, value))
    }

    /// Finds a packed name: its block and its index.
    fn find_packed(&self, name: ShortNameHash) -> Option<(usize, usize)> {
        let block = self.packed.partition_point(|block| block.last < name);
        let at = self.packed.get(block)?.names.binary_search(&name).ok()?;
        Some((block, at))
    }

    /// Merges the latest names into the blocks.
    fn pack_recent(&mut self) {
        let mut fresh: Vec<_> = self.recent.drain().collect();
        fresh.sort_unstable_by_key(|(name, _)| *name);
        let mut fresh = fresh.into_iter().peekable();
        for block in mem::take(&mut self.packed) {
            for (name, value) in block.names.into_iter().zip(block.values) {
                while let Some((name, value)) = fresh.next_if(|(fresh, _)| *fresh < name) {
                    self.push_packed(name, value);
                }
                self.push_packed(name, value);
            }
        }
        fresh.for_each(|(name, value)| self.push_packed(name, value));
    }

    /// Appends a name after all packed ones.
    fn push_packed(&mut self, name: ShortNameHash, value: V) {
        if self.packed.last().is_none_or(|block| block.names.len() == BLOCK_NAMES) {
            let (names, values) =
                (Vec::with_capacity(BLOCK_NAMES), Vec::with_capacity(BLOCK_NAMES));
            self.packed.push(PackedBlock { last: name, names, values });
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
pub struct CompactNameSet {
    names: CompactNameMap<()>,
    hasher: NameHasher,
}

impl CompactNameSet {
    /// Adds a name. Returns whether it is new.
    pub fn insert(&mut self, name: impl Hash + Copy) -> bool {
        self.names.get_mut_or_insert(self.hasher.hash_short(name), ()).is_none()
    }

    /// Whether the set contains a name.
    pub fn contains(&self, name: impl Hash + Copy) -> bool {
        self.names.get(self.hasher.hash_short(name)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_new_once() {
        let mut set = CompactNameSet::default();
        assert!((0..100_000).all(|name| set.insert(name)));
        assert!(!(0..100_000).any(|name| set.insert(name)));
        assert!((0..100_000).all(|name| set.contains(name)) && !set.contains(100_000));
        assert_eq!(set.names.iter().count(), 100_000);
    }

    #[test]
    fn packed_values_are_found_and_can_be_changed() {
        let (sums, mut map) = (NameHasher::default(), CompactNameMap::default());
        for number in 0..50_000_u32 {
            assert_eq!(map.get_mut_or_insert(sums.hash_short(number), number), None);
            assert_eq!(
                map.get_mut_or_insert(sums.hash_short(number / 2), 0).copied(),
                Some(number / 2)
            );
        }
        assert!(map.packed.len() > 80 && map.recent.len() <= MIN_RECENT_LIMIT);
        let packed: Vec<_> = map.packed.iter().flat_map(|block| &block.names).collect();
        assert!(packed.is_sorted());
        for number in 0..50_000 {
            map.get_mut_or_insert(sums.hash_short(number), 0)
                .into_iter()
                .for_each(|value| *value += 1);
        }
        assert!((0..50_000).all(|number| map.get(sums.hash_short(number)) == Some(&(number + 1))));
        assert_eq!(map.get(sums.hash_short(50_000)), None);
    }
}
