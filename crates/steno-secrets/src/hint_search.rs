//! Finds all of many short words in one pass over a text, whatever their case.
//!
//! A hash of every three neighbouring bytes is looked up in a small table of bits. Few texts have many of the words, so
//! the table decides nearly everything; an automaton for a thousand words takes longer for each byte, and megabytes.

use std::ops::Range;

/// How many bits a hash has.
const HASH_BITS: u32 = 17;

/// How many words of bits the table has. One bit stands for each hash.
const TABLE_WORDS: usize = 1 << (HASH_BITS - 6);

/// Makes capitals small. Other bytes become others, which is enough to look them up.
const SMALL: u32 = 0x2020_2020;

/// Texts like those that are searched. Of each word, the three bytes are looked up that are rarest here.
const SAMPLE: &str = "The parser reads one record at a time and reports what it could not read. That is the reason for \
    this change: all of the tests pass in about three seconds, but there was an error in the second one, so we should \
    check whether these files are still needed before the next release. You can use it with the other options, for \
    example to start a new session or to get more information on the current state. Please let me know if that works. \
    I will now look at how the request handler is called from the main function, then update the code and run it \
    again. In addition, some of those values were not set, which means the connection to the server is not open. \
    function getValue(item) { return item.name ? this.state.items : null; } const result = await client.request(path); \
    if (index > 0) { console.log('done'); } else { throw new Error(`invalid input: ${value}`); } import { test } from \
    'node:test'; export default class extends Component {} let mut lines = text.lines().map(|line| line.trim()); \
    pub fn new(name: &str) -> Result<Self, Error> { Ok(Self { name: name.to_string() }) } #[derive(Debug, Clone)] \
    def read_file(self, path: str) -> None: for key, value in data.items(): assert len(result) == 2, \"expected\" \
    self.assertEqual(response.status_code, 200) print(f\"{count} items in {elapsed:.2f}s\") return os.path.join(root) \
    {\"type\":\"assistant\",\"message\":{\"id\":\"msg_01\",\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}, \
    \"timestamp\":\"2026-01-02T03:04:05.678Z\",\"uuid\":\"\",\"parentUuid\":null,\"sessionId\":\"\",\"version\":\"1.0.0\",\"cwd\": \
    \"/home/dev/code\"} $ git status --short && cargo test --workspace 2>&1 | tail -20 ; ls -la src/ ; grep -rn todo . \
    drwxr-xr-x 2 root root 4096 Jan 10 12:30 target warning: unused variable: `index` --> src/lib.rs:42:13 test result: \
    ok. 12 passed; 0 failed <div class=\"container\"><a href=\"https://www.example.com/index.html\">link</a></div> \
    Several general blocks are installed instead of the last request_list, test_, local_, total_, get_, set_, write_, \
    state_, unit_, check_, back_, tool_use, tool_result, attributes attached inside; many humans always retry our source \
    in sync, async, your tokens taken, broken, its size, the path, e.g. create, increase, cached, required, buffer, \
    machine, design, signal, print(, count(, write(, filter(, /api-docs, toolu_01, req_01, claude-opus-4, railway, away \
    -----------------------------------------  ==========  # Title ## Section 1000 1234 2025-11-30 0000 ... :::";

/// Letters from the most to the least frequent in texts.
const FREQUENT_LETTERS: &[u8] = b" etaoinsrlcdupmhgbfy_vwkx";

/// Words, prepared for search.
#[derive(Debug)]
pub(crate) struct HintSearch {
    words: Vec<&'static str>,
    /// For each hash, whether a word is looked for where it occurs.
    is_anchor: Box<[u64; TABLE_WORDS]>,
    /// For each word of `is_anchor`, where its hashes start in `anchors`, and where the last ends.
    starts: Vec<usize>,
    /// The hashes in order, each with a word and how many bytes of the word are before it.
    anchors: Vec<(u32, u16, u8)>,
}

impl HintSearch {
    /// Prepares words of at least two bytes.
    pub(crate) fn new(words: Vec<&'static str>) -> Self {
        let counts = count_sample();
        let mut anchors = Vec::new();
        for (number, word) in words.iter().enumerate() {
            let number = u16::try_from(number).expect("few words");
            match word.as_bytes() {
                [first, second] => {
                    let groups = (0..=u8::MAX).map(|third| hash_of([*first, *second, third]));
                    anchors.extend(groups.map(|hash| (hash, number, 0)));
                }
                bytes => {
                    let (offset, group) = rarest_group(bytes, &counts);
                    anchors.push((hash_of(group), number, offset));
                }
            }
        }
        anchors.sort_unstable();
        anchors.dedup();
        let mut is_anchor = Box::new([0; TABLE_WORDS]);
        for (hash, ..) in &anchors {
            is_anchor[*hash as usize / 64] |= 1 << (hash % 64);
        }
        let start_of = |word: usize| anchors.partition_point(|it| (it.0 as usize) < word * 64);
        let starts = (0..=TABLE_WORDS).map(start_of).collect();
        Self { words, is_anchor, starts, anchors }
    }

    /// Calls `found` with the number and the range of each word in a text, in the order of their rarest letters.
    pub(crate) fn find_all(&self, text: &[u8], mut found: impl FnMut(usize, Range<usize>)) {
        let pairs = text.chunks_exact(2);
        let last = pairs.remainder().first().copied();
        let (mut end, mut previous) = (0, 0);
        for pair in pairs {
            let pair = u32::from(u16::from_le_bytes([pair[0], pair[1]]));
            let four = (previous | pair << 16) | SMALL;
            previous = pair;
            end += 2;
            let (first, second) = (hash_group(four & 0xff_ffff), hash_group(four >> 8));
            if (self.bit(first) | self.bit(second)) & 1 == 1 {
                if self.bit(first) & 1 == 1 {
                    self.verify_words(text, end - 2, first, &mut found);
                }
                if self.bit(second) & 1 == 1 {
                    self.verify_words(text, end - 1, second, &mut found);
                }
            }
        }
        // A space after the end makes the last bytes a group, too.
        for byte in last.into_iter().chain([b' ', b' ']) {
            let four = (previous | u32::from(byte) << 16) | SMALL;
            previous = (previous >> 8 | u32::from(byte) << 8) & 0xffff;
            let hash = hash_group(four & 0xff_ffff);
            if self.bit(hash) & 1 == 1 {
                self.verify_words(text, end, hash, &mut found);
            }
            end += 1;
        }
    }

    /// The bit of a hash, as the lowest.
    fn bit(&self, hash: u32) -> u64 {
        self.is_anchor[(hash >> 6) as usize] >> (hash % 64)
    }

    /// Finds the words whose rarest group has a hash and starts two bytes before an offset.
    #[inline(never)]
    fn verify_words(
        &self,
        text: &[u8],
        end: usize,
        hash: u32,
        found: &mut impl FnMut(usize, Range<usize>),
    ) {
        let Some(at) = end.checked_sub(2) else { return };
        let table_word = (hash >> 6) as usize;
        let anchors = &self.anchors[self.starts[table_word]..self.starts[table_word + 1]];
        for (_, number, offset) in anchors.iter().filter(|anchor| anchor.0 == hash) {
            let word = self.words[usize::from(*number)].as_bytes();
            let Some(start) = at.checked_sub(usize::from(*offset)) else { continue };
            let part = text.get(start..start + word.len());
            if part.is_some_and(|part| part.eq_ignore_ascii_case(word)) {
                found(usize::from(*number), start..start + word.len());
            }
        }
    }
}

fn hash_of(bytes: [u8; 3]) -> u32 {
    let [first, second, third] = bytes.map(u32::from);
    hash_group((first | second << 8 | third << 16) | SMALL & 0xff_ffff)
}

/// A hash of three small letters, the first in the lowest bits.
fn hash_group(group: u32) -> u32 {
    group.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)
}

/// How often each hash is in the sample.
fn count_sample() -> Vec<u8> {
    let mut counts = vec![0_u8; 1 << HASH_BITS];
    for group in SAMPLE.as_bytes().windows(3) {
        let count = &mut counts[hash_of([group[0], group[1], group[2]]) as usize];
        *count = count.saturating_add(1);
    }
    counts
}

/// The three bytes of a word that are least frequent in texts, with their offset.
fn rarest_group(word: &[u8], counts: &[u8]) -> (u8, [u8; 3]) {
    let frequency = |byte: &u8| {
        let known = FREQUENT_LETTERS.iter().position(|letter| letter.eq_ignore_ascii_case(byte));
        known.map_or(2, |at| FREQUENT_LETTERS.len() + 2 - at)
    };
    let cost = |group: &[u8; 3]| {
        let letters: usize = group.iter().map(frequency).product();
        (counts[hash_of(*group) as usize], letters)
    };
    let groups = word.windows(3).map(|group| [group[0], group[1], group[2]]).enumerate().take(200);
    let (offset, group) =
        groups.min_by_key(|(_, group)| cost(group)).expect("a word of three bytes");
    (u8::try_from(offset).expect("a short word"), group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(search: &HintSearch, text: &str) -> Vec<(usize, Range<usize>)> {
        let mut all = Vec::new();
        search.find_all(text.as_bytes(), |word, range| all.push((word, range)));
        all.sort_by_key(|(word, range)| (range.start, *word));
        all
    }

    #[test]
    fn all_words_are_found_wherever_they_are() {
        let words = ["pw", "pass", "password", "key", "://", "密码", "1/"];
        let words = HintSearch::new(words.to_vec());
        let found = find(&words, "PassWord pw=KEY://密码 1/");
        assert_eq!(
            found,
            [(1, 0..4), (2, 0..8), (0, 9..11), (3, 12..15), (4, 15..18), (5, 18..24), (6, 25..27)]
        );
        assert_eq!(find(&words, "pw"), [(0, 0..2)]);
        for text in ["", "p", "pa", "ke", "pas sword"] {
            assert!(find(&words, text).is_empty(), "{text}");
        }
    }

    #[test]
    fn every_hint_is_found_between_others() {
        let words: Vec<_> =
            crate::rule_table::all_rules().flat_map(|rule| rule.hints).copied().collect();
        let words: Vec<_> = words.into_iter().filter(|word| word.len() > 1).collect();
        let search = HintSearch::new(words.clone());
        for (number, word) in words.iter().enumerate() {
            let text = format!("a{word}b");
            assert!(find(&search, &text).contains(&(number, 1..1 + word.len())), "{word}");
        }
    }
}
