//! Takes secrets out of a transcript before it is shared.
//!
//! What counts as a secret is a table of rules, each with an example that it must find and one that it must leave.
//! Randomness is measured only where a rule says so: a hash or an id is no secret.

mod rules;

use std::borrow::Cow;
use std::num::NonZero;
use std::sync::LazyLock;
use std::thread;

use aho_corasick::AhoCorasick;
use regex::{Captures, Regex};

use self::rules::{RULES, Rule};
use crate::entry::Entry;
use crate::json::Value;
use crate::session::Transcript;

/// Entries that are worth a thread of their own.
const WORTH_A_THREAD: usize = 1000;

/// Takes secrets out of texts and counts them.
#[derive(Debug, Default)]
pub struct Redactor {
    count: u64,
}

struct Compiled {
    /// Finds the hints of all rules at one pass.
    hints: AhoCorasick,
    /// The rule of each hint.
    rules: Vec<usize>,
    each: Vec<Regex>,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
    let words = RULES.iter().flat_map(|rule| rule.hints);
    let hints = AhoCorasick::builder().ascii_case_insensitive(true).build(words);
    let rules = RULES.iter().enumerate().flat_map(|(at, rule)| rule.hints.iter().map(move |_| at));
    // Words of other scripts end no secret, and telling them apart takes far longer.
    let pattern = |rule: &Rule| rule.pattern.replace(r"\b", r"(?-u:\b)");
    let each =
        RULES.iter().map(|rule| Regex::new(&pattern(rule)).expect("our own rules are valid"));
    Compiled { hints: hints.expect("a few words"), rules: rules.collect(), each: each.collect() }
});

impl Compiled {
    /// The rules that are worth a closer look at a text, in their order.
    fn hinted(&self, text: &str) -> impl Iterator<Item = usize> + use<> {
        let mut is_hinted = [false; RULES.len()];
        for found in self.hints.find_overlapping_iter(text) {
            is_hinted[self.rules[found.pattern().as_usize()]] = true;
        }
        (0..RULES.len()).filter(move |at| is_hinted[*at])
    }
}

impl Redactor {
    /// How many secrets were taken out.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes the secrets out of all that a transcript says.
    pub fn transcript(&mut self, transcript: &mut Transcript) {
        if let Some(title) = &mut transcript.session.title {
            self.replace(title);
        }
        transcript.notes.iter_mut().for_each(|note| self.replace(&mut note.text));
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let size = transcript.entries.len().div_ceil(threads).max(WORTH_A_THREAD);
        self.count += thread::scope(|scope| {
            let begin = |part| scope.spawn(|| Self::redacted(part));
            let parts: Vec<_> = transcript.entries.chunks_mut(size).map(begin).collect();
            parts
                .into_iter()
                .map(|part| part.join().expect("any text can be looked at"))
                .sum::<u64>()
        });
    }

    /// Takes the secrets out of some entries; gives how many there were.
    fn redacted(entries: &mut [Entry]) -> u64 {
        let mut redactor = Self::default();
        for entry in entries {
            redactor.replace(&mut entry.content);
            if let Some(input) = &mut entry.tool_input {
                redactor.value(input);
            }
            if let Some(metadata) = &mut entry.metadata {
                metadata.values_mut().for_each(|value| redactor.value(value));
            }
            entry.extra.values_mut().for_each(|value| redactor.value(value));
        }
        redactor.count
    }

    /// A text without its secrets.
    pub fn text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let compiled = &*COMPILED;
        let mut text = Cow::Borrowed(text);
        for at in compiled.hinted(&text) {
            let (rule, regex) = (&RULES[at], &compiled.each[at]);
            let replaced = regex.replace_all(&text, |found: &Captures<'_>| {
                let (kept, is_secret) = rule.judge(found);
                self.count += u64::from(is_secret);
                kept
            });
            if let Cow::Owned(replaced) = replaced {
                text = Cow::Owned(replaced);
            }
        }
        text
    }

    fn replace(&mut self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => self.replace(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            _ => {}
        }
    }
}

impl Rule {
    /// What takes the place of a match, and whether that was a secret at all.
    fn judge(&self, found: &Captures<'_>) -> (String, bool) {
        let (whole, secret) = (&found[0], found.get(1).or(found.get(0)));
        let Some(secret) = secret.filter(|secret| self.is_random(secret.as_str())) else {
            return (whole.to_owned(), false);
        };
        let begin = secret.start() - found.get(0).map_or(0, |whole| whole.start());
        let end = begin + secret.len();
        (format!("{}[redacted {}]{}", &whole[..begin], self.name, &whole[end..]), true)
    }

    /// Whether a text is as random as the rule asks for; the name of a function never is.
    fn is_random(&self, text: &str) -> bool {
        let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
        self.entropy == 0.0 || (has_digit && entropy(text) >= self.entropy)
    }
}

/// How random a text looks, in bits per character.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let length = text.len() as f64;
    let shares = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / length);
    -shares.map(|share| share * share.log2()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::entry::{Kind, Role};
    use crate::session::{Session, SessionId};

    fn redacted(text: &str) -> (String, u64) {
        let mut redactor = Redactor::default();
        let text = redactor.text(text).into_owned();
        (text, redactor.count())
    }

    #[test]
    fn every_rule_finds_its_example_and_leaves_the_other() {
        for rule in RULES {
            let secret = rule.secret.concat();
            let (text, count) = redacted(&secret);
            let name = format!("[redacted {}]", rule.name);
            assert!(text.contains(&name) && count == 1, "{}: {secret} became {text}", rule.name);
            assert_eq!(redacted(rule.harmless), (rule.harmless.to_owned(), 0), "{}", rule.name);
        }
    }

    #[test]
    fn secrets_are_found_among_words_of_any_script() {
        let (text, count) = redacted("ключ: é MY_API_KEY=q7Rz0vXw93LkTn5Yb2Hd8Fg1 日本");
        assert_eq!((text.as_str(), count), ("ключ: é MY_API_KEY=[redacted secret] 日本", 1));
    }

    #[test]
    fn what_stands_around_a_secret_stays() {
        let (text, count) = redacted("git clone https://me:hunter2hunter2@example.org/x and more");
        assert_eq!(text, "git clone https://me:[redacted password]@example.org/x and more");
        assert_eq!(count, 1);
    }

    #[test]
    fn arguments_and_titles_are_redacted_too() {
        let key = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
        let mut transcript = Transcript::new(Session::new(SessionId::fresh(), "x"));
        let mut call = Entry::new(Role::Assistant, Kind::ToolCall, "");
        call.tool_input = Some(json!({"command": ["curl", {"header": key}]}));
        transcript.push(Entry::new(Role::User, Kind::Text, format!("use {key}")));
        transcript.push(call);
        let mut redactor = Redactor::default();
        redactor.transcript(&mut transcript);
        let told = format!("{transcript:?}");
        assert!(!told.contains(&key), "{told}");
        assert_eq!(redactor.count(), 3);
    }
}
