//! The vault: the session files of agents, kept verbatim.
//!
//! The crate knows no agent and no format. It prints nothing and reads no environment; paths, the clock and the schemas
//! of databases come in as arguments.

pub mod attributes;
pub mod compression;
pub mod database_schema;
mod database_snapshot;
mod format_error;
mod session_bundle;
mod session_file;
pub mod sqlite;

pub use database_schema::{
    DatabaseOrigin, DatabaseSchema, DatabaseSchemas, RowSelection, RowShare,
};
pub use format_error::FormatError;
pub use session_bundle::{ReadDetail, SessionBundle, SessionFingerprint};
pub use session_file::{MAX_DOCUMENT_SIZE, SessionFile, decompress_if_zstd, take_read_failures};
