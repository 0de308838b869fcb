//! Lenient access to JSON fields and values.
//!
//! A field of an unexpected type counts as missing, because agents change their formats without notice.

use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;

/// A string field.
pub fn text_field<'a>(object: &'a Object, field: &str) -> Option<&'a str> {
    object.get(field)?.as_str()
}

/// A non-empty string field.
pub(crate) fn nonempty_text<'a>(record: &'a Value, field: &str) -> Option<&'a str> {
    record.get(field)?.as_str().filter(|text| !text.is_empty())
}

/// An object field.
pub(crate) fn object_field<'a>(object: &'a Object, field: &str) -> Option<&'a Object> {
    object.get(field)?.as_object()
}

/// The items of a list field. Empty if the field is not a list.
pub(crate) fn list_field<'a>(object: &'a Object, field: &str) -> &'a [Value] {
    object.get(field).map_or(&[], list_items)
}

/// A count field. 0 if the field is not a number.
pub(crate) fn count_field(object: &Object, field: &str) -> u64 {
    object.get(field).map_or(0, as_count)
}

/// A time field: ISO 8601, or milliseconds since the Unix epoch.
pub(crate) fn time_field(object: &Object, field: &str) -> Option<Timestamp> {
    parse_time(object.get(field)?)
}

/// The text of a string value.
pub(crate) fn owned_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The items of a list value. Empty for any other value.
pub(crate) fn list_items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A count, also if written as a float. Capped, so that adding hostile counts cannot overflow.
pub(crate) fn as_count(value: &Value) -> u64 {
    let float = || value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64);
    value.as_u64().or_else(float).unwrap_or(0).min(1 << 48)
}

/// Parses ISO 8601, or milliseconds since the Unix epoch.
pub(crate) fn parse_time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => text.parse().ok(),
        _ => timestamp_from_millis(
            value.as_i64().or_else(|| value.as_f64().map(|float| float as i64))?,
        ),
    }
}

/// The time `count` milliseconds after the Unix epoch.
pub(crate) fn timestamp_from_millis(count: i64) -> Option<Timestamp> {
    Some(Timestamp::from_instant(jiff::Timestamp::from_millisecond(count).ok()?, 3))
}

/// The time `count` seconds after the Unix epoch. Counts too large for seconds are taken as milliseconds.
pub(crate) fn timestamp_from_seconds(count: i64) -> Option<Timestamp> {
    if count.unsigned_abs() >= 100_000_000_000 {
        return timestamp_from_millis(count);
    }
    Timestamp::from_unix(count)
}

/// Parses a string that contains a JSON object or list. Other values are returned as they are.
pub(crate) fn unpack_json(value: &Value) -> Value {
    match value.as_str().map(serde_json::from_str) {
        Some(Ok(inner @ (Value::Object(_) | Value::Array(_)))) => inner,
        _ => value.clone(),
    }
}

/// A value as text: a string as it is, null as empty, anything else as JSON.
pub(crate) fn plain_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_may_be_floats() {
        let counts = [json!(3), json!(3.0), json!(-1), json!("3"), json!(null)];
        assert_eq!(counts.map(|value| as_count(&value)), [3, 3, 0, 0, 0]);
    }

    #[test]
    fn only_structures_are_unpacked() {
        assert_eq!(unpack_json(&json!(r#"{"a":1}"#)), json!({"a": 1}));
        assert_eq!(unpack_json(&json!("12")), json!("12"));
    }

    #[test]
    fn times_are_text_or_milliseconds() {
        let text = parse_time(&json!("2026-01-19T11:42:00.000Z"));
        assert!(text.is_some());
        assert_eq!(parse_time(&json!(1768822920000_u64)), text);
        assert_eq!(parse_time(&json!(1768822920000.0)), text);
        assert_eq!(parse_time(&json!(null)), None);
    }
}
