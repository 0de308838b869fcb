//! The fields of one JSON object of a store, taken out one by one and checked as leslie's schema checks them.

use std::str::FromStr;

use super::id::Id;
use crate::json::{Object, Value};
use crate::timestamp::{Timestamp, Zone};

/// What in a store is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at} is not {expected}")]
pub struct Invalid {
    /// Its place: the names of the fields that lead to it.
    pub at: String,
    /// What it should be.
    pub expected: &'static str,
}

/// The fields of the object at one place.
pub(super) struct Fields {
    object: Object,
    at: String,
}

impl Fields {
    /// The fields of `value`, which stands at the place `at`.
    pub(super) fn new(value: Value, at: impl Into<String>) -> Result<Self, Invalid> {
        let at = at.into();
        match value {
            Value::Object(object) => Ok(Self { object, at }),
            _ => Err(Invalid { at, expected: "an object" }),
        }
    }

    /// The place of a field.
    pub(super) fn place(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    pub(super) fn invalid(&self, name: &str, expected: &'static str) -> Invalid {
        Invalid { at: self.place(name), expected }
    }

    fn take(&mut self, name: &str) -> Value {
        self.object.shift_remove(name).unwrap_or(Value::Null)
    }

    /// A text that is not empty.
    pub(super) fn text(&mut self, name: &str) -> Result<String, Invalid> {
        match self.take(name) {
            Value::String(text) if !text.is_empty() => Ok(text),
            _ => Err(self.invalid(name, "a text")),
        }
    }

    /// What a text says, in words that `T` knows.
    pub(super) fn parsed<T: FromStr>(
        &mut self,
        name: &str,
        expected: &'static str,
    ) -> Result<T, Invalid> {
        let text = self.text(name)?;
        text.parse().map_err(|_| self.invalid(name, expected))
    }

    /// An id, or `null`; leslie also writes an empty text for none.
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

    /// A time that is stated in UTC.
    pub(super) fn time(&mut self, name: &str) -> Result<Timestamp, Invalid> {
        let time: Timestamp = self.parsed(name, "a time")?;
        if time.zone() == Zone::Utc { Ok(time) } else { Err(self.invalid(name, "a time in UTC")) }
    }

    /// A text that may be absent.
    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, Invalid> {
        match self.object.shift_remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(name, "a text")),
        }
    }

    /// A whole number.
    pub(super) fn count(&mut self, name: &str) -> Result<usize, Invalid> {
        let number = self.take(name).as_u64();
        let count = number.and_then(|number| usize::try_from(number).ok());
        count.ok_or_else(|| self.invalid(name, "a whole number"))
    }

    /// A list of texts; absent is `None`.
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

    /// A list of ids.
    pub(super) fn ids(&mut self, name: &str) -> Result<Vec<Id>, Invalid> {
        let wrong = self.invalid(name, "a list of ids");
        let texts = self.optional_texts(name)?.ok_or_else(|| wrong.clone())?;
        texts.iter().map(|text| text.parse().map_err(|_| wrong.clone())).collect()
    }

    /// The items of a list.
    pub(super) fn list(&mut self, name: &str) -> Result<Vec<Value>, Invalid> {
        match self.take(name) {
            Value::Array(items) => Ok(items),
            _ => Err(self.invalid(name, "a list")),
        }
    }

    /// The fields of an object.
    pub(super) fn fields(&mut self, name: &str) -> Result<Fields, Invalid> {
        let value = self.take(name);
        Fields::new(value, self.place(name))
    }

    /// The fields of each object in an object whose keys are ids.
    pub(super) fn each(&mut self, name: &str) -> Result<Vec<(Id, Fields)>, Invalid> {
        let inner = self.fields(name)?;
        let at = inner.at;
        let item = |(key, value): (String, Value)| {
            let place = format!("{at}.{key}");
            let id = key.parse().map_err(|_| Invalid { at: place.clone(), expected: "an id" })?;
            Ok((id, Fields::new(value, place)?))
        };
        inner.object.into_iter().map(item).collect()
    }

    /// What no call above has taken.
    pub(super) fn rest(self) -> Object {
        self.object
    }
}
