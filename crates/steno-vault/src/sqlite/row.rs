//! A database row with lenient access: columns may be missing, null or of another type.

use rusqlite::types::ValueRef;

use crate::session_file::MAX_DOCUMENT_SIZE;
use steno_model::json::{Object, Value};

/// One row.
pub struct DatabaseRow<'a> {
    row: &'a rusqlite::Row<'a>,
    has_names: bool,
}

impl<'a> DatabaseRow<'a> {
    pub(crate) fn new(row: &'a rusqlite::Row<'a>, has_names: bool) -> Self {
        Self { row, has_names }
    }

    /// A text or blob as bytes. `None` if it is too long to parse.
    pub fn bytes(&self, column: &str) -> Option<&[u8]> {
        match self.row.get_ref(column).ok()? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                Some(bytes).filter(|bytes| bytes.len() as u64 <= MAX_DOCUMENT_SIZE)
            }
            _ => None,
        }
    }

    /// A non-empty text.
    pub fn text(&self, column: &str) -> Option<String> {
        as_text(self.row.get_ref(column).ok()?).filter(|text| !text.is_empty())
    }

    /// An integer.
    pub fn integer(&self, column: &str) -> Option<i64> {
        match self.row.get_ref(column).ok()? {
            ValueRef::Integer(number) => Some(number),
            ValueRef::Real(number) => Some(number as i64),
            _ => None,
        }
    }

    /// A count: a non-negative integer.
    pub fn count(&self, column: &str) -> u64 {
        self.integer(column).and_then(|number| number.try_into().ok()).unwrap_or(0)
    }

    /// A number.
    pub fn float(&self, column: &str) -> Option<f64> {
        match self.row.get_ref(column).ok()? {
            ValueRef::Integer(number) => Some(number as f64),
            ValueRef::Real(number) => Some(number),
            _ => None,
        }
    }

    /// All columns with a value, except those in `known`. Empty if a column name is invalid UTF-8.
    pub fn other_columns(&self, known: &[&str]) -> Object {
        if !self.has_names {
            return Object::new();
        }
        let names = self.row.as_ref().column_names();
        // The view that hides long values adds a column `rowid`.
        let unknown = names.into_iter().filter(|name| !known.contains(name) && *name != "rowid");
        unknown.filter_map(|name| Some((name.to_owned(), self.json_value(name)?))).collect()
    }

    pub(crate) fn first_text(&self) -> Option<String> {
        as_text(self.row.get_ref(0).ok()?)
    }

    fn json_value(&self, column: &str) -> Option<Value> {
        match self.row.get_ref(column).ok()? {
            ValueRef::Integer(number) => Some(number.into()),
            ValueRef::Real(number) => Some(number.into()),
            other => as_text(other).filter(|text| !text.is_empty()).map(Value::String),
        }
    }
}

fn as_text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(_) | ValueRef::Null => None,
    }
}
