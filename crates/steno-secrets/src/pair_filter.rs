//! Decides quickly whether three neighbouring bytes may be one of many groups, whatever their case.
//!
//! The groups are divided between sixteen buckets. One table has the buckets in which a group starts with a pair of bytes, and
//! another those in which a group ends with one: a group of a text is in a bucket where both have it. Both tables are
//! small enough for the first cache of a processor, as texts have few different pairs.

/// How many groups one step checks.
pub(crate) const GROUPS_PER_STEP: usize = 8;

/// How many bytes the groups of a step have.
pub(crate) const STEP_BYTES: usize = GROUPS_PER_STEP + 2;

/// How many buckets a table has.
const BUCKETS: usize = 16;

/// Three bytes, of which the last may be any.
type Group = [Option<u8>; 3];

/// For each pair of bytes, the buckets that have it.
type PairTable = Box<[u16; 1 << 16]>;

/// Groups of three bytes, of which the last may be any.
#[derive(Debug)]
pub(crate) struct PairFilter {
    /// The buckets with a group that starts with a pair.
    starts: PairTable,
    /// The buckets with a group that ends with a pair.
    ends: PairTable,
}

/// The groups of a bucket that have one middle.
#[derive(Debug, Default)]
struct BucketGroups {
    firsts: Vec<Option<u8>>,
    lasts: Vec<Option<u8>>,
}

impl BucketGroups {
    /// How often groups that are not looked for are found in texts, if this one is added.
    fn cost(&self, [first, middle, last]: Group, frequency: impl Fn(Group) -> usize) -> usize {
        let is_new_first = !self.firsts.contains(&first);
        let is_new_last = !self.lasts.contains(&last);
        let lasts = self.lasts.iter().filter(|_| is_new_first).map(|last| [first, middle, *last]);
        let firsts = self.firsts.iter().filter(|_| is_new_last).map(|first| [*first, middle, last]);
        lasts.chain(firsts).map(|group| 1 + 8 * frequency(group)).sum()
    }
}

impl PairFilter {
    /// Prepares groups whose first two bytes are known. `frequency` is how often a group of small letters is in texts.
    pub(crate) fn new(mut groups: Vec<Group>, frequency: impl Fn(Group) -> usize) -> Self {
        let small = |byte: Option<u8>| byte.map(|byte| byte.to_ascii_lowercase());
        groups.iter_mut().for_each(|group| *group = group.map(small));
        groups.sort_unstable_by_key(|[first, middle, last]| (*middle, *last, *first));
        groups.dedup();
        let mut filter = Self { starts: empty_table(), ends: empty_table() };
        // Only groups with the same middle are confused in a bucket.
        for same in groups.chunk_by(|one, next| one[1] == next[1]) {
            let mut buckets: [BucketGroups; BUCKETS] = Default::default();
            for group in same {
                let costs = || buckets.iter().map(|bucket| bucket.cost(*group, &frequency));
                let empty = buckets.iter().position(|bucket| bucket.firsts.is_empty());
                let cheapest = || Some(costs().enumerate().min_by_key(|(_, cost)| *cost)?.0);
                let number = empty.or_else(cheapest).expect("several buckets");
                buckets[number].firsts.push(group[0]);
                buckets[number].lasts.push(group[2]);
                filter.insert(*group, 1 << number);
            }
        }
        filter
    }

    fn insert(&mut self, [first, middle, last]: Group, bucket: u16) {
        let middles = both_cases(middle);
        for first in both_cases(first) {
            middles.clone().for_each(|middle| self.starts[pair_number(first, middle)] |= bucket);
        }
        for middle in middles {
            both_cases(last).for_each(|last| self.ends[pair_number(middle, last)] |= bucket);
        }
    }

    /// Whether one of the groups may start in the first [`GROUPS_PER_STEP`] bytes.
    #[inline]
    pub(crate) fn may_match_step(&self, bytes: &[u8; STEP_BYTES]) -> bool {
        let pairs = pairs_of(bytes);
        (0..GROUPS_PER_STEP).fold(0, |any, at| any | self.buckets(pairs[at], pairs[at + 1])) != 0
    }

    /// Where in a step one of the groups may start.
    #[inline]
    pub(crate) fn candidates(&self, bytes: &[u8; STEP_BYTES]) -> impl Iterator<Item = usize> {
        let pairs = pairs_of(bytes);
        (0..GROUPS_PER_STEP).filter(move |at| self.buckets(pairs[*at], pairs[at + 1]) != 0)
    }

    /// Whether one of the groups may be these bytes.
    #[inline]
    pub(crate) fn may_match(&self, [first, middle, last]: [u8; 3]) -> bool {
        self.buckets(pair_number(first, middle), pair_number(middle, last)) != 0
    }

    fn buckets(&self, start: usize, end: usize) -> u16 {
        self.starts[start] & self.ends[end]
    }
}

/// The pairs of neighbouring bytes of a step.
fn pairs_of(bytes: &[u8; STEP_BYTES]) -> [usize; STEP_BYTES - 1] {
    std::array::from_fn(|at| pair_number(bytes[at], bytes[at + 1]))
}

fn empty_table() -> PairTable {
    vec![0; 1 << 16].into_boxed_slice().try_into().expect("a place for each pair")
}

/// A small letter and its capital, another byte alone, or all bytes.
fn both_cases(byte: Option<u8>) -> impl Iterator<Item = u8> + Clone {
    let (first, last) = byte.map_or((0, u8::MAX), |byte| (byte, byte));
    let capital = byte.filter(u8::is_ascii_lowercase).map(|byte| byte.to_ascii_uppercase());
    (first..=last).chain(capital)
}

fn pair_number(first: u8, second: u8) -> usize {
    usize::from(u16::from_le_bytes([first, second]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_groups_and_few_others_may_match() {
        let groups = ["key", "pas", "tok", "ke-", "sec", "sek"].map(|group| {
            let bytes = group.as_bytes();
            [Some(bytes[0]), Some(bytes[1]), Some(bytes[2])]
        });
        let filter =
            PairFilter::new([groups.as_slice(), &[[Some(b'p'), Some(b'w'), None]]].concat(), |_| 0);
        for group in [b"key", b"KEY", b"kEy", b"Ke-", b"pw\0", b"PW\xff", b"pwx", b"sec", b"sek"] {
            assert!(filter.may_match(*group), "{group:?}");
        }
        for group in [b"kay", b"kex", b"pax", b"xpw", b"k\x05y", b"KE\x0d", b"kec"] {
            assert!(!filter.may_match(*group), "{group:?}");
        }
        for at in 0..GROUPS_PER_STEP {
            let mut step = *b" a longer ";
            assert!(!filter.may_match_step(&step));
            step[at..at + 3].copy_from_slice(b"Key");
            assert!(filter.may_match_step(&step), "{at}");
            assert_eq!(filter.candidates(&step).collect::<Vec<_>>(), [at]);
        }
    }
}
