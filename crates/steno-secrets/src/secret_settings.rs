//! What the user adds to the rules, and which rules are off.

use regex::bytes::{Regex, RegexBuilder};

use crate::rule_table::rule_names;

/// The greatest size of a compiled pattern of the user.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// What to redact besides the table's rules, and which rules not to apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretSettings {
    /// Texts to redact wherever they occur, in any case.
    pub words: Vec<String>,
    /// Names of people, hosts or customers to redact as whole words, in any case. Between the parts of a name there
    /// may be spaces, dots, dashes and underscores.
    pub names: Vec<String>,
    /// Regular expressions. The first group, if any, is redacted.
    pub patterns: Vec<String>,
    /// Names of rules that are not applied.
    pub disabled_rules: Vec<String>,
}

impl SecretSettings {
    /// Checks that all patterns are regular expressions and all rules exist.
    pub fn validate(&self) -> Result<(), SecretSettingsError> {
        compile_patterns(self)?;
        self.normalized_disabled_rules().map(drop)
    }

    /// The names of the rules that are off, as they are compared.
    pub(crate) fn normalized_disabled_rules(&self) -> Result<Vec<String>, SecretSettingsError> {
        if self.disabled_rules.is_empty() {
            return Ok(Vec::new());
        }
        let known: Vec<_> = rule_names().into_iter().map(normalize_rule_name).collect();
        let names = self.disabled_rules.iter().map(|name| {
            let normal = normalize_rule_name(name);
            let is_known = known.contains(&normal);
            is_known.then_some(normal).ok_or_else(|| SecretSettingsError::UnknownRule(name.clone()))
        });
        names.collect()
    }
}

/// Why settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretSettingsError {
    /// A pattern is not a regular expression.
    #[error("not a regular expression: {pattern}: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A pattern matches the empty text, and would redact everything.
    #[error("the pattern matches an empty text: {0}")]
    EmptyPattern(String),
    /// A word or name is too short to redact.
    #[error("too short to redact, at least 2 characters: {0:?}")]
    TooShort(String),
    /// There is no rule of this name.
    #[error("no rule is named {0:?}")]
    UnknownRule(String),
}

/// The name of a rule as it is compared: `github-token` is `GitHub token`.
pub(crate) fn normalize_rule_name(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Patterns of the user, each with the name of its rule.
pub(crate) fn compile_patterns(
    settings: &SecretSettings,
) -> Result<Vec<(Regex, &'static str)>, SecretSettingsError> {
    let mut patterns = Vec::new();
    for word in &settings.words {
        patterns.push((compile_literal(word, regex::escape(word.trim()))?, CONFIGURED_WORD));
    }
    for name in &settings.names {
        let parts: Vec<_> = name.split_whitespace().map(regex::escape).collect();
        let pattern = format!(r"\b{}\b", parts.join(r"[\s._-]{1,3}"));
        patterns.push((compile_literal(name, pattern)?, CONFIGURED_NAME));
    }
    for pattern in &settings.patterns {
        let compiled = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
        let compiled = compiled.map_err(|error| SecretSettingsError::BadPattern {
            pattern: pattern.clone(),
            reason: last_line(&error.to_string()),
        })?;
        if compiled.is_match(b"") {
            return Err(SecretSettingsError::EmptyPattern(pattern.clone()));
        }
        patterns.push((compiled, CONFIGURED_PATTERN));
    }
    Ok(patterns)
}

fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or(text);
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// The rule of [`SecretSettings::words`].
pub(crate) const CONFIGURED_WORD: &str = "configured word";
/// The rule of [`SecretSettings::names`].
pub(crate) const CONFIGURED_NAME: &str = "configured name";
/// The rule of [`SecretSettings::patterns`].
pub(crate) const CONFIGURED_PATTERN: &str = "configured pattern";

fn compile_literal(word: &str, pattern: String) -> Result<Regex, SecretSettingsError> {
    if word.trim().chars().count() < 2 {
        return Err(SecretSettingsError::TooShort(word.to_owned()));
    }
    let compiled =
        RegexBuilder::new(&pattern).case_insensitive(true).size_limit(MAX_PATTERN_BYTES).build();
    compiled.map_err(|error| SecretSettingsError::BadPattern {
        pattern: word.to_owned(),
        reason: last_line(&error.to_string()),
    })
}
