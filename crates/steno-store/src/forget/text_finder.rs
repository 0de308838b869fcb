//! Finds the texts to forget in the units of kept files.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use memchr::memmem;
use regex::Regex;

use steno_model::entry::Entry;
use steno_model::json::Value;
use steno_secrets::{SecretRuleSet, SecretScanner};
use steno_vault::forget::TextUnit;

use crate::view::redaction::{SecretRedactor, is_distinctive};

/// Texts from this length on are found wherever they are. Shorter ones are found only in the records of their entry,
/// because elsewhere they may mean something else.
const MIN_DISTINCT_TEXT: usize = 16;

/// Fields that tell readers what a record is. Short values of them are never masked.
const STRUCTURAL_KEYS: [&str; 18] = [
    "type",
    "role",
    "kind",
    "id",
    "uuid",
    "parentUuid",
    "sessionId",
    "session_id",
    "timestamp",
    "at",
    "sum",
    "tool_use_id",
    "call_id",
    "method",
    "jsonrpc",
    "traffic",
    "exchange",
    "status",
];

/// Finds the texts of entries, the matches of a pattern, or a secret.
#[derive(Clone, Debug, Default)]
pub struct ForgottenTextFinder {
    entries: Vec<EntryTexts>,
    pattern: Option<Regex>,
    /// A secret that may be an ordinary word elsewhere.
    word_secret: Option<String>,
    /// Indexes of the entries with a text that was found.
    found: RefCell<BTreeSet<usize>>,
}

/// The texts of an entry.
#[derive(Clone, Debug)]
struct EntryTexts {
    number: u64,
    /// The content, which is found everywhere if it is long enough.
    content: String,
    /// The arguments of a tool call, which are found in records with one of the ids.
    arguments: Vec<String>,
    ids: Vec<String>,
}

impl ForgottenTextFinder {
    /// Finds the texts of entries, each with its number.
    pub fn for_entries<'a>(entries: impl IntoIterator<Item = (u64, &'a Entry)>) -> Self {
        let texts = |(number, entry): (u64, &Entry)| {
            let mut arguments = Vec::new();
            entry.tool_input.iter().for_each(|input| collect_strings(input, &mut arguments));
            let ids = [entry.message_id.clone(), entry.tool_call_id.clone()].into_iter().flatten();
            let ids = ids.chain([entry.entry_id.to_string()]).filter(|id| !id.is_empty()).collect();
            EntryTexts { number, content: entry.content.clone(), arguments, ids }
        };
        Self { entries: entries.into_iter().map(texts).collect(), ..Self::default() }
    }

    /// Finds the matches of a pattern.
    pub fn for_pattern(pattern: Regex) -> Self {
        Self { pattern: Some(pattern), ..Self::default() }
    }

    /// Finds a secret: all its places, also in JSON within JSON; or, if it may be an ordinary word elsewhere, those where
    /// a rule takes it for a secret. Masks stay, so `green` as a password must not cost all other texts this word.
    pub fn for_secret(secret: &str) -> Self {
        if !is_distinctive(secret) {
            return Self { word_secret: Some(secret.to_owned()), ..Self::default() };
        }
        let mut forms = vec![secret.to_owned()];
        for _ in 0..2 {
            forms.push(escape_json_string(forms.last().expect("the secret itself")));
        }
        forms.dedup();
        let forms: Vec<String> = forms.iter().rev().map(|form| regex::escape(form)).collect();
        let pattern = Regex::new(&forms.join("|")).expect("escaped texts are a pattern");
        Self::for_pattern(pattern)
    }

    /// The numbers of the entries.
    pub fn entry_numbers(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| entry.number).collect()
    }

    /// An entry with a text that no unit had.
    pub fn unfound_entry(&self) -> Option<u64> {
        let found = self.found.borrow();
        let mut unfound = self.entries.iter().enumerate().filter(|(at, entry)| {
            let has_text = !entry.content.is_empty() || !entry.arguments.is_empty();
            has_text && !found.contains(at)
        });
        unfound.next().map(|(_, entry)| entry.number)
    }

    /// Whether an entry has a text that was to be forgotten.
    pub fn matches_entry(&self, entry: &Entry) -> bool {
        let mut texts = vec![entry.content.clone()];
        entry.tool_input.iter().for_each(|input| collect_strings(input, &mut texts));
        let has_match = |pattern: &Regex| texts.iter().any(|text| pattern.is_match(text));
        let has_content = |forgotten: &EntryTexts| {
            forgotten.content.len() >= MIN_DISTINCT_TEXT
                && texts.iter().any(|text| text.contains(&forgotten.content))
        };
        self.pattern.as_ref().is_some_and(has_match)
            || self.entries.iter().any(has_content)
            || self.word_secret.as_ref().is_some_and(|secret| has_secret(entry, secret))
    }

    /// The parts of a unit to mask.
    pub fn find_parts(&self, unit: TextUnit<'_>) -> Vec<Range<usize>> {
        let Some(text) = DecodedUnit::decode(unit) else { return Vec::new() };
        let mut parts = Vec::new();
        if let Some(pattern) = &self.pattern {
            parts.extend(pattern.find_iter(&text.decoded).map(|found| found.range()));
        }
        let key = unit.key.and_then(|key| str::from_utf8(key).ok()).unwrap_or_default();
        if let Some(secret) = &self.word_secret {
            parts.extend(find_word_secret(key, &text.decoded, secret));
        }
        for (at, entry) in self.entries.iter().enumerate() {
            let own = entry.find_parts(&text.decoded, unit.line);
            if !own.is_empty() {
                self.found.borrow_mut().insert(at);
            }
            parts.extend(own);
        }
        let is_structural = STRUCTURAL_KEYS.contains(&key);
        parts.retain(|part| !part.is_empty());
        parts.retain(|part| !is_structural || part.len() >= MIN_DISTINCT_TEXT);
        let parts = parts.into_iter().map(|part| text.raw_range(part)).collect();
        join_overlapping(parts)
    }
}

impl EntryTexts {
    fn find_parts(&self, text: &str, line: &[u8]) -> Vec<Range<usize>> {
        let mut parts = find_text(text, &self.content);
        let is_own = || self.ids.iter().any(|id| memmem::find(line, id.as_bytes()).is_some());
        if !parts.is_empty() && self.content.len() < MIN_DISTINCT_TEXT && !is_own() {
            parts.clear();
        }
        for argument in &self.arguments {
            let found = find_text(text, argument);
            if !found.is_empty() && is_own() {
                parts.extend(found);
            }
        }
        parts
    }
}

/// Finds `wanted` in a text: as the whole text, as a part of it, or as a longer text that contains it.
fn find_text(text: &str, wanted: &str) -> Vec<Range<usize>> {
    let whole = || std::iter::once(0..text.len()).collect();
    if text == wanted {
        return whole();
    }
    if wanted.len() >= MIN_DISTINCT_TEXT {
        let escaped = escape_json_string(wanted);
        let forms = [wanted, &escaped];
        let forms = &forms[..if escaped == wanted { 1 } else { 2 }];
        let found = forms.iter().flat_map(|form| {
            memmem::find_iter(text.as_bytes(), form).map(|at| at..at + form.len())
        });
        let found: Vec<_> = found.collect();
        if !found.is_empty() {
            return found;
        }
    }
    let is_piece = text.len() >= MIN_DISTINCT_TEXT && wanted.contains(text);
    if is_piece { whole() } else { Vec::new() }
}

/// Finds a secret in the value of a field where a rule takes it for one.
fn find_word_secret(key: &str, text: &str, secret: &str) -> Vec<Range<usize>> {
    if !text.contains(secret) {
        return Vec::new();
    }
    let scanner = SecretScanner::configured();
    if text == secret && scanner.find_field_secret(key, text).is_some() {
        return std::iter::once(0..text.len()).collect();
    }
    let found = scanner.find_secrets(text.as_bytes(), SecretRuleSet::All).into_iter();
    found.map(|found| found.range).filter(|range| text.get(range.clone()) == Some(secret)).collect()
}

/// Whether a rule finds a secret in an entry.
fn has_secret(entry: &Entry, secret: &str) -> bool {
    let mut redactor = SecretRedactor::default();
    redactor.redact_entry(&mut entry.clone());
    redactor.take_found().iter().any(|found| found.text == secret)
}

/// The text as it is written in a JSON string.
fn escape_json_string(text: &str) -> String {
    let quoted = serde_json::to_string(text).expect("a string is JSON");
    quoted[1..quoted.len() - 1].to_owned()
}

fn collect_strings(value: &Value, strings: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.is_empty() => strings.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, strings)),
        Value::Object(fields) => fields.values().for_each(|field| collect_strings(field, strings)),
        _ => {}
    }
}

/// Joins ranges that overlap.
fn join_overlapping(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// A unit without its escapes.
struct DecodedUnit {
    decoded: String,
    /// For each byte of `decoded`, and its end, the offset in the unit; `None` if they are the same.
    offsets: Option<Vec<usize>>,
}

impl DecodedUnit {
    /// Decodes a unit; `None` if it is not text.
    fn decode(unit: TextUnit<'_>) -> Option<Self> {
        let text = str::from_utf8(unit.bytes).ok()?;
        if !unit.is_json || memchr::memchr(b'\\', unit.bytes).is_none() {
            return Some(Self { decoded: text.to_owned(), offsets: None });
        }
        let (mut decoded, mut offsets, mut at) = (String::new(), Vec::new(), 0);
        while at < text.len() {
            let (part, length) = decode_first(&text[at..])?;
            decoded.push(part);
            offsets.resize(decoded.len(), at);
            at += length;
        }
        offsets.push(text.len());
        Some(Self { decoded, offsets: Some(offsets) })
    }

    /// The range of the unit that holds a range of the decoded text.
    fn raw_range(&self, range: Range<usize>) -> Range<usize> {
        match &self.offsets {
            None => range,
            Some(offsets) => offsets[range.start]..offsets[range.end],
        }
    }
}

/// Decodes the first character of a JSON string. Returns the length of its escape too.
fn decode_first(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    if first != '\\' {
        return Some((first, first.len_utf8()));
    }
    let escape = text.get(1..)?.chars().next()?;
    let simple = match escape {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return decode_unicode(text),
        other => other,
    };
    Some((simple, 1 + escape.len_utf8()))
}

/// Decodes `\uXXXX`, or two of them for one character.
fn decode_unicode(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(0)?;
    match char::decode_utf16([first]).next()? {
        Ok(decoded) => Some((decoded, 6)),
        Err(_) => {
            let pair = unit(6).and_then(|second| char::decode_utf16([first, second]).next()?.ok());
            pair.map(|decoded| (decoded, 12)).or(Some((char::REPLACEMENT_CHARACTER, 6)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::entry::{EntryKind, Role};

    fn parts(finder: &ForgottenTextFinder, unit: &str) -> Vec<String> {
        let bytes = unit.as_bytes();
        let unit_of = TextUnit { bytes, is_json: true, key: Some(b"text"), line: bytes };
        let found = finder.find_parts(unit_of);
        found.into_iter().map(|part| unit[part].to_owned()).collect()
    }

    #[test]
    fn a_pattern_is_found_behind_escapes() {
        let finder = ForgottenTextFinder::for_pattern(Regex::new("k\u{e9}y-\\d+").unwrap());
        assert_eq!(
            parts(&finder, r"a\nb k\u00e9y-12 \ud83d\ude00 kéy-345\t"),
            [r"k\u00e9y-12", "kéy-345"]
        );
        assert!(parts(&finder, "nothing").is_empty());
    }

    #[test]
    fn a_secret_that_is_also_a_word_is_found_as_a_secret_only() {
        let finder = ForgottenTextFinder::for_secret("kiteflying");
        let text = "psql postgres://shop:kiteflying@db/shop, and skiteflying is kiteflying";
        let found = finder.find_parts(TextUnit {
            bytes: text.as_bytes(),
            is_json: true,
            key: Some(b"text"),
            line: text.as_bytes(),
        });
        assert_eq!((found.len(), found.first()), (1, Some(&(21..31))));
        assert!(parts(&finder, "the tests are kiteflying").is_empty());
        let field = |key: &str| {
            let (bytes, key) = (&b"kiteflying"[..], Some(key.as_bytes()));
            finder.find_parts(TextUnit { bytes, is_json: true, key, line: bytes }).len()
        };
        assert_eq!((field("password"), field("colour")), (1, 0));
        let entry = |text: &str| Entry::new(Role::User, EntryKind::Text, text);
        assert!(finder.matches_entry(&entry(text)));
        assert!(!finder.matches_entry(&entry("kiteflying is fun")));
        let finder = ForgottenTextFinder::for_secret("q7Xv2LmT9cR4");
        assert_eq!(parts(&finder, "it is q7Xv2LmT9cR4 or xq7Xv2LmT9cR4"), ["q7Xv2LmT9cR4"; 2]);
    }

    #[test]
    fn texts_of_an_entry_are_found_whole_inside_and_in_pieces() {
        let entry = Entry::new(Role::User, EntryKind::Text, "please use \"the long\" password");
        let finder = ForgottenTextFinder::for_entries([(3, &entry)]);
        assert_eq!(finder.unfound_entry(), Some(3));
        let escaped = r#"please use \"the long\" password"#;
        assert_eq!(parts(&finder, escaped), [escaped]);
        assert_eq!(parts(&finder, "please use"), [""; 0]);
        assert_eq!(parts(&finder, r#"use \"the long\" pass"#), [r#"use \"the long\" pass"#]);
        let nested = r#"{\"text\":\"please use \\\"the long\\\" password\"}"#;
        assert_eq!(parts(&finder, nested), [r#"please use \\\"the long\\\" password"#]);
        assert_eq!(finder.unfound_entry(), None);
        assert!(finder.matches_entry(&entry));
        assert!(!finder.matches_entry(&Entry::new(Role::User, EntryKind::Text, "[forgotten]")));
    }

    #[test]
    fn a_short_text_is_found_only_in_its_own_record() {
        let mut entry = Entry::new(Role::User, EntryKind::Text, "yes");
        entry.message_id = Some("msg_1".to_owned());
        let finder = ForgottenTextFinder::for_entries([(0, &entry)]);
        let find = |line: &str, key: &str| {
            let (bytes, line, key) = (&b"yes"[..], line.as_bytes(), Some(key.as_bytes()));
            finder.find_parts(TextUnit { bytes, is_json: true, key, line }).len()
        };
        assert_eq!(find(r#"{"id":"msg_1","text":"yes"}"#, "text"), 1);
        assert_eq!(find(r#"{"id":"msg_1","status":"yes"}"#, "status"), 0);
        assert_eq!(find(r#"{"id":"msg_2","text":"yes"}"#, "text"), 0);
    }
}
