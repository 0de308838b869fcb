//! Counts of sessions, tool calls and entries over time, for the entries that a filter selects.

use std::collections::HashMap;

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::stored_name::name_condition;
use super::{EntryFilter, Index, IndexError};

/// Counts of the selected entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityReport {
    /// The sessions with selected entries.
    pub sessions: Vec<SessionActivity>,
    /// Calls per tool, the most used first.
    pub tools: Vec<(String, u64)>,
    /// Entries per quarter of an hour, by its start in milliseconds since 1970, in order.
    pub quarter_hours: Vec<(i64, u64)>,
}

/// A session and its selected entries.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionActivity {
    /// The agent.
    pub agent: String,
    /// The project folder.
    pub project: Option<String>,
    /// How many of its entries are selected.
    pub entries: u64,
    /// How many of those a person wrote.
    pub prompts: u64,
}

impl Index {
    /// Counts the selected entries.
    pub fn count_activity(&self, filter: &EntryFilter) -> Result<ActivityReport, IndexError> {
        let sessions = format!(
            "SELECT session.agent, session.project, count(*), sum({} AND {})
            {{}} WHERE ?1 = ?1{{}} GROUP BY entry.session ORDER BY entry.session",
            name_condition("entry.role", "user"),
            name_condition("entry.kind", "text"),
        );
        let tools = format!(
            "SELECT entry.tool, count(*) AS calls {{}} WHERE entry.tool IS NOT NULL
            AND {} AND ?1 = ?1{{}} GROUP BY entry.tool ORDER BY calls DESC, 1",
            name_condition("entry.kind", "tool_call"),
        );
        let quarters =
            "SELECT coalesce(entry.time, session.started_at) / 900000 AS quarter, count(*)
            {} WHERE quarter IS NOT NULL AND ?1 = ?1{} GROUP BY quarter ORDER BY quarter";
        Ok(ActivityReport {
            sessions: self.query_filtered(&sessions, filter, |row| {
                let count = |at| row.get::<_, i64>(at).map(|count| count as u64);
                let (agent, project) = (row.get(0)?, row.get(1)?);
                Ok(SessionActivity { agent, project, entries: count(2)?, prompts: count(3)? })
            })?,
            tools: self.query_filtered(&tools, filter, |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
            })?,
            quarter_hours: self.query_filtered(quarters, filter, |row| {
                Ok((row.get::<_, i64>(0)? * 900_000, row.get::<_, i64>(1)? as u64))
            })?,
        })
    }

    /// How many entries of each session are failures, by agent and id. Sessions without failures are omitted.
    pub fn count_failures(&self) -> Result<HashMap<(String, String), u64>, IndexError> {
        let sql = "SELECT session.agent, session.name, count(*) FROM entry
            JOIN session ON session.id = entry.session WHERE entry.failed GROUP BY entry.session";
        let ask = || -> rusqlite::Result<_> {
            let mut ask = self.connection.prepare_cached(sql)?;
            let read = |row: &rusqlite::Row<'_>| {
                Ok(((row.get(0)?, row.get(1)?), row.get::<_, i64>(2)? as u64))
            };
            ask.query_map([], read)?.collect()
        };
        self.wrap_error(ask())
    }

    /// Runs a query template: the first `{}` becomes the tables, the second the filter's conditions.
    fn query_filtered<T>(
        &self,
        question: &str,
        filter: &EntryFilter,
        read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, IndexError> {
        let (conditions, mut values) = filter.sql_conditions();
        values.insert(0, Value::from(1));
        let tables = "FROM entry JOIN session ON session.id = entry.session";
        let sql = question.replacen("{}", tables, 1).replacen("{}", &conditions, 1);
        let ask = || -> rusqlite::Result<Vec<T>> {
            let mut ask = self.connection.prepare(&sql)?;
            ask.query_map(params_from_iter(values), read)?.collect()
        };
        self.wrap_error(ask())
    }
}
