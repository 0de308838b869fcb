//! The table of entries.

use std::path::Path;

use crate::table_writer::CellValue::{Integer, Text};
use crate::table_writer::{ParquetError, TableWriter};

const ENTRY_SCHEMA: &str = "message entries {
    optional binary agent (UTF8);
    optional binary session (UTF8);
    optional binary project (UTF8);
    optional int64 number;
    optional binary id (UTF8);
    optional int64 time (TIMESTAMP_MILLIS);
    optional binary source (UTF8);
    optional binary role (UTF8);
    optional binary kind (UTF8);
    optional binary tool (UTF8);
    optional binary tool_call (UTF8);
    optional binary model (UTF8);
    optional binary message (UTF8);
    optional binary text (UTF8);
    optional binary input (UTF8);
}";

/// One entry of a session.
#[derive(Clone, Debug, Default)]
pub struct EntryTableRow<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The session's id.
    pub session: &'a str,
    /// The project folder.
    pub project: Option<&'a str>,
    /// The entry's number in the session, from 0.
    pub number: i64,
    /// The entry's own id.
    pub id: &'a str,
    /// When it was created, in milliseconds since 1970.
    pub time: Option<i64>,
    /// Who spoke: `primary`, `subagent:<id>` or `wire`.
    pub source: &'a str,
    /// The role.
    pub role: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The called tool.
    pub tool: Option<&'a str>,
    /// Links a tool's result to its call.
    pub tool_call: Option<&'a str>,
    /// The model.
    pub model: Option<&'a str>,
    /// The API message.
    pub message: Option<&'a str>,
    /// The text.
    pub text: &'a str,
    /// The arguments of a tool call, as JSON.
    pub input: Option<&'a str>,
}

/// A file with one row per entry.
#[derive(Debug)]
pub struct EntryTable(TableWriter);

impl EntryTable {
    /// Starts the file.
    pub fn create(path: &Path) -> Result<Self, ParquetError> {
        TableWriter::create(path, ENTRY_SCHEMA).map(Self)
    }

    /// Adds an entry.
    pub fn add_entry(&mut self, row: &EntryTableRow<'_>) -> Result<(), ParquetError> {
        self.0.add_row(&[
            Text(Some(row.agent)),
            Text(Some(row.session)),
            Text(row.project),
            Integer(Some(row.number)),
            Text(Some(row.id)),
            Integer(row.time),
            Text(Some(row.source)),
            Text(Some(row.role)),
            Text(Some(row.kind)),
            Text(row.tool),
            Text(row.tool_call),
            Text(row.model),
            Text(row.message),
            Text(Some(row.text)),
            Text(row.input),
        ])
    }

    /// Completes the file.
    pub fn finish(self) -> Result<(), ParquetError> {
        self.0.finish()
    }
}
