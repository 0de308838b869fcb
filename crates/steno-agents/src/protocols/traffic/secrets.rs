//! Removes keys, tokens and cookies from the recording of an exchange. The gateway still forwards them.
//!
//! A secret is recognised by the name of its header, parameter or JSON field, or by its form (`steno_secrets`).
//! Placeholders such as `anything` are not secrets and stay. Servers repeat keys, so every secret of a request is
//! searched for in everything recorded of the exchange: in escaped forms, across chunks and, since bodies are recorded
//! decompressed, in compressed responses.
//!
//! A marker with the rule and the length replaces a secret: `[redacted: authorization, 51 bytes]`.

mod escapes;
mod filter;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use self::escapes::UnescapedBytes;
pub use self::filter::SecretFilter;
use super::body_format::{BodyFormat, decode_form_text};
use steno_secrets::{
    holds_password, is_dummy_password, is_placeholder, is_searchable, is_secret_name,
};

/// A secret to search for in everything recorded of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownSecret {
    value: Vec<u8>,
    rule: String,
}

/// The secrets of one exchange.
#[derive(Clone, Debug, Default)]
pub struct TrafficSecrets {
    known: Vec<KnownSecret>,
}

/// The marker that replaces a secret.
fn redaction_marker(rule: &str, length: usize) -> String {
    format!("[redacted: {rule}, {length} bytes]")
}

impl TrafficSecrets {
    /// Remembers the secrets in a header.
    pub fn remember_header(&mut self, name: &str, value: &str) {
        for secret in header_secrets(name, value) {
            self.remember_secret(&secret, name);
        }
    }

    /// Remembers the secrets in the query of a path.
    pub fn remember_path(&mut self, path: &str) {
        let query = path.split_once('?').map_or("", |(_, query)| query);
        for (name, value) in query.split('&').filter_map(|parameter| parameter.split_once('=')) {
            if is_secret_name(name) {
                let value = UnescapedBytes::new(value.as_bytes()).bytes;
                self.remember_secret(&String::from_utf8_lossy(&value), name);
            }
        }
    }

    /// Redacts the value of a header.
    pub fn redact_header(&self, name: &str, value: &str) -> String {
        let mut redacted = value.to_owned();
        for secret in header_secrets(name, value) {
            if is_header_secret(&secret) || is_secret_value(name, &secret) {
                let rule = name.to_ascii_lowercase();
                redacted = redacted.replace(&secret, &redaction_marker(&rule, secret.len()));
            }
        }
        self.redact_text(&redacted)
    }

    /// Redacts a path and its query.
    pub fn redact_path(&self, path: &str) -> String {
        let Some((path, query)) = path.split_once('?') else { return self.redact_text(path) };
        let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
            Some((name, value)) if is_secret_name(name) && is_secret_value(name, value) => {
                format!("{name}={}", redaction_marker(&name.to_ascii_lowercase(), value.len()))
            }
            _ => parameter.to_owned(),
        });
        let parameters: Vec<_> = parameters.collect();
        self.redact_text(&format!("{path}?{}", parameters.join("&")))
    }

    /// Redacts the known secrets in a text.
    pub fn redact_text(&self, text: &str) -> String {
        let mut filter = self.body_filter();
        let mut redacted = filter.push(text.as_bytes());
        redacted.extend(filter.finish());
        String::from_utf8_lossy(&redacted).into_owned()
    }

    /// A filter for a body that arrives in chunks.
    pub fn body_filter(&self) -> SecretFilter {
        SecretFilter::new(self.clone(), false)
    }

    /// A filter for a body in this format. It also searches the parts of a multipart body.
    pub fn body_filter_for(&self, fields: &BodyFormat) -> SecretFilter {
        SecretFilter::new(self.clone(), matches!(fields, BodyFormat::Multipart(_)))
    }

    /// Redacts a whole form by the names of its fields, and remembers the secrets. Returns the form and the number of
    /// redactions.
    pub fn redact_form(&mut self, form: &[u8]) -> (Vec<u8>, u64) {
        let mut redactions = 0;
        let pairs: Vec<Vec<u8>> = form
            .split(|byte| *byte == b'&')
            .map(|pair| {
                let Some(at) = pair.iter().position(|byte| *byte == b'=') else {
                    return pair.to_vec();
                };
                let (name, value) =
                    (decode_form_text(&pair[..at]), decode_form_text(&pair[at + 1..]));
                if !is_secret_name(&name) || !is_secret_value(&name, &value) {
                    return pair.to_vec();
                }
                self.remember_secret(&value, &name);
                redactions += 1;
                let marker = redaction_marker(&name.to_ascii_lowercase(), pair.len() - at - 1);
                [&pair[..=at], marker.as_bytes()].concat()
            })
            .collect();
        (pairs.join(&b'&'), redactions)
    }

    /// Remembers a secret, unless a search for it would hit ordinary text.
    fn remember_secret(&mut self, value: &str, rule: &str) {
        if !is_searchable(value) || self.known.iter().any(|known| known.value == value.as_bytes()) {
            return;
        }
        let (value, rule) = (value.as_bytes().to_vec(), rule.to_ascii_lowercase());
        self.known.push(KnownSecret { value, rule });
        // Longer secrets are replaced first, because a shorter one may be part of them.
        self.known.sort_by_key(|known| std::cmp::Reverse(known.value.len()));
    }
}

/// Whether the value of this field is a secret and not a placeholder. Almost any word may be a password.
fn is_secret_value(name: &str, value: &str) -> bool {
    if holds_password(name) { !is_dummy_password(value) } else { !is_placeholder(value) }
}

/// Whether the value of a secret header is a secret and not a single word such as `ollama`. The key of one's own server
/// may consist of words; in its header, a key cannot be mistaken for text.
fn is_header_secret(value: &str) -> bool {
    let is_word = value.bytes().all(|byte| byte.is_ascii_lowercase());
    !is_word && !is_dummy_password(value)
}

/// The parts of a header's value that are secrets.
fn header_secrets(name: &str, value: &str) -> Vec<String> {
    if !is_secret_name(name) {
        return Vec::new();
    }
    let name = name.to_ascii_lowercase();
    if name.contains("cookie") {
        let pairs = if name == "set-cookie" { 1 } else { usize::MAX };
        let pairs = value.split(';').take(pairs).filter_map(|pair| pair.split_once('='));
        return pairs.map(|(_, value)| value.trim().to_owned()).collect();
    }
    let Some((scheme, credentials)) = value.trim().split_once(' ') else {
        return vec![value.trim().to_owned()];
    };
    // `Bearer KEY`, `Basic BASE64`, `AWS4-HMAC-SHA256 Credential=ID/..., Signature=HEX`.
    let parts = credentials.split([',', ' ']).filter(|part| !part.is_empty());
    let mut secrets: Vec<String> = parts
        .map(|part| match part.split_once('=') {
            Some((field, value))
                if !value.is_empty() && !value.starts_with('=') && field.len() < 20 =>
            {
                value.trim_matches('"').to_owned()
            }
            _ => part.to_owned(),
        })
        .collect();
    if scheme.eq_ignore_ascii_case("basic") {
        secrets.extend(decode_basic_credentials(credentials));
    }
    secrets
}

/// Decodes basic authentication: the password, and user and password together.
fn decode_basic_credentials(credentials: &str) -> Vec<String> {
    let decoded =
        BASE64.decode(credentials.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(decoded) = decoded else { return Vec::new() };
    let password = decoded.split_once(':').map(|(_, password)| password.to_owned());
    password.into_iter().chain([decoded]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(headers: &[(&str, &str)]) -> TrafficSecrets {
        let mut secrets = TrafficSecrets::default();
        headers.iter().for_each(|(name, value)| secrets.remember_header(name, value));
        secrets
    }

    #[test]
    fn fields_of_forms_are_secrets_by_their_names() {
        let mut secrets = TrafficSecrets::default();
        let form = b"grant=a+b&client_secret=q7Rz%2F0vXw93&api_key=your-key&x=%41";
        let (redacted, redactions) = secrets.redact_form(form);
        let expected =
            "grant=a+b&client_secret=[redacted: client_secret, 13 bytes]&api_key=your-key&x=%41";
        assert_eq!((String::from_utf8(redacted).unwrap().as_str(), redactions), (expected, 1));
        assert!(secrets.redact_text("bad q7Rz/0vXw93").starts_with("bad [redacted: client_secret"));
    }

    #[test]
    fn keys_of_words_are_redacted_in_their_headers() {
        for (name, value) in [
            ("Authorization", "Bearer team-gateway-token"),
            ("authorization", "Bearer my-internal-key-12345"),
            ("api-key", "azure-short-key"),
            ("x-goog-api-key", "AIzaShort"),
            ("cookie", "sid=42abc"),
        ] {
            let redacted = secrets(&[(name, value)]).redact_header(name, value);
            let words = value.split([' ', '=', ';']).skip(1).filter(|word| word.len() > 4);
            assert!(redacted.contains("[redacted: "), "{name}: {redacted}");
            assert!(!words.clone().any(|word| redacted.contains(word)), "{name}: {redacted}");
        }
        let words = secrets(&[("authorization", "Bearer team-gateway-token")]);
        assert_eq!(words.redact_text("the team-gateway-token"), "the team-gateway-token");
        assert_eq!(words.redact_header("authorization", "Bearer anything"), "Bearer anything");
    }

    #[test]
    fn a_secret_is_found_wherever_it_is_repeated() {
        let mut secrets = secrets(&[("Authorization", "Bearer sk-x2345678")]);
        secrets.remember_path("/v1?key=AIza1234X&alt=sse");
        assert_eq!(
            secrets.redact_header("Authorization", "Bearer sk-x2345678"),
            "Bearer [redacted: authorization, 11 bytes]"
        );
        assert_eq!(
            secrets.redact_path("/v1?key=AIza1234X&alt=sse"),
            "/v1?key=[redacted: key, 9 bytes]&alt=sse"
        );
        assert_eq!(
            secrets.redact_text("no such key: sk-x2345678, AIza1234X."),
            "no such key: [redacted: authorization, 11 bytes], [redacted: key, 9 bytes]."
        );
        assert_eq!(secrets.redact_text("nothing of it"), "nothing of it");
    }

    #[test]
    fn placeholders_and_ordinary_headers_change_nothing() {
        let headers = [
            ("Authorization", "Bearer anything"),
            ("X-Session-Mode", "assistant"),
            ("x-api-key", "ollama"),
            ("x-claude-code-session-id", "5f3b2c1d-0000-4000-8000-123456789abc"),
        ];
        let secrets = secrets(&headers);
        for (name, value) in headers {
            assert_eq!(secrets.redact_header(name, value), value);
        }
        let text = "Is there anything else? The assistant of ollama.";
        assert_eq!(secrets.redact_text(text), text);
    }

    #[test]
    fn credentials_of_every_scheme_are_secrets() {
        let basic = BASE64.encode("me:hunter2hunter2");
        let aws = "AWS4-HMAC-SHA256 Credential=AKIDX5R2Q7ZW1/2026, Signature=9f86d081884c7d65";
        let headers = [
            ("Authorization", format!("Basic {basic}")),
            ("Proxy-Authorization", aws.to_owned()),
            ("Cookie", "theme=dark; sid=q7Rz0vXw93Lk".to_owned()),
            ("x-pass", "correct".to_owned()),
        ];
        let secrets = secrets(&headers.each_ref().map(|(name, value)| (*name, value.as_str())));
        let written: Vec<_> =
            headers.iter().map(|(name, value)| secrets.redact_header(name, value)).collect();
        for secret in
            [basic.as_str(), "AKIDX5R2Q7ZW1", "9f86d081884c7d65", "q7Rz0vXw93Lk", "correct"]
        {
            assert!(!written.concat().contains(secret), "{secret}: {written:?}");
        }
        assert_eq!(
            secrets.redact_text("pw hunter2hunter2"),
            "pw [redacted: authorization, 14 bytes]"
        );
        assert_eq!(secrets.redact_text("that is correct"), "that is correct");
    }
}
