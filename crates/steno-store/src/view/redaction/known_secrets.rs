//! Finds secrets that are known from elsewhere in the session, where nothing around them says what they are.

use aho_corasick::{AhoCorasick, MatchKind};
use steno_secrets::{SecretMatch, is_searchable};

use super::SecretText;

/// Longer secrets, such as private keys, are found by their form wherever they are.
const MAX_KNOWN_BYTES: usize = 4096;

/// From this length on, a text without digits is no ordinary word either.
const MIN_DISTINCTIVE_CHARS: usize = 16;

/// Whether a secret is found by its bytes alone, because it is no ordinary word.
pub fn is_distinctive(secret: &str) -> bool {
    let has_digit = secret.bytes().any(|byte| byte.is_ascii_digit());
    is_searchable(secret) && (has_digit || secret.len() >= MIN_DISTINCTIVE_CHARS)
}

/// Secrets to search for.
#[derive(Debug)]
pub(super) struct KnownSecrets {
    values: AhoCorasick,
    rules: Vec<&'static str>,
}

impl KnownSecrets {
    /// `None` if there is nothing to search for: a search for a short word would hit ordinary text.
    pub(super) fn new(found: &[SecretText]) -> Option<Self> {
        let is_known = |secret: &&SecretText| {
            secret.text.len() <= MAX_KNOWN_BYTES
                && is_searchable(&secret.text)
                && secret.text.bytes().any(|byte| byte.is_ascii_digit())
                && !secret.rule.starts_with("configured")
        };
        let mut secrets: Vec<_> = found.iter().filter(is_known).collect();
        secrets.sort_unstable();
        secrets.dedup_by(|a, b| a.text == b.text);
        let values = secrets.iter().map(|secret| &secret.text);
        let values = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(values);
        let rules: Vec<_> = secrets.iter().map(|secret| secret.rule).collect();
        (!rules.is_empty()).then_some(Self { values: values.ok()?, rules })
    }

    pub(super) fn find_secrets(&self, text: &str) -> Vec<SecretMatch> {
        let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = text.as_bytes();
        let found = self.values.find_iter(text).filter(|found| {
            // A part of a longer word is another word.
            !is_word(found.start().checked_sub(1).and_then(|at| bytes.get(at)))
                && !is_word(bytes.get(found.end()))
        });
        let to_match = |found: aho_corasick::Match| SecretMatch {
            range: found.range(),
            context_start: found.start(),
            rule: self.rules[found.pattern().as_usize()],
        };
        found.map(to_match).collect()
    }
}
