//! Takes the fields of a JSON object in a store one by one, and checks them as leslie's schema does.

use std::str::FromStr;

use super::id::LeslieId;
use steno_model::json::{Object, Value};
use steno_model::timestamp::{Timestamp, TimestampZone};

/// A field with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at} is not {expected}")]
pub struct InvalidField {
    /// The field's path: the names of the fields that lead to it.
    pub at: String,
    /// A description of a valid value.
    pub expected: &'static str,
}

/// The remaining fields of one object, and its path.
pub(super) struct StrictFields {
    object: Object,
    at: String,
}

impl StrictFields {
    /// Starts with the fields of `value`, which is at the path `at`.
    pub(super) fn new(value: Value, at: impl Into<String>) -> Result<Self, InvalidField> {
        let at = at.into();
        match value {
            Value::Object(object) => Ok(Self { object, at }),
            _ => Err(InvalidField { at, expected: "an object" }),
        }
    }

    /// The path of a field.
    pub(super) fn field_path(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    pub(super) fn invalid_field(&self, name: &str, expected: &'static str) -> InvalidField {
        InvalidField { at: self.field_path(name), expected }
    }

    fn take_value(&mut self, name: &str) -> Value {
        self.object.shift_remove(name).unwrap_or(Value::Null)
    }

    /// Takes a text; it must not be empty.
    pub(super) fn take_text(&mut self, name: &str) -> Result<String, InvalidField> {
        match self.take_value(name) {
            Value::String(text) if !text.is_empty() => Ok(text),
            _ => Err(self.invalid_field(name, "a text")),
        }
    }

    /// Takes a text and parses it.
    pub(super) fn take_parsed<T: FromStr>(
        &mut self,
        name: &str,
        expected: &'static str,
    ) -> Result<T, InvalidField> {
        let text = self.take_text(name)?;
        text.parse().map_err(|_| self.invalid_field(name, expected))
    }

    /// Takes an id. `null` and the empty text, which leslie also writes, mean none.
    pub(super) fn take_optional_id(
        &mut self,
        name: &str,
    ) -> Result<Option<LeslieId>, InvalidField> {
        match self.take_value(name) {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) => {
                text.parse().map(Some).map_err(|_| self.invalid_field(name, "an id or null"))
            }
            _ => Err(self.invalid_field(name, "an id or null")),
        }
    }

    /// Takes a time, which must be in UTC.
    pub(super) fn take_time(&mut self, name: &str) -> Result<Timestamp, InvalidField> {
        let time: Timestamp = self.take_parsed(name, "a time")?;
        if time.zone() == TimestampZone::Utc {
            Ok(time)
        } else {
            Err(self.invalid_field(name, "a time in UTC"))
        }
    }

    /// Takes an optional text.
    pub(super) fn take_optional_text(
        &mut self,
        name: &str,
    ) -> Result<Option<String>, InvalidField> {
        match self.object.shift_remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid_field(name, "a text")),
        }
    }

    /// Takes a non-negative integer.
    pub(super) fn take_count(&mut self, name: &str) -> Result<usize, InvalidField> {
        let number = self.take_value(name).as_u64();
        let count = number.and_then(|number| usize::try_from(number).ok());
        count.ok_or_else(|| self.invalid_field(name, "a whole number"))
    }

    /// Takes an optional list of texts.
    pub(super) fn take_optional_texts(
        &mut self,
        name: &str,
    ) -> Result<Option<Vec<String>>, InvalidField> {
        if !self.object.contains_key(name) {
            return Ok(None);
        }
        let wrong = self.invalid_field(name, "a list of texts");
        let text = |item| match item {
            Value::String(text) => Ok(text),
            _ => Err(wrong.clone()),
        };
        match self.take_value(name) {
            Value::Array(items) => items.into_iter().map(text).collect::<Result<_, _>>().map(Some),
            _ => Err(wrong),
        }
    }

    /// Takes a list of ids.
    pub(super) fn take_ids(&mut self, name: &str) -> Result<Vec<LeslieId>, InvalidField> {
        let wrong = self.invalid_field(name, "a list of ids");
        let texts = self.take_optional_texts(name)?.ok_or_else(|| wrong.clone())?;
        texts.iter().map(|text| text.parse().map_err(|_| wrong.clone())).collect()
    }

    /// Takes the items of a list.
    pub(super) fn take_list(&mut self, name: &str) -> Result<Vec<Value>, InvalidField> {
        match self.take_value(name) {
            Value::Array(items) => Ok(items),
            _ => Err(self.invalid_field(name, "a list")),
        }
    }

    /// Takes an object.
    pub(super) fn take_fields(&mut self, name: &str) -> Result<StrictFields, InvalidField> {
        let value = self.take_value(name);
        StrictFields::new(value, self.field_path(name))
    }

    /// Takes an object with ids as keys and objects as values.
    pub(super) fn take_each(
        &mut self,
        name: &str,
    ) -> Result<Vec<(LeslieId, StrictFields)>, InvalidField> {
        let inner = self.take_fields(name)?;
        let at = inner.at;
        let item = |(key, value): (String, Value)| {
            let path = format!("{at}.{key}");
            let id =
                key.parse().map_err(|_| InvalidField { at: path.clone(), expected: "an id" })?;
            Ok((id, StrictFields::new(value, path)?))
        };
        inner.object.into_iter().map(item).collect()
    }

    /// Returns the fields that were not taken.
    pub(super) fn into_rest(self) -> Object {
        self.object
    }
}
