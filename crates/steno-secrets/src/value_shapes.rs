//! Recognises values that are no secrets by their shape: fillers, references, code, file names and numbers.

use crate::letter_pairs::word_likeness;
use crate::names::split_words;
use crate::randomness::{changes_kind_often, is_date, is_wordy};
use crate::word_lists::{NAMING_WORDS, PLACEHOLDER_PARTS, REFERENCE_STARTS};

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
        !may_be_chance && contains_word(&lower, part)
    };
    is_color || is_monotonous || PLACEHOLDER_PARTS.iter().any(says_so) || says_where(&lower)
}

/// Whether a text contains a part of a placeholder as a word: `hammock` does not contain `mock`.
fn contains_word(text: &str, part: &str) -> bool {
    if !part.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return text.contains(part);
    }
    text.match_indices(part).any(|(at, _)| {
        let letters = text[..at].bytes().rev().take_while(u8::is_ascii_alphabetic).count();
        letters == 0 || NAMING_WORDS.contains(&&text[at - letters..at]) || part == "xxxx"
    })
}

/// Whether a text says what belongs in its place: `api-key-here`, `your_password_here`.
fn says_where(text: &str) -> bool {
    let words: Vec<_> = text.split(['-', '_']).collect();
    let is_noun = |word: &&str| word.len() >= 3 && !["the", "for", "not"].contains(word);
    let is_named = |word: &&str| {
        is_noun(word) && NAMING_WORDS.contains(word)
            || ["put", "goes", "enter", "add", "paste", "yours"].contains(word)
    };
    words.len() > 1 && words.last() == Some(&"here") && words.iter().any(is_named)
}

/// Whether a value refers to where the secret is: a variable, a function, a file, another service.
pub(crate) fn is_reference(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_variable = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:".contains(&byte))
    };
    let is_annotation = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let is_alias = |name: &str| {
        name.len() > 2 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
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
        // A variable of PHP and its element, or an alias of YAML.
        || value.starts_with("$_")
        || value.starts_with(".$")
        || value.strip_prefix('*').is_some_and(is_alias)
        || value.len() > 2 && value.starts_with('%') && value.ends_with('%')
        || value.starts_with('{') && value.ends_with('}')
        || value.contains("${")
        || value.contains("{{")
        || value.contains("$(")
        || is_constant_name(value)
}

/// Whether a value is a key that its service makes public, such as a publishable key of Stripe.
pub(crate) fn is_public_key(value: &str) -> bool {
    ["pk_live_", "pk_test_", "pk.eyJ", "phc_", "sb_publishable_", "ssh-rsa ", "ssh-ed25519 "]
        .iter()
        .any(|start| value.starts_with(start))
}

/// Whether a value is the name of an environment variable, such as `DB_PASSWORD`.
pub(crate) fn is_constant_name(value: &str) -> bool {
    value.contains('_')
        && value.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'_' | b'0'..=b'9'))
        && word_likeness(value.as_bytes()).is_some_and(|likeness| likeness >= 0.6)
}

/// Whether an unquoted value is code: a call, a path of names, an index, a generic type.
pub(crate) fn is_code(value: &str) -> bool {
    let is_call = value.contains('(') && !value.starts_with('(');
    let is_name = |part: &str| {
        let mut bytes = part.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && word_likeness(part.as_bytes()).is_none_or(|likeness| likeness >= 0.6)
    };
    let is_index = value.split_once('[').is_some_and(|(name, index)| {
        let is_range = index.bytes().all(|byte| byte.is_ascii_digit() || b":]-".contains(&byte));
        value.ends_with(']') || is_name(name) || is_range
    });
    let is_number = value.len() <= 10 && value.starts_with("0x");
    let is_declared = ["*const", "*mut", "&[", "#[", "__u", "__s"];
    is_call
        || value.contains("()")
        || is_index
        || is_number
        || value.contains("![")
        || is_declared.iter().any(|start| value.starts_with(start))
        || value.contains("::") && value.bytes().filter(u8::is_ascii_digit).count() < 12
        || value.strip_suffix('=').is_some_and(|name| {
            name.bytes().all(|byte| byte.is_ascii_alphabetic()) && is_name(name)
        })
        || value.contains("->")
        || value.contains("=>")
        || value.trim_end_matches('=').split_once("==").is_some_and(|(name, _)| is_name(name))
        || (value.contains('.')
            && value.split(['.', '?']).all(|part| part.is_empty() || is_name(part)))
        || (value.contains('_')
            && !value.bytes().any(|byte| byte.is_ascii_digit())
            && is_name(value))
        || is_type_name(value)
}

/// Whether a value is a name in camel case, such as `SecretString` or `getToken`.
pub(crate) fn is_type_name(value: &str) -> bool {
    let has_inner_capital = value
        .bytes()
        .zip(value.bytes().skip(1))
        .any(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    has_inner_capital
        && value.bytes().all(|byte| byte.is_ascii_alphabetic())
        && word_likeness(value.as_bytes()).is_some_and(|likeness| likeness >= 0.75)
}

/// Whether a value consists of some of these words.
pub(crate) fn is_made_of(value: &str, words: &[&str]) -> bool {
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
pub(crate) fn is_dotted_words(value: &str) -> bool {
    value.contains('.')
        && value.split('.').all(|part| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
        })
}

/// Whether a value is a number with a short unit, such as `0.82s`.
pub(crate) fn is_duration(value: &str) -> bool {
    let value = value.trim_matches(['(', ')', '[', ']']);
    let number = value.trim_end_matches(|last: char| last.is_ascii_lowercase());
    number.parse::<f64>().is_ok() && (1..=2).contains(&(value.len() - number.len()))
}

/// Whether a value is a number with a unit or an ordinal: `12-character`, `30days`, `3.2.1-rc1`.
pub(crate) fn is_measure(value: &str) -> bool {
    let number = value.bytes().take_while(|b| b.is_ascii_digit() || b".-+".contains(b)).count();
    let word = &value[number..];
    number > 0
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        && word_likeness(word.as_bytes()).is_none_or(|likeness| likeness >= 0.6)
}

/// Whether a value is a word, a dot and a short ending, as in `pg_hba.conf` or `step2.md`.
pub(crate) fn is_file_name(value: &str) -> bool {
    value.rsplit_once('.').is_some_and(|(stem, ending)| {
        (1..=4).contains(&ending.len())
            && ending.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
            && ending.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && is_wordy(stem)
    })
}

/// Whether a word of a sentence is a technical term, such as `oauth2` or `RFC6749`.
pub(crate) fn is_listed_term(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let letters: String = lower.chars().filter(char::is_ascii_alphabetic).collect();
    let terms = [
        "sha", "rfc", "utf", "base", "oauth", "argon", "pbkdf", "md", "v", "aes", "http", "ipv",
        "fips", "tls", "ssl",
    ];
    terms.contains(&letters.as_str())
        || lower.starts_with("rfc")
        || lower.contains(['-', ':', '/', '.']) && is_date(&lower)
}
