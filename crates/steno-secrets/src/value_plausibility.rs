//! Decides whether the value of a named field is a secret, or a placeholder, a reference, a type or an ordinary word.

use crate::field_names::FieldNameClass;
use crate::letter_pairs::word_likeness;
use crate::randomness::{
    MIN_WORD_LIKENESS, changes_kind_often, is_date, is_letter_soup, is_path, is_url, is_wordy,
    looks_random,
};
use crate::value_shapes::{
    is_code, is_dotted_words, is_duration, is_file_name, is_filler, is_listed_term, is_made_of,
    is_measure, is_public_key, is_reference,
};
use crate::word_lists::{LITERAL_WORDS, NAMING_WORDS, SENTENCE_WORDS};

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueStyle {
    /// In quotes, or the whole text of a field or element.
    Quoted,
    /// After a name in capitals and `=`, or after an option of a command.
    Assigned,
    /// Without quotes up to the end of a line that starts with the name.
    WholeLine,
    /// Without quotes in code, settings or a URL.
    Bare,
    /// In a sentence.
    Prose,
}

/// A name and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldCandidate<'a> {
    pub(crate) name: &'a str,
    pub(crate) class: FieldNameClass,
    pub(crate) value: &'a str,
    pub(crate) style: ValueStyle,
}

impl FieldCandidate<'_> {
    /// Whether the value is a secret.
    pub(crate) fn is_plausible(&self) -> bool {
        let value = self.value.trim();
        // Escaped line breaks at the end are not part of a value.
        let value = value.trim_end_matches("\\n").trim_end_matches("\\r");
        // Code is the most frequent, so it is recognised first.
        let may_be_code = self.style != ValueStyle::Quoted
            && !self.is_assigned_phrase(value)
            && !(self.style != ValueStyle::Prose && is_dotted_soup(value));
        if may_be_code && (is_code(value) || value.starts_with('{')) {
            return false;
        }
        if !(4..=4096).contains(&value.len())
            || is_filler(value)
            || is_reference(value)
            || is_public_key(value)
        {
            return false;
        }
        // A mount of `docker build --secret`, and a type of GraphQL.
        if self.style == ValueStyle::Assigned && value.starts_with("id=")
            || matches!(value, "String!" | "[String!]!" | "ID!")
        {
            return false;
        }
        let is_literal = LITERAL_WORDS.iter().any(|word| value.eq_ignore_ascii_case(word));
        if is_literal || self.repeats_name(value) || is_made_of(value, NAMING_WORDS) {
            return false;
        }
        match self.class {
            FieldNameClass::Password => self.is_password(value),
            FieldNameClass::Chosen => {
                looks_random(value)
                    || self.style == ValueStyle::Prose
                        && has_two_digits(value)
                        && is_spoken_password(value)
                    || value.len() >= 6 && !is_wordy(value) && self.is_password(value)
                    || self.is_chosen_phrase(value)
                    || self.is_numbered_word(value)
            }
            FieldNameClass::UnknownKey => is_strong_key(value) || is_hex_key(value),
            FieldNameClass::Random | FieldNameClass::Cookies => {
                looks_random(value) && (self.style != ValueStyle::Prose || value.len() >= 12)
                    || self.style == ValueStyle::Quoted
                        && (is_symbol_soup(value) || is_mixed_key(value))
            }
        }
    }

    /// Whether a setting or an option has several small words as its password: `--password winter_is_here`.
    fn is_assigned_phrase(&self, value: &str) -> bool {
        self.style == ValueStyle::Assigned
            && self.class == FieldNameClass::Password
            && value.split('_').count() >= 3
            && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            && !value.split('_').any(|part| part.len() > 2 && NAMING_WORDS.contains(&part))
    }

    /// Whether the value is the name again, as in `password=password` or `apiKey: api_key`.
    fn repeats_name(&self, value: &str) -> bool {
        let plain = |text: &str| -> String {
            let letters = text.chars().filter(char::is_ascii_alphanumeric);
            letters.map(|letter| letter.to_ascii_lowercase()).collect()
        };
        let (name, value) = (plain(self.name), plain(value));
        name.ends_with(&value) || value == format!("{name}s")
    }

    fn is_password(&self, value: &str) -> bool {
        let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
        let has_letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
        let has_symbol = value.bytes().any(|byte| b"!@#$%^&*+?~=|".contains(&byte));
        let is_mixed = has_letter && (has_digit || has_symbol);
        if value.contains(char::is_whitespace) {
            return self.style == ValueStyle::Quoted
                && (is_passphrase(value) || is_grouped_password(value));
        }
        if self.style != ValueStyle::Prose && is_dotted_soup(value) {
            return true;
        }
        let is_time = value.contains(':') && is_date(value);
        if is_time
            || is_dotted_words(value)
            || is_path(value)
            || is_url(value)
            || is_duration(value)
        {
            return false;
        }
        match self.style {
            ValueStyle::Quoted | ValueStyle::Assigned => {
                is_mixed || is_number_password(value) || value.len() >= 6 && is_chosen_word(value)
            }
            ValueStyle::WholeLine => {
                is_mixed && value.len() >= 5
                    || is_number_password(value)
                    || value.len() >= 6 && is_chosen_word(value) && !value.contains(['-', '_', ':'])
            }
            ValueStyle::Bare => is_mixed && value.len() >= 5 || is_letter_soup(value),
            ValueStyle::Prose => {
                is_mixed && value.len() >= 6 && !is_listed_term(value) || is_letter_soup(value)
            }
        }
    }

    /// Whether a variable for a secret has a word with a number: `JWT_SECRET="quietharbor55"`.
    fn is_numbered_word(&self, value: &str) -> bool {
        matches!(self.style, ValueStyle::Quoted | ValueStyle::Assigned)
            && self.name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            && value.len() >= 10
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && has_two_digits(value)
    }

    /// Whether the value is a text that somebody chose as a secret: `JWT_SECRET=correct-horse-battery`.
    fn is_chosen_phrase(&self, value: &str) -> bool {
        matches!(self.style, ValueStyle::Quoted | ValueStyle::Assigned)
            && value.len() >= 8
            && !value.contains(char::is_whitespace)
            && !is_dotted_words(value)
            && !is_path(value)
            && !is_url(value)
            && is_chosen_word(value)
    }
}

/// Whether a value can hardly be anything but a key: long and random, and no hash, id or date.
fn is_strong_key(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_key_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    if is_letter_soup(value) && value.len() >= 20 {
        return true;
    }
    (20..=256).contains(&value.len())
        && value.bytes().all(is_key_byte)
        && !value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && (digits >= 2 || changes_kind_often(value.as_bytes()))
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && value.matches(['-', '_']).count() <= (value.len() / 8).max(3)
        && looks_random(value)
        && word_likeness(value.as_bytes()).is_none_or(|likeness| likeness < MIN_WORD_LIKENESS)
}

/// Whether a value is a hexadecimal number or a UUID of the length of keys.
fn is_hex_key(value: &str) -> bool {
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_hex = matches!(value.len(), 32 | 40 | 48 | 64)
        && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid = value.len() == 36
        && value.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    (is_hex || is_uuid) && (4..=value.len() - 8).contains(&letters)
}

/// Whether a value mixes letters, digits and many symbols, and is no pattern.
fn is_symbol_soup(value: &str) -> bool {
    let count = |is_kind: fn(&u8) -> bool| value.bytes().filter(is_kind).count();
    let mut symbols: Vec<_> = value.bytes().filter(u8::is_ascii_punctuation).collect();
    symbols.sort_unstable();
    symbols.dedup();
    value.len() >= 16
        && symbols.len() >= 3
        && count(u8::is_ascii_digit) >= 2
        && count(u8::is_ascii_uppercase) >= 2
        && count(u8::is_ascii_lowercase) >= 2
        && !["a-z", "A-Z", "0-9", "\\", ".*", "://", "${", "{{"]
            .iter()
            .any(|part| value.contains(part))
        && changes_kind_often(value.as_bytes())
}

/// Whether a literal mixes letters, digits and other marks than a random text of base64 has, and is no code.
fn is_mixed_key(value: &str) -> bool {
    let count = |is_kind: fn(&u8) -> bool| value.bytes().filter(is_kind).count();
    value.len() >= 16
        && value.bytes().all(|byte| byte.is_ascii_graphic() && !b"(){}<>$\\".contains(&byte))
        && count(u8::is_ascii_digit) >= 2
        && count(u8::is_ascii_alphabetic) >= 6
        && !is_url(value)
        && !is_path(value)
        && !is_date(value)
        && !is_wordy(value)
        && word_likeness(value.as_bytes()).is_none_or(|likeness| likeness < MIN_WORD_LIKENESS)
}

fn is_number_password(value: &str) -> bool {
    value.len() >= 6 && value.len() <= 12 && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a value without digits is a word that somebody chose, not a label. Labels start with a capital.
fn is_chosen_word(value: &str) -> bool {
    let starts_small = value.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let is_ascii_word =
        value.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_".contains(&byte));
    let is_capitals = value.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_random =
        word_likeness(value.as_bytes()).is_some_and(|likeness| likeness < MIN_WORD_LIKENESS);
    let parts: Vec<_> = value.split(['-', '_']).collect();
    let has_naming = parts.len() == 2 && parts.iter().any(|part| NAMING_WORDS.contains(part));
    is_ascii_word
        && !has_naming
        && (starts_small || is_random && value.len() >= 8 || is_capitals && is_random)
}

/// Whether a value is several small words, and not a sentence.
pub(crate) fn is_passphrase(value: &str) -> bool {
    let words: Vec<_> = value.split_whitespace().collect();
    let is_plain = |word: &&str| {
        word.len() >= 3 && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            || word.bytes().all(|b| b.is_ascii_digit())
    };
    (3..=24).contains(&words.len())
        && words.iter().all(is_plain)
        && !words.iter().any(|word| SENTENCE_WORDS.contains(word))
}

/// Whether a value is random letters and digits in groups of four, as sites issue for applications.
fn is_grouped_password(value: &str) -> bool {
    let groups: Vec<_> = value.split(' ').collect();
    (4..=8).contains(&groups.len())
        && groups.iter().all(|it| it.len() == 4 && it.bytes().all(|b| b.is_ascii_alphanumeric()))
        && word_likeness(value.as_bytes()).is_none_or(|likeness| likeness < MIN_WORD_LIKENESS)
}

/// Whether a value is random letters with a dot or other marks between, which are like no names of a program.
fn is_dotted_soup(value: &str) -> bool {
    let is_turn = |pair: &&[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    value.len() >= 14
        && value.bytes().all(|byte| byte.is_ascii_alphabetic() || b"._-".contains(&byte))
        && value.as_bytes().windows(2).filter(is_turn).count() >= 2
        && word_likeness(value.as_bytes()).is_none_or(|likeness| likeness < 0.55)
}

fn has_two_digits(value: &str) -> bool {
    value.bytes().filter(u8::is_ascii_digit).count() >= 2
}

/// Whether a value that a sentence calls a password is one: letters with digits or symbols, and no term, path or code.
pub(crate) fn is_spoken_password(value: &str) -> bool {
    // No code ends with these.
    let is_marked = value.ends_with(['!', '?', '#', '$']);
    let value = value.trim_end_matches(['.', ')', ':', '!', '?', '*', ']', '}']);
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let has_letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let has_symbol = value.bytes().any(|byte| b"!@#$%^&*+?~=".contains(&byte));
    let is_mixed = has_letter && (digits > 0 || has_symbol) || digits >= 6 && digits == value.len();
    is_mixed
        && (6..=80).contains(&value.len())
        && !is_listed_term(value)
        && !is_path(value)
        && !is_url(value)
        && (is_marked || !is_code(value))
        && !is_reference(value)
        && !is_dotted_words(value)
        && !is_file_name(value)
        && !is_measure(value)
}

/// Whether what follows `Authorization` and a scheme is a credential, and not a name such as `secrets.NPM_TOKEN`.
pub(crate) fn is_credential(value: &str) -> bool {
    let is_turn = |pair: &&[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    let case_changes = value.as_bytes().windows(2).filter(is_turn).count();
    let is_mixed = case_changes >= 3 && !value.contains(['-', '_', '.']);
    !is_filler(value) && (value.contains(' ') || is_mixed || looks_random(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(name: &str, class: FieldNameClass, value: &str, style: ValueStyle) -> bool {
        FieldCandidate { name, class, value, style }.is_plausible()
    }

    #[test]
    fn passwords_may_be_short_and_without_digits() {
        for value in [
            "hunter2",
            "swordfish",
            "S3cr3t!",
            "correct-horse-battery-staple",
            "correct horse battery staple",
            "p@ss",
        ] {
            assert!(
                is_found("password", FieldNameClass::Password, value, ValueStyle::Quoted),
                "{value}"
            );
        }
    }

    #[test]
    fn placeholders_references_and_labels_are_left() {
        for value in [
            "password",
            "changeme",
            "your-password",
            "${DB_PASSWORD}",
            "$PW",
            "Enter your password",
            "string",
            "Passwort",
            "********",
            "os.environ['X']",
            "DB_PASSWORD",
            "forms.login.password",
            "test_password",
            "<secret>",
            "user_password",
        ] {
            assert!(
                !is_found("password", FieldNameClass::Password, value, ValueStyle::Quoted),
                "{value}"
            );
        }
    }

    #[test]
    fn keys_are_random() {
        for value in [
            "q7Rz0vXw93LkTn5Yb2Hd8Fg1",
            "kJhGfDsAqWeRtYuIoPzX",
            "9f86d081884c7d65",
            "550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert!(looks_random(value), "{value}");
        }
        for value in [
            "claude-3-5-sonnet-20241022",
            "us-east-1",
            "authenticationHandler",
            "src/auth/token.rs",
            "2026-01-02T03:04:05Z",
            "gpt-4o-mini",
            "1234567",
        ] {
            assert!(!looks_random(value), "{value}");
        }
    }
}
