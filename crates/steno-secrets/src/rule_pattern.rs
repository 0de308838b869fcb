//! A compiled pattern of a rule.
//!
//! Most patterns are searched in a few windows of some hundred bytes. So a pattern is first compiled without the automata
//! that search fast, which take longer to build than these windows to search, and again once it was searched often.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use regex_automata::meta::{Config, Regex};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

/// The greatest size of a compiled pattern: every recording process holds some in memory.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// How many offsets the groups of a pattern have, two each. The first group is the whole match.
const MAX_OFFSETS: usize = 16;

/// After how many searches a pattern is compiled for fast searches.
const MAX_SLOW_SEARCHES: u32 = 16;

/// A pattern for bytes.
#[derive(Debug)]
pub(crate) struct RulePattern {
    pattern: String,
    slow: Regex,
    searches: AtomicU32,
    fast: OnceLock<Regex>,
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
        let slow = compile(&pattern, false);
        assert!(slow.group_info().slot_len() <= MAX_OFFSETS, "few groups");
        Self { pattern, slow, searches: AtomicU32::new(0), fast: OnceLock::new() }
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
        let regex = match self.searches.fetch_add(1, Ordering::Relaxed) {
            0..MAX_SLOW_SEARCHES => &self.slow,
            _ => {
                // The count stays there, and never overflows.
                self.searches.store(MAX_SLOW_SEARCHES, Ordering::Relaxed);
                self.fast.get_or_init(|| compile(&self.pattern, true))
            }
        };
        let mut offsets = [None; MAX_OFFSETS];
        regex.search_slots(input, &mut offsets)?;
        let range = |pair: &[Option<NonMaxUsize>]| Some(pair[0]?.get()..pair[1]?.get());
        let mut groups = offsets.chunks_exact(2);
        let whole = groups.next().and_then(range)?;
        let secret = groups.find_map(range).unwrap_or_else(|| whole.clone());
        Some(PatternMatch { whole, secret })
    }
}

fn compile(pattern: &str, is_fast: bool) -> Regex {
    let config = Config::new()
        .utf8_empty(false)
        .auto_prefilter(false)
        .hybrid(is_fast)
        .dfa(false)
        .onepass(false)
        .nfa_size_limit(Some(MAX_PATTERN_BYTES));
    let syntax = syntax::Config::new().utf8(false);
    let regex = Regex::builder().configure(config).syntax(syntax).build(pattern);
    regex.expect("a valid rule")
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn fast_searches_find_the_same() {
        let pattern = RulePattern::new(r"\b(?:ab|k[0-9]{2,4}(x))");
        let text = b"ak12x ab k1x k12345x \\nk123x ab";
        let first: Vec<_> = pattern.matches_from(text, 0).collect();
        assert_eq!(first.len(), 3);
        for _ in 0..MAX_SLOW_SEARCHES {
            assert_eq!(pattern.matches_from(text, 0).collect::<Vec<_>>(), first);
        }
        assert!(pattern.fast.get().is_some());
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
