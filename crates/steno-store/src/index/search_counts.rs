//! Counts all entries that match a query, by session and by what searches are narrowed down with.
//!
//! A search returns one hit for each text, and only the best ones. Here a text that several sessions share is a hit in
//! each of them, and the counts are of entries.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::search::{ENTRY_TIME_SQL, SearchCandidate, SearchRequest};
use super::stored_name::StoredName;
use super::{Index, IndexError, SearchHit};

/// How many entries are counted. Looking up more would be slow for a common word.
const MAX_COUNTED: usize = 5000;

/// The hits of a search, and the counts of all entries that match.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedSearch {
    /// The hits, best or newest first: one for each text of a session.
    pub hits: Vec<SearchHit>,
    /// All matching entries in groups.
    pub groups: Vec<MatchGroup>,
    /// Whether there are more entries than were counted.
    pub is_limited: bool,
}

/// Matching entries of one session that have role, tool and model in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchGroup {
    /// The agent.
    pub agent: String,
    /// The session's id.
    pub session: String,
    /// The project folder.
    pub project: Option<String>,
    /// The role.
    pub role: String,
    /// The tool of calls or results.
    pub tool: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// How many entries there are.
    pub entries: u64,
}

impl Index {
    /// Searches, and counts all entries that match.
    pub fn search_and_count(
        &self,
        search: &SearchRequest<'_>,
    ) -> Result<CountedSearch, IndexError> {
        let candidates = self.find_all_candidates(search)?;
        let groups = self.wrap_error(self.count_groups(search, &candidates, MAX_COUNTED + 1))?;
        let counted: u64 = groups.iter().map(|group| group.entries).sum();
        let best = search.sort_candidates(candidates);
        let hits = self.load_hits(&self.wrap_error(self.split_by_session(search, best))?)?;
        Ok(CountedSearch { hits, groups, is_limited: counted > MAX_COUNTED as u64 })
    }

    /// The best candidates, one for each session that has their text. Each is the newest entry of its session.
    fn split_by_session(
        &self,
        search: &SearchRequest<'_>,
        candidates: Vec<SearchCandidate>,
    ) -> rusqlite::Result<Vec<SearchCandidate>> {
        let (conditions, values) = search.filter.sql_conditions();
        let sql = format!(
            "SELECT entry.session, max(entry.number), {ENTRY_TIME_SQL} AS time, count(*)
             FROM entry INDEXED BY entry_text WHERE entry.text = ?1{conditions}
             GROUP BY entry.session ORDER BY time DESC"
        );
        let mut query = self.connection.prepare_cached(&sql)?;
        let mut split = Vec::new();
        for candidate in candidates {
            if split.len() >= search.limit {
                break;
            }
            if candidate.copies == 0 {
                split.push(candidate);
                continue;
            }
            let mut bound = values.clone();
            bound.insert(0, candidate.text.into());
            let rows = query.query_map(params_from_iter(bound), |row| {
                Ok(SearchCandidate {
                    session: row.get(0)?,
                    number: row.get(1)?,
                    time: row.get(2)?,
                    copies: row.get::<_, i64>(3)?.unsigned_abs().saturating_sub(1),
                    ..candidate.clone()
                })
            })?;
            for row in rows {
                split.push(row?);
            }
        }
        split.truncate(search.limit);
        Ok(split)
    }

    /// The matching entries in groups. A regular expression was already matched with the texts of the candidates.
    fn count_groups(
        &self,
        search: &SearchRequest<'_>,
        candidates: &[SearchCandidate],
        limit: usize,
    ) -> rusqlite::Result<Vec<MatchGroup>> {
        let (conditions, mut values) = search.filter.sql_conditions();
        let (tables, first): (_, Value) = if search.query.regex.is_some() {
            let texts: Vec<String> = candidates.iter().map(|one| one.text.to_string()).collect();
            let tables =
                "entry INDEXED BY entry_text WHERE entry.text IN (SELECT value FROM json_each(?1))";
            (tables, format!("[{}]", texts.join(",")).into())
        } else {
            let tables = "words CROSS JOIN entry INDEXED BY entry_text ON entry.text = words.rowid WHERE words MATCH ?1";
            (tables, search.query.match_expression.clone().into())
        };
        values.insert(0, first);
        let sql = format!(
            "SELECT session.agent, session.name, session.project, found.role, found.tool, found.model, count(*)
             FROM (SELECT entry.session AS session, entry.role AS role, entry.tool AS tool, entry.model AS model
                   FROM {tables}{conditions} LIMIT {limit}) AS found
             JOIN session ON session.id = found.session GROUP BY 1, 2, 3, 4, 5, 6"
        );
        let mut query = self.connection.prepare_cached(&sql)?;
        let groups = query.query_map(params_from_iter(values), |row| {
            Ok(MatchGroup {
                agent: row.get(0)?,
                session: row.get(1)?,
                project: row.get(2)?,
                role: row.get::<_, StoredName<_>>(3)?.0,
                tool: row.get(4)?,
                model: row.get(5)?,
                entries: row.get::<_, i64>(6)?.unsigned_abs(),
            })
        })?;
        groups.collect()
    }
}
