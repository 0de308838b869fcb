//! A connection that parses each statement once.

use std::collections::HashMap;
use std::fmt;

use postgres::types::ToSql;
use postgres::{Client, Error, Row, Statement};

/// The values of a statement's parameters.
type StatementValues<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection and its prepared statements.
pub(super) struct PreparedClient {
    /// The connection, for what is run once.
    pub(super) client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl PreparedClient {
    pub(super) fn new(client: Client) -> Self {
        Self { client, statements: HashMap::new() }
    }

    fn prepare(&mut self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    pub(super) fn execute(
        &mut self,
        sql: &'static str,
        values: StatementValues<'_>,
    ) -> Result<u64, Error> {
        let statement = self.prepare(sql)?;
        self.client.execute(&statement, values)
    }

    pub(super) fn query(
        &mut self,
        sql: &'static str,
        values: StatementValues<'_>,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql)?;
        self.client.query(&statement, values)
    }

    pub(super) fn query_one(
        &mut self,
        sql: &'static str,
        values: StatementValues<'_>,
    ) -> Result<Row, Error> {
        let statement = self.prepare(sql)?;
        self.client.query_one(&statement, values)
    }

    pub(super) fn query_opt(
        &mut self,
        sql: &'static str,
        values: StatementValues<'_>,
    ) -> Result<Option<Row>, Error> {
        let statement = self.prepare(sql)?;
        self.client.query_opt(&statement, values)
    }
}

impl fmt::Debug for PreparedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedClient").finish_non_exhaustive()
    }
}
