//! Recognises secrets: keys, tokens and passwords, by their form or by the name of their field.
//!
//! The forms are a table of rules, each with an example that must match and one that must not. Entropy counts only
//! where a rule asks for it, because a hash or an id is not a secret.

mod names;
mod rules;
mod values;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::bytes::{Captures, Regex};

pub(crate) use self::names::{holds_password, is_secret_name};
use self::rules::{SECRET_RULES, SecretRule};
pub(crate) use self::values::{is_dummy_password, is_placeholder, is_searchable};

/// A secret found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretMatch {
    /// Its byte range.
    pub range: Range<usize>,
    /// The offset of the match that contains it, such as its field's name.
    pub(crate) context_start: usize,
    /// The name of the rule.
    pub rule: &'static str,
}

/// Which rules to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretRuleSet {
    /// All rules.
    All,
    /// Only rules that no ordinary text matches: none that measure entropy.
    FormsOnly,
}

struct CompiledRules {
    /// Finds the hints of all rules in one pass.
    hints: AhoCorasick,
    /// The rule of each hint.
    rule_of_hint: Vec<usize>,
    /// The rules' patterns. Together they take some 65 MB, so each is compiled when its hint is first found.
    patterns: Vec<OnceLock<Regex>>,
}

static COMPILED_RULES: LazyLock<CompiledRules> = LazyLock::new(|| {
    let hints = SECRET_RULES.iter().flat_map(|rule| rule.hints);
    let hints = AhoCorasick::builder().ascii_case_insensitive(true).build(hints);
    let indexed = SECRET_RULES.iter().enumerate();
    let rule_of_hint = indexed.flat_map(|(at, rule)| rule.hints.iter().map(move |_| at));
    CompiledRules {
        hints: hints.expect("a few words"),
        rule_of_hint: rule_of_hint.collect(),
        patterns: SECRET_RULES.iter().map(|_| OnceLock::new()).collect(),
    }
});

/// All secrets in a text, in order and without overlaps. If two rules match, the earlier one wins.
pub fn find_secrets(text: &[u8], rules: SecretRuleSet) -> Vec<SecretMatch> {
    let compiled = &*COMPILED_RULES;
    let mut is_hinted = [false; SECRET_RULES.len()];
    for hint in compiled.hints.find_overlapping_iter(text) {
        is_hinted[compiled.rule_of_hint[hint.pattern().as_usize()]] = true;
    }
    // Sorted by start, so that an overlap is found in a neighbour.
    let mut matches: BTreeMap<usize, SecretMatch> = BTreeMap::new();
    for ((rule, pattern), is_hinted) in SECRET_RULES.iter().zip(&compiled.patterns).zip(is_hinted) {
        if !is_hinted {
            continue;
        }
        if rules == SecretRuleSet::FormsOnly && rule.entropy > 0.0 {
            continue;
        }
        let pattern = pattern.get_or_init(|| rule.compile_pattern());
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

impl SecretRule {
    fn compile_pattern(&self) -> Regex {
        // No secret ends at a non-ASCII letter, and Unicode word boundaries are far slower.
        let pattern = self.pattern.replace(r"\b", r"(?-u:\b)");
        Regex::new(&pattern).expect("valid rules")
    }

    /// The secret within a match, or `None` if its entropy is too low for the rule.
    fn secret_in(&self, captures: &Captures<'_>) -> Option<Range<usize>> {
        let secret = captures.get(1).or(captures.get(0))?;
        let has_digit = secret.as_bytes().iter().any(u8::is_ascii_digit);
        let is_random = has_digit && values::byte_entropy(secret.as_bytes()) >= self.entropy;
        (self.entropy == 0.0 || is_random).then(|| secret.range())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_finds_its_example_and_leaves_the_other() {
        for rule in SECRET_RULES {
            let example = rule.secret.concat();
            let found = find_secrets(example.as_bytes(), SecretRuleSet::All);
            assert_eq!(found.len(), 1, "{}: {example}", rule.name);
            assert_eq!(found[0].rule, rule.name, "{example}");
            assert_eq!(
                find_secrets(rule.harmless.as_bytes(), SecretRuleSet::All),
                [],
                "{}",
                rule.name
            );
        }
    }

    #[test]
    fn forms_do_not_depend_on_randomness() {
        let text = b"MY_API_KEY=q7Rz0vXw93LkTn5Yb2Hd8Fg1";
        assert_eq!(find_secrets(text, SecretRuleSet::All).len(), 1);
        assert_eq!(find_secrets(text, SecretRuleSet::FormsOnly), []);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hide_a_secret() {
        let key = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
        let bytes = [b"\xff\xfe ", key.as_bytes(), b"\xff"].concat();
        assert_eq!(find_secrets(&bytes, SecretRuleSet::FormsOnly)[0].range, 3..3 + key.len());
    }
}
