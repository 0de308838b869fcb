//! The time of a line: a JSON number of seconds since the Unix epoch, which keeps its text.

use serde::Serialize;
use serde_json::Number;

use steno_model::entry::EntryError;
use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;

/// Seconds since the Unix epoch, negative before it. chibi writes integers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct UnixSecond(Number);

impl UnixSecond {
    /// Takes the time field of a record.
    pub(super) fn take_from(object: &mut Object) -> Result<Self, EntryError> {
        let field = "timestamp";
        match object.shift_remove(field) {
            None | Some(Value::Null) => Err(EntryError::MissingField(field)),
            Some(Value::Number(number)) => Ok(Self(number)),
            Some(_) => Err(EntryError::WrongType { field, expected: "a number" }),
        }
    }

    /// Converts a JSON number.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(Self(number.clone())),
            _ => None,
        }
    }

    /// The time in whole seconds; `None` if it is out of range.
    pub fn to_timestamp(&self) -> Option<Timestamp> {
        let floor = || self.0.as_f64().map(|second| second.floor() as i64);
        self.0.as_i64().or_else(floor).and_then(Timestamp::from_unix)
    }

    /// The number, unless it equals the time in whole seconds.
    pub(super) fn value_if_inexact(&self) -> Option<Value> {
        let whole = self.to_timestamp().map(|at| at.unix_seconds().to_string());
        (whole != Some(self.0.to_string())).then(|| Value::Number(self.0.clone()))
    }
}

impl Default for UnixSecond {
    fn default() -> Self {
        Self::from(0)
    }
}

impl From<i64> for UnixSecond {
    fn from(second: i64) -> Self {
        Self(second.into())
    }
}
