//! Short stand-ins for long names: two keyed sums of each, so that millions of names can be remembered.

use std::hash::{BuildHasher, Hash};

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
