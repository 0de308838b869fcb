//! Applies all rules to a text.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Captures, Regex};

use crate::argument_lists::find_argument_lists;
use crate::coloured_text::find_coloured_parts;
use crate::compiled_rule::CompiledRule;
use crate::divided_text::find_divided_parts;
use crate::encoded_text::{decode_base64_run, decode_hex_run, find_escaped_parts, find_long_runs};
use crate::field_names::{NAME_HINTS, classify_field_name};
use crate::hint_search::HintSearch;
use crate::json_lines::find_json_lines;
use crate::kubernetes_secret::{MANIFEST_HINTS, find_manifest_values};
use crate::named_value::{find_named_secrets, is_secret_field};
use crate::prefixed_token::{is_unknown_token, token_pieces};
use crate::randomness::looks_random;
use crate::rule_table::{ENCODED_SECRET, NAMED_SECRET, PREFIXED_TOKEN, all_rules, rule_names};
use crate::secret_rule::{SecretForm, SecretRule};
use crate::secret_settings::{
    SecretSettings, SecretSettingsError, compile_patterns, normalize_rule_name,
};
use crate::streamed_text::find_streams;
use crate::unescaped_part::UnescapedPart;

/// Shorter texts have no long tokens, streams or lines.
const MIN_DECODED_BYTES: usize = 20;

/// Shorter values may be parts of words.
const MIN_REPEATED_BYTES: usize = 12;

/// Longer values are found by their form wherever they are.
const MAX_REPEATED_BYTES: usize = 200;

/// How many values of a text are looked for in the whole text.
const MAX_REPEATED_VALUES: usize = 50;

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
    hints: HintSearch,
    /// What each hint points to.
    hint_targets: Vec<HintTarget>,
    /// The user's patterns, each with the name of its rule.
    patterns: Vec<(Regex, &'static str)>,
    finds_named: bool,
    finds_encoded: bool,
    finds_prefixed: bool,
    run_rules: RunRules,
}

/// The rules that start where a long run of letters and digits starts.
#[derive(Debug, Default)]
struct RunRules {
    /// Each rule, and the first bytes of its run.
    starts: Vec<(usize, u8)>,
    /// The rules with something before their run, which a dot ends.
    after_dot: Vec<usize>,
    /// For each byte, whether it is in `starts`.
    is_start: BTreeSet<u8>,
}

impl RunRules {
    fn push(&mut self, at: usize, rule: &SecretRule, before: usize) {
        if before > 0 {
            self.after_dot.push(at);
            return;
        }
        let mut firsts: Vec<_> = rule.hints.iter().map(|hint| hint.as_bytes()[0]).collect();
        firsts.dedup();
        self.is_start.extend(&firsts);
        self.starts.extend(firsts.into_iter().map(|first| (at, first)));
    }

    /// The rules to try for a run.
    fn candidates(&self, text: &[u8], run: usize) -> impl Iterator<Item = usize> {
        let first = text[run];
        let follows_dot = run > 0 && text[run - 1] == b'.';
        let after_dot = if follows_dot { self.after_dot.as_slice() } else { &[] };
        let starts = if self.is_start.contains(&first) { self.starts.as_slice() } else { &[] };
        let starts = starts.iter().filter(move |start| start.1 == first).map(|start| start.0);
        starts.chain(after_dot.iter().copied())
    }
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
        let is_enabled =
            |name: &str| disabled.is_empty() || !disabled.contains(&normalize_rule_name(name));
        let compile = |rule: &'static SecretRule| CompiledRule::new(rule, is_enabled(rule.name));
        let rules: Vec<_> = all_rules().map(compile).collect();
        let mut hints = Vec::new();
        let mut hint_targets = Vec::new();
        let mut run_rules = RunRules::default();
        for (at, rule) in rules.iter().enumerate() {
            if let SecretForm::Run { window: (before, _), .. } = rule.rule.form {
                run_rules.push(at, rule.rule, before);
                continue;
            }
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
        let hints = HintSearch::new(hints);
        let (finds_named, finds_encoded) = (is_enabled(NAMED_SECRET), is_enabled(ENCODED_SECRET));
        let finds_prefixed = is_enabled(PREFIXED_TOKEN);
        Ok(Self {
            rules,
            hints,
            hint_targets,
            patterns,
            finds_named,
            finds_encoded,
            finds_prefixed,
            run_rules,
        })
    }

    /// The names of all rules, each once.
    pub fn rule_names() -> impl Iterator<Item = &'static str> {
        rule_names().into_iter()
    }

    /// All secrets in a text, in order and without overlaps. If two rules match, the earlier one names the secret.
    pub fn find_secrets(&self, text: &[u8], rules: SecretRuleSet) -> Vec<SecretMatch> {
        let mut matches = Vec::new();
        self.find_hinted(text, rules, &mut matches);
        let runs = find_long_runs(text);
        self.find_run_rules(text, &runs, &mut matches);
        if rules == SecretRuleSet::All {
            self.find_configured(text, &mut matches);
            self.find_escaped(text, &mut matches);
        }
        // Most strings are ids, names and numbers.
        if rules == SecretRuleSet::All && text.len() >= MIN_DECODED_BYTES {
            self.find_in_runs(text, &runs, &mut matches);
            self.find_divided(text, &runs, &mut matches);
            self.find_streamed(text, &mut matches);
        }
        self.remove_disabled(&mut matches);
        let found = merge_overlaps(matches);
        if found.is_empty() { found } else { add_repeated(text, found) }
    }

    /// Whether a field of this name may have a secret as its whole value.
    pub fn may_name_secret(&self, name: &str) -> bool {
        self.finds_named && classify_field_name(name).is_some()
    }

    /// Whether the whole value of a field with this name is a secret: the name of the rule.
    pub fn find_field_secret(&self, name: &str, value: &str) -> Option<&'static str> {
        (self.finds_named && is_secret_field(name, value)).then_some(NAMED_SECRET)
    }

    fn find_hinted(&self, text: &[u8], rules: SecretRuleSet, matches: &mut Vec<RankedMatch>) {
        // Hints overlap, so one name would be read once for each of its hints.
        let mut name_end = 0;
        self.hints.find_all(text, |hint, hit| match self.hint_targets[hint] {
            HintTarget::Rule { rule: rank, hint } => {
                let rule = &self.rules[rank];
                if rules == SecretRuleSet::FormsOnly && !rule.rule.is_certain {
                    return;
                }
                rule.find_near(text, hit, hint, |range, context_start| {
                    let found = SecretMatch { range, context_start, rule: rule.rule.name };
                    matches.push(RankedMatch { found, rank });
                });
            }
            HintTarget::Name
                if rules == SecretRuleSet::All && self.finds_named && hit.start >= name_end =>
            {
                let named = find_named_secrets(text, hit);
                name_end = named.name_end;
                for range in named.values {
                    let found =
                        SecretMatch { range, context_start: named.start, rule: NAMED_SECRET };
                    matches.push(RankedMatch { found, rank: self.rules.len() });
                }
            }
            HintTarget::Manifest if rules == SecretRuleSet::All && self.finds_named => {
                let rank = self.rules.len();
                for range in find_manifest_values(text, hit) {
                    let context_start = range.start;
                    let found = SecretMatch { range, context_start, rule: NAMED_SECRET };
                    matches.push(RankedMatch { found, rank });
                }
            }
            HintTarget::Name | HintTarget::Manifest => {}
        });
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

    /// Finds secrets that are divided between the pieces of a stream.
    fn find_streamed(&self, text: &[u8], matches: &mut Vec<RankedMatch>) {
        for stream in find_streams(text) {
            let inner = self.find_inside(&stream.joined);
            for RankedMatch { found, rank } in inner {
                let ranges = stream.original_ranges(&found.range);
                // What is in one piece was found there.
                if ranges.len() > 1 {
                    matches.extend(ranges.into_iter().map(|range| RankedMatch {
                        found: SecretMatch { context_start: range.start, range, rule: found.rule },
                        rank,
                    }));
                }
            }
        }
    }

    /// Finds tokens that start where a run starts.
    fn find_run_rules(&self, text: &[u8], runs: &[Range<usize>], matches: &mut Vec<RankedMatch>) {
        for piece in runs.iter().flat_map(|run| token_pieces(text, run.clone())) {
            for rank in self.run_rules.candidates(text, piece.start) {
                if let Some(range) = self.rules[rank].find_at_run(text, piece.start) {
                    let (context_start, rule) = (range.start, self.rules[rank].rule.name);
                    let found = SecretMatch { range, context_start, rule };
                    matches.push(RankedMatch { found, rank });
                }
            }
        }
    }

    /// Finds tokens of unknown services, and base64 that is secret once it is decoded.
    fn find_in_runs(&self, text: &[u8], runs: &[Range<usize>], matches: &mut Vec<RankedMatch>) {
        let rank = self.rules.len() + 2;
        for run in runs {
            if self.finds_prefixed {
                let pieces = token_pieces(text, run.clone());
                for range in pieces.filter(|piece| is_unknown_token(text, piece)) {
                    let context_start = range.start;
                    let found = SecretMatch { range, context_start, rule: PREFIXED_TOKEN };
                    matches.push(RankedMatch { found, rank });
                }
            }
            let part = decode_base64_run(text, run.clone());
            let part = part.or_else(|| decode_hex_run(text, run.clone()));
            let Some(part) = part.filter(|_| self.finds_encoded) else { continue };
            let inner = self.find_inside(&part.decoded);
            if !inner.is_empty() {
                let context_start = part.range.start;
                let found = SecretMatch { range: part.range, context_start, rule: ENCODED_SECRET };
                matches.push(RankedMatch { found, rank });
            }
        }
    }

    /// All that is found in a text that was made from another, without decoding it further.
    fn find_inside(&self, text: &[u8]) -> Vec<RankedMatch> {
        let mut inner = Vec::new();
        self.find_hinted(text, SecretRuleSet::All, &mut inner);
        let runs = find_long_runs(text);
        self.find_run_rules(text, &runs, &mut inner);
        if self.finds_prefixed {
            let pieces = runs.iter().flat_map(|run| token_pieces(text, run.clone()));
            inner.extend(pieces.filter(|piece| is_unknown_token(text, piece)).map(|range| {
                let context_start = range.start;
                let found = SecretMatch { range, context_start, rule: PREFIXED_TOKEN };
                RankedMatch { found, rank: self.rules.len() + 2 }
            }));
        }
        self.remove_disabled(&mut inner);
        inner
    }

    /// Removes what disabled rules found, also where the rule for tokens of unknown services found it again.
    fn remove_disabled(&self, matches: &mut Vec<RankedMatch>) {
        let is_disabled =
            |one: &RankedMatch| self.rules.get(one.rank).is_some_and(|rule| !rule.is_enabled);
        if !matches.iter().any(is_disabled) {
            return;
        }
        let (disabled, mut kept): (Vec<_>, Vec<_>) =
            std::mem::take(matches).into_iter().partition(is_disabled);
        kept.retain(|one| {
            let overlaps = |other: &RankedMatch| {
                one.found.range.start < other.found.range.end
                    && other.found.range.start < one.found.range.end
            };
            one.found.rule != PREFIXED_TOKEN || !disabled.iter().any(overlaps)
        });
        *matches = kept;
    }

    /// Finds secrets that escapes hide.
    fn find_escaped(&self, text: &[u8], matches: &mut Vec<RankedMatch>) {
        if !self.finds_encoded {
            return;
        }
        let parts = find_escaped_parts(text).into_iter().chain(find_argument_lists(text));
        for part in parts.chain(find_coloured_parts(text)).chain(find_json_lines(text)) {
            let inner = self.find_inside(&part.decoded);
            matches.extend(inner.into_iter().map(|inner| inner.mapped_to(&part)));
        }
    }

    /// Finds secrets that line breaks divide.
    fn find_divided(&self, text: &[u8], runs: &[Range<usize>], matches: &mut Vec<RankedMatch>) {
        for part in find_divided_parts(text, runs) {
            let mut inner = self.find_inside(&part.decoded);
            self.find_in_runs(&part.decoded, &find_long_runs(&part.decoded), &mut inner);
            let is_divided = |inner: &RankedMatch| {
                part.original_range(&inner.found.range).len() > inner.found.range.len()
            };
            let divided = inner.into_iter().filter(is_divided);
            matches.extend(divided.map(|inner| inner.mapped_to(&part)));
        }
    }
}

impl RankedMatch {
    /// The match in the text that a part was made from.
    fn mapped_to(self, part: &UnescapedPart) -> Self {
        let range = part.original_range(&self.found.range);
        let context_start = range.start;
        Self { found: SecretMatch { range, context_start, ..self.found }, rank: self.rank }
    }
}

/// Adds the other places of secrets that are long and random: a name is only near one of them.
fn add_repeated(text: &[u8], found: Vec<SecretMatch>) -> Vec<SecretMatch> {
    let mut all: Vec<_> = found
        .iter()
        .cloned()
        .enumerate()
        .map(|(rank, found)| RankedMatch { found, rank })
        .collect();
    let mut values: Vec<&[u8]> = Vec::new();
    for secret in &found {
        let value = &text[secret.range.clone()];
        let is_random = std::str::from_utf8(value).is_ok_and(|value| {
            (MIN_REPEATED_BYTES..=MAX_REPEATED_BYTES).contains(&value.len()) && looks_random(value)
        });
        if !is_random || values.contains(&value) || values.len() >= MAX_REPEATED_VALUES {
            continue;
        }
        values.push(value);
        let places = memchr::memmem::find_iter(text, value);
        all.extend(places.map(|start| RankedMatch {
            found: SecretMatch {
                range: start..start + value.len(),
                context_start: start,
                rule: secret.rule,
            },
            rank: found.len(),
        }));
    }
    merge_overlaps(all)
}

/// The first group that matched, or the whole match.
fn secret_range(captures: &Captures<'_>) -> Option<Range<usize>> {
    let mut groups = captures.iter();
    let whole = groups.next().flatten()?;
    Some(groups.flatten().next().unwrap_or(whole).range())
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
