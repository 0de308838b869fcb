//! Which pairs of words follow each other in a text, as a small Bloom filter.
//!
//! The database reads it beside the row, and reads the text itself only if all pairs of a phrase may be in it. It takes
//! a byte per pair, and is wrong about one absent pair in eight.

/// A text of few words has this many bytes, all texts together at most [`MAX_FILTER_BYTES`].
const MIN_FILTER_BYTES: usize = 8;

/// A row with a larger filter would fill the pages of the table.
const MAX_FILTER_BYTES: usize = 1_024;

/// The pairs of some texts.
#[derive(Debug, Default)]
pub(super) struct WordPairs {
    hashes: Vec<u32>,
}

impl WordPairs {
    /// Adds the pairs of a text of folded words.
    pub(super) fn add_text(&mut self, folded: &str) {
        let words = || folded.split(' ').filter(|word| !word.is_empty());
        self.hashes.extend(words().zip(words().skip(1)).map(|(left, right)| hash(left, right)));
    }

    /// The filter: pair `h` is bit `h` modulo the number of bits, counted from the lowest bit of the first byte.
    pub(super) fn into_filter(mut self) -> Vec<u8> {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        let mut filter = vec![0; self.hashes.len().clamp(MIN_FILTER_BYTES, MAX_FILTER_BYTES)];
        let bits = filter.len() * 8;
        for hash in self.hashes {
            let bit = hash as usize % bits;
            filter[bit / 8] |= 1 << (bit % 8);
        }
        filter
    }
}

/// The hashes of the pairs of a phrase.
pub(super) fn hash_pairs(words: &[String]) -> Vec<u32> {
    words.windows(2).map(|pair| hash(&pair[0], &pair[1])).collect()
}

/// FNV-1a of two words with a space between them. Filters are stored, so it never changes.
fn hash(left: &str, right: &str) -> u32 {
    let bytes = left.bytes().chain([b' ']).chain(right.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter_of(text: &str) -> Vec<u8> {
        let mut pairs = WordPairs::default();
        pairs.add_text(text);
        pairs.into_filter()
    }

    fn may_have(filter: &[u8], phrase: &str) -> bool {
        let words: Vec<String> = phrase.split(' ').map(str::to_owned).collect();
        hash_pairs(&words).into_iter().all(|hash| {
            let bit = hash as usize % (filter.len() * 8);
            filter[bit / 8] & (1 << (bit % 8)) != 0
        })
    }

    #[test]
    fn a_stored_filter_keeps_its_bits() {
        let words = ["path", "not", "the"].map(str::to_owned);
        assert_eq!(hash_pairs(&words), [2_979_429_909, 1_673_193_404]);
        assert_eq!(filter_of(" path not the "), [0, 0, 1 << 5, 0, 0, 0, 0, 1 << 4]);
    }

    #[test]
    fn all_pairs_are_found_and_most_others_are_not() {
        let words: Vec<String> = (0..2_000).map(|n| format!("w{n}")).collect();
        let text = words.join(" ");
        let filter = filter_of(&text);
        assert_eq!(filter.len(), MAX_FILTER_BYTES);
        assert!(words.windows(4).all(|phrase| may_have(&filter, &phrase.join(" "))));
        let filter = filter_of(&words[..500].join(" "));
        assert_eq!(filter.len(), 499);
        let wrong =
            words.chunks(2).filter(|pair| may_have(&filter, &format!("{} {}", pair[1], pair[0])));
        assert!(wrong.count() < 200, "of 1,000");
    }

    #[test]
    fn a_text_without_pairs_has_an_empty_filter() {
        assert_eq!(filter_of(" "), [0; 8]);
        assert_eq!(filter_of(" word "), [0; 8]);
        assert!(may_have(&filter_of(""), "one"), "a word alone has no pairs");
    }
}
