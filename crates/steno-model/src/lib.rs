//! The types that all parts of Steno share: entries and sessions, notes, usage, timestamps, problems, JSON output and
//! durable files.
//!
//! The crate knows no agent, no format and no vault. It does not read the environment; callers pass in all paths.

pub mod backup;
pub mod durable;
pub mod entry;
pub mod json;
pub mod lines;
pub mod moment;
pub mod name_hash;
pub mod note;
pub mod numbering;
pub mod problem;
pub mod prompt;
pub mod session;
pub mod step;
pub mod timestamp;
pub mod unique_id;
pub mod usage;
pub mod usage_tally;
pub mod varint;

pub use entry::{Entry, EntryKind, Role};
pub use numbering::EntryNumbering;
pub use problem::{Problem, ProblemList};
pub use session::{Session, SessionId, SessionStatus, SessionTotals, Transcript};
pub use timestamp::{Clock, Timestamp};
pub use usage::Usage;
