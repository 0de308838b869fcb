//! Counts the entries that match a query over time, for a chart of words.
//!
//! What a session copied from another one counts once; see `copied_entries`.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::copied_entries::EntryIdentity;
use super::search::{ENTRY_TIME_SQL, SearchRequest};
use super::search_counts::MatchedEntries;
use super::{EntryFilter, Index, IndexError};
use crate::cost::charge::QUARTER_HOUR_MS;

/// Entries over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchTrend {
    /// How many entries there are.
    pub entries: u64,
    /// How many sessions have one of them.
    pub sessions: u64,
    /// Entries per quarter of an hour, by its start in milliseconds since 1970, in order. An entry without a time has that
    /// of its session's start; one without either is missing.
    pub quarter_hours: Vec<(i64, u64)>,
}

impl Index {
    /// Counts all entries that match a query. Its order and limit have no effect.
    pub fn count_matches_over_time(
        &self,
        search: &SearchRequest<'_>,
    ) -> Result<MatchTrend, IndexError> {
        let candidates = match search.query.is_regex() {
            true => self.find_all_candidates(search)?,
            false => Vec::new(),
        };
        let MatchedEntries { tables, values } = MatchedEntries::new(search, &candidates);
        self.wrap_error(self.count_over_time(&tables, values))
    }

    /// Counts all entries that a filter selects and that have a text.
    pub fn count_entries_over_time(&self, filter: &EntryFilter) -> Result<MatchTrend, IndexError> {
        let (conditions, mut values) = filter.sql_conditions();
        values.insert(0, Value::from(1));
        let tables = format!(
            "entry INDEXED BY entry_text WHERE ?1 = ?1 AND entry.text IS NOT NULL{conditions}"
        );
        self.wrap_error(self.count_over_time(&tables, values))
    }

    /// The index of texts has all columns and this order.
    fn count_over_time(&self, tables: &str, values: Vec<Value>) -> rusqlite::Result<MatchTrend> {
        let sql = format!(
            "SELECT entry.text, entry.time, entry.role, entry.kind, entry.session, {ENTRY_TIME_SQL} FROM {tables}
             ORDER BY entry.text, entry.time, entry.role, entry.kind, entry.failed, entry.session"
        );
        let mut query = self.connection.prepare_cached(&sql)?;
        let mut rows = query.query(params_from_iter(values))?;
        let mut counter = MatchCounter::default();
        while let Some(row) = rows.next()? {
            counter.add_row(row)?;
        }
        Ok(counter.into_trend())
    }
}

#[derive(Default)]
struct MatchCounter {
    entries: u64,
    sessions: BTreeSet<i64>,
    quarters: BTreeMap<i64, u64>,
    /// The last entry, and the session that has it.
    original: Option<(EntryIdentity, i64)>,
}

impl MatchCounter {
    fn add_row(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let session = row.get(4)?;
        self.sessions.insert(session);
        if let Some(identity) = EntryIdentity::from_row(row)? {
            match &self.original {
                Some((same, owner)) if *same == identity && *owner != session => return Ok(()),
                Some((same, _)) if *same == identity => {}
                _ => self.original = Some((identity, session)),
            }
        }
        self.entries += 1;
        if let Some(at) = row.get::<_, Option<i64>>(5)? {
            *self.quarters.entry(at.div_euclid(QUARTER_HOUR_MS)).or_default() += 1;
        }
        Ok(())
    }

    fn into_trend(self) -> MatchTrend {
        let by_start = |(quarter, count)| (quarter * QUARTER_HOUR_MS, count);
        MatchTrend {
            entries: self.entries,
            sessions: self.sessions.len() as u64,
            quarter_hours: self.quarters.into_iter().map(by_start).collect(),
        }
    }
}
