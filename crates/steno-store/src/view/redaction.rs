//! Redacts secrets in a transcript before it is shared.
//!
//! The rules in `steno_agents::secret` decide what a secret is.

use std::borrow::Cow;
use std::num::NonZero;
use std::thread;

use steno_agents::secret::{SecretRuleSet, find_secrets};
use steno_model::entry::Entry;
use steno_model::json::Value;
use steno_model::session::Transcript;

/// Minimum number of entries per thread.
const MIN_ENTRIES_PER_THREAD: usize = 1000;

/// Redacts secrets in texts and counts them.
#[derive(Debug, Default)]
pub struct SecretRedactor {
    count: u64,
}

impl SecretRedactor {
    /// How many secrets were redacted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Redacts all texts of a transcript.
    pub fn redact_transcript(&mut self, transcript: &mut Transcript) {
        if let Some(title) = &mut transcript.session.title {
            self.redact_string(title);
        }
        transcript.notes.iter_mut().for_each(|note| self.redact_string(&mut note.text));
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let size = transcript.entries.len().div_ceil(threads).max(MIN_ENTRIES_PER_THREAD);
        self.count += thread::scope(|scope| {
            let begin = |part| scope.spawn(|| Self::redact_entries(part));
            let parts: Vec<_> = transcript.entries.chunks_mut(size).map(begin).collect();
            parts
                .into_iter()
                .map(|part| part.join().expect("any text can be looked at"))
                .sum::<u64>()
        });
    }

    /// Redacts entries. Returns how many secrets they had.
    fn redact_entries(entries: &mut [Entry]) -> u64 {
        let mut redactor = Self::default();
        for entry in entries {
            redactor.redact_string(&mut entry.content);
            if let Some(input) = &mut entry.tool_input {
                redactor.redact_value(input);
            }
            if let Some(metadata) = &mut entry.metadata {
                metadata.values_mut().for_each(|value| redactor.redact_value(value));
            }
            entry.extra.values_mut().for_each(|value| redactor.redact_value(value));
        }
        redactor.count
    }

    /// Redacts a text.
    pub fn redact_text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let secrets = find_secrets(text.as_bytes(), SecretRuleSet::All);
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        self.count += secrets.len() as u64;
        let (mut redacted, mut end) = (String::with_capacity(text.len()), 0);
        for secret in secrets {
            redacted.push_str(&text[end..secret.range.start]);
            redacted.push_str(&format!("[redacted {}]", secret.rule));
            end = secret.range.end;
        }
        redacted.push_str(&text[end..]);
        Cow::Owned(redacted)
    }

    fn redact_string(&mut self, text: &mut String) {
        if let Cow::Owned(clean) = self.redact_text(text) {
            *text = clean;
        }
    }

    fn redact_value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact_value(field)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use steno_model::entry::{EntryKind, Role};
    use steno_model::session::Session;

    fn redacted(text: &str) -> (String, u64) {
        let mut redactor = SecretRedactor::default();
        let text = redactor.redact_text(text).into_owned();
        (text, redactor.count())
    }

    #[test]
    fn secrets_are_found_among_words_of_any_script() {
        let (text, count) = redacted("ключ: é MY_API_KEY=q7Rz0vXw93LkTn5Yb2Hd8Fg1 日本");
        assert_eq!((text.as_str(), count), ("ключ: é MY_API_KEY=[redacted secret] 日本", 1));
    }

    #[test]
    fn keeps_the_text_around_a_secret() {
        let (text, count) = redacted("git clone https://me:hunter2hunter2@example.org/x and more");
        assert_eq!(text, "git clone https://me:[redacted password]@example.org/x and more");
        assert_eq!(count, 1);
    }

    #[test]
    fn arguments_and_titles_are_redacted_too() {
        let key = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
        let mut transcript = Transcript::new(Session::new("s".parse().unwrap(), "x"));
        let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        call.tool_input = Some(json!({"command": ["curl", {"header": key}]}));
        transcript.push(Entry::new(Role::User, EntryKind::Text, format!("use {key}")));
        transcript.push(call);
        let mut redactor = SecretRedactor::default();
        redactor.redact_transcript(&mut transcript);
        let printed = format!("{transcript:?}");
        assert!(!printed.contains(&key), "{printed}");
        assert_eq!(redactor.count(), 3);
    }
}
