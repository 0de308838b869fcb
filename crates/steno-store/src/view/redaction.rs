//! Redacts secrets in a transcript before it leaves the store.
//!
//! `steno_secrets` decides what a secret is. Every field is searched: texts, names and arguments of tools, keys of
//! JSON, paths, models, notes and titles. What was found anywhere in a session is then redacted everywhere in it.

mod cut_title;
mod entry_parts;
mod known_secrets;
mod redacted_lines;
mod searched_strings;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use steno_model::entry::{Entry, Role};
use steno_model::json::{Object, Value};
use steno_model::session::{Session, Transcript};
use steno_secrets::{SecretMatch, SecretRuleSet, SecretScanner};

use self::cut_title::{remove_cut_secrets, remove_cut_word};
use self::entry_parts::{in_parts, in_parts_mut};
use self::known_secrets::KnownSecrets;
pub use self::known_secrets::is_distinctive;
pub use self::redacted_lines::{redact_file, search_file, write_redacted_file};
use self::searched_strings::{SearchedName, SearchedStrings};

/// Longer lists of strings are not command lines.
const MAX_ARGUMENTS: usize = 100;

/// A secret, and the rule that found it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretText {
    /// The secret itself.
    pub text: String,
    /// The name of the rule.
    pub rule: &'static str,
}

/// Redacts secrets in texts, and remembers what was found.
#[derive(Debug)]
pub struct SecretRedactor {
    scanner: &'static SecretScanner,
    /// If set, only these are redacted.
    known: Option<Arc<KnownSecrets>>,
    searched: SearchedStrings,
    found: Vec<SecretText>,
}

impl Default for SecretRedactor {
    fn default() -> Self {
        Self::new(SecretScanner::configured(), None)
    }
}

impl SecretRedactor {
    fn new(scanner: &'static SecretScanner, known: Option<Arc<KnownSecrets>>) -> Self {
        // Known secrets are found faster than a long text is copied.
        let searched = match known {
            Some(_) => SearchedStrings::default(),
            None => SearchedStrings::with_long(),
        };
        Self { scanner, known, searched, found: Vec::new() }
    }

    /// A redactor that redacts only these, wherever they are. `None` if none of them can be told from ordinary words.
    pub(crate) fn for_known(secrets: &[SecretText]) -> Option<Self> {
        let known = KnownSecrets::new(secrets)?;
        Some(Self::new(SecretScanner::configured(), Some(Arc::new(known))))
    }

    /// A redactor of the same secrets, without what this one has found.
    pub(crate) fn duplicate(&self) -> Self {
        Self::new(self.scanner, self.known.clone())
    }

    /// How many secrets were redacted.
    pub fn count(&self) -> u64 {
        self.found.len() as u64
    }

    /// How many secrets each rule found.
    pub fn count_by_rule(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        self.found.iter().for_each(|secret| *counts.entry(secret.rule).or_default() += 1);
        counts
    }

    /// Removes and returns what was found so far, in order.
    pub fn take_found(&mut self) -> Vec<SecretText> {
        std::mem::take(&mut self.found)
    }

    /// Redacts all texts of a transcript.
    pub fn redact_transcript(&mut self, transcript: &mut Transcript) {
        let before = self.found.len();
        self.redact_parts(transcript);
        if let Some(known) = KnownSecrets::new(&self.found[before..]) {
            let mut again = Self::new(self.scanner, Some(Arc::new(known)));
            again.redact_parts(transcript);
            self.found.append(&mut again.found);
        }
        if let Some(title) = &mut transcript.session.title {
            remove_cut_secrets(title, &self.found[before..]);
        }
    }

    /// Counts the secrets of a transcript without changing it.
    pub fn search_transcript(&mut self, transcript: &Transcript) {
        self.redact_session(&mut transcript.session.clone());
        transcript.notes.iter().for_each(|note| drop(self.redact_text(&note.text).into_owned()));
        let scanner = self.scanner;
        let found = in_parts(&transcript.entries, |part: &[Entry]| {
            let mut redactor = Self::new(scanner, None);
            part.iter().for_each(|entry| redactor.redact_entry(&mut entry.clone()));
            redactor.found
        });
        self.found.extend(found);
    }

    fn redact_parts(&mut self, transcript: &mut Transcript) {
        self.redact_session(&mut transcript.session);
        transcript.notes.iter_mut().for_each(|note| self.redact_string(None, &mut note.text));
        let (scanner, known) = (self.scanner, &self.known);
        let found = in_parts_mut(&mut transcript.entries, |part: &mut [Entry]| {
            let mut redactor = Self::new(scanner, known.clone());
            part.iter_mut().for_each(|entry| redactor.redact_entry(entry));
            redactor.found
        });
        self.found.extend(found);
    }

    /// Redacts what is known of a session besides its entries. Its ids stay.
    pub fn redact_session(&mut self, session: &mut Session) {
        let Session { project, branch, title, stop_reason, models, thread, extra, .. } = session;
        for text in [project, branch, stop_reason, thread].into_iter().flatten() {
            self.redact_string(None, text);
        }
        if let Some(title) = title {
            *title = self.redact_title(title);
        }
        models.iter_mut().for_each(|model| self.redact_string(None, model));
        self.redact_object(extra);
    }

    /// Redacts the title of a session. If it was cut within a word, this word is removed: it can be a part of a secret.
    pub fn redact_title(&mut self, title: &str) -> String {
        let mut title = title.to_owned();
        self.redact_string(None, &mut title);
        remove_cut_word(&mut title);
        title
    }

    /// Redacts the texts of an entry.
    pub fn redact_entry(&mut self, entry: &mut Entry) {
        self.redact_string(None, &mut entry.content);
        let Entry { tool_name, tool_call_id, model, message_id, parent_id, .. } = entry;
        for text in [tool_name, tool_call_id, model, message_id, parent_id].into_iter().flatten() {
            self.redact_string(None, text);
        }
        self.redact_string(None, &mut entry.source);
        if let Role::Other(role) = &mut entry.role {
            self.redact_string(None, role);
        }
        if let Some(input) = &mut entry.tool_input {
            self.redact_value(None, input);
        }
        if let Some(metadata) = &mut entry.metadata {
            self.redact_object(metadata);
        }
        self.redact_object(&mut entry.extra);
    }

    /// Redacts a text.
    pub fn redact_text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let secrets = self.find_secrets(text);
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut redacted, mut end) = (String::with_capacity(text.len()), 0);
        for secret in secrets {
            let start = floor_char_boundary(text, secret.range.start).max(end);
            let secret_end = ceil_char_boundary(text, secret.range.end).max(start);
            redacted.push_str(&text[end..start]);
            self.push_marker(&mut redacted, &text[start..secret_end], secret.rule);
            end = secret_end;
        }
        redacted.push_str(&text[end..]);
        Cow::Owned(redacted)
    }

    /// Redacts a JSON value, whose name may make it a secret.
    pub fn redact_value(&mut self, name: Option<&str>, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_string(name, text),
            Value::Array(items) => self.redact_array(name, items),
            Value::Object(fields) => self.redact_object(fields),
            Value::Number(number) => {
                let digits = number.to_string();
                if let Some(rule) = name.and_then(|name| self.find_field_secret(name, &digits)) {
                    let mut marker = String::new();
                    self.push_marker(&mut marker, &digits, rule);
                    *value = Value::String(marker);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn redact_array(&mut self, name: Option<&str>, items: &mut [Value]) {
        items.iter_mut().for_each(|item| self.redact_value(name, item));
        let is_command =
            (2..=MAX_ARGUMENTS).contains(&items.len()) && items.iter().all(Value::is_string);
        if is_command && self.known.is_none() {
            self.redact_arguments(items);
        }
    }

    /// Redacts a command line that is given as a list: the option before an argument tells what it is.
    fn redact_arguments(&mut self, items: &mut [Value]) {
        let mut line = String::new();
        let mut starts = Vec::new();
        for item in items.iter() {
            starts.push(line.len());
            line.push_str(item.as_str().unwrap_or_default());
            line.push(' ');
        }
        for secret in self.find_secrets(&line).into_iter().rev() {
            let at = starts.partition_point(|start| *start <= secret.range.start).saturating_sub(1);
            let Value::String(argument) = &mut items[at] else { continue };
            let start = floor_char_boundary(argument, secret.range.start - starts[at]);
            let end =
                ceil_char_boundary(argument, (secret.range.end - starts[at]).min(argument.len()));
            let secret_text = argument[start..end.max(start)].to_owned();
            if secret_text.is_empty() || secret_text.contains("[redacted ") {
                continue;
            }
            let mut marker = String::new();
            self.push_marker(&mut marker, &secret_text, secret.rule);
            argument.replace_range(start..end, &marker);
        }
    }

    fn redact_object(&mut self, fields: &mut Object) {
        let pair_name = pair_name(fields);
        let mut renamed = false;
        for (name, value) in fields.iter_mut() {
            let is_pair_value = matches!(name.as_str(), "value" | "Value") && pair_name.is_some();
            let name = if is_pair_value { pair_name.as_deref() } else { Some(name.as_str()) };
            self.redact_value(name, value);
        }
        for name in fields.keys() {
            renamed |= self.search_name(name).has_secret;
        }
        if renamed {
            self.redact_keys(fields);
        }
    }

    /// Redacts the keys of an object. Keys that become equal are numbered.
    fn redact_keys(&mut self, fields: &mut Object) {
        let mut redacted = Object::new();
        for (name, value) in std::mem::take(fields) {
            let clean = self.redact_text(&name).into_owned();
            let mut unique = clean.clone();
            let mut number = 2;
            while redacted.contains_key(&unique) {
                unique = format!("{clean} {number}");
                number += 1;
            }
            redacted.insert(unique, value);
        }
        *fields = redacted;
    }

    fn redact_string(&mut self, name: Option<&str>, text: &mut String) {
        if let Some(rule) = name.and_then(|name| self.find_field_secret(name, text)) {
            let mut marker = String::new();
            // The form of a key says more than its name.
            let rule = self.find_secrets(text).first().map_or(rule, |secret| secret.rule);
            let secret = std::mem::take(text);
            self.push_marker(&mut marker, &secret, rule);
            *text = marker;
            return;
        }
        if self.searched.is_clean(text) {
            return;
        }
        let before = self.found.len();
        match self.redact_text(text) {
            Cow::Owned(clean) => *text = self.redact_json(text, before).unwrap_or(clean),
            // Escapes can hide a secret.
            Cow::Borrowed(_) => match self.redact_escaped_json(text, before) {
                Some(rendered) => *text = rendered,
                None => self.searched.remember_clean(text),
            },
        }
    }

    /// Redacts a text that is a JSON document with escapes, in which nothing was found.
    fn redact_escaped_json(&mut self, text: &str, found_before: usize) -> Option<String> {
        let has_escapes = may_be_json(text) && memchr::memchr(b'\\', text.as_bytes()).is_some();
        has_escapes.then(|| self.redact_json(text, found_before)).flatten()
    }

    /// Redacts a text that is a JSON document, so that it stays one. `found_before` is what had been found before the
    /// text was searched.
    fn redact_json(&mut self, text: &str, found_before: usize) -> Option<String> {
        if !may_be_json(text) {
            return None;
        }
        let mut document: Value = serde_json::from_str(text).ok()?;
        let found_in_text = self.found.split_off(found_before);
        self.redact_value(None, &mut document);
        if self.found.len() == found_before {
            self.found.extend(found_in_text);
            return None;
        }
        serde_json::to_string(&document).ok()
    }

    /// What is known of the name of a field.
    fn search_name(&mut self, name: &str) -> SearchedName {
        let (scanner, known) = (self.scanner, &self.known);
        self.searched.name(name, || SearchedName {
            has_secret: !find_in_text(scanner, known.as_deref(), name).is_empty(),
            may_name_secret: known.is_none() && scanner.may_name_secret(name),
        })
    }

    fn find_secrets(&self, text: &str) -> Vec<SecretMatch> {
        find_in_text(self.scanner, self.known.as_deref(), text)
    }

    fn find_field_secret(&mut self, name: &str, value: &str) -> Option<&'static str> {
        let may_be_secret = self.search_name(name).may_name_secret;
        may_be_secret.then(|| self.scanner.find_field_secret(name, value)).flatten()
    }

    fn push_marker(&mut self, redacted: &mut String, secret: &str, rule: &'static str) {
        redacted.push_str(&format!("[redacted {rule}]"));
        self.found.push(SecretText { text: secret.to_owned(), rule });
    }
}

/// What a scanner finds in a text, or only the known secrets in it.
fn find_in_text(
    scanner: &SecretScanner,
    known: Option<&KnownSecrets>,
    text: &str,
) -> Vec<SecretMatch> {
    match known {
        Some(known) => known.find_secrets(text),
        None => scanner.find_secrets(text.as_bytes(), SecretRuleSet::All),
    }
}

/// Whether a text starts as a JSON document.
fn may_be_json(text: &str) -> bool {
    text.trim_ascii_start().starts_with(['{', '['])
}

/// The name in an object such as `{"name": "TOKEN", "value": "..."}`.
fn pair_name(fields: &Object) -> Option<String> {
    let name =
        ["name", "key", "Name", "Key"].iter().find_map(|name| fields.get(*name)?.as_str())?;
    (fields.contains_key("value") || fields.contains_key("Value")).then(|| name.to_owned())
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceil_char_boundary(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}
