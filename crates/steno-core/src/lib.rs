//! The record of what AI agents said and did: entries, the vault that keeps them, and every format in which
//! they are read and written.
//!
//! The crate is synchronous, prints nothing and reads no environment: paths and the clock come in as arguments.

pub mod agent;
pub mod backup;
pub mod compare;
mod compression;
pub mod cost;
pub mod durable;
pub mod entry;
pub mod index;
pub mod inspect;
pub mod json;
pub mod lines;
pub mod moment;
pub mod numbering;
pub mod problem;
pub mod repository;
mod secret;
pub mod session;
pub mod source;
mod step;
mod sums;
pub mod timestamp;
pub mod usage;
mod varint;

pub mod format;
pub mod thread;
pub mod traffic;
pub mod vault;
pub mod view;

pub use entry::{Entry, Kind, Role};
pub use numbering::Numbering;
pub use problem::{Problem, ProblemList};
pub use session::{Session, SessionId, Status, Totals, Transcript};
pub use source::{Bundle, Source};
pub use timestamp::{Clock, Timestamp};
pub use usage::Usage;
