//! Keys and cookies: they are passed on, but never recorded.
//!
//! A header whose name speaks of a secret loses its value, as do such parameters of a query. The values themselves are
//! looked for in bodies too: some servers repeat a key in what they answer.

use memchr::memmem;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Parts of names that speak of secrets.
const SPEAKING: [&str; 10] = [
    "auth",
    "key",
    "token",
    "secret",
    "cookie",
    "credential",
    "password",
    "signature",
    "session",
    "jwt",
];

/// Names that only look like it.
const HARMLESS: [&str; 5] =
    ["ratelimit", "max-tokens", "max_tokens", "pagetoken", "idempotency-key"];

/// Shorter values are not looked for: they may stand for anything.
const SHORTEST: usize = 8;

/// Whether a header or a parameter of this name holds a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SPEAKING.iter().any(|part| name.contains(part))
        && !HARMLESS.iter().any(|part| name.contains(part))
}

/// The secrets that a request brought.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    values: Vec<String>,
}

impl Secrets {
    /// The value of a header as it may be recorded; one that is a secret is remembered.
    pub fn header(&mut self, name: &str, value: &str) -> String {
        if !is_secret(name) {
            return self.without(value);
        }
        let is_cookie = name.to_ascii_lowercase().contains("cookie");
        // `Bearer KEY`, `name=value; other=value`.
        for part in value.split([' ', ';', ',']) {
            let value =
                if is_cookie { part.split_once('=').map_or("", |(_, value)| value) } else { part };
            self.remember(value);
        }
        REDACTED.to_owned()
    }

    /// A path with its query as it may be recorded.
    pub fn path(&mut self, path: &str) -> String {
        let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
        let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
            Some((name, value)) if is_secret(name) => {
                self.remember(value);
                format!("{name}={REDACTED}")
            }
            _ => parameter.to_owned(),
        });
        let parameters: Vec<_> = parameters.collect();
        format!("{path}?{}", parameters.join("&"))
    }

    fn remember(&mut self, value: &str) {
        if value.len() >= SHORTEST && !self.values.iter().any(|known| known == value) {
            self.values.push(value.to_owned());
        }
    }

    /// A text without the secrets that are known.
    pub fn without(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, value| text.replace(value, REDACTED))
    }

    /// The same for bytes; none if no secret stands in them.
    pub fn hidden(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let found = |value: &&String| memmem::find(bytes, value.as_bytes()).is_some();
        let mut hidden: Option<Vec<u8>> = None;
        for value in self.values.iter().filter(found) {
            let bytes = hidden.as_deref().unwrap_or(bytes);
            hidden = Some(replaced(bytes, value.as_bytes()));
        }
        hidden
    }
}

fn replaced(bytes: &[u8], value: &[u8]) -> Vec<u8> {
    let (mut out, mut from) = (Vec::with_capacity(bytes.len()), 0);
    for at in memmem::find_iter(bytes, value) {
        out.extend_from_slice(&bytes[from..at]);
        out.extend_from_slice(REDACTED.as_bytes());
        from = at + value.len();
    }
    out.extend_from_slice(&bytes[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_secret() {
        for name in [
            "Authorization",
            "x-api-key",
            "api-key",
            "X-Goog-Api-Key",
            "key",
            "Cookie",
            "set-cookie",
            "proxy-authorization",
            "x-litellm-api-key",
            "access_token",
            "x-amz-security-token",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in
            ["content-type", "x-request-id", "anthropic-ratelimit-tokens-limit", "alt", "date"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_secret_is_found_wherever_it_is_repeated() {
        let mut secrets = Secrets::default();
        assert_eq!(secrets.header("Authorization", "Bearer sk-12345678"), REDACTED);
        assert_eq!(secrets.path("/v1?key=AIza12345&alt=sse"), "/v1?key=[redacted]&alt=sse");
        let said = secrets.hidden(b"no such key: sk-12345678, AIza12345, sk-12345678.").unwrap();
        assert_eq!(said, b"no such key: [redacted], [redacted], [redacted].");
        assert_eq!(secrets.hidden(b"nothing of it"), None);
    }
}
