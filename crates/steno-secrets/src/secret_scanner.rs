//! Applies all rules to a text.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::{Captures, Regex, RegexBuilder};

use crate::encoded_text::{find_base64_parts, find_escaped_parts};
use crate::field_names::NAME_HINTS;
use crate::kubernetes_secret::{MANIFEST_HINTS, find_manifest_values};
use crate::named_value::{find_named_secrets, is_secret_field};
use crate::rule_table::{ENCODED_SECRET, NAMED_SECRET, all_rules, rule_names};
use crate::secret_rule::{SecretForm, SecretRule};
use crate::secret_settings::{
    SecretSettings, SecretSettingsError, compile_patterns, normalize_rule_name,
};
use crate::token_match::{is_token_start, match_token};
use crate::value_plausibility::{
    is_credential, is_filler, is_random_mix, is_spoken_password, is_wordy, looks_random,
};

/// The greatest size of a compiled pattern: every recording process holds some in memory.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// A secret found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretMatch {
    /// Its byte range.
    pub range: Range<usize>,
    /// The offset of the match that contains it, such as its field's name.
    pub context_start: usize,
    /// The name of the rule.
    pub rule: &'static str,
}

/// Which rules to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretRuleSet {
    /// All rules.
    All,
    /// Only rules whose form proves a secret. Names, guesses and the user's settings are not applied.
    FormsOnly,
}

/// Finds secrets in texts.
#[derive(Debug)]
pub struct SecretScanner {
    rules: Vec<CompiledRule>,
    /// Finds the hints of all rules and of names in one pass.
    hints: AhoCorasick,
    /// What each hint points to.
    hint_targets: Vec<HintTarget>,
    /// The user's patterns, each with the name of its rule.
    patterns: Vec<(Regex, &'static str)>,
    finds_named: bool,
    finds_encoded: bool,
}

#[derive(Debug)]
struct CompiledRule {
    rule: &'static SecretRule,
    /// Compiled when its hint is first found, because all together are large.
    pattern: OnceLock<Regex>,
    is_enabled: bool,
}

#[derive(Clone, Copy, Debug)]
enum HintTarget {
    Rule {
        rule: usize,
        hint: &'static str,
    },
    Name,
    /// A Kubernetes `Secret`.
    Manifest,
}

/// A match, and the place of its rule in the table.
struct RankedMatch {
    found: SecretMatch,
    rank: usize,
}

/// The scanner with the settings of the program's user.
static CONFIGURED: OnceLock<SecretScanner> = OnceLock::new();

static BUILT_IN: LazyLock<SecretScanner> =
    LazyLock::new(|| SecretScanner::new(&SecretSettings::default()).expect("no settings"));

impl SecretScanner {
    /// The scanner without settings.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// The scanner that [`SecretScanner::configure`] set, or the one without settings.
    ///
    /// It is one for the whole process, so that no way out of the store can forget the user's settings.
    pub fn configured() -> &'static Self {
        CONFIGURED.get().unwrap_or_else(|| Self::built_in())
    }

    /// Sets the scanner of this process. Only the first call has an effect.
    pub fn configure(settings: &SecretSettings) -> Result<(), SecretSettingsError> {
        if *settings != SecretSettings::default() {
            let scanner = Self::new(settings)?;
            CONFIGURED.get_or_init(|| scanner);
        }
        Ok(())
    }

    /// A scanner with the user's settings.
    pub fn new(settings: &SecretSettings) -> Result<Self, SecretSettingsError> {
        let patterns = compile_patterns(settings)?;
        let disabled = settings.normalized_disabled_rules()?;
        let is_enabled = |name: &str| !disabled.contains(&normalize_rule_name(name));
        let compile = |rule: &'static SecretRule| CompiledRule {
            rule,
            pattern: OnceLock::new(),
            is_enabled: is_enabled(rule.name),
        };
        let rules: Vec<_> = all_rules().map(compile).collect();
        let mut hints = Vec::new();
        let mut hint_targets = Vec::new();
        for (at, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.is_enabled) {
            for hint in rule.rule.hints {
                hints.push(*hint);
                hint_targets.push(HintTarget::Rule { rule: at, hint });
            }
        }
        for hint in NAME_HINTS {
            hints.push(hint);
            hint_targets.push(HintTarget::Name);
        }
        for hint in MANIFEST_HINTS {
            hints.push(hint);
            hint_targets.push(HintTarget::Manifest);
        }
        let hints = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(hints)
            .expect("a few words");
        let (finds_named, finds_encoded) = (is_enabled(NAMED_SECRET), is_enabled(ENCODED_SECRET));
        Ok(Self { rules, hints, hint_targets, patterns, finds_named, finds_encoded })
    }

    /// The names of all rules, each once.
    pub fn rule_names() -> impl Iterator<Item = &'static str> {
        rule_names().into_iter()
    }

    /// All secrets in a text, in order and without overlaps. If two rules match, the earlier one names the secret.
    pub fn find_secrets(&self, text: &[u8], rules: SecretRuleSet) -> Vec<SecretMatch> {
        let mut matches = Vec::new();
        self.find_hinted(text, rules, &mut matches);
        if rules == SecretRuleSet::All {
            self.find_configured(text, &mut matches);
            if self.finds_encoded {
                self.find_encoded(text, &mut matches);
            }
        }
        merge_overlaps(matches)
    }

    /// Whether the whole value of a field with this name is a secret: the name of the rule.
    pub fn find_field_secret(&self, name: &str, value: &str) -> Option<&'static str> {
        (self.finds_named && is_secret_field(name, value)).then_some(NAMED_SECRET)
    }

    fn find_hinted(&self, text: &[u8], rules: SecretRuleSet, matches: &mut Vec<RankedMatch>) {
        // Hints overlap, so one name would be read once for each of its hints.
        let mut name_end = 0;
        for hit in self.hints.find_overlapping_iter(text) {
            match self.hint_targets[hit.pattern().as_usize()] {
                HintTarget::Rule { rule: rank, hint } => {
                    let rule = &self.rules[rank];
                    if rules == SecretRuleSet::FormsOnly && !rule.rule.is_certain {
                        continue;
                    }
                    rule.find_near(text, hit.range(), hint, |range, context_start| {
                        let found = SecretMatch { range, context_start, rule: rule.rule.name };
                        matches.push(RankedMatch { found, rank });
                    });
                }
                HintTarget::Name
                    if rules == SecretRuleSet::All
                        && self.finds_named
                        && hit.start() >= name_end =>
                {
                    let named = find_named_secrets(text, hit.range());
                    name_end = named.name_end;
                    for range in named.values {
                        let found =
                            SecretMatch { range, context_start: named.start, rule: NAMED_SECRET };
                        matches.push(RankedMatch { found, rank: self.rules.len() });
                    }
                }
                HintTarget::Manifest if rules == SecretRuleSet::All && self.finds_named => {
                    let rank = self.rules.len();
                    for range in find_manifest_values(text, hit.range()) {
                        let context_start = range.start;
                        let found = SecretMatch { range, context_start, rule: NAMED_SECRET };
                        matches.push(RankedMatch { found, rank });
                    }
                }
                HintTarget::Name | HintTarget::Manifest => {}
            }
        }
    }

    fn find_configured(&self, text: &[u8], matches: &mut Vec<RankedMatch>) {
        for (pattern, rule) in &self.patterns {
            for captures in pattern.captures_iter(text) {
                let Some(range) = secret_range(&captures).filter(|range| !range.is_empty()) else {
                    continue;
                };
                let context_start = range.start;
                let found = SecretMatch { range, context_start, rule };
                matches.push(RankedMatch { found, rank: self.rules.len() + 1 });
            }
        }
    }

    /// Finds parts of a text that are secret once they are decoded.
    fn find_encoded(&self, text: &[u8], matches: &mut Vec<RankedMatch>) {
        let rank = self.rules.len() + 2;
        for part in find_base64_parts(text) {
            let mut inner = Vec::new();
            self.find_hinted(&part.decoded, SecretRuleSet::All, &mut inner);
            if !inner.is_empty() {
                let context_start = part.range.start;
                let found = SecretMatch { range: part.range, context_start, rule: ENCODED_SECRET };
                matches.push(RankedMatch { found, rank });
            }
        }
        for part in find_escaped_parts(text) {
            let mut inner = Vec::new();
            self.find_hinted(&part.decoded, SecretRuleSet::All, &mut inner);
            for RankedMatch { found, rank } in inner {
                let range = part.original_range(&found.range);
                let context_start = range.start;
                matches.push(RankedMatch {
                    found: SecretMatch { range, context_start, ..found },
                    rank,
                });
            }
        }
    }
}

impl CompiledRule {
    /// Calls `found` with the range and the context's start of each secret near a hint.
    fn find_near(
        &self,
        text: &[u8],
        hit: Range<usize>,
        hint: &str,
        mut found: impl FnMut(Range<usize>, usize),
    ) {
        match self.rule.form {
            SecretForm::Token { alphabet, length } => {
                if text[hit.clone()] == *hint.as_bytes()
                    && let Some(range) = match_token(text, hit, alphabet, length)
                {
                    let start = range.start;
                    found(range, start);
                }
            }
            SecretForm::Pattern { window: (before @ 0..=1, after), pattern } => {
                let is_exact = pattern.starts_with("(?i)") || text[hit.clone()] == *hint.as_bytes();
                if !is_exact || before == 1 && !is_token_start(text, hit.start) {
                    return;
                }
                let end = text.len().min(hit.end + after);
                if let Some(captures) = self.pattern(pattern, true).captures(&text[hit.start..end])
                    && let Some(range) = secret_range(&captures)
                    && self.is_plausible(&text[hit.start..end][range.clone()])
                {
                    found(hit.start + range.start..hit.start + range.end, hit.start);
                }
            }
            SecretForm::Pattern { window: (before, after), pattern } => {
                let start = hit.start.saturating_sub(before);
                let mut end = text.len().min(hit.end + after);
                // URLs are frequent, and few have a password.
                if hint == "://" {
                    let url = text[hit.end..end].iter();
                    end = hit.end + url.take_while(|byte| !byte.is_ascii_whitespace()).count();
                    if memchr::memchr(b'@', &text[hit.end..end]).is_none() {
                        return;
                    }
                }
                for captures in captures_from(self.pattern(pattern, false), &text[..end], start) {
                    let Some(range) = secret_range(&captures) else { continue };
                    let context_start = captures.get(0).map_or(range.start, |whole| whole.start());
                    if context_start > hit.start {
                        break;
                    }
                    if self.is_plausible(&text[range.clone()]) {
                        found(range, context_start);
                    }
                }
            }
        }
    }

    fn pattern(&self, pattern: &str, is_anchored: bool) -> &Regex {
        self.pattern.get_or_init(|| {
            let start = if is_anchored { "^" } else { "" };
            let pattern = if is_anchored { pattern.trim_start_matches(r"\b") } else { pattern };
            let pattern = format!("(?-u){start}(?:{pattern})");
            let compiled = RegexBuilder::new(&pattern).size_limit(MAX_PATTERN_BYTES).build();
            compiled.expect("a valid rule")
        })
    }

    /// Whether what a pattern matched is a secret and not a placeholder.
    fn is_plausible(&self, secret: &[u8]) -> bool {
        let Ok(secret) = std::str::from_utf8(secret) else { return true };
        match self.rule.name {
            "bearer token" => looks_random(secret) && !is_filler(secret),
            "authorization" => is_credential(secret),
            "password in a sentence" | "password in another language" => {
                !is_reference_or_filler(secret) && is_spoken_password(secret)
            }
            "token" => is_random_mix(secret),
            "PIN" => true,
            "Vault token" | "Modal token" | "OpenAI key" => {
                looks_random(secret) && !is_filler(secret)
            }
            "private key" => secret.len() >= 44,
            "password in URL" => !is_reference_or_filler(secret) && !is_dummy(secret),
            "recovery phrase" => true,
            "Docker login" => secret.len() >= 16 && !is_wordy(secret) || secret.ends_with('='),
            "login" => {
                let is_mixed = secret.bytes().any(|b| b.is_ascii_digit())
                    && secret.bytes().any(|b| b.is_ascii_alphabetic());
                is_mixed
                    && !is_reference_or_filler(secret)
                    && !secret.contains('.')
                    && !secret.contains('/')
            }
            _ if self.rule.is_certain => {
                !is_reference_or_filler(secret) || secret.len() >= 40 && !secret.contains("xxxx")
            }
            _ => !is_reference_or_filler(secret) && !is_dummy(secret),
        }
    }
}

/// Whether a match is a reference to a secret or a filler.
fn is_reference_or_filler(secret: &str) -> bool {
    let is_hash =
        secret.matches('$').count() > 1 || secret.starts_with("{S") || secret.starts_with("{C");
    let is_filled = is_filler(secret) && !secret.contains("EXAMPLE");
    let is_variable = secret.starts_with(['$', '<', '{', '%', '[']) && !is_hash;
    let is_code =
        ["${", "{{", "process.env", "os.environ"].iter().any(|part| secret.contains(part));
    is_filled || is_variable || is_code
}

/// Whether a guessed password is a word that stands for passwords.
fn is_dummy(secret: &str) -> bool {
    const DUMMIES: [&str; 23] = [
        "password",
        "passwd",
        "pass",
        "secret",
        "token",
        "test",
        "user",
        "root",
        "admin",
        "example",
        "foobared",
        "none",
        "null",
        "true",
        "false",
        "string",
        "postgres",
        "guest",
        "localhost",
        "prompt",
        "required",
        "changeit",
        "pwd",
    ];
    DUMMIES.iter().any(|dummy| secret.eq_ignore_ascii_case(dummy))
}

/// The first group that matched, or the whole match.
fn secret_range(captures: &Captures<'_>) -> Option<Range<usize>> {
    let mut groups = captures.iter();
    let whole = groups.next().flatten()?;
    Some(groups.flatten().next().unwrap_or(whole).range())
}

/// All matches from an offset on, with the text before it as context.
fn captures_from<'r, 't>(
    pattern: &'r Regex,
    text: &'t [u8],
    start: usize,
) -> impl Iterator<Item = Captures<'t>> + use<'r, 't> {
    let mut at = start;
    std::iter::from_fn(move || {
        let captures = pattern.captures_at(text, at.min(text.len()))?;
        let whole = captures.get(0)?;
        at = whole.end().max(whole.start() + 1);
        Some(captures)
    })
}

/// Joins matches that overlap. The rule that comes first in the table names the joined match.
fn merge_overlaps(mut matches: Vec<RankedMatch>) -> Vec<SecretMatch> {
    matches.sort_by_key(|matched| (matched.found.range.start, matched.rank));
    let mut merged: Vec<RankedMatch> = Vec::new();
    for matched in matches {
        match merged.last_mut().filter(|last| matched.found.range.start < last.found.range.end) {
            Some(last) => {
                last.found.range.end = last.found.range.end.max(matched.found.range.end);
                last.found.context_start =
                    last.found.context_start.min(matched.found.context_start);
                if matched.rank < last.rank {
                    (last.found.rule, last.rank) = (matched.found.rule, matched.rank);
                }
            }
            None => merged.push(matched),
        }
    }
    merged.into_iter().map(|matched| matched.found).collect()
}

#[cfg(test)]
mod tests;
