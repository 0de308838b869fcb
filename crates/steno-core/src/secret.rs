//! What secrets look like: keys, tokens and passwords, known by their form or by the name of the field that holds them.
//!
//! The forms are a table of rules, each with an example that it must find and one that it must leave. Randomness is
//! measured only where a rule says so: a hash or an id is no secret.

mod names;
mod rules;
mod values;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::bytes::{Captures, Regex};

pub(crate) use self::names::{holds_password, is_secret_name};
use self::rules::{RULES, SecretRule};
pub(crate) use self::values::{is_dummy_password, is_placeholder, is_searchable};

/// A secret that was found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretMatch {
    /// Where it is, in bytes.
    pub(crate) range: Range<usize>,
    /// Where that begins by which it was found, such as the name of its field.
    pub(crate) context_start: usize,
    /// The name of the rule that found it.
    pub(crate) rule: &'static str,
}

/// Which rules are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretRules {
    /// All of them.
    All,
    /// Only those that no ordinary text matches: nothing is judged by how random it looks.
    FormsOnly,
}

struct CompiledRules {
    /// Finds the hints of all rules in one pass.
    hints: AhoCorasick,
    /// The rule of each hint.
    rule_of_hint: Vec<usize>,
    /// The rules' patterns. All of them would take some 65 MB, so each is compiled when its hint is found first.
    patterns: Vec<OnceLock<Regex>>,
}

static COMPILED: LazyLock<CompiledRules> = LazyLock::new(|| {
    let hints = RULES.iter().flat_map(|rule| rule.hints);
    let hints = AhoCorasick::builder().ascii_case_insensitive(true).build(hints);
    let indexed = RULES.iter().enumerate();
    let rule_of_hint = indexed.flat_map(|(at, rule)| rule.hints.iter().map(move |_| at));
    CompiledRules {
        hints: hints.expect("a few words"),
        rule_of_hint: rule_of_hint.collect(),
        patterns: RULES.iter().map(|_| OnceLock::new()).collect(),
    }
});

/// Every secret in a text, in order and without overlaps. Where two rules match, the earlier one counts.
pub(crate) fn find_secrets(text: &[u8], rules: SecretRules) -> Vec<SecretMatch> {
    let compiled = &*COMPILED;
    let mut is_hinted = [false; RULES.len()];
    for hint in compiled.hints.find_overlapping_iter(text) {
        is_hinted[compiled.rule_of_hint[hint.pattern().as_usize()]] = true;
    }
    // By where they begin, so that an overlap shows in the neighbour.
    let mut matches: BTreeMap<usize, SecretMatch> = BTreeMap::new();
    for (rule, pattern) in RULES.iter().zip(&compiled.patterns).zip(is_hinted).filter_map(keep_if) {
        if rules == SecretRules::FormsOnly && rule.entropy > 0.0 {
            continue;
        }
        let pattern = pattern.get_or_init(|| rule.compile());
        for captures in pattern.captures_iter(text) {
            let Some(range) = rule.secret_in(&captures) else { continue };
            let before = matches.range(..range.end).next_back();
            if before.is_none_or(|(_, known)| known.range.end <= range.start) {
                let context_start = captures.get(0).map_or(range.start, |whole| whole.start());
                matches.insert(range.start, SecretMatch { range, context_start, rule: rule.name });
            }
        }
    }
    matches.into_values().collect()
}

fn keep_if<T>((item, is_kept): (T, bool)) -> Option<T> {
    is_kept.then_some(item)
}

impl SecretRule {
    fn compile(&self) -> Regex {
        // Letters of other scripts end no secret, and testing for them takes far longer.
        let pattern = self.pattern.replace(r"\b", r"(?-u:\b)");
        Regex::new(&pattern).expect("valid rules")
    }

    /// The part of a match that is the secret; nothing if it is less random than the rule asks for.
    fn secret_in(&self, captures: &Captures<'_>) -> Option<Range<usize>> {
        let secret = captures.get(1).or(captures.get(0))?;
        let has_digit = secret.as_bytes().iter().any(u8::is_ascii_digit);
        let is_random = has_digit && values::entropy(secret.as_bytes()) >= self.entropy;
        (self.entropy == 0.0 || is_random).then(|| secret.range())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_finds_its_example_and_leaves_the_other() {
        for rule in RULES {
            let example = rule.secret.concat();
            let found = find_secrets(example.as_bytes(), SecretRules::All);
            assert_eq!(found.len(), 1, "{}: {example}", rule.name);
            assert_eq!(found[0].rule, rule.name, "{example}");
            assert_eq!(
                find_secrets(rule.harmless.as_bytes(), SecretRules::All),
                [],
                "{}",
                rule.name
            );
        }
    }

    #[test]
    fn forms_do_not_depend_on_randomness() {
        let text = b"MY_API_KEY=q7Rz0vXw93LkTn5Yb2Hd8Fg1";
        assert_eq!(find_secrets(text, SecretRules::All).len(), 1);
        assert_eq!(find_secrets(text, SecretRules::FormsOnly), []);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hide_a_secret() {
        let key = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
        let bytes = [b"\xff\xfe ", key.as_bytes(), b"\xff"].concat();
        assert_eq!(find_secrets(&bytes, SecretRules::FormsOnly)[0].range, 3..3 + key.len());
    }
}
