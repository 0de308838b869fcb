//! Decides which rows of a database belong to a session: restoring one session must never replace rows of another.

use rusqlite::{Connection, params_from_iter};

use super::field::Field;
use super::table::{Table, quoted};
use crate::database_schema::{Part, Share};
use crate::sqlite::Schema;

/// What one session may change in a database.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The schemas of its agent.
    pub schemas: &'a [&'a Schema],
    /// The session id, if a database has several sessions.
    pub key: Option<&'a str>,
    /// Whether to replace its own rows that differ.
    pub force: bool,
}

impl Claim<'_> {
    /// Whether the row with this identity in the target belongs to this session alone.
    pub fn owns(
        &self,
        target: &Connection,
        table: &Table,
        identity: Vec<&Field>,
    ) -> rusqlite::Result<bool> {
        let name = quoted(&table.name);
        let row = table.condition(2);
        let key = Field::Text(self.key.unwrap_or_default().as_bytes().to_vec());
        for (schema, condition) in self.conditions(table) {
            let query = format!("SELECT count(*) FROM {name} WHERE {row} AND ({condition})");
            let mut statement = target.prepare_cached(&query)?;
            let parameters = [&key].into_iter().chain(identity.iter().copied());
            let found: i64 = statement.query_row(params_from_iter(parameters), |row| row.get(0))?;
            // A condition without the session id holds for all rows, so there must be no other session.
            let is_told_apart = condition.contains("?1");
            if found > 0 && (is_told_apart || self.is_alone(target, schema)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The schemas with this table, each with its SQL condition for a session's own rows.
    fn conditions(&self, table: &Table) -> Vec<(&Schema, String)> {
        let named = |part: &&Part| part.table == table.name && part.share == Share::Own;
        let mut conditions: Vec<(&Schema, String)> = Vec::new();
        for &schema in self.schemas {
            let parts = schema.parts.iter().filter(named);
            conditions.extend(parts.map(|part| (schema, part.rows.to_owned())));
        }
        if conditions.is_empty() {
            let owned = |column: &&str| table.columns.iter().any(|name| name == column);
            let owners = self.schemas.iter().filter_map(|schema| {
                Some((*schema, format!("{} = ?1", quoted(schema.owner.filter(owned)?))))
            });
            conditions.extend(owners.take(1));
        }
        conditions
    }

    fn is_alone(&self, target: &Connection, schema: &Schema) -> rusqlite::Result<bool> {
        let mut statement = target.prepare_cached(schema.sessions)?;
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
