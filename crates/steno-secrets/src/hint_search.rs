//! Finds all of many short words in one pass over a text, whatever their case.
//!
//! Every three neighbouring bytes are looked up as two pairs in two small tables. Few texts have many of the words, so
//! the tables decide nearly everything; an automaton for a thousand words takes longer for each byte, and megabytes.

use std::ops::Range;

use crate::pair_filter::{GROUPS_PER_STEP, PairFilter, STEP_BYTES};

/// How many bits a hash has.
const HASH_BITS: u32 = 15;

/// Makes capitals small. Other bytes become others, which is enough to look them up.
const SMALL: u32 = 0x2020_2020;

/// Texts like those that are searched. Of each word, the groups are looked up that are rarest here.
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
    git push, runs, brand, project, remote, promote, output, outputs, begin, origin, package, packages, tracking, type, \
    properties, express, mapping, inventory, accounts, present, capture, capability, granted, false, has, program, data, \
    metadata, config, plain, place, explain, used, uses, user, because, reuse, devices, development, final, find, history, \
    given, even, events, mapped, apps, first-run, the next, in fact, let, left, latest, greatest, nested, request, suggest, \
    -----------------------------------------  ==========  # Title ## Section 1000 1234 2025-11-30 0000 ... :::";

/// Letters from the most to the least frequent in texts.
const FREQUENT_LETTERS: &[u8] = b" etaoinsrlcdupmhgbfy_vwkx";

/// For each byte, a number that is greater if it is more frequent.
const LETTER_FREQUENCIES: [u32; 256] = {
    let mut table = [2; 256];
    let mut at = 0;
    while at < FREQUENT_LETTERS.len() {
        let frequency = (FREQUENT_LETTERS.len() + 2 - at) as u32;
        table[FREQUENT_LETTERS[at] as usize] = frequency;
        table[FREQUENT_LETTERS[at].to_ascii_uppercase() as usize] = frequency;
        at += 1;
    }
    table
};

/// Words, prepared for search.
#[derive(Debug)]
pub(crate) struct HintSearch {
    words: Vec<&'static str>,
    /// Decides where a word is looked for.
    filter: PairFilter,
    /// For each hash, where it starts in `anchors`, and where the last ends.
    starts: Vec<u16>,
    /// In the order of `starts`.
    anchors: Vec<WordAnchor>,
}

/// A group of bytes at which a word is looked for.
#[derive(Clone, Copy, Debug, Default)]
struct WordAnchor {
    hash: u32,
    /// The first four bytes of the word as small letters.
    head: u32,
    /// How many bits of the head a shorter word does not have.
    head_shift: u8,
    /// Where the group starts in a text that has one more byte than the word, before it.
    offset: u8,
    /// The number of the word.
    word: u16,
}

impl WordAnchor {
    /// The anchors of a word at a group: one, or one for each byte that may be beside a word of two bytes.
    fn for_word(number: u16, word: &[u8], place: GroupPlace) -> impl Iterator<Item = Self> {
        let mut head = [0; 4];
        let length = word.len().min(4);
        head[..length].copy_from_slice(&word[..length]);
        let anchor = Self {
            head: (u32::from_le_bytes(head) | SMALL) << (32 - 8 * length),
            head_shift: if length < 4 { 32 - 8 * length as u8 } else { 0 },
            offset: place.offset,
            word: number,
            ..Self::default()
        };
        let mut hashes: Vec<_> = place.group.hashes().collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes.into_iter().map(move |hash| Self { hash, ..anchor })
    }

    /// Whether a word may start at an offset of a text.
    fn may_start(&self, text: &[u8], start: usize) -> bool {
        let Some(four) = text.get(start..start + 4) else { return true };
        let four = u32::from_le_bytes(four.try_into().expect("four bytes")) | SMALL;
        four << self.head_shift == self.head
    }
}

impl HintSearch {
    /// Prepares words of at least two bytes.
    pub(crate) fn new(words: Vec<&'static str>) -> Self {
        let sample = SampleCounts::new();
        let places: Vec<_> =
            words.iter().map(|word| sample.rarest_group(word.as_bytes())).collect();
        let groups = places.iter().map(|place| place.group.0).collect();
        let filter = PairFilter::new(groups, |group| usize::from(sample.count(ByteGroup(group))));
        let all_anchors = |(number, place): (usize, GroupPlace)| {
            let word = words[number].as_bytes();
            WordAnchor::for_word(u16::try_from(number).expect("few words"), word, place)
        };
        let unordered: Vec<_> = places.into_iter().enumerate().flat_map(all_anchors).collect();
        assert!(unordered.len() <= usize::from(u16::MAX), "few words");
        let mut starts = vec![0; (1 << HASH_BITS) + 1];
        unordered.iter().for_each(|anchor| starts[anchor.hash as usize] += 1);
        // First where those of each hash end, and once they are in their places, where they start.
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut anchors = vec![WordAnchor::default(); unordered.len()];
        for anchor in unordered {
            let place = &mut starts[anchor.hash as usize];
            *place -= 1;
            anchors[usize::from(*place)] = anchor;
        }
        Self { words, filter, starts, anchors }
    }

    /// Calls `found` with the number and the range of each word in a text, in the order of their rarest letters.
    pub(crate) fn find_all(&self, text: &[u8], mut found: impl FnMut(usize, Range<usize>)) {
        let mut at = 0;
        while let Some(step) = text.get(at..at + STEP_BYTES) {
            let step = step.try_into().expect("the bytes of a step");
            if self.filter.may_match_step(step) {
                for group in self.filter.candidates(step) {
                    self.verify_words(text, at + group, &mut found);
                }
            }
            at += GROUPS_PER_STEP;
        }
        while at + 1 < text.len() {
            if self.filter.may_match(group_at(text, at)) {
                self.verify_words(text, at, &mut found);
            }
            at += 1;
        }
    }

    /// Finds the words of which a group is at an offset of a text.
    #[inline(never)]
    fn verify_words(&self, text: &[u8], at: usize, found: &mut impl FnMut(usize, Range<usize>)) {
        let hash = hash_of(group_at(text, at)) as usize;
        let anchors = usize::from(self.starts[hash])..usize::from(self.starts[hash + 1]);
        for anchor in &self.anchors[anchors] {
            let Some(start) = (at + 1).checked_sub(usize::from(anchor.offset)) else { continue };
            if !anchor.may_start(text, start) {
                continue;
            }
            let word = self.words[usize::from(anchor.word)].as_bytes();
            let part = text.get(start..start + word.len());
            if part.is_some_and(|part| part.eq_ignore_ascii_case(word)) {
                found(usize::from(anchor.word), start..start + word.len());
            }
        }
    }
}

/// The three bytes at an offset of a text. A space after the end makes the last two bytes a group, too.
fn group_at(text: &[u8], at: usize) -> [u8; 3] {
    [text[at], text[at + 1], text.get(at + 2).copied().unwrap_or(b' ')]
}

/// Three neighbouring bytes, of which the last may be any.
#[derive(Clone, Copy, Debug)]
struct ByteGroup([Option<u8>; 3]);

/// A group of a word, and where it starts in the word with one more byte before it.
#[derive(Clone, Copy, Debug)]
struct GroupPlace {
    group: ByteGroup,
    offset: u8,
}

impl ByteGroup {
    /// The hashes of all groups of bytes that it stands for.
    fn hashes(self) -> impl Iterator<Item = u32> {
        let has_any = self.0.contains(&None);
        // The hash is of small letters.
        let values = if has_any { 0..=u8::MAX } else { 0x20..=0x20 };
        values
            .filter(|any| any & 0x20 != 0)
            .map(move |any| hash_of(self.0.map(|byte| byte.unwrap_or(any))))
    }
}

/// A hash of three bytes, whatever their case.
fn hash_of([first, second, third]: [u8; 3]) -> u32 {
    let letters = u32::from_le_bytes([first, second, third, 0]) | SMALL;
    // The fourth letter is shifted out.
    letters.wrapping_mul(0x9e37_7900) >> (32 - HASH_BITS)
}

/// How often groups and pairs of bytes are in the sample.
struct SampleCounts {
    /// For each hash, how many groups have it.
    groups: Vec<u8>,
    /// For each pair of small letters.
    pairs: Vec<u8>,
}

impl SampleCounts {
    fn new() -> Self {
        let (mut groups, mut pairs) = (vec![0_u8; 1 << HASH_BITS], vec![0_u8; 1 << 16]);
        for group in SAMPLE.as_bytes().windows(3) {
            let count = &mut groups[hash_of([group[0], group[1], group[2]]) as usize];
            *count = count.saturating_add(1);
            let count = &mut pairs[pair_number(group[0], group[1])];
            *count = count.saturating_add(1);
        }
        Self { groups, pairs }
    }

    /// The group of a word, and of one byte after it, that is least frequent in texts, with its offset from
    /// the byte before.
    fn rarest_group(&self, word: &[u8]) -> GroupPlace {
        let byte_at = |offset: usize| offset.checked_sub(1).and_then(|at| word.get(at)).copied();
        // A long word needs no more.
        let offsets = 1..word.len().min(200);
        let groups = offsets
            .map(|offset| (offset, ByteGroup([offset, offset + 1, offset + 2].map(byte_at))));
        let (offset, group) =
            groups.min_by_key(|(_, group)| self.cost(*group)).expect("a word of two bytes");
        GroupPlace { group, offset: u8::try_from(offset).expect("a short word") }
    }

    /// Whether a group stands for many, how often it is in texts, and how frequent its letters are.
    fn cost(&self, group: ByteGroup) -> (bool, u8, u32) {
        let frequencies =
            group.0.map(|byte| byte.map_or(1, |byte| LETTER_FREQUENCIES[usize::from(byte)]));
        (group.0.contains(&None), self.count(group), frequencies.into_iter().product())
    }

    /// How often a group is in the sample.
    fn count(&self, group: ByteGroup) -> u8 {
        match group.0 {
            [Some(first), Some(second), Some(third)] => {
                self.groups[hash_of([first, second, third]) as usize]
            }
            [Some(first), Some(second), None] | [None, Some(first), Some(second)] => {
                self.pairs[pair_number(first, second)]
            }
            _ => unreachable!("the middle of a group is in the word, and a byte beside it"),
        }
    }
}

fn pair_number(first: u8, second: u8) -> usize {
    usize::from(first | 0x20) << 8 | usize::from(second | 0x20)
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
            for before in ["", "a", "ab", "abc", "abcdefgh"] {
                for after in ["", "a", "ab", "abcdefgh"] {
                    let text = format!("{before}{word}{after}");
                    let range = before.len()..before.len() + word.len();
                    assert!(find(&search, &text).contains(&(number, range)), "{text}");
                }
            }
        }
    }
}
