//! Distinguishes secrets from placeholders.

/// Substrings of placeholders.
const PLACEHOLDER_PARTS: [&str; 14] = [
    "placeholder",
    "dummy",
    "example",
    "your-",
    "your_",
    "changeme",
    "change-me",
    "fake",
    "sample",
    "not-needed",
    "notneeded",
    "no-key",
    "not-a-",
    "xxxx",
];

/// Words that are not passwords. Any other word may be one.
const KNOWN_DUMMIES: [&str; 14] = [
    "anything",
    "assistant",
    "changeme",
    "dummy",
    "empty",
    "example",
    "none",
    "null",
    "password",
    "placeholder",
    "secret",
    "string",
    "test",
    "user",
];

/// Shorter values are placeholders.
const MIN_SECRET_CHARS: usize = 6;

/// Shorter values are redacted only in their own field.
const MIN_SEARCHED_CHARS: usize = 8;

/// No word is this long.
const MAX_WORD_CHARS: usize = 24;

/// Whether a value is a placeholder for a key, such as `anything` or `sk-no-key-required`: words, one repeated
/// character, or a text that says so.
pub fn is_placeholder(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    let is_variable = value.starts_with(['<', '$', '{', '%', '[']);
    let is_repeated = value.bytes().all(|byte| byte == value.as_bytes()[0] || byte == b'-');
    value.len() < MIN_SECRET_CHARS
        || is_variable
        || is_repeated
        || is_counting(&value)
        || is_words(&value)
        || PLACEHOLDER_PARTS.iter().any(|part| value.contains(part))
}

/// Whether a value is a placeholder for a password.
pub fn is_dummy_password(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    value.is_empty()
        || value.starts_with(['<', '$', '{'])
        || KNOWN_DUMMIES.contains(&value.as_str())
}

/// Whether a search for this secret would not hit ordinary text.
pub fn is_searchable(value: &str) -> bool {
    value.len() >= MIN_SEARCHED_CHARS && !is_placeholder(value)
}

/// Whether a text consists of words, such as `lm-studio`.
fn is_words(value: &str) -> bool {
    let is_word = |part: &str| {
        part.len() < MAX_WORD_CHARS && part.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    value.split(['-', '_', '.', ' ', '/', ':']).all(is_word)
}

/// Whether the digits or letters only count up, as in `sk-123456` or `abcdefgh`.
fn is_counting(value: &str) -> bool {
    let last = value.rsplit(['-', '_']).next().unwrap_or(value).as_bytes();
    let follows = |pair: &[u8]| pair[1] == pair[0] + 1 || (pair[0], pair[1]) == (b'9', b'0');
    last.len() >= 3 && value.len() < MAX_WORD_CHARS && last.windows(2).all(follows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_no_secrets() {
        for value in [
            "anything",
            "ollama",
            "lm-studio",
            "EMPTY",
            "none",
            "test",
            "test-key",
            "sk-1234",
            "sk-no-key-required",
            "1234567890",
            "0000-0000-0000",
            "xxxxxxxxxxxxxxxx",
            "your-api-key-here",
            "<token>",
            "${OPENAI_API_KEY}",
            "sk-fake-0123456789abcdef",
        ] {
            assert!(is_placeholder(value), "{value}");
            assert!(!is_searchable(value), "{value}");
        }
    }

    #[test]
    fn keys_are_no_placeholders() {
        for value in [
            "sk-12345678x",
            "q7Rz0vXw93LkTn5Yb2Hd8Fg1",
            "hunter22",
            "P@ssw0rd!",
            "9f86d081884c7d65",
            "correcthorsebatterystaple",
            "AIza12345",
        ] {
            assert!(!is_placeholder(value), "{value}");
            assert!(is_searchable(value), "{value}");
        }
        assert!(!is_searchable("hunter2"), "too short to be looked for");
    }
}
