//! The table of tokens and costs.

use std::path::Path;

use crate::table_writer::CellValue::{Integer, Number, Text};
use crate::table_writer::{ParquetError, TableWriter};

const USAGE_SCHEMA: &str = "message usage {
    optional binary agent (UTF8);
    optional binary session (UTF8);
    optional binary project (UTF8);
    optional binary thread (UTF8);
    optional int64 time (TIMESTAMP_MILLIS);
    optional binary model (UTF8);
    optional int64 input;
    optional int64 cache_read;
    optional int64 cache_write;
    optional int64 cache_write_5m;
    optional int64 cache_write_1h;
    optional int64 output;
    optional int64 reasoning;
    optional double cost;
}";

/// The usage of one API message, or what a session reports beyond its messages.
#[derive(Clone, Debug, Default)]
pub struct UsageTableRow<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The session that the message counts for.
    pub session: &'a str,
    /// The project folder.
    pub project: Option<&'a str>,
    /// The thread.
    pub thread: Option<&'a str>,
    /// The time, in milliseconds since 1970.
    pub time: Option<i64>,
    /// The model.
    pub model: Option<&'a str>,
    /// Tokens: input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning.
    pub tokens: [i64; 7],
    /// The cost in dollars; `None` if the price is unknown.
    pub cost: Option<f64>,
}

/// A file with one row per API message.
#[derive(Debug)]
pub struct UsageTable(TableWriter);

impl UsageTable {
    /// Starts the file.
    pub fn create(path: &Path) -> Result<Self, ParquetError> {
        TableWriter::create(path, USAGE_SCHEMA).map(Self)
    }

    /// Adds the usage of a message.
    pub fn add_usage(&mut self, row: &UsageTableRow<'_>) -> Result<(), ParquetError> {
        let [input, cache_read, cache_write, write_5m, write_1h, output, reasoning] = row.tokens;
        self.0.add_row(&[
            Text(Some(row.agent)),
            Text(Some(row.session)),
            Text(row.project),
            Text(row.thread),
            Integer(row.time),
            Text(row.model),
            Integer(Some(input)),
            Integer(Some(cache_read)),
            Integer(Some(cache_write)),
            Integer(Some(write_5m)),
            Integer(Some(write_1h)),
            Integer(Some(output)),
            Integer(Some(reasoning)),
            Number(row.cost),
        ])
    }

    /// Completes the file.
    pub fn finish(self) -> Result<(), ParquetError> {
        self.0.finish()
    }
}
