//! Recognises names of headers, parameters and fields that hold secrets.

/// Words that make a name secret.
const SECRET_WORDS: [&str; 17] = [
    "authorization",
    "auth",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "secret",
    "secrets",
    "token",
    "jwt",
    "apikey",
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
];

/// Words for passwords. A password may be an ordinary word.
const PASSWORD_WORDS: [&str; 5] = ["password", "passwd", "passphrase", "pass", "pwd"];

/// Words that make a following `key` secret.
const BEFORE_KEY: [&str; 9] =
    ["api", "access", "secret", "private", "auth", "subscription", "account", "service", "app"];

/// Words that make a name harmless, as in `next-page-token` or `x-ratelimit-tokens`.
const HARMLESS_WORDS: [&str; 12] = [
    "ratelimit",
    "limit",
    "max",
    "min",
    "count",
    "page",
    "next",
    "continuation",
    "cache",
    "idempotency",
    "websocket",
    "type",
];

/// Whole names that are secret, although their words are not.
const SECRET_NAMES: [&str; 9] = [
    "key",
    "sig",
    "signature",
    "x-api",
    "x-key",
    "cf-access-client-id",
    "x-amz-credential",
    "x-amz-signature",
    "x-goog-signature",
];

/// Whether a header, parameter or field of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    if SECRET_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return true;
    }
    let words = split_words(name);
    let is_one_of = |list: &[&str], word: &String| list.contains(&word.as_str());
    if words.iter().any(|word| is_one_of(&HARMLESS_WORDS, word)) {
        return false;
    }
    let is_key = |pair: &[String]| pair[1] == "key" && is_one_of(&BEFORE_KEY, &pair[0]);
    words.iter().any(|word| is_one_of(&SECRET_WORDS, word)) || words.windows(2).any(is_key)
}

/// Whether a field of this name holds a password.
pub fn holds_password(name: &str) -> bool {
    split_words(name).iter().any(|word| PASSWORD_WORDS.contains(&word.as_str()))
}

/// Splits a name into lower-case words: `X-ApiKey` gives `x`, `api` and `key`.
pub(crate) fn split_words(name: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() || (letter.is_ascii_uppercase() && was_lower) {
            words.push(std::mem::take(&mut word));
        }
        was_lower = letter.is_ascii_lowercase();
        word.extend(letter.is_ascii_alphanumeric().then(|| letter.to_ascii_lowercase()));
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "x-api-key",
            "X-ApiKey",
            "api-key",
            "X-Goog-Api-Key",
            "key",
            "Cookie",
            "set-cookie",
            "x-litellm-api-key",
            "access_token",
            "x-amz-security-token",
            "x-bearer",
            "x-api",
            "x-pass",
            "cf-access-client-id",
            "CF-Access-Client-Secret",
            "Ocp-Apim-Subscription-Key",
            "helicone-auth",
            "client_secret",
            "clientSecret",
            "apikey",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn other_names_are_left() {
        for name in [
            "content-type",
            "x-request-id",
            "x-claude-code-session-id",
            "X-Session-Mode",
            "session_id",
            "anthropic-ratelimit-tokens-limit",
            "max_tokens",
            "pageToken",
            "Idempotency-Key",
            "Sec-WebSocket-Key",
            "author",
            "x-goog-api-client",
            "prompt_cache_key",
            "alt",
            "date",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
        assert!(holds_password("X-Pass") && !holds_password("x-bypass"));
    }
}
