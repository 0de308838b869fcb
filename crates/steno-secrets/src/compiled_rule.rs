//! Applies one rule of the table near a hint, and leaves placeholders.

use std::ops::Range;
use std::sync::OnceLock;

use crate::randomness::{changes_kind_often, is_random_mix, is_wordy, looks_random};
use crate::rule_pattern::RulePattern;
use crate::secret_rule::{SecretForm, SecretRule};
use crate::token_match::{is_token_start, match_token};
use crate::value_plausibility::{is_credential, is_spoken_password};
use crate::value_shapes::{is_code, is_filler};

/// A rule and its compiled pattern.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) rule: &'static SecretRule,
    /// Compiled when its hint is first found, because all together are large.
    pattern: OnceLock<RulePattern>,
    pub(crate) is_enabled: bool,
}
impl CompiledRule {
    /// A rule whose pattern is compiled when it is first needed.
    pub(crate) fn new(rule: &'static SecretRule, is_enabled: bool) -> Self {
        Self { rule, pattern: OnceLock::new(), is_enabled }
    }

    /// Calls `found` with the range and the context's start of each secret near a hint.
    pub(crate) fn find_near(
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
            SecretForm::Run { .. } => {}
            SecretForm::Pattern { window: (before @ 0..=1, after), pattern, needs } => {
                let is_exact = pattern.starts_with("(?i)") || text[hit.clone()] == *hint.as_bytes();
                if !is_exact || before == 1 && !is_token_start(text, hit.start) {
                    return;
                }
                let window = &text[hit.start..text.len().min(hit.end + after)];
                if needs.is_in(window)
                    && let Some(matched) = self.pattern(pattern, true).match_start(window)
                    && self.is_plausible(&window[matched.secret.clone()])
                {
                    let Range { start, end } = matched.secret;
                    found(hit.start + start..hit.start + end, hit.start);
                }
            }
            SecretForm::Pattern { window: (before, after), pattern, needs } => {
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
                if !needs.is_in(&text[start..end]) {
                    return;
                }
                for matched in self.pattern(pattern, false).matches_from(&text[..end], start) {
                    let mut range = matched.secret;
                    let is_escape = pattern.starts_with(r"\b") && text[range.start] == b'\\';
                    range.start += if is_escape { 2 } else { 0 };
                    if matched.whole.start > hit.start {
                        break;
                    }
                    if self.is_plausible(&text[range.clone()]) {
                        found(range, matched.whole.start);
                    }
                }
            }
        }
    }

    /// The secret near the start of a run, for a rule of runs.
    pub(crate) fn find_at_run(&self, text: &[u8], run: usize) -> Option<Range<usize>> {
        let SecretForm::Run { pattern, window: (before, after) } = self.rule.form else {
            return None;
        };
        let start = run.checked_sub(before)?;
        let rest = &text[start..text.len().min(start + after)];
        let has_hint = self.rule.hints.iter().any(|hint| rest.starts_with(hint.as_bytes()));
        if !has_hint || !is_token_start(text, start) {
            return None;
        }
        let range = self.pattern(pattern, true).match_start(rest)?.secret;
        let range = start + range.start..start + range.end;
        self.is_plausible(&text[range.clone()]).then_some(range)
    }

    fn pattern(&self, pattern: &str, is_anchored: bool) -> &RulePattern {
        self.pattern.get_or_init(|| {
            // A match that starts with its hint was checked to start a word.
            let pattern = if is_anchored { pattern.trim_start_matches(r"\b") } else { pattern };
            RulePattern::new(pattern)
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
            "mail or file password" if self.rule.hints.contains(&" LOGIN ") => {
                !is_reference_or_filler(secret) && !is_dummy(secret)
            }
            "npm token" => !is_reference_or_filler(secret) && !is_code(secret),
            "token" => is_random_mix(secret) && !is_filler(secret),
            "Redis password" => {
                (looks_random(secret) || is_spoken_password(secret)) && !is_filler(secret)
            }
            "random credential" | "printed secret" | "key on the next line" => {
                looks_random(secret) && !is_filler(secret)
            }
            "recovery code" => {
                let digits = secret.bytes().filter(u8::is_ascii_digit).count();
                (looks_random(secret) || digits >= 4 && !is_year(secret)) && !is_filler(secret)
            }
            "printed password" => {
                !is_reference_or_filler(secret)
                    && (is_spoken_password(secret) || looks_random(secret))
                    && !is_label(secret)
            }
            "app password" => !is_wordy(secret),
            "token in URL" => changes_kind_often(secret.as_bytes()) && !is_filler(secret),
            "password in a table" => !is_reference_or_filler(secret) && is_spoken_password(secret),
            "password on the next line" | "mail or file password" => {
                !is_reference_or_filler(secret)
                    && is_spoken_password(secret)
                    && !is_wordy(secret.trim_end_matches(['!', '.']))
            }
            "password in a call" => {
                !is_reference_or_filler(secret) && is_spoken_password(secret) && !is_dummy(secret)
            }
            "command-line password" if self.rule.hints.contains(&" -p ") => {
                is_spoken_password(secret) && secret.bytes().filter(u8::is_ascii_digit).count() > 1
            }
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

/// Whether a value starts with a year, as dates do.
fn is_year(secret: &str) -> bool {
    ["19", "20"].iter().any(|century| secret.starts_with(century)) && secret.contains(['-', ':'])
}

/// Whether a word with one digit is what a program calls its result, such as `Store2`.
fn is_label(secret: &str) -> bool {
    secret.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && secret.bytes().filter(u8::is_ascii_digit).count() < 2
        && is_wordy(secret)
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
    let secret = secret.trim_end_matches(['>', ')', '}', ']']);
    DUMMIES.iter().any(|dummy| secret.eq_ignore_ascii_case(dummy))
}
