//! Lossless conversion of SQLite values to JSON. A value that JSON cannot represent becomes an object.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde_json::json;

use steno_model::json::Value;

/// A value parsed from a row log line.
#[derive(Clone, Debug, PartialEq)]
pub enum RowValue {
    Null,
    Integer(i64),
    Real(f64),
    /// Text as bytes, because SQLite does not validate UTF-8.
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl RowValue {
    /// Parses the output of [`sqlite_to_json`].
    pub fn from_json(value: Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::String(text) => Some(Self::Text(text.into_bytes())),
            Value::Number(number) => {
                let text = number.to_string();
                let integer = text.parse().map(Self::Integer).ok();
                integer.or_else(|| text.parse().map(Self::Real).ok())
            }
            Value::Object(object) => {
                let (kind, value) = object.iter().next().filter(|_| object.len() == 1)?;
                let text = value.as_str()?;
                match kind.as_str() {
                    "text" => BASE64.decode(text).map(Self::Text).ok(),
                    "blob" => BASE64.decode(text).map(Self::Blob).ok(),
                    "real" => text.parse().map(Self::Real).ok(),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The value of a row.
    pub fn from_value_ref(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(bytes) => Self::Text(bytes.to_vec()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

impl ToSql for RowValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(bytes) => ValueRef::Text(bytes),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// The value as JSON.
pub(super) fn sqlite_to_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) if number.is_finite() => number.into(),
        ValueRef::Real(number) => json!({"real": number.to_string()}),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => json!({"text": BASE64.encode(bytes)}),
        },
        ValueRef::Blob(bytes) => json!({"blob": BASE64.encode(bytes)}),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(field: &RowValue) -> Option<RowValue> {
        let ToSqlOutput::Borrowed(value) = field.to_sql().unwrap() else { return None };
        let line = serde_json::to_string(&sqlite_to_json(value)).unwrap();
        RowValue::from_json(serde_json::from_str(&line).unwrap())
    }

    #[test]
    fn what_json_has_no_word_for_comes_back() {
        for field in [
            RowValue::Null,
            RowValue::Real(f64::INFINITY),
            RowValue::Real(f64::NEG_INFINITY),
            RowValue::Real(-0.0),
            RowValue::Real(5.0),
            RowValue::Text(vec![0xff, b'a', 0]),
            RowValue::Text(b"a\0\xe2\x80\xa8".to_vec()),
        ] {
            assert_eq!(round_trip(&field).as_ref(), Some(&field));
        }
        assert_eq!(RowValue::from_json(json!({"blob": "a", "text": "b"})), None);
        assert_eq!(RowValue::from_json(json!([1])), None);
    }

    proptest! {
        #[test]
        fn values_come_back(
            integer: i64,
            real in proptest::num::f64::NORMAL,
            bytes: Vec<u8>,
            text: String,
        ) {
            for field in [
                RowValue::Integer(integer),
                RowValue::Real(real),
                RowValue::Text(bytes.clone()),
                RowValue::Text(text.into_bytes()),
                RowValue::Blob(bytes),
            ] {
                prop_assert_eq!(round_trip(&field), Some(field));
            }
        }
    }
}
