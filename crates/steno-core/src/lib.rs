//! The record of AI agent sessions: entries, the vault that stores their files verbatim, the index, and readers and
//! writers for every supported format.
//!
//! The crate is synchronous, prints nothing and does not read the environment. Callers pass in paths and the clock.

pub mod agent;
pub mod compare;
pub mod cost;
pub mod entry_filter;
pub mod index;
pub mod inspect;
pub mod join;
mod line_hash;
pub mod model_call_capture;
pub mod reader;
pub mod repository;
mod secret;

pub mod format;
pub mod thread;
pub mod traffic;
pub mod transcript;
pub mod vault;
pub mod view;

pub use steno_model::{
    backup, durable, entry, json, lines, moment, note, numbering, problem, prompt, session,
    timestamp, unique_id, usage, usage_tally,
};
use steno_model::{name_hash, step, varint};

pub use entry::{Entry, EntryKind, Role};
pub use numbering::EntryNumbering;
pub use problem::{Problem, ProblemList};
pub use session::{Session, SessionId, SessionStatus, SessionTotals, Transcript};
pub use steno_vault::{ReadDetail, SessionBundle, SessionFile, SessionFingerprint};
pub use timestamp::{Clock, Timestamp};
pub use usage::Usage;
