//! The row log of a session in a database: JSON Lines with one line per row, and lines for the table definitions.
//!
//! The field `of` names the slot that a line fills. The last line of a slot wins, and a line with `gone` empties it.
//! So the log is append-only and keeps old values, whatever changes in the database.

mod claim;
mod collect;
mod field;
mod merge;
mod replay;
mod slots;
pub(super) mod table;

use serde::{Deserialize, Serialize};

pub(crate) use claim::Claim;
pub(crate) use merge::{MergeError, Merged};
pub(crate) use replay::Replay;
pub(crate) use slots::{Slots, each_hash};

/// The version of the row log that this code reads and writes.
const VERSION: u64 = 1;

/// Rows of one table that belong to a session.
#[derive(Debug)]
pub(crate) struct Part {
    /// The table. It may be missing.
    pub(crate) table: &'static str,
    /// An SQL condition for the rows, with the session id as `?1`.
    pub(crate) rows: &'static str,
    /// Who else needs the rows.
    pub(crate) share: Share,
}

/// Who needs a row besides the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Share {
    /// Nobody: the row belongs to the session alone.
    #[default]
    Own,
    /// Other sessions: the row is restored if it is missing, and never replaced.
    Shared,
    /// The whole database, such as its list of migrations: the row is restored only with a missing database.
    Whole,
}

impl Share {
    fn is_own(&self) -> bool {
        *self == Share::Own
    }
}

impl Part {
    /// Rows of the session alone.
    pub(crate) const fn own(table: &'static str, rows: &'static str) -> Self {
        Self { table, rows, share: Share::Own }
    }

    /// Rows that other sessions need too.
    pub(crate) const fn shared(table: &'static str, rows: &'static str) -> Self {
        Self { table, rows, share: Share::Shared }
    }

    /// All rows of a table that the agent needs to accept the database.
    pub(crate) const fn whole(table: &'static str) -> Self {
        Self { table, rows: "true", share: Share::Whole }
    }
}

/// The line with facts about the whole database.
#[derive(Serialize, Deserialize)]
struct About {
    of: [String; 1],
    version: u64,
    user_version: i64,
    application_id: i64,
}

/// The line of a table, an index or a trigger.
#[derive(Serialize, Deserialize)]
struct Create {
    of: [String; 2],
    sql: String,
}

#[cfg(test)]
mod tests;
