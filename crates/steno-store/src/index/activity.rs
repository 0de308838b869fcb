//! Counts of sessions, tool calls and entries over time, for the entries that a filter selects.
//!
//! What a session copied from another one counts once; see `copied_entries`. Only the entries of a session are all of its
//! own, as in lists.

use std::collections::{BTreeMap, HashMap};

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::copied_entries::CopiedEntry;
use super::stored_name::name_condition;
use super::{EntryFilter, Index, IndexError};
use crate::cost::charge::QUARTER_HOUR_MS;

/// Counts of the selected entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityReport {
    /// The sessions with selected entries.
    pub sessions: Vec<SessionActivity>,
    /// Calls per tool, the most used first.
    pub tools: Vec<(String, u64)>,
    /// Entries per quarter of an hour, by its start in milliseconds since 1970, in order.
    pub quarter_hours: Vec<(i64, u64)>,
    /// How many of the sessions' entries are copies of other sessions' entries.
    pub copied_entries: u64,
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
    /// How many of those a person wrote, and no other session has.
    pub prompts: u64,
}

/// Numbers that are counted with copies, to be reduced by them.
struct CountsWithCopies {
    /// By row of the session, in order.
    sessions: Vec<(i64, SessionActivity)>,
    tools: HashMap<String, u64>,
    quarter_hours: BTreeMap<i64, u64>,
}

impl CountsWithCopies {
    /// Subtracts a copy, which is a call of `tool` if there is one.
    fn subtract(&mut self, copy: &CopiedEntry, tool: Option<&str>) {
        if let Some(calls) = tool.and_then(|tool| self.tools.get_mut(tool)) {
            *calls -= 1;
        }
        if let Some(entries) = self.quarter_hours.get_mut(&(copy.time / QUARTER_HOUR_MS)) {
            *entries -= 1;
        }
        let at = self.sessions.binary_search_by_key(&copy.session, |(row, _)| *row);
        if let (Ok(at), true) = (at, copy.is_prompt) {
            self.sessions[at].1.prompts -= 1;
        }
    }

    fn into_report(self, copied_entries: u64) -> ActivityReport {
        let mut tools: Vec<_> = self.tools.into_iter().filter(|(_, calls)| *calls > 0).collect();
        tools.sort_by(|(a, a_calls), (b, b_calls)| b_calls.cmp(a_calls).then_with(|| a.cmp(b)));
        let quarters = self.quarter_hours.into_iter().filter(|(_, entries)| *entries > 0);
        ActivityReport {
            sessions: self.sessions.into_iter().map(|(_, session)| session).collect(),
            tools,
            quarter_hours: quarters
                .map(|(quarter, entries)| (quarter * QUARTER_HOUR_MS, entries))
                .collect(),
            copied_entries,
        }
    }
}

impl Index {
    /// Counts the selected entries.
    pub fn count_activity(&self, filter: &EntryFilter) -> Result<ActivityReport, IndexError> {
        let mut counts = self.count_with_copies(filter)?;
        let mut subtract = || -> rusqlite::Result<u64> {
            let copies = self.find_copied_entries(filter)?;
            let mut tool_query = self
                .connection
                .prepare("SELECT tool FROM entry WHERE session = ?1 AND number = ?2")?;
            for copy in &copies {
                let tool: Option<String> = match copy.is_tool_call {
                    true => tool_query.query_row([copy.session, copy.number], |row| row.get(0))?,
                    false => None,
                };
                counts.subtract(copy, tool.as_deref());
            }
            Ok(copies.len() as u64)
        };
        let copied_entries = self.wrap_error(subtract())?;
        Ok(counts.into_report(copied_entries))
    }

    fn count_with_copies(&self, filter: &EntryFilter) -> Result<CountsWithCopies, IndexError> {
        let sessions = format!(
            "SELECT session.agent, session.project, count(*), sum({} AND {}), entry.session
            {{}} WHERE ?1 = ?1{{}} GROUP BY entry.session ORDER BY entry.session",
            name_condition("entry.role", "user"),
            name_condition("entry.kind", "text"),
        );
        let tools = format!(
            "SELECT entry.tool, count(*) {{}} WHERE entry.tool IS NOT NULL
            AND {} AND ?1 = ?1{{}} GROUP BY entry.tool",
            name_condition("entry.kind", "tool_call"),
        );
        let quarters = format!(
            "SELECT coalesce(entry.time, session.started_at) / {QUARTER_HOUR_MS} AS quarter, count(*)
            {{}} WHERE quarter IS NOT NULL AND ?1 = ?1{{}} GROUP BY quarter"
        );
        let count =
            |row: &Row<'_>, at: usize| row.get::<_, i64>(at).map(|count| count.unsigned_abs());
        Ok(CountsWithCopies {
            sessions: self.query_filtered(&sessions, filter, |row| {
                let (agent, project) = (row.get(0)?, row.get(1)?);
                let (entries, prompts) = (count(row, 2)?, count(row, 3)?);
                Ok((row.get(4)?, SessionActivity { agent, project, entries, prompts }))
            })?,
            tools: self.query_filtered(&tools, filter, |row| Ok((row.get(0)?, count(row, 1)?)))?,
            quarter_hours: self
                .query_filtered(&quarters, filter, |row| Ok((row.get(0)?, count(row, 1)?)))?,
        })
    }

    /// How many entries of each session are failures, by agent and id. Sessions without failures are omitted.
    pub fn count_failures(&self) -> Result<HashMap<(String, String), u64>, IndexError> {
        let sql = "SELECT session.agent, session.name, count(*) FROM entry
            JOIN session ON session.id = entry.session WHERE entry.failed GROUP BY entry.session";
        let ask = || -> rusqlite::Result<_> {
            let mut ask = self.connection.prepare_cached(sql)?;
            let read =
                |row: &Row<'_>| Ok(((row.get(0)?, row.get(1)?), row.get::<_, i64>(2)? as u64));
            ask.query_map([], read)?.collect()
        };
        self.wrap_error(ask())
    }

    /// Runs a query template: the first `{}` becomes the tables, the second the filter's conditions.
    fn query_filtered<T, C: FromIterator<T>>(
        &self,
        question: &str,
        filter: &EntryFilter,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C, IndexError> {
        let (conditions, mut values) = filter.sql_conditions();
        values.insert(0, Value::from(1));
        let tables = "FROM entry JOIN session ON session.id = entry.session";
        let sql = question.replacen("{}", tables, 1).replacen("{}", &conditions, 1);
        let ask = || -> rusqlite::Result<C> {
            let mut ask = self.connection.prepare(&sql)?;
            ask.query_map(params_from_iter(values), read)?.collect()
        };
        self.wrap_error(ask())
    }
}
