//! Takes the fields of a JSON object in a store one by one, and checks them as leslie's schema does.

use std::str::FromStr;

use super::id::Id;
use crate::json::{Object, Value};
use crate::timestamp::{Timestamp, Zone};

/// A field with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at} is not {expected}")]
pub struct Invalid {
    /// The field's path: the names of the fields that lead to it.
    pub at: String,
    /// A description of a valid value.
    pub expected: &'static str,
}

/// The remaining fields of one object, and its path.
pub(super) struct Fields {
    object: Object,
    at: String,
}

impl Fields {
    /// Starts with the fields of `value`, which is at the path `at`.
    pub(super) fn new(value: Value, at: impl Into<String>) -> Result<Self, Invalid> {
        let at = at.into();
        match value {
            Value::Object(object) => Ok(Self { object, at }),
            _ => Err(Invalid { at, expected: "an object" }),
        }
    }

    /// The path of a field.
    pub(super) fn place(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    pub(super) fn invalid(&self, name: &str, expected: &'static str) -> Invalid {
        Invalid { at: self.place(name), expected }
    }

    fn take(&mut self, name: &str) -> Value {
        self.object.shift_remove(name).unwrap_or(Value::Null)
    }

    /// Takes a text; it must not be empty.
    pub(super) fn text(&mut self, name: &str) -> Result<String, Invalid> {
        match self.take(name) {
            Value::String(text) if !text.is_empty() => Ok(text),
            _ => Err(self.invalid(name, "a text")),
        }
    }

    /// Takes a text and parses it.
    pub(super) fn parsed<T: FromStr>(
        &mut self,
        name: &str,
        expected: &'static str,
    ) -> Result<T, Invalid> {
        let text = self.text(name)?;
        text.parse().map_err(|_| self.invalid(name, expected))
    }

    /// Takes an id. `null` and the empty text, which leslie also writes, mean none.
    pub(super) fn optional_id(&mut self, name: &str) -> Result<Option<Id>, Invalid> {
        match self.take(name) {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) => {
                text.parse().map(Some).map_err(|_| self.invalid(name, "an id or null"))
            }
            _ => Err(self.invalid(name, "an id or null")),
        }
    }

    /// Takes a time, which must be in UTC.
    pub(super) fn time(&mut self, name: &str) -> Result<Timestamp, Invalid> {
        let time: Timestamp = self.parsed(name, "a time")?;
        if time.zone() == Zone::Utc { Ok(time) } else { Err(self.invalid(name, "a time in UTC")) }
    }

    /// Takes an optional text.
    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, Invalid> {
        match self.object.shift_remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(name, "a text")),
        }
    }

    /// Takes a non-negative integer.
    pub(super) fn count(&mut self, name: &str) -> Result<usize, Invalid> {
        let number = self.take(name).as_u64();
        let count = number.and_then(|number| usize::try_from(number).ok());
        count.ok_or_else(|| self.invalid(name, "a whole number"))
    }

    /// Takes an optional list of texts.
    pub(super) fn optional_texts(&mut self, name: &str) -> Result<Option<Vec<String>>, Invalid> {
        if !self.object.contains_key(name) {
            return Ok(None);
        }
        let wrong = self.invalid(name, "a list of texts");
        let text = |item| match item {
            Value::String(text) => Ok(text),
            _ => Err(wrong.clone()),
        };
        match self.take(name) {
            Value::Array(items) => items.into_iter().map(text).collect::<Result<_, _>>().map(Some),
            _ => Err(wrong),
        }
    }

    /// Takes a list of ids.
    pub(super) fn ids(&mut self, name: &str) -> Result<Vec<Id>, Invalid> {
        let wrong = self.invalid(name, "a list of ids");
        let texts = self.optional_texts(name)?.ok_or_else(|| wrong.clone())?;
        texts.iter().map(|text| text.parse().map_err(|_| wrong.clone())).collect()
    }

    /// Takes the items of a list.
    pub(super) fn list(&mut self, name: &str) -> Result<Vec<Value>, Invalid> {
        match self.take(name) {
            Value::Array(items) => Ok(items),
            _ => Err(self.invalid(name, "a list")),
        }
    }

    /// Takes an object.
    pub(super) fn fields(&mut self, name: &str) -> Result<Fields, Invalid> {
        let value = self.take(name);
        Fields::new(value, self.place(name))
    }

    /// Takes an object with ids as keys and objects as values.
    pub(super) fn each(&mut self, name: &str) -> Result<Vec<(Id, Fields)>, Invalid> {
        let inner = self.fields(name)?;
        let at = inner.at;
        let item = |(key, value): (String, Value)| {
            let path = format!("{at}.{key}");
            let id = key.parse().map_err(|_| Invalid { at: path.clone(), expected: "an id" })?;
            Ok((id, Fields::new(value, path)?))
        };
        inner.object.into_iter().map(item).collect()
    }

    /// Returns the fields that were not taken.
    pub(super) fn rest(self) -> Object {
        self.object
    }
}
