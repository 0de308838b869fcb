//! How an agent's database is recognised, and which of its rows belong to a session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::database_snapshot::Snapshot;

/// By what a database is known, and how its sessions are listed.
#[derive(Debug)]
pub struct Schema {
    /// Tables, each with columns that it must have.
    pub tables: &'static [(&'static str, &'static [&'static str])],
    /// A query for the ids of all sessions, in their order.
    pub sessions: &'static str,
    /// Where the rows of one session are.
    pub parts: &'static [Part],
    /// The column by which any other table says to which session its rows belong.
    pub owner: Option<&'static str>,
}

/// The database in which a session was found, as it was then.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Its tables.
    pub schema: &'static Schema,
    // All sessions of a database are read from one copy, however long that takes.
    pub(crate) snapshot: Option<Arc<Snapshot>>,
}

/// Rows of one table that belong to a session.
#[derive(Debug)]
pub struct Part {
    /// The table; it need not be there.
    pub table: &'static str,
    /// Which rows, as a condition in which `?1` is the session's id.
    pub rows: &'static str,
    /// Who else needs them.
    pub share: Share,
}

/// Who needs a row besides the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Share {
    /// Nobody: the row is the session's own.
    #[default]
    Own,
    /// Other sessions: it is put back where it is missing and never replaced.
    Shared,
    /// The whole database, such as the list of its migrations: it is put back only with a database that is gone.
    Whole,
}

impl Share {
    pub(crate) fn is_own(&self) -> bool {
        *self == Share::Own
    }
}

impl Part {
    /// Rows of the session alone.
    pub const fn own(table: &'static str, rows: &'static str) -> Self {
        Self { table, rows, share: Share::Own }
    }

    /// Rows that other sessions need too.
    pub const fn shared(table: &'static str, rows: &'static str) -> Self {
        Self { table, rows, share: Share::Shared }
    }

    /// All rows of a table without which an agent does not take the database for its own.
    pub const fn whole(table: &'static str) -> Self {
        Self { table, rows: "true", share: Share::Whole }
    }
}
