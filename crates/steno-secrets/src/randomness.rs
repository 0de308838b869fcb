//! Distinguishes what programs choose at random from words, paths and dates.

use crate::letter_pairs::word_likeness;

/// Letters in texts above this share of common pairs are words.
pub(crate) const MIN_WORD_LIKENESS: f64 = 0.68;

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
    if is_wordy(value) && !(value.len() >= 16 && case_turns(value) * 6 >= value.len()) {
        return false;
    }
    match word_likeness(value.as_bytes()) {
        // Random letters of both cases take turns more often than the words of a name.
        Some(likeness) if digits == 0 && case_turns(value) * 6 >= value.len() => {
            likeness < 0.75 && value.len() >= 12
        }
        Some(likeness) if digits == 0 => likeness < MIN_WORD_LIKENESS && value.len() >= 12,
        // Few digits in a text of words are a version or a count.
        Some(likeness) => likeness < 0.85 || digits * 4 >= letters,
        None => true,
    }
}

/// How often a capital follows a small letter.
fn case_turns(value: &str) -> usize {
    let is_turn = |pair: &&[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    value.as_bytes().windows(2).filter(is_turn).count()
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

/// Whether a value mixes capitals, small letters and digits as no name does, or is a long hexadecimal number.
pub(crate) fn is_random_mix(value: &str) -> bool {
    let last = value.rsplit('_').next().unwrap_or(value);
    let digits = last.bytes().filter(u8::is_ascii_digit).count();
    // A hash is often the key of a cache.
    let is_hex = last.len() >= 32
        && !value.contains("key")
        && last.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    digits > 0 && (is_hex || changes_kind_often(last.as_bytes()))
}

/// Whether a value consists of letters whose case changes as in no name.
pub(crate) fn is_letter_soup(value: &str) -> bool {
    let is_turn = |pair: &&[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    value.len() >= 10
        && value.bytes().all(|byte| byte.is_ascii_alphabetic())
        && value.as_bytes().windows(2).filter(is_turn).count() >= 2
        && word_likeness(value.as_bytes()).is_none_or(|likeness| likeness < 0.6)
}

pub(crate) fn is_date(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_long_number = digits == value.len() && digits >= 20;
    digits >= 6
        && !is_long_number
        && value
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-:/.tz+ ".contains(&byte.to_ascii_lowercase()))
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

pub(crate) fn is_url(value: &str) -> bool {
    value.contains("://")
}
