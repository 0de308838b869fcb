//! Decides which rows of a database belong to a session: restoring one session must never replace rows of another.

use rusqlite::{Connection, params_from_iter};

use super::row_value::RowValue;
use super::table_layout::{TableLayout, quote_name};
use crate::database_schema::{RowSelection, RowShare};
use crate::sqlite::DatabaseSchema;

/// What one session may change in a database.
#[derive(Clone, Copy, Debug)]
pub struct RowClaim<'a> {
    /// The schemas of its agent.
    pub schemas: &'a [&'a DatabaseSchema],
    /// The session id, if a database has several sessions.
    pub key: Option<&'a str>,
    /// Whether to replace its own rows that differ.
    pub force: bool,
}

impl RowClaim<'_> {
    /// Whether the row with this identity in the target belongs to this session alone.
    pub fn owns_row(
        &self,
        target: &Connection,
        table: &TableLayout,
        identity: Vec<&RowValue>,
    ) -> rusqlite::Result<bool> {
        let name = quote_name(&table.name);
        let row = table.identity_condition(2);
        let key = RowValue::Text(self.key.unwrap_or_default().as_bytes().to_vec());
        for (schema, condition) in self.own_row_conditions(table) {
            let query = format!("SELECT count(*) FROM {name} WHERE {row} AND ({condition})");
            let mut statement = target.prepare_cached(&query)?;
            let parameters = [&key].into_iter().chain(identity.iter().copied());
            let found: i64 = statement.query_row(params_from_iter(parameters), |row| row.get(0))?;
            // A condition without the session id holds for all rows, so there must be no other session.
            let is_told_apart = condition.contains("?1");
            if found > 0 && (is_told_apart || self.is_only_session(target, schema)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The schemas with this table, each with its SQL condition for a session's own rows.
    fn own_row_conditions(&self, table: &TableLayout) -> Vec<(&DatabaseSchema, String)> {
        let named = |part: &&RowSelection| part.table == table.name && part.share == RowShare::Own;
        let mut conditions: Vec<(&DatabaseSchema, String)> = Vec::new();
        for &schema in self.schemas {
            let parts = schema.row_selections.iter().filter(named);
            conditions.extend(parts.map(|part| (schema, part.rows.to_owned())));
        }
        if conditions.is_empty() {
            let owned = |column: &&str| table.columns.iter().any(|name| name == column);
            let owners = self.schemas.iter().filter_map(|schema| {
                Some((*schema, format!("{} = ?1", quote_name(schema.owner_column.filter(owned)?))))
            });
            conditions.extend(owners.take(1));
        }
        conditions
    }

    fn is_only_session(
        &self,
        target: &Connection,
        schema: &DatabaseSchema,
    ) -> rusqlite::Result<bool> {
        let mut statement = target.prepare_cached(schema.session_query)?;
        let mut sessions = statement.query([])?;
        let mut others = 0;
        while let Some(session) = sessions.next()? {
            let id: Option<String> = session.get(0)?;
            others += u32::from(id.as_deref() != self.key);
        }
        // Without a key, the only session in the database is this one.
        Ok(others <= u32::from(self.key.is_none()))
    }
}
