//! Decides whether the value of a named field is a secret, or a placeholder, a reference, a type or an ordinary word.

use crate::field_names::FieldNameClass;
use crate::letter_pairs::word_likeness;
use crate::names::split_words;
use crate::word_lists::{
    LITERAL_WORDS, NAMING_WORDS, PLACEHOLDER_PARTS, REFERENCE_STARTS, SENTENCE_WORDS,
};

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

/// Letters in texts above this share of common pairs are words.
const MIN_WORD_LIKENESS: f64 = 0.68;

impl FieldCandidate<'_> {
    /// Whether the value is a secret.
    pub(crate) fn is_plausible(&self) -> bool {
        let value = self.value.trim();
        // Code is the most frequent, so it is recognised first.
        if self.style != ValueStyle::Quoted && is_code(value) {
            return false;
        }
        if !(4..=4096).contains(&value.len())
            || is_filler(value)
            || is_reference(value)
            || is_public_key(value)
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
            }
            FieldNameClass::Random | FieldNameClass::Cookies => {
                looks_random(value) && (self.style != ValueStyle::Prose || value.len() >= 12)
            }
        }
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
            return self.style == ValueStyle::Quoted && is_passphrase(value);
        }
        if is_dotted_words(value) || is_path(value) || is_url(value) || is_duration(value) {
            return false;
        }
        match self.style {
            ValueStyle::Quoted | ValueStyle::Assigned => {
                is_mixed || is_number_password(value) || value.len() >= 6 && is_chosen_word(value)
            }
            ValueStyle::WholeLine => {
                is_mixed && value.len() >= 5
                    || value.len() >= 6 && is_chosen_word(value) && !value.contains(['-', '_', ':'])
            }
            ValueStyle::Bare => is_mixed && value.len() >= 5 || is_letter_soup(value),
            ValueStyle::Prose => {
                is_mixed && value.len() >= 6 && !is_listed_term(value) || is_letter_soup(value)
            }
        }
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

/// Whether a value is nothing but a filler.
pub(crate) fn is_filler(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let mut distinct: Vec<u8> = lower.bytes().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let is_color =
        lower.strip_prefix('#').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    let is_monotonous = distinct.len() <= 2 || distinct.len() <= 3 && value.len() >= 12;
    // In a long random text, three or four letters form a word by chance.
    let says_so = |part: &&str| {
        let is_short_word = part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_alphabetic());
        let may_be_chance =
            is_short_word && **part != *"xxxx" && changes_kind_often(value.as_bytes());
        !may_be_chance && lower.contains(*part)
    };
    is_color || is_monotonous || PLACEHOLDER_PARTS.iter().any(|part| says_so(&part))
}

/// Whether a value refers to where the secret is: a variable, a function, a file, another service.
fn is_reference(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_variable = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:".contains(&byte))
    };
    let is_annotation = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    // `!` and `&` start YAML tags and pointers only before a letter and with words after them.
    let is_marked = |start: &str| match start {
        "!" | "&" => {
            value.len() > 1
                && value.starts_with(start)
                && is_variable(&value[1..])
                && !value.bytes().any(|byte| byte.is_ascii_digit())
        }
        start => lower.starts_with(start),
    };
    REFERENCE_STARTS.iter().any(|start| is_marked(start))
        || value.strip_prefix('$').is_some_and(is_variable)
        || value.strip_prefix('@').is_some_and(is_annotation)
        || value.len() > 2 && value.starts_with('%') && value.ends_with('%')
        || value.starts_with('{') && value.ends_with('}')
        || value.contains("${")
        || value.contains("{{")
        || value.contains("$(")
        || is_constant_name(value)
}

/// Whether a value is a key that its service makes public, such as a publishable key of Stripe.
fn is_public_key(value: &str) -> bool {
    ["pk_live_", "pk_test_", "pk.eyJ", "phc_", "sb_publishable_", "ssh-rsa ", "ssh-ed25519 "]
        .iter()
        .any(|start| value.starts_with(start))
}

/// Whether a value is the name of an environment variable, such as `DB_PASSWORD`.
fn is_constant_name(value: &str) -> bool {
    value.contains('_')
        && value.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'_' | b'0'..=b'9'))
        && word_likeness(value.as_bytes()).is_some_and(|likeness| likeness >= 0.6)
}

/// Whether an unquoted value is code: a call, a path of names, an index, a generic type.
fn is_code(value: &str) -> bool {
    let is_call = value.contains('(') && !value.starts_with('(');
    let is_name = |part: &str| {
        let mut bytes = part.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && word_likeness(part.as_bytes()).is_none_or(|likeness| likeness >= 0.6)
    };
    let is_index = value.ends_with(']') && value.contains('[');
    is_call
        || is_index
        || value.contains("::")
        || value.contains("->")
        || value.contains("=>")
        || value.trim_end_matches('=').contains("==")
        || (value.contains('.')
            && value.split(['.', '?']).all(|part| part.is_empty() || is_name(part)))
        || (value.contains('_')
            && !value.bytes().any(|byte| byte.is_ascii_digit())
            && is_name(value))
        || is_type_name(value)
}

/// Whether a value is a name in camel case, such as `SecretString` or `getToken`.
fn is_type_name(value: &str) -> bool {
    let has_inner_capital = value
        .bytes()
        .zip(value.bytes().skip(1))
        .any(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    has_inner_capital
        && value.bytes().all(|byte| byte.is_ascii_alphabetic())
        && word_likeness(value.as_bytes()).is_some_and(|likeness| likeness >= 0.75)
}

/// Whether a value consists of some of these words.
fn is_made_of(value: &str, words: &[&str]) -> bool {
    let parts = split_words(value);
    !parts.is_empty()
        && parts.iter().all(|part| {
            words.contains(&part.as_str())
                || part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit())
        })
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_. ".contains(&byte))
        && !(value.bytes().any(|byte| byte.is_ascii_digit()) && parts.len() < 2)
}

/// Whether a value consists of words joined by dots, as keys of translations do.
fn is_dotted_words(value: &str) -> bool {
    value.contains('.')
        && value.split('.').all(|part| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
        })
}

/// Whether a value is a path of a file.
pub(crate) fn is_path(value: &str) -> bool {
    let starts_as_path =
        value.starts_with(['/', '~']) || value.starts_with("./") || value.starts_with("../");
    let is_windows = value.get(1..3) == Some(":\\");
    let likeness = word_likeness(value.as_bytes()).unwrap_or(0.0);
    is_windows
        || (starts_as_path || value.matches('/').count() >= 2)
            && likeness >= 0.6
            && !value.contains(['+', '='])
        || value.contains('/')
            && likeness >= 0.8
            && !value.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_url(value: &str) -> bool {
    value.contains("://")
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
fn is_passphrase(value: &str) -> bool {
    let words: Vec<_> = value.split_whitespace().collect();
    let is_plain = |word: &&str| {
        word.len() >= 3 && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            || word.bytes().all(|b| b.is_ascii_digit())
    };
    (3..=24).contains(&words.len())
        && words.iter().all(is_plain)
        && !words.iter().any(|word| SENTENCE_WORDS.contains(word))
}

/// Whether a word of a sentence is a technical term, such as `oauth2` or `RFC6749`.
fn is_listed_term(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let letters: String = lower.chars().filter(char::is_ascii_alphabetic).collect();
    let terms = [
        "sha", "rfc", "utf", "base", "oauth", "argon", "pbkdf", "md", "v", "aes", "http", "ipv",
        "fips", "tls", "ssl",
    ];
    terms.contains(&letters.as_str()) || lower.starts_with("rfc") || is_date(&lower)
}

/// Whether a value consists of letters whose case changes as in no name.
fn is_letter_soup(value: &str) -> bool {
    let is_turn = |pair: &&[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    value.len() >= 10
        && value.bytes().all(|byte| byte.is_ascii_alphabetic())
        && value.as_bytes().windows(2).filter(is_turn).count() >= 2
        && word_likeness(value.as_bytes()).is_none_or(|likeness| likeness < 0.6)
}

fn has_two_digits(value: &str) -> bool {
    value.bytes().filter(u8::is_ascii_digit).count() >= 2
}

/// Whether a value that a sentence calls a password is one: letters with digits or symbols, and no term, path or code.
pub(crate) fn is_spoken_password(value: &str) -> bool {
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
        && !is_code(value)
        && !is_reference(value)
        && !is_dotted_words(value)
        && !is_file_name(value)
        && !is_measure(value)
}

/// Whether a value is a word, a dot and a short ending, as in `pg_hba.conf` or `step2.md`.
fn is_file_name(value: &str) -> bool {
    value.rsplit_once('.').is_some_and(|(stem, ending)| {
        (1..=4).contains(&ending.len())
            && ending.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
            && ending.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && is_wordy(stem)
    })
}

/// Whether a value is a number with a unit or an ordinal: `12-character`, `30days`, `3.2.1-rc1`.
fn is_measure(value: &str) -> bool {
    let number = value.bytes().take_while(|b| b.is_ascii_digit() || b".-+".contains(b)).count();
    let word = &value[number..];
    number > 0
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        && word_likeness(word.as_bytes()).is_none_or(|likeness| likeness >= 0.6)
}

/// Whether a value is a number with a short unit, such as `0.82s`.
fn is_duration(value: &str) -> bool {
    let number = value.trim_end_matches(|last: char| last.is_ascii_lowercase());
    number.parse::<f64>().is_ok() && (1..=2).contains(&(value.len() - number.len()))
}

/// Whether what follows `Authorization` and a scheme is a credential, and not a name such as `secrets.NPM_TOKEN`.
pub(crate) fn is_credential(value: &str) -> bool {
    let is_turn = |pair: &&[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    let case_changes = value.as_bytes().windows(2).filter(is_turn).count();
    let is_mixed = case_changes >= 3 && !value.contains(['-', '_', '.']);
    !is_filler(value) && (value.contains(' ') || is_mixed || looks_random(value))
}

/// Whether a value mixes capitals, small letters and digits as no name does, or is a long hexadecimal number.
pub(crate) fn is_random_mix(value: &str) -> bool {
    let last = value.rsplit('_').next().unwrap_or(value);
    let digits = last.bytes().filter(u8::is_ascii_digit).count();
    // A hash is often the key of a cache.
    let is_hex = last.len() >= 32
        && !value.contains("key")
        && last.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    digits > 0 && (is_hex || changes_kind_often(last.as_bytes())) && !is_filler(value)
}

/// Whether capitals, small letters and digits take turns as in no name: at least once in four characters.
pub(crate) fn changes_kind_often(text: &[u8]) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let changes = text.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
    let has_all = (0..3).all(|wanted| text.iter().any(|byte| kind(*byte) == wanted));
    has_all && changes * 4 >= text.len()
}

fn is_date(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    digits >= 6
        && value
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-:/.tz+ ".contains(&byte.to_ascii_lowercase()))
}

/// Whether a value consists of words and small numbers, as names of models, versions and regions do.
pub(crate) fn is_wordy(value: &str) -> bool {
    let is_wordy_part = |part: &str| {
        let letters = part.bytes().take_while(u8::is_ascii_alphabetic).count();
        let digits = part.len() - letters;
        let has_only_digits_after = part.bytes().skip(letters).all(|byte| byte.is_ascii_digit());
        let is_word = letters <= 3
            || word_likeness(&part.as_bytes()[..letters]).is_some_and(|l| l >= MIN_WORD_LIKENESS);
        part.len() <= 2
            || has_only_digits_after && is_word && (digits <= 4 || letters == 0 && digits <= 8)
    };
    value.split(['-', '_', '.', '/', ':', ' ', '@', '+', ',']).all(is_wordy_part)
}

/// Whether a value looks as if a program had chosen it at random.
pub(crate) fn looks_random(value: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-.~|:%!@#$*^&".contains(&byte);
    if value.len() < 8
        || !value.bytes().all(is_token_byte)
        || is_path(value)
        || is_url(value)
        || is_date(value)
    {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    if letters == 0 {
        return digits >= 20;
    }
    if is_wordy(value) {
        return false;
    }
    match word_likeness(value.as_bytes()) {
        Some(likeness) if digits == 0 => likeness < MIN_WORD_LIKENESS && value.len() >= 12,
        // Few digits in a text of words are a version or a count.
        Some(likeness) => likeness < 0.85 || digits * 4 >= letters,
        None => true,
    }
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
