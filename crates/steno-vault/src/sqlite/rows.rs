//! A session that lives in a database, as JSON Lines: one for each row, and one for all that made the tables.
//!
//! A line's `of` names the slot that it fills. The last line of a slot counts, and one that is `gone` empties it: so a
//! log only ever grows, whatever is changed in the database, and what was there before stays in it.

mod claim;
mod collect;
mod merge;
mod replay;
mod row_value;
mod slots;
pub mod table_layout;

use serde::{Deserialize, Serialize};

pub use claim::RowClaim;
pub use collect::RowLogLine;
pub use merge::{MergeCounts, MergeError};
pub use replay::RowLogReplay;
pub use slots::{RowLogSlots, for_each_line_hash};

/// The version of the row log that this code reads and writes.
const ROW_LOG_VERSION: u64 = 1;

/// The line that says what is true of the database as a whole.
#[derive(Serialize, Deserialize)]
struct DatabaseLine {
    of: [String; 1],
    version: u64,
    user_version: i64,
    application_id: i64,
}

/// A line for a table, an index or a trigger.
#[derive(Serialize, Deserialize)]
struct CreateLine {
    of: [String; 2],
    sql: String,
}

#[cfg(test)]
mod tests;
