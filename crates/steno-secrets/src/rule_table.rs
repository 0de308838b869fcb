//! All rules, the most specific first.

mod access;
mod ai;
mod cloud;
mod code;
mod keys;
mod messaging;
mod runs;
mod sentences;
mod services;

use crate::secret_rule::SecretRule;

/// The tables, in order of precedence: if two rules match, the earlier one names the secret.
const RULE_TABLES: [&[SecretRule]; 15] = [
    keys::KEY_TOKENS,
    keys::KEY_PATTERNS,
    ai::AI_TOKENS,
    cloud::CLOUD_TOKENS,
    code::CODE_TOKENS,
    messaging::MESSAGING_TOKENS,
    services::SERVICE_TOKENS,
    runs::RUN_PATTERNS,
    ai::AI_PATTERNS,
    cloud::CLOUD_PATTERNS,
    code::CODE_PATTERNS,
    messaging::MESSAGING_PATTERNS,
    services::SERVICE_PATTERNS,
    access::ACCESS_PATTERNS,
    sentences::SENTENCE_PATTERNS,
];

/// All rules of the table.
pub(crate) fn all_rules() -> impl Iterator<Item = &'static SecretRule> {
    RULE_TABLES.into_iter().flatten()
}

/// The rule of values that their names make secret.
pub(crate) const NAMED_SECRET: &str = "secret";

/// The rule of tokens with a prefix that no other rule knows.
pub(crate) const PREFIXED_TOKEN: &str = "token";

/// The rule of encoded secrets.
pub(crate) const ENCODED_SECRET: &str = "encoded secret";

/// The names of all rules, each once.
pub(crate) fn rule_names() -> Vec<&'static str> {
    let mut names: Vec<_> = all_rules().map(|rule| rule.name).collect();
    names.extend([NAMED_SECRET, ENCODED_SECRET]);
    names.sort_unstable_by_key(|name| name.to_ascii_lowercase());
    names.dedup();
    names
}
