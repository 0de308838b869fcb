//! A compiled pattern of a rule.
//!
//! Most patterns are searched in a few windows of some hundred bytes, which a [`PatternProgram`] does. What it does not
//! know or gives up is searched with automata.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::pattern_program::{
    GroupOffsets, MAX_OFFSETS, PatternProgram, SearchTooLong, group_range,
};

/// The greatest size of a compiled pattern: every recording process holds some in memory.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// After how many searches that were given up only the automata are used.
const MAX_GIVEN_UP: u32 = 4;

/// A pattern for bytes.
#[derive(Debug)]
pub(crate) struct RulePattern {
    pattern: String,
    program: Option<PatternProgram>,
    /// How many searches of the program were given up.
    given_up: AtomicU32,
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
            Some(rest) => format!(r"(?-u)(?:(?:\b|\\[nrt]){rest})"),
            None => format!("(?-u)(?:{pattern})"),
        };
        let program = PatternProgram::new(&pattern);
        Self { pattern, program, given_up: AtomicU32::new(0), automata: OnceLock::new() }
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
        let found = self.search_program(input);
        let offsets = found.unwrap_or_else(|SearchTooLong| self.search_automata(input))?;
        let whole = group_range(&offsets, 0)?;
        let groups = (1..MAX_OFFSETS / 2).find_map(|group| group_range(&offsets, group));
        let secret = groups.unwrap_or_else(|| whole.clone());
        Some(PatternMatch { whole, secret })
    }

    fn search_program(&self, input: &Input<'_>) -> Result<Option<GroupOffsets>, SearchTooLong> {
        let program = self.program.as_ref().ok_or(SearchTooLong)?;
        if self.given_up.load(Ordering::Relaxed) >= MAX_GIVEN_UP {
            return Err(SearchTooLong);
        }
        let found = match input.get_anchored() {
            Anchored::No => program.search(input.haystack(), input.start()),
            _ => program.match_at(input.haystack(), input.start()),
        };
        if found.is_err() {
            self.given_up.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    fn search_automata(&self, input: &Input<'_>) -> Option<GroupOffsets> {
        let regex = self.automata.get_or_init(|| compile(&self.pattern));
        let mut offsets = [None; MAX_OFFSETS];
        regex.search_slots(input, &mut offsets)?;
        Some(offsets.map(|offset| offset.map(|offset| offset.get())))
    }
}

fn compile(pattern: &str) -> Regex {
    let config = Config::new()
        .utf8_empty(false)
        .auto_prefilter(false)
        .hybrid(true)
        .dfa(false)
        .onepass(false)
        .nfa_size_limit(Some(MAX_PATTERN_BYTES));
    let syntax = syntax::Config::new().utf8(false);
    let regex = Regex::builder().configure(config).syntax(syntax).build(pattern);
    let regex = regex.expect("a valid rule");
    assert!(regex.group_info().slot_len() <= MAX_OFFSETS, "few groups");
    regex
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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

    #[test]
    fn a_search_that_is_given_up_is_done_by_automata() {
        let pattern = RulePattern::new("(?:(?:a|aa)+)+(b)");
        let text = format!("{} ab", "a".repeat(60));
        for _ in 0..2 * MAX_GIVEN_UP {
            let found: Vec<_> = pattern.matches_from(text.as_bytes(), 0).collect();
            assert_eq!(found, [PatternMatch { whole: 61..63, secret: 62..63 }]);
        }
        assert!(pattern.automata.get().is_some());
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
    fn programs_find_what_automata_find() {
        let (mut found, mut given_up) = (0, BTreeSet::new());
        for rule in all_rules() {
            let (SecretForm::Pattern { pattern, .. } | SecretForm::Run { pattern, .. }) = rule.form
            else {
                continue;
            };
            let pattern = RulePattern::new(pattern);
            assert!(pattern.program.is_some(), "{}", pattern.pattern);
            for text in (0..3).flat_map(|seed| example_texts(rule, seed)) {
                for start in [0, 1, 2, text.len() / 2] {
                    let start = start.min(text.len());
                    for anchored in [Anchored::No, Anchored::Yes] {
                        let input = Input::new(&text).range(start..).anchored(anchored);
                        let expected = pattern.search_automata(&input);
                        found += usize::from(expected.is_some());
                        let text = String::from_utf8_lossy(&text);
                        match pattern.search_program(&input) {
                            Err(SearchTooLong) => drop(given_up.insert(rule.finds)),
                            found => {
                                assert_eq!(found, Ok(expected), "{} in {text}", pattern.pattern)
                            }
                        }
                    }
                }
            }
        }
        assert!(found > 5000 && given_up.len() < 2, "{found} {given_up:?}");
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
