//! Takes the fields of a JSON object one by one, matching names as Go does.

use super::run::ToolCall;
use crate::entry::EntryError;
use crate::json::{Object, Style, Value, go_float};
use crate::timestamp::Timestamp;

/// The fields of one object. A field of a wrong type is an error, is read as absent, and stays in [`Fields::rest`].
pub(super) struct Fields {
    object: Object,
    /// Values that do not fit the type of their field.
    kept: Object,
    /// Type errors, one per field.
    pub(super) wrong: Vec<EntryError>,
}

impl Fields {
    pub(super) fn new(object: Object) -> Self {
        Self { object, kept: Object::new(), wrong: Vec::new() }
    }

    /// Takes the last field of this name in any case; `None` if it is `null`.
    fn take(&mut self, name: &str) -> Option<Value> {
        let mut last = None;
        while let Some(key) = self.key(name) {
            last = self.object.shift_remove(&key).or(last);
        }
        last.filter(|value| !value.is_null())
    }

    fn key(&self, name: &str) -> Option<String> {
        let mut keys = self.object.keys();
        keys.find(|key| key.eq_ignore_ascii_case(name)).cloned()
    }

    fn wrong<T>(&mut self, field: &'static str, expected: &'static str, value: Value) -> Option<T> {
        self.wrong.push(EntryError::WrongType { field, expected });
        self.kept.insert(field.to_owned(), value);
        None
    }

    /// Takes a text; empty if absent.
    pub(super) fn string(&mut self, name: &'static str) -> String {
        match self.take(name) {
            None => None,
            Some(Value::String(text)) => Some(text),
            Some(other) => self.wrong(name, "a string", other),
        }
        .unwrap_or_default()
    }

    /// Takes a non-negative integer. A negative one counts as absent and is kept.
    pub(super) fn count(&mut self, name: &'static str) -> Option<u64> {
        let value = self.take(name)?;
        match value.as_u64() {
            Some(count) => Some(count),
            None if value.is_i64() => {
                self.kept.insert(name.to_owned(), value);
                None
            }
            None => self.wrong(name, "a whole number", value),
        }
    }

    /// Takes a number; zero if absent.
    pub(super) fn float(&mut self, name: &'static str) -> f64 {
        match self.take(name) {
            None => None,
            Some(value) => match value.as_f64() {
                Some(number) => {
                    if go_float(number) != Style::COMPACT.print(&value) {
                        self.kept.insert(name.to_owned(), value);
                    }
                    Some(number)
                }
                None => self.wrong(name, "a number", value),
            },
        }
        .unwrap_or_default()
    }

    /// Takes an object.
    pub(super) fn object(&mut self, name: &'static str) -> Option<Object> {
        match self.take(name)? {
            Value::Object(object) => Some(object),
            other => self.wrong(name, "an object", other),
        }
    }

    /// Takes a time; `None` for Go's zero time.
    pub(super) fn time(&mut self, name: &'static str) -> Option<Timestamp> {
        let text = self.take(name)?;
        let parsed = text.as_str().and_then(|text| text.parse().ok());
        match parsed {
            Some(at) => Some(at).filter(|at: &Timestamp| at.wall().year() > 1),
            None => self.wrong(name, "a timestamp", text),
        }
    }

    /// Takes the tool calls. Invalid ones are skipped.
    pub(super) fn tool_calls(&mut self, name: &'static str) -> Vec<ToolCall> {
        let items = match self.take(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => self.wrong(name, "a list", other).unwrap_or_default(),
        };
        let mut calls = Vec::new();
        for item in items {
            let Value::Object(object) = item else {
                self.wrong
                    .push(EntryError::WrongType { field: name, expected: "a list of objects" });
                continue;
            };
            let mut fields = Fields::new(object);
            calls.push(ToolCall::take(&mut fields));
            self.wrong.append(&mut fields.wrong);
        }
        calls
    }

    /// Returns the fields that were not taken, and values that did not fit.
    pub(super) fn rest(&mut self) -> Object {
        let mut rest = std::mem::take(&mut self.object);
        rest.extend(std::mem::take(&mut self.kept));
        rest
    }
}
