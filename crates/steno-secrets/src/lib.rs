//! Finds secrets in texts: keys, tokens, passwords and private keys.
//!
//! Three kinds of knowledge decide. A table of rules (`rule_table`) knows the forms of vendors' keys, each with an
//! example that it finds and one that it leaves. A parser of assignments (`named_value`) recognises values by the
//! names that they are given in settings, code, headers and command lines. [`SecretSettings`] add what only the user
//! knows. Hashes, ids, placeholders and references to variables are not secrets.
//!
//! This crate must not know sessions, entries or formats. It reads no files.

mod argument_lists;
mod coloured_text;
mod compiled_rule;
mod cookie_values;
mod divided_text;
mod encoded_text;
mod field_names;
mod hint_search;
mod json_lines;
mod kubernetes_secret;
mod letter_pairs;
mod literal_forms;
#[cfg(any(test, feature = "test-support"))]
pub mod made_up;
mod name_bounds;
mod name_words;
mod named_value;
mod names;
mod pair_filter;
mod paired_value;
#[cfg(any(test, feature = "test-support"))]
pub mod planted;
mod prefixed_token;
mod quoted_value;
mod randomness;
mod rule_pattern;
mod rule_table;
mod secret_rule;
mod secret_scanner;
mod secret_settings;
mod streamed_text;
mod table_values;
mod token_match;
mod unescaped_part;
mod value_plausibility;
mod value_shapes;
mod values;
mod word_lists;

pub use self::names::{holds_password, is_secret_name};
pub use self::secret_scanner::{SecretMatch, SecretRuleSet, SecretScanner};
pub use self::secret_settings::{SecretSettings, SecretSettingsError};
pub use self::values::{is_dummy_password, is_placeholder, is_searchable};
