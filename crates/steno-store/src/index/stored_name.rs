//! Stores roles, kinds and the main source of entries as small numbers.
//!
//! Every entry repeats these names, in its row and in the index `entry_text`. A name that has no number, such as a role
//! that only one format has, is stored as text; the type of the value tells them apart.

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};

/// The names that have a number: their position. New names are appended.
const NUMBERED_NAMES: [&str; 13] = [
    "primary",
    "assistant",
    "tool_call",
    "tool_result",
    "text",
    "user",
    "tool",
    "thinking",
    "system",
    "notice",
    "compaction",
    "error",
    "other",
];

/// A name as a column of `entry` holds it.
pub(super) struct StoredName<T>(pub T);

impl<T: AsRef<str>> ToSql for StoredName<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let name = self.0.as_ref();
        Ok(match name_number(name) {
            Some(number) => number.into(),
            None => name.into(),
        })
    }
}

impl FromSql for StoredName<String> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let ValueRef::Integer(number) = value else {
            return String::column_result(value).map(Self);
        };
        let name = usize::try_from(number).ok().and_then(|number| NUMBERED_NAMES.get(number));
        name.map(|name| Self((*name).to_owned())).ok_or(FromSqlError::OutOfRange(number))
    }
}

/// A name as a parameter of a query.
pub(super) fn stored_value(name: &str) -> Value {
    name_number(name).map_or_else(|| name.to_owned().into(), Value::from)
}

/// A condition that a column of `entry` has this name, which must have a number.
pub(super) fn name_condition(column: &str, name: &str) -> String {
    let number = name_number(name).expect("the caller passes a numbered name");
    format!("{column} = {number}")
}

fn name_number(name: &str) -> Option<i64> {
    NUMBERED_NAMES.iter().position(|numbered| *numbered == name).map(|number| number as i64)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use steno_model::entry::{EntryKind, Role};

    use super::*;

    fn stored(name: &str) -> (String, String) {
        let connection = Connection::open_in_memory().unwrap();
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, StoredName<_>>(1)?.0));
        connection.query_row("SELECT typeof(?1), ?1", [StoredName(name)], read).unwrap()
    }

    #[test]
    fn names_come_back_and_only_foreign_ones_are_text() {
        for name in NUMBERED_NAMES {
            assert_eq!(stored(name), ("integer".to_owned(), name.to_owned()));
        }
        for name in ["moderator", "1", "", "subagent:7"] {
            assert_eq!(stored(name), ("text".to_owned(), name.to_owned()));
        }
    }

    #[test]
    fn every_kind_and_known_role_has_a_number() {
        use EntryKind::*;
        for kind in [Text, Thinking, ToolCall, ToolResult, Compaction, Error, Notice, Other] {
            assert!(name_number(kind.as_str()).is_some(), "{kind:?}");
        }
        for role in [Role::System, Role::User, Role::Assistant, Role::Tool] {
            assert!(name_number(role.as_str()).is_some(), "{role:?}");
        }
    }

    #[test]
    fn an_unknown_number_is_an_error() {
        let connection = Connection::open_in_memory().unwrap();
        let read = connection.query_row("SELECT 99", [], |row| row.get::<_, StoredName<String>>(0));
        assert!(read.is_err());
    }
}
