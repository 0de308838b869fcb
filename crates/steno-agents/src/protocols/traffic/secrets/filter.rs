//! Removes secrets from a body as it streams, wherever the chunks end.
//!
//! The filter holds back the end of a chunk while it may be the prefix of a secret, and releases it with the next
//! chunk.

use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::{Captures, Regex, RegexBuilder};

use super::escapes::UnescapedBytes;
use super::{TrafficSecrets, is_secret_value, redaction_marker};
use steno_secrets::{SecretMatch, SecretRuleSet, SecretScanner, is_secret_name};

/// Bytes searched at a time.
const WINDOW_BYTES: usize = 256 << 10;

/// Limit for held bytes. No key is longer.
const MAX_HELD_BYTES: usize = 8 << 10;

/// Size limit for a compiled pattern.
const MAX_PATTERN_BYTES: usize = 64 << 10;

// These patterns match bytes, because Unicode classes need far more memory.

/// JSON fields that hold keys. `token` is not among them: responses use that name for words.
static SECRET_FIELD: LazyLock<Regex> = LazyLock::new(|| {
    let names = "x-api-key|api[_-]?key|access[_-]?token|refresh[_-]?token|auth[_-]?token|bearer[_-]?token\
        |client[_-]?secret|secret[_-]?(?:access[_-]?)?key|private[_-]?key|password|passwd";
    let pattern = format!(r#"(?i-u)"({names})"\s{{0,20}}:\s{{0,20}}"([^"\s]+)""#);
    compile_small_pattern(&pattern)
});

/// Compiles a pattern, which must be small: every recording process holds it in memory.
fn compile_small_pattern(pattern: &str) -> Regex {
    let compiled = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
    compiled.expect("a valid and small pattern")
}

/// Length limit for the value of such a field.
const MAX_KEY_BYTES: usize = 4096;

/// The JSON fields in a text that hold keys.
fn find_secret_fields(text: &[u8]) -> impl Iterator<Item = Captures<'_>> {
    // The length is checked here, because a counted repetition in the pattern would multiply its size.
    SECRET_FIELD.captures_iter(text).filter(|captures| captures[2].len() <= MAX_KEY_BYTES)
}

/// A field with an unterminated value.
static OPEN_FIELD: LazyLock<Regex> =
    LazyLock::new(|| compile_small_pattern(r#"(?-u)"[^"\s]{1,40}"\s{0,20}:\s{0,20}"[^"\s]*$"#));

/// A field's name, or a prefix of one, at the end.
static OPEN_NAME: LazyLock<Regex> =
    LazyLock::new(|| compile_small_pattern(r#"(?-u)"[A-Za-z_-]{0,40}("\s{0,20}(:\s{0,20})?)?$"#));

/// A part of a multipart body: name, other headers, and value. A part with a file has a `filename` after the name.
static PART_FIELD: LazyLock<Regex> = LazyLock::new(|| {
    let head = r#""([^"\r\n]{1,80})"([^\r\n]{0,200})\r?\n(?:[^\r\n]{1,200}\r?\n){0,8}\r?\n"#;
    Regex::new(&format!(r"(?-u){head}([^\r\n]{{1,4096}})\r?\n--")).expect("a valid pattern")
});

/// A quoted name, as in the headers of a part.
static QUOTED_NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?-u)"([^"\r\n]{1,80})""#).expect("a valid pattern"));

/// A part without an end.
static OPEN_PART: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)^[^\r\n]*(?:\r?\n[^\r\n]*){0,11}\r?$").expect("a valid pattern")
});

/// Removes secrets from one body.
#[derive(Debug)]
pub struct SecretFilter {
    secrets: TrafficSecrets,
    /// Whether the body may be multipart.
    has_parts: bool,
    /// Bytes that may be the prefix of a secret.
    held: Vec<u8>,
    redactions: u64,
}

impl SecretFilter {
    pub(super) fn new(secrets: TrafficSecrets, has_parts: bool) -> Self {
        Self { secrets, has_parts, held: Vec::new(), redactions: 0 }
    }

    /// Adds bytes, and returns those that are safe to record.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for window in bytes.chunks(WINDOW_BYTES) {
            self.held.extend_from_slice(window);
            self.release_held(&mut out, false);
        }
        out
    }

    /// Returns the held bytes. Call it at the end of the body.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.release_held(&mut out, true);
        out
    }

    /// How many secrets were redacted.
    pub fn redactions(&self) -> u64 {
        self.redactions
    }

    /// The known secrets, including those found in the body's fields.
    pub fn into_secrets(self) -> TrafficSecrets {
        self.secrets
    }

    fn release_held(&mut self, out: &mut Vec<u8>, is_end: bool) {
        let raw = std::mem::take(&mut self.held);
        let unescaped = UnescapedBytes::new(&raw);
        let text = &unescaped.bytes;
        self.remember_fields(text);
        let matches = self.find_all_secrets(text);
        let mut kept_until =
            if is_end { raw.len() } else { self.find_hold_offset(&unescaped, &matches) };
        if raw.len() - kept_until > MAX_HELD_BYTES {
            kept_until = raw.len();
        }
        let mut at = 0;
        for secret in matches {
            let (start, end) = (
                unescaped.original_offset(secret.range.start),
                unescaped.original_offset(secret.range.end),
            );
            if end > kept_until {
                break;
            }
            out.extend_from_slice(&raw[at..start]);
            out.extend_from_slice(redaction_marker(&secret.rule, end - start).as_bytes());
            self.redactions += 1;
            at = end;
        }
        out.extend_from_slice(&raw[at.min(kept_until)..kept_until]);
        self.held = raw[kept_until.max(at)..].to_vec();
    }

    /// Remembers the secrets in the body's fields.
    fn remember_fields(&mut self, text: &[u8]) {
        for captures in find_secret_fields(text) {
            let (name, value) =
                (String::from_utf8_lossy(&captures[1]), String::from_utf8_lossy(&captures[2]));
            self.secrets.remember_secret(&value, &name);
        }
        for part in self.find_secret_parts(text) {
            let value = String::from_utf8_lossy(&text[part.range]).into_owned();
            self.secrets.remember_secret(&value, &part.rule);
        }
    }

    /// The multipart fields that are secret by name.
    fn find_secret_parts(&self, text: &[u8]) -> Vec<FoundSecret> {
        if !self.has_parts {
            return Vec::new();
        }
        let parts = PART_FIELD.captures_iter(text).filter_map(|captures| {
            let name = String::from_utf8_lossy(&captures[1]).to_ascii_lowercase();
            let is_file = memmem::find(&captures[2], b"filename").is_some();
            let is_secret = !is_file
                && is_secret_name(&name)
                && is_secret_value(&name, &String::from_utf8_lossy(&captures[3]));
            let (whole, value) = (captures.get(0)?, captures.get(3)?);
            let context_start = whole.start();
            is_secret.then(|| FoundSecret { range: value.range(), context_start, rule: name })
        });
        parts.collect()
    }

    /// All secrets in a text, in order and without overlaps.
    fn find_all_secrets(&self, text: &[u8]) -> Vec<FoundSecret> {
        let mut matches: Vec<FoundSecret> = Vec::new();
        let mut add = |secret: FoundSecret| {
            let is_free = |known: &FoundSecret| {
                known.range.end <= secret.range.start || secret.range.end <= known.range.start
            };
            if matches.iter().all(is_free) {
                matches.push(secret);
            }
        };
        for known in &self.secrets.known {
            for start in memmem::find_iter(text, &known.value) {
                let range = start..start + known.value.len();
                add(FoundSecret { range, context_start: start, rule: known.rule.clone() });
            }
        }
        for captures in find_secret_fields(text) {
            let name = String::from_utf8_lossy(&captures[1]).to_ascii_lowercase();
            let is_secret = is_secret_value(&name, &String::from_utf8_lossy(&captures[2]));
            if let (Some(field), Some(value), true) = (captures.get(0), captures.get(2), is_secret)
            {
                let context_start = field.start();
                add(FoundSecret { range: value.range(), context_start, rule: name });
            }
        }
        self.find_secret_parts(text).into_iter().for_each(&mut add);
        for SecretMatch { range, context_start, rule } in
            SecretScanner::built_in().find_secrets(text, SecretRuleSet::FormsOnly)
        {
            add(FoundSecret { range, context_start, rule: rule.to_owned() });
        }
        matches.sort_by_key(|secret| secret.range.start);
        matches
    }

    /// The offset of an unterminated part with a secret name.
    fn find_open_part(&self, text: &[u8]) -> Option<usize> {
        let mut names = QUOTED_NAME.captures_iter(text).filter(|_| self.has_parts);
        names.find_map(|captures| {
            let start = captures.get(0)?.start();
            let is_secret = is_secret_name(&String::from_utf8_lossy(&captures[1]));
            (is_secret && OPEN_PART.is_match(&text[start..])).then_some(start)
        })
    }

    /// The offset from which bytes may become a secret with more input.
    fn find_hold_offset(&self, unescaped: &UnescapedBytes, matches: &[FoundSecret]) -> usize {
        let text = &unescaped.bytes;
        let near_end = text.len().saturating_sub(MAX_HELD_BYTES);
        let mut from = text.len();
        for known in &self.secrets.known {
            let longest = known.value.len().min(text.len() + 1).saturating_sub(1);
            let begun = (1..=longest).rev().find(|length| text.ends_with(&known.value[..*length]));
            from = from.min(text.len() - begun.unwrap_or(0));
        }
        // A key extends to the next character that no key contains.
        let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.+/=:@".contains(byte);
        let word = text.iter().rposition(|byte| !is_of_key(byte)).map_or(0, |at| at + 1);
        from = from.min(word);
        for pattern in [&*OPEN_FIELD, &*OPEN_NAME] {
            from = from
                .min(pattern.find(&text[near_end..]).map_or(from, |open| near_end + open.start()));
        }
        from = from.min(self.find_open_part(&text[near_end..]).map_or(from, |at| near_end + at));
        if let Some(begin) = memmem::rfind(&text[near_end..], b"-----BEGIN")
            && !matches.iter().any(|secret| {
                secret.range.start == near_end + begin
                    && memmem::find(&text[secret.range.clone()], b"-----END").is_some()
            })
        {
            from = from.min(near_end + begin);
        }
        // A match that reaches this offset may grow, so it is held and searched again.
        for secret in matches.iter().rev() {
            if secret.range.end >= from {
                from = from.min(secret.context_start);
            }
        }
        unescaped.original_offset(from)
    }
}

/// A secret found in unescaped bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FoundSecret {
    range: std::ops::Range<usize>,
    /// The offset of the match that contains it, such as its field's name.
    context_start: usize,
    rule: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::traffic::body_format::BodyFormat;

    fn filter(headers: &[(&str, &str)]) -> SecretFilter {
        let mut secrets = TrafficSecrets::default();
        headers.iter().for_each(|(name, value)| secrets.remember_header(name, value));
        secrets.body_filter()
    }

    /// The recorded bytes of a body with chunks that end at `cuts`.
    fn recorded(mut filter: SecretFilter, body: &[u8], cuts: &[usize]) -> String {
        let (mut out, mut start) = (Vec::new(), 0);
        for end in cuts.iter().copied().chain([body.len()]) {
            out.extend(filter.push(&body[start..end]));
            start = end;
        }
        out.extend(filter.finish());
        String::from_utf8(out).unwrap()
    }

    const KEY: &str = "q7Rz0vXw93+Tn/Yb2Hd8Fg1";

    #[test]
    fn a_key_is_found_at_every_cut_and_in_every_spelling() {
        let spellings = [
            KEY.to_owned(),
            KEY.replace('/', "\\/").replace('+', "\\u002b"),
            KEY.replace('/', "%2F").replace('+', "%2b"),
            KEY.bytes().map(|byte| format!("\\u{byte:04x}")).collect(),
        ];
        for spelling in spellings {
            let body = format!("{{\"error\": \"bad key {spelling}, sorry\"}}");
            for cut in 0..=body.len() {
                let filter = filter(&[("x-api-key", KEY)]);
                let out = recorded(filter, body.as_bytes(), &[cut]);
                let marked = redaction_marker("x-api-key", spelling.len());
                assert_eq!(out, format!("{{\"error\": \"bad key {marked}, sorry\"}}"), "{cut}");
            }
        }
    }

    #[test]
    fn a_key_is_found_when_every_byte_comes_alone() {
        let body = format!("a {KEY} b \"api_key\": \"zZ8yY7xX6wW5\" c");
        let cuts: Vec<_> = (0..body.len()).collect();
        let out = recorded(filter(&[("x-api-key", KEY)]), body.as_bytes(), &cuts);
        assert_eq!(
            out,
            "a [redacted: x-api-key, 23 bytes] b \"api_key\": \"[redacted: api_key, 12 bytes]\" c"
        );
    }

    #[test]
    fn fields_and_forms_are_found_without_a_header() {
        let github = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
        let body = format!(
            r#"{{"api_key":"zZ8yY7xX6wW5","text":"zZ8yY7xX6wW5 {github}","nested":"{{\"password\":\"correct\"}}"}}"#
        );
        for cut in 0..=body.len() {
            let out = recorded(filter(&[]), body.as_bytes(), &[cut]);
            for secret in ["zZ8yY7xX6wW5", &github, "correct"] {
                assert!(!out.contains(secret), "cut at {cut}: {secret} in {out}");
            }
            assert!(
                out.starts_with(r#"{"api_key":"[redacted: api_key, 12 bytes]","text":"["#),
                "{out}"
            );
        }
    }

    #[test]
    fn ordinary_text_passes_unchanged_at_every_cut() {
        let body = r#"{"token":"Hello","logprob":-0.1,"api_key":"your-key","say":"Is there anything else? %20 \u0041 \n \"api_key\": null, sk-learn","password":{"type":"string"},"session":"assistant"}"#;
        let headers = [("Authorization", "Bearer anything"), ("X-Session-Mode", "assistant")];
        for cut in 0..=body.len() {
            assert_eq!(recorded(filter(&headers), body.as_bytes(), &[cut]), body);
        }
    }

    #[test]
    fn parts_of_a_body_are_secrets_by_their_names_at_every_cut() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n\
            --b\r\nContent-Disposition: form-data; name=\"api_key\"\r\nContent-Type: text/plain\r\n\r\n\
            zZ8yY7xX6wW5\r\n--b\r\nContent-Disposition: form-data; name=\"token\"; filename=\"x\"\r\n\r\n\
            q7Rz0vXw93Lk\r\n--b--\r\n";
        let expected = body.replace("zZ8yY7xX6wW5", &redaction_marker("api_key", 12));
        let fields = BodyFormat::Multipart("b".to_owned());
        for cut in 0..=body.len() {
            let filter = TrafficSecrets::default().body_filter_for(&fields);
            assert_eq!(recorded(filter, body.as_bytes(), &[cut]), expected, "{cut}");
        }
    }

    #[test]
    fn an_event_that_is_whole_is_not_held_back() {
        let mut filter = filter(&[("x-api-key", KEY)]);
        let event = b"data: {\"delta\":{\"text\":\"Hi\"}}\n\n";
        assert_eq!(filter.push(event), event);
    }

    #[test]
    fn large_bodies_pass_in_windows() {
        let body =
            format!("{}{KEY}{}", "word ".repeat(WINDOW_BYTES / 4), " word".repeat(WINDOW_BYTES));
        let out = recorded(filter(&[("x-api-key", KEY)]), body.as_bytes(), &[]);
        assert_eq!(out, body.replace(KEY, &redaction_marker("x-api-key", KEY.len())));
    }
}
