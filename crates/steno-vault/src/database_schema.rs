//! How an agent's database is recognised, and which of its rows belong to a session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::database_snapshot::DatabaseSnapshot;

/// The schemas of an agent's databases; empty for an agent without databases.
pub type DatabaseSchemas = &'static [&'static DatabaseSchema];

/// Rows of one table that belong to a session.
#[derive(Debug)]
pub struct DatabaseSchema {
    /// Required tables, each with its required columns.
    pub tables: &'static [(&'static str, &'static [&'static str])],
    /// A query for the ids of all sessions, in order.
    pub session_query: &'static str,
    /// Which rows belong to one session.
    pub row_selections: &'static [RowSelection],
    /// The column with the session id in tables not listed above.
    pub owner_column: Option<&'static str>,
}

/// The database in which a session was found, as it was at that time.
#[derive(Clone, Debug)]
pub struct DatabaseOrigin {
    /// Its tables.
    pub schema: &'static DatabaseSchema,
    // All sessions of a database are read from one copy, however long that takes.
    pub(crate) snapshot: Option<Arc<DatabaseSnapshot>>,
}

/// Rows of one table that belong to a session.
#[derive(Debug)]
pub struct RowSelection {
    /// The table. It may be missing.
    pub table: &'static str,
    /// An SQL condition for the rows, with the session id as `?1`.
    pub rows: &'static str,
    /// Who else needs the rows.
    pub share: RowShare,
}

/// Who needs a row besides the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowShare {
    /// Nobody: the row belongs to the session alone.
    #[default]
    Own,
    /// Other sessions: the row is restored if it is missing, and never replaced.
    Shared,
    /// The whole database, such as its list of migrations: the row is restored only with a missing database.
    Whole,
}

impl RowShare {
    pub(crate) fn is_own(&self) -> bool {
        *self == RowShare::Own
    }
}

impl RowSelection {
    /// Rows of the session alone.
    pub const fn own(table: &'static str, rows: &'static str) -> Self {
        Self { table, rows, share: RowShare::Own }
    }

    /// Rows that other sessions need too.
    pub const fn shared(table: &'static str, rows: &'static str) -> Self {
        Self { table, rows, share: RowShare::Shared }
    }

    /// All rows of a table that the agent needs to accept the database.
    pub const fn whole(table: &'static str) -> Self {
        Self { table, rows: "true", share: RowShare::Whole }
    }
}
