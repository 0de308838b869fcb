//! The types that every part of Steno shares: entries and sessions, notes, tokens, times, problems, JSON as it was
//! written, and files that survive a crash.
//!
//! The crate knows no agent, no format and no vault. It reads no environment; files are named by its callers.

pub mod backup;
pub mod durable;
pub mod entry;
pub mod json;
pub mod lines;
pub mod moment;
pub mod note;
pub mod numbering;
pub mod problem;
pub mod prompt;
pub mod session;
pub mod step;
pub mod sums;
pub mod timestamp;
pub mod usage;
pub mod varint;
