//! The vault: the session files of agents, kept verbatim.
//!
//! The crate knows no agent and no format. It prints nothing and reads no environment; paths, the clock and the schemas
//! of databases come in as arguments.

pub mod attributes;
pub mod compression;
pub mod database_schema;
mod database_snapshot;
mod format_error;
pub mod line_hash;
mod session_bundle;
mod session_file;
pub mod sqlite;
mod vault;

pub use database_schema::{
    DatabaseOrigin, DatabaseSchema, DatabaseSchemas, RowSelection, RowShare,
};
pub use format_error::FormatError;
pub use session_bundle::{ReadDetail, SessionBundle, SessionFingerprint};
pub use session_file::{MAX_DOCUMENT_SIZE, SessionFile, decompress_if_zstd, take_read_failures};
pub use vault::{
    AgentName, AgentNameError, SessionDir, Vault, commit, comparison, forget, gap, keep, notes,
    original_file, record, record_batch, record_cursor, recorded_file, recorder, restore,
    resumable, retry, sealed, tombstone, transfer, verify,
};
