//! Takes the fields of a JSON object one by one, matching names as Go does.

use super::run::TurnToolCall;
use steno_model::entry::EntryError;
use steno_model::json::{JsonStyle, Object, Value, format_go_float};
use steno_model::timestamp::Timestamp;

/// The fields of one object. A field of a wrong type is an error, is read as absent, and stays in
/// [`LenientFields::take_rest`].
pub(super) struct LenientFields {
    values: Object,
    /// Values that do not fit the type of their field.
    kept: Object,
    /// Type errors, one per field.
    pub(super) errors: Vec<EntryError>,
}

impl LenientFields {
    pub(super) fn new(object: Object) -> Self {
        Self { values: object, kept: Object::new(), errors: Vec::new() }
    }

    /// Takes the last field of this name in any case; `None` if it is `null`.
    fn take_value(&mut self, name: &str) -> Option<Value> {
        let mut last = None;
        while let Some(key) = self.find_key(name) {
            last = self.values.shift_remove(&key).or(last);
        }
        last.filter(|value| !value.is_null())
    }

    fn find_key(&self, name: &str) -> Option<String> {
        let mut keys = self.values.keys();
        keys.find(|key| key.eq_ignore_ascii_case(name)).cloned()
    }

    fn reject_value<T>(
        &mut self,
        field: &'static str,
        expected: &'static str,
        value: Value,
    ) -> Option<T> {
        self.errors.push(EntryError::WrongType { field, expected });
        self.kept.insert(field.to_owned(), value);
        None
    }

    /// Takes a text; empty if absent.
    pub(super) fn take_string(&mut self, name: &'static str) -> String {
        match self.take_value(name) {
            None => None,
            Some(Value::String(text)) => Some(text),
            Some(other) => self.reject_value(name, "a string", other),
        }
        .unwrap_or_default()
    }

    /// Takes a non-negative integer. A negative one counts as absent and is kept.
    pub(super) fn take_count(&mut self, name: &'static str) -> Option<u64> {
        let value = self.take_value(name)?;
        match value.as_u64() {
            Some(count) => Some(count),
            None if value.is_i64() => {
                self.kept.insert(name.to_owned(), value);
                None
            }
            None => self.reject_value(name, "a whole number", value),
        }
    }

    /// Takes a number; zero if absent.
    pub(super) fn take_float(&mut self, name: &'static str) -> f64 {
        match self.take_value(name) {
            None => None,
            Some(value) => match value.as_f64() {
                Some(number) => {
                    if format_go_float(number) != JsonStyle::COMPACT.print(&value) {
                        self.kept.insert(name.to_owned(), value);
                    }
                    Some(number)
                }
                None => self.reject_value(name, "a number", value),
            },
        }
        .unwrap_or_default()
    }

    /// Takes an object.
    pub(super) fn take_object(&mut self, name: &'static str) -> Option<Object> {
        match self.take_value(name)? {
            Value::Object(object) => Some(object),
            other => self.reject_value(name, "an object", other),
        }
    }

    /// Takes a time; `None` for Go's zero time.
    pub(super) fn take_time(&mut self, name: &'static str) -> Option<Timestamp> {
        let text = self.take_value(name)?;
        let parsed = text.as_str().and_then(|text| text.parse().ok());
        match parsed {
            Some(at) => Some(at).filter(|at: &Timestamp| at.wall().year() > 1),
            None => self.reject_value(name, "a timestamp", text),
        }
    }

    /// Takes the tool calls. Invalid ones are skipped.
    pub(super) fn take_tool_calls(&mut self, name: &'static str) -> Vec<TurnToolCall> {
        let items = match self.take_value(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => self.reject_value(name, "a list", other).unwrap_or_default(),
        };
        let mut calls = Vec::new();
        for item in items {
            let Value::Object(object) = item else {
                self.errors
                    .push(EntryError::WrongType { field: name, expected: "a list of objects" });
                continue;
            };
            let mut fields = LenientFields::new(object);
            calls.push(TurnToolCall::from_fields(&mut fields));
            self.errors.append(&mut fields.errors);
        }
        calls
    }

    /// Returns the fields that were not taken, and values that did not fit.
    pub(super) fn take_rest(&mut self) -> Object {
        let mut rest = std::mem::take(&mut self.values);
        rest.extend(std::mem::take(&mut self.kept));
        rest
    }
}
