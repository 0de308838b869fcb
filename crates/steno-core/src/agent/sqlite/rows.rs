//! A session that lives in a database, as JSON Lines: one for each row, and one for all that made the tables.
//!
//! A line's `of` names the slot that it fills. The last line of a slot counts, and one that is `gone` empties it: so a log
//! only ever grows, whatever is changed in the database, and what was there before stays in it.

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

/// The version of the log that this code writes and reads.
const VERSION: u64 = 1;

/// Rows of one table that belong to a session.
#[derive(Debug)]
pub(crate) struct Part {
    /// The table; it need not be there.
    pub(crate) table: &'static str,
    /// Which rows, as a condition in which `?1` is the session's id.
    pub(crate) rows: &'static str,
    /// Who else needs them.
    pub(crate) share: Share,
}

/// Who needs a row besides the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Share {
    /// Nobody: the row is the session's own.
    #[default]
    Own,
    /// Other sessions: it is put back where it is missing and never replaced.
    Shared,
    /// The whole database, such as the list of its migrations: it is put back only with a database that is gone.
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

    /// All rows of a table without which an agent does not take the database for its own.
    pub(crate) const fn whole(table: &'static str) -> Self {
        Self { table, rows: "true", share: Share::Whole }
    }
}

/// The line that says what is true of the database as a whole.
#[derive(Serialize, Deserialize)]
struct About {
    of: [String; 1],
    version: u64,
    user_version: i64,
    application_id: i64,
}

/// A line for a table, an index or a trigger.
#[derive(Serialize, Deserialize)]
struct Create {
    of: [String; 2],
    sql: String,
}

#[cfg(test)]
mod tests;
