//! Typed access to the fields of a JSON object. Null counts as missing.

use uuid::Uuid;

use super::{EntryError, Usage};
use crate::json::{Object, Value};
use crate::timestamp::Timestamp;

/// Removes a string field. Fails if the field has another type.
pub fn take_string(object: &mut Object, field: &'static str) -> Result<Option<String>, EntryError> {
    string_field(field, object.shift_remove(field).unwrap_or_default())
}

/// Removes an integer field. Fails if the field has another type.
pub fn take_u64(object: &mut Object, field: &'static str) -> Result<Option<u64>, EntryError> {
    integer_field(field, object.shift_remove(field).unwrap_or_default())
}

/// Removes an object field. Fails if the field has another type.
pub fn take_object(object: &mut Object, field: &'static str) -> Result<Option<Object>, EntryError> {
    object_field(field, object.shift_remove(field).unwrap_or_default())
}

/// Removes a timestamp field. Fails if the field has another type.
pub fn take_timestamp(
    object: &mut Object,
    field: &'static str,
) -> Result<Option<Timestamp>, EntryError> {
    timestamp_field(field, object.shift_remove(field).unwrap_or_default())
}

pub(super) fn string_field(
    field: &'static str,
    value: Value,
) -> Result<Option<String>, EntryError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(EntryError::WrongType { field, expected: "a string" }),
    }
}

pub(super) fn integer_field(field: &'static str, value: Value) -> Result<Option<u64>, EntryError> {
    match value {
        Value::Null => Ok(None),
        value => value
            .as_u64()
            .map(Some)
            .ok_or(EntryError::WrongType { field, expected: "a whole number" }),
    }
}

pub(super) fn object_field(
    field: &'static str,
    value: Value,
) -> Result<Option<Object>, EntryError> {
    match value {
        Value::Null => Ok(None),
        Value::Object(inner) => Ok(Some(inner)),
        _ => Err(EntryError::WrongType { field, expected: "an object" }),
    }
}

pub(super) fn timestamp_field(
    field: &'static str,
    value: Value,
) -> Result<Option<Timestamp>, EntryError> {
    let wrong = EntryError::WrongType { field, expected: "a timestamp" };
    match value {
        Value::Null => Ok(None),
        Value::String(text) => text.parse().map(Some).map_err(|_| wrong),
        Value::Number(n) => n.as_i64().and_then(Timestamp::from_unix).map(Some).ok_or(wrong),
        _ => Err(wrong),
    }
}

pub(super) fn uuid_field(field: &'static str, value: Value) -> Result<Uuid, EntryError> {
    let wrong = EntryError::WrongType { field, expected: "a UUID" };
    match string_field(field, value)? {
        Some(id) => Uuid::parse_str(&id).map_err(|_| wrong),
        None => Ok(Uuid::nil()),
    }
}

pub(super) fn usage_field(field: &'static str, value: Value) -> Result<Option<Usage>, EntryError> {
    let wrong = EntryError::WrongType { field, expected: "an object of token counts" };
    match value {
        Value::Null => Ok(None),
        usage => serde_json::from_value(usage).map(Some).map_err(|_| wrong),
    }
}
