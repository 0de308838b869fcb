//! Redacts secrets before a line is recorded: environment variables, headers and keys of the MCP servers that a
//! client configures, and every later occurrence of those keys.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::message_header::{AcpMessageHeader, is_conversation_method};
use crate::decoding::json_fields;
use steno_model::json::{Object, Value};

/// Replaces a secret.
const REDACTED: &str = "[redacted]";

/// Shorter values may be ordinary words, so later occurrences of them are not redacted.
const MIN_REMEMBERED_KEY_BYTES: usize = 12;

/// A line without any of these strings has no named secret.
const SECRET_MARKERS: [&str; 8] = [
    "\"mcpServers\"",
    "\"headers\"",
    "\"env\"",
    "\"authenticate\"",
    "\"initialize\"",
    "\"providers/",
    "\"apiKey\"",
    "\"api_key\"",
];

/// Built once, because every line is searched.
static SECRET_MARKER_FINDERS: LazyLock<[Finder<'static>; 8]> =
    LazyLock::new(|| SECRET_MARKERS.map(Finder::new));

/// Parts of field names that mark a secret, in lower case and without punctuation.
const SECRET_NAME_PARTS: [&str; 9] = [
    "apikey",
    "token",
    "secret",
    "password",
    "authorization",
    "credential",
    "privatekey",
    "accesskey",
    "cookie",
];

/// Redacts the lines of one connection.
#[derive(Debug, Default)]
pub struct AcpRedactor {
    /// The secrets seen so far, escaped as in JSON.
    keys: Vec<Finder<'static>>,
}

impl AcpRedactor {
    /// The line without its secrets. `address` is its parsed header. A line without secrets is returned unchanged.
    pub fn redact<'a>(
        &mut self,
        line: &'a [u8],
        address: Option<&AcpMessageHeader<'_>>,
    ) -> Cow<'a, [u8]> {
        let is_said = address.is_some_and(AcpMessageHeader::carries_conversation);
        let is_marked =
            !is_said && SECRET_MARKER_FINDERS.iter().any(|mark| mark.find(line).is_some());
        let named = if is_marked { self.redact_named(line) } else { None };
        let mut line = named.map_or(Cow::Borrowed(line), Cow::Owned);
        for key in &self.keys {
            if key.find(&line).is_some() {
                line = Cow::Owned(replace_all(&line, key));
            }
        }
        line
    }

    /// Redacts named secrets. `None` if there are none.
    fn redact_named(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let mut value: Value = serde_json::from_slice(line).ok()?;
        let before = value.clone();
        match &mut value {
            Value::Array(batch) => {
                batch.iter_mut().for_each(|message| self.redact_message(message))
            }
            message => self.redact_message(message),
        }
        if value == before {
            return None;
        }
        let end = line.len() - line.trim_ascii_end().len();
        let mut bytes = serde_json::to_vec(&value).ok()?;
        bytes.extend_from_slice(&line[line.len() - end..]);
        Some(bytes)
    }

    fn redact_message(&mut self, message: &mut Value) {
        let Some(message) = message.as_object_mut() else { return };
        // Text of people and models stays verbatim.
        if !json_fields::text_field(message, "method").is_some_and(is_conversation_method) {
            ["params", "result"].iter().for_each(|part| {
                message.get_mut(*part).into_iter().for_each(|value| self.redact_value(value));
            });
        }
    }

    fn redact_value(&mut self, value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.iter_mut().for_each(|(name, value)| match name.as_str() {
                    "env" | "headers" => self.redact_pairs(value),
                    "args" => self.redact_arguments(value),
                    "url" => self.redact_url(value),
                    name if is_secret_name(name) && value.is_string() => {
                        self.hide_value(name, value)
                    }
                    _ => self.redact_value(value),
                })
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.redact_value(value)),
            _ => {}
        }
    }

    /// Redacts name and value pairs, given as a list of `{name, value}` or as an object.
    fn redact_pairs(&mut self, pairs: &mut Value) {
        match pairs {
            Value::Object(pairs) => {
                pairs.iter_mut().for_each(|(name, value)| self.hide_value(name, value));
            }
            Value::Array(list) => {
                for pair in list.iter_mut().filter_map(Value::as_object_mut) {
                    self.redact_pair(pair);
                }
            }
            _ => {}
        }
    }

    fn redact_pair(&mut self, pair: &mut Object) {
        let name = json_fields::text_field(pair, "name").unwrap_or_default().to_owned();
        if let Some(value) = pair.get_mut("value") {
            self.hide_value(&name, value);
        }
    }

    /// Redacts the arguments of a command: `--api-key VALUE` and `--api-key=VALUE`.
    fn redact_arguments(&mut self, list: &mut Value) {
        let mut named: Option<String> = None;
        for argument in list.as_array_mut().into_iter().flatten() {
            let text = argument.as_str().unwrap_or_default().to_owned();
            if let Some(name) = named.take().filter(|_| !text.starts_with('-')) {
                self.hide_value(&name, argument);
            } else if let Some((name, value)) =
                text.split_once('=').filter(|(name, _)| is_secret_name(name))
            {
                self.remember_secret(name, value);
                *argument = format!("{name}={REDACTED}").into();
            } else if text.starts_with('-') && is_secret_name(&text) {
                named = Some(text);
            }
        }
    }

    /// Redacts the credentials before `@`, and query parameters with secret names.
    fn redact_url(&mut self, value: &mut Value) {
        let Some(text) = value.as_str() else { return };
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let base = match (base.find("://"), base.rfind('@')) {
            (Some(start), Some(end)) if start < end => {
                format!("{}{REDACTED}{}", &base[..start + 3], &base[end..])
            }
            _ => base.to_owned(),
        };
        let pairs: Vec<String> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) if is_secret_name(name) || name == "key" => {
                    self.remember_secret("key", value);
                    format!("{name}={REDACTED}")
                }
                _ => pair.to_owned(),
            })
            .collect();
        let query = pairs.join("&");
        let mark = if text.contains('?') { "?" } else { "" };
        *value = format!("{base}{mark}{query}").into();
    }

    fn hide_value(&mut self, name: &str, value: &mut Value) {
        if let Some(text) = value.as_str() {
            self.remember_secret(name, text);
        }
        if !value.is_null() {
            *value = REDACTED.into();
        }
    }

    /// Remembers a secret to redact its later occurrences.
    fn remember_secret(&mut self, name: &str, value: &str) {
        let value = value.strip_prefix("Bearer ").unwrap_or(value).trim();
        if !(is_secret_name(name) || name == "key")
            || value.len() < MIN_REMEMBERED_KEY_BYTES
            || value == REDACTED
        {
            return;
        }
        let key = serde_json::to_string(value).expect("text is JSON");
        let key = &key.as_bytes()[1..key.len() - 1];
        if !self.keys.iter().any(|known| known.needle() == key) {
            self.keys.push(Finder::new(key).into_owned());
        }
    }
}

fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    SECRET_NAME_PARTS.iter().any(|word| plain.contains(word))
        || plain.ends_with("key") && plain.len() > 3
}

fn replace_all(line: &[u8], key: &Finder<'_>) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(line.len()), 0);
    for at in key.find_iter(line) {
        out.extend_from_slice(&line[rest..at]);
        out.extend_from_slice(REDACTED.as_bytes());
        rest = at + key.needle().len();
    }
    out.extend_from_slice(&line[rest..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(lines: &[&str]) -> Vec<String> {
        let mut redactor = AcpRedactor::default();
        let text = |line: &&str| {
            let address = AcpMessageHeader::parse(line.as_bytes());
            let redacted = redactor.redact(line.as_bytes(), address.as_ref());
            String::from_utf8(redacted.into_owned())
        };
        lines.iter().map(text).map(Result::unwrap).collect()
    }

    #[test]
    fn secrets_of_servers_are_left_out_here_and_later() {
        let new = r#"{"id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[
            {"name":"a","command":"x","args":["--api-key","sk-0123456789abc","-v","--token=t0ken-t0ken-1"],
             "env":[{"name":"GITHUB_TOKEN","value":"ghp_abcdefghijkl"},{"name":"MODE","value":"plain"}]},
            {"type":"http","url":"https://me:pw@h/p?token=abc&x=1","headers":[{"name":"Authorization","value":"Bearer abcdef0123456789"}]}]}}
"#;
        let error =
            r#"{"id":1,"error":{"message":"bad key ghp_abcdefghijkl, abcdef0123456789, plain"}}"#;
        let redacted = redact(&[new, error]);
        for secret in ["sk-01", "t0ken-", "ghp_", "plain\"", "me:pw", "=abc", "abcdef"] {
            assert!(!redacted[0].contains(secret), "{secret}: {}", redacted[0]);
        }
        assert!(
            redacted[0].contains(r#""cwd":"/w""#)
                && redacted[0].contains("x=1")
                && redacted[0].ends_with('\n')
        );
        assert_eq!(
            redacted[1],
            r#"{"id":1,"error":{"message":"bad key [redacted], [redacted], plain"}}"#
        );
    }

    #[test]
    fn does_not_redact_prompts() {
        let prompt = r#"{"method":"session/prompt","params":{"prompt":[{"type":"text","text":"\"env\" and \"apiKey\""}],"env":[{"name":"A","value":"b"}]}}"#;
        let plain = r#"{ "method":"initialize", "params":{"protocolVersion":1.0}}"#;
        assert_eq!(redact(&[prompt, plain]), [prompt, plain]);
    }
}
