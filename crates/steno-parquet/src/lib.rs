//! Writes entries and usage of sessions as Parquet files, for DuckDB, Spark and other programs that query tables.
//!
//! - [`EntryTable`] has one row per entry, [`UsageTable`] one per API message.
//! - A file is written in row groups of bounded size, so its length does not decide how much memory is needed.
//!
//! The crate is apart because of its dependency, which the default build of Steno does without. It knows no session.

mod entry_table;
mod table_writer;
mod usage_table;

pub use entry_table::{EntryTable, EntryTableRow};
pub use table_writer::ParquetError;
pub use usage_table::{UsageTable, UsageTableRow};
