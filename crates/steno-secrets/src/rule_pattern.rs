//! A compiled pattern of a rule.
//!
//! Most patterns are searched in a few windows of some hundred bytes. Automata take longer to build than these to search,
//! so the first searches are done by a library that builds none.

use std::ops::Range;
use std::str;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

/// The greatest size of a compiled pattern: every recording process holds some in memory.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// How many offsets the groups of a pattern have, two each. The first group is the whole match.
const MAX_OFFSETS: usize = 16;

/// After so many searches automata are worth their building, which takes as long as a dozen.
const MAX_LIGHT_SEARCHES: u32 = 12;

/// Longer texts are searched by automata, which take less time for each byte.
const MAX_LIGHT_BYTES: usize = 4 << 10;

/// The offsets of all groups.
type GroupOffsets = [Option<usize>; MAX_OFFSETS];

/// A pattern for bytes.
#[derive(Debug)]
pub(crate) struct RulePattern {
    pattern: String,
    /// How many searches there were.
    searches: AtomicU32,
    light: OnceLock<regex_lite::Regex>,
    light_at_start: OnceLock<regex_lite::Regex>,
    automata: OnceLock<Regex>,
}

/// Where a pattern matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatternMatch {
    /// The whole match.
    pub(crate) whole: Range<usize>,
    /// The first group that matched, or the whole match.
    pub(crate) secret: Range<usize>,
}

impl RulePattern {
    /// Compiles a pattern of the table of rules.
    pub(crate) fn new(pattern: &str) -> Self {
        // The letter of an escape such as `\n` is not part of a word.
        let pattern = match pattern.strip_prefix(r"\b") {
            Some(rest) => format!(r"(?:(?:\b|\\[nrt]){rest})"),
            None => format!("(?:{pattern})"),
        };
        Self {
            pattern,
            searches: AtomicU32::new(0),
            light: OnceLock::new(),
            light_at_start: OnceLock::new(),
            automata: OnceLock::new(),
        }
    }

    /// The match that starts where a text starts.
    pub(crate) fn match_start(&self, text: &[u8]) -> Option<PatternMatch> {
        self.search(&Input::new(text).anchored(Anchored::Yes))
    }

    /// All matches from an offset on, with the text before it as context.
    pub(crate) fn matches_from(
        &self,
        text: &[u8],
        start: usize,
    ) -> impl Iterator<Item = PatternMatch> {
        let mut at = start;
        std::iter::from_fn(move || {
            let found = self.search(&Input::new(text).range(at.min(text.len())..))?;
            at = found.whole.end.max(found.whole.start + 1);
            Some(found)
        })
    }

    fn search(&self, input: &Input<'_>) -> Option<PatternMatch> {
        let searches = self.searches.fetch_add(1, Ordering::Relaxed);
        let is_short = input.haystack().len() <= MAX_LIGHT_BYTES;
        let text = match searches < MAX_LIGHT_SEARCHES && is_short {
            true => str::from_utf8(input.haystack()).ok(),
            false => None,
        };
        // In other texts, a character has several bytes there and one here.
        let offsets = match text.filter(|text| text.is_ascii()) {
            Some(text) => self.search_light(text, input),
            None => self.search_automata(input),
        }?;
        let whole = group_range(&offsets, 0)?;
        let groups = (1..MAX_OFFSETS / 2).find_map(|group| group_range(&offsets, group));
        let secret = groups.unwrap_or_else(|| whole.clone());
        Some(PatternMatch { whole, secret })
    }

    fn search_light(&self, text: &str, input: &Input<'_>) -> Option<GroupOffsets> {
        let regex = match input.get_anchored() {
            Anchored::No => self.light.get_or_init(|| compile_light(&self.pattern)),
            _ => {
                let pattern = || format!("^{}", self.pattern);
                self.light_at_start.get_or_init(|| compile_light(&pattern()))
            }
        };
        let groups = regex.captures_at(text, input.start())?;
        let mut offsets = [None; MAX_OFFSETS];
        for (group, at) in groups.iter().zip(offsets.chunks_exact_mut(2)) {
            let range = group.map(|group| group.range());
            at[0] = range.as_ref().map(|range| range.start);
            at[1] = range.map(|range| range.end);
        }
        Some(offsets)
    }

    fn search_automata(&self, input: &Input<'_>) -> Option<GroupOffsets> {
        let regex = self.automata.get_or_init(|| compile_automata(&self.pattern));
        let mut offsets = [None; MAX_OFFSETS];
        regex.search_slots(input, &mut offsets)?;
        Some(offsets.map(|offset| offset.map(|offset| offset.get())))
    }
}

fn group_range(offsets: &GroupOffsets, group: usize) -> Option<Range<usize>> {
    Some(offsets[2 * group]?..offsets[2 * group + 1]?)
}

fn compile_light(pattern: &str) -> regex_lite::Regex {
    let mut builder = regex_lite::RegexBuilder::new(pattern);
    builder.size_limit(MAX_PATTERN_BYTES << 4).build().expect("a valid rule")
}

fn compile_automata(pattern: &str) -> Regex {
    let config = Config::new()
        .utf8_empty(false)
        .auto_prefilter(false)
        .hybrid(true)
        .dfa(false)
        .onepass(false)
        .nfa_size_limit(Some(MAX_PATTERN_BYTES));
    let syntax = syntax::Config::new().utf8(false).unicode(false);
    let regex = Regex::builder().configure(config).syntax(syntax).build(pattern);
    let regex = regex.expect("a valid rule");
    assert!(regex.group_info().slot_len() <= MAX_OFFSETS, "few groups");
    regex
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::MadeUpTexts;
    use crate::rule_table::all_rules;
    use crate::secret_rule::{SecretForm, SecretRule};

    #[test]
    fn the_first_group_that_matched_is_the_secret() {
        let pattern = RulePattern::new(r#"\bk(?:=([0-9]+)|:([a-z]+)|;)"#);
        let found = pattern.match_start(b"k:abc 1").expect("a match");
        assert_eq!(found, PatternMatch { whole: 0..5, secret: 2..5 });
        let found = pattern.match_start(b"k;").expect("a match");
        assert_eq!(found, PatternMatch { whole: 0..2, secret: 0..2 });
        assert_eq!(pattern.match_start(b" k:abc"), None);
    }

    /// Texts that match a rule, or nearly: what the table gives as examples, cut and changed at a few places.
    fn example_texts(rule: &SecretRule, seed: u64) -> Vec<Vec<u8>> {
        let mut made_up = MadeUpTexts::new(seed);
        let mut texts = Vec::new();
        for template in [rule.finds, rule.leaves] {
            let text = made_up.fill(template).into_bytes();
            for change in 0..12 {
                let mut changed = [b"x ".as_slice(), &text, b"\n y"].concat();
                let at = (seed as usize * 31 + change * 7919) % changed.len();
                match change % 4 {
                    0 => {}
                    1 => changed[at] = b" \n:='\"a0-\\"[change % 10],
                    2 => drop(changed.drain(at..changed.len().min(at + 1 + change / 3))),
                    _ => changed.truncate(at),
                }
                texts.push(changed);
            }
        }
        texts
    }

    #[test]
    fn both_libraries_find_the_same() {
        let mut found = 0;
        for rule in all_rules() {
            let (SecretForm::Pattern { pattern, .. } | SecretForm::Run { pattern, .. }) = rule.form
            else {
                continue;
            };
            let pattern = RulePattern::new(pattern);
            let texts = (0..3).flat_map(|seed| example_texts(rule, seed));
            for text in texts.filter_map(|text| String::from_utf8(text).ok()) {
                for start in [0, 1, 2, text.len() / 2].map(|start| start.min(text.len())) {
                    let input = Input::new(&text).range(start..);
                    let at_start = (start == 0).then_some(Anchored::Yes);
                    for anchored in [Some(Anchored::No), at_start].into_iter().flatten() {
                        let input = input.clone().anchored(anchored);
                        let expected = pattern.search_automata(&input);
                        found += usize::from(expected.is_some());
                        let light = pattern.search_light(&text, &input);
                        assert_eq!(light, expected, "{} in {text}", pattern.pattern);
                    }
                }
            }
        }
        assert!(found > 5000, "{found}");
    }

    #[test]
    fn all_matches_are_found_after_words_and_escapes() {
        let pattern = RulePattern::new(r"\bk([0-9])");
        let text = br"k1 \nk2 ak3 k4";
        let found: Vec<_> = pattern.matches_from(text, 0).map(|found| found.secret.start).collect();
        assert_eq!(found, [1, 6, 13]);
        // What is before the start decides whether a word starts.
        assert_eq!(pattern.matches_from(b"ak1", 1).count(), 0);
        assert_eq!(pattern.matches_from(b"k\xff", 2).count(), 0);
    }
}
