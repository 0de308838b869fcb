//! Counts all entries that match a query, by session and by what searches are narrowed down with.
//!
//! A search returns one hit for each text, and only the best ones. Here a text that several sessions share is a hit in
//! each of them, and the counts are of entries.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use rusqlite::params_from_iter;
use rusqlite::types::{FromSql, Value, ValueRef};

use super::search::{ENTRY_TIME_SQL, SearchCandidate, SearchRequest};
use super::stored_name::StoredName;
use super::{Index, IndexError, SearchHit};

/// How many entries are looked up for their tools and models, which the index of texts does not have. Looking up all
/// would be slow for a common word.
pub const MAX_LOOKED_UP: usize = 5000;

/// How many hits are searched by relevance or time. The same for all numbers of sessions, so that their order is, too.
const MAX_BEST_HITS: usize = 100;

/// How many hits of one session are returned, so that a long session does not hide the others.
const MAX_SESSION_HITS: usize = 3;

/// The hits of a search, and the counts of all entries that match.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedSearch {
    /// The hits, best or newest first: one for each text of a session, and only the first texts of each session.
    pub hits: Vec<SearchHit>,
    /// All matching entries by session and role.
    pub groups: Vec<MatchGroup>,
    /// The matching entries by tool and model.
    pub tool_groups: Vec<ToolMatchGroup>,
    /// Whether `tool_groups` has only the first of many entries.
    pub has_more_tools: bool,
}

/// Matching entries of one session and role.
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
    /// How many entries there are.
    pub entries: u64,
}

/// Matching entries that have tool and model in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolMatchGroup {
    /// The tool of calls or results.
    pub tool: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// How many entries there are.
    pub entries: u64,
}

impl Index {
    /// Searches, and counts all entries that match. `limit` is the number of sessions. The first sessions and their
    /// order are the same with every limit.
    pub fn search_and_count(
        &self,
        search: &SearchRequest<'_>,
    ) -> Result<CountedSearch, IndexError> {
        let candidates =
            self.find_all_candidates(&SearchRequest { limit: MAX_BEST_HITS, ..search.clone() })?;
        let matches = MatchedEntries::new(search, &candidates);
        let groups = self.wrap_error(self.count_groups(&matches))?;
        let tool_groups = self.wrap_error(self.count_tools(&matches))?;
        let counted: u64 = groups.iter().map(|group| group.entries).sum();
        let best = search.sort_candidates(candidates);
        let mut found = self.wrap_error(self.split_by_session(search, best))?;
        let further = FurtherSessions { shown: session_ids(&found), all: count_sessions(&groups) };
        if search.query.regex.is_none() && further.are_wanted(search.limit) {
            found.extend(self.wrap_error(self.find_further(search, &matches, &further))?);
        }
        let hits = self.load_hits(&found)?;
        let has_more_tools = counted > MAX_LOOKED_UP as u64;
        Ok(CountedSearch { hits, groups, tool_groups, has_more_tools })
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
        let mut split: Vec<SearchCandidate> = Vec::new();
        let mut selected = SelectedHits { max_sessions: search.limit, hits: HashMap::new() };
        for candidate in candidates {
            if selected.is_full() && !selected.wants(candidate.session) {
                continue;
            }
            if candidate.copies == 0 {
                if selected.accept(candidate.session) {
                    split.push(candidate);
                }
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
                let row = row?;
                if selected.accept(row.session) {
                    split.push(row);
                }
            }
        }
        Ok(split)
    }

    /// The newest hits of sessions that have none among the best, the session with the newest hit first.
    fn find_further(
        &self,
        search: &SearchRequest<'_>,
        matches: &MatchedEntries,
        further: &FurtherSessions,
    ) -> rusqlite::Result<Vec<SearchCandidate>> {
        let sql = format!(
            "SELECT entry.text, entry.session, entry.number, {ENTRY_TIME_SQL} AS time FROM {}",
            matches.tables
        );
        let mut query = self.connection.prepare_cached(&sql)?;
        let mut rows = query.query(params_from_iter(&matches.values))?;
        let mut texts: HashMap<(i64, i64), SearchCandidate> = HashMap::new();
        while let Some(row) = rows.next()? {
            let (text, session) = (row.get(0)?, row.get(1)?);
            if further.shown.contains(&session) {
                continue;
            }
            let (number, time) = (row.get(2)?, row.get(3)?);
            let found = SearchCandidate { text, session, number, time, score: 0.0, copies: 0 };
            match texts.get_mut(&(session, text)) {
                Some(known) => known.merge_copy(found),
                None => _ = texts.insert((session, text), found),
            }
        }
        let mut newest: Vec<SearchCandidate> = texts.into_values().collect();
        newest.sort_by_key(|one| Reverse((one.time, one.session, one.number)));
        let max_sessions = search.limit - further.shown.len();
        let mut selected = SelectedHits { max_sessions, hits: HashMap::new() };
        newest.retain(|one| selected.accept(one.session));
        Ok(newest)
    }

    /// All matching entries by session and role, in the order of agents and sessions.
    fn count_groups(&self, matches: &MatchedEntries) -> rusqlite::Result<Vec<MatchGroup>> {
        let mut counts = self.count_roles(matches)?;
        let ids: Vec<String> = counts.keys().map(i64::to_string).collect();
        let mut query = self.connection.prepare_cached(
            "SELECT id, agent, name, project FROM session
             WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY agent, name",
        )?;
        let mut rows = query.query([format!("[{}]", ids.join(","))])?;
        let mut groups = Vec::new();
        while let Some(row) = rows.next()? {
            for (role, entries) in counts.remove(&row.get(0)?).unwrap_or_default() {
                groups.push(MatchGroup {
                    agent: row.get(1)?,
                    session: row.get(2)?,
                    project: row.get(3)?,
                    role: StoredName::column_result(ValueRef::from(&role))?.0,
                    entries,
                });
            }
        }
        Ok(groups)
    }

    /// The matching entries of each session by role. The index of texts has both, so that no entry is looked up.
    ///
    /// SQLite would sort all matching entries to group them, which takes longer than finding them.
    fn count_roles(
        &self,
        matches: &MatchedEntries,
    ) -> rusqlite::Result<HashMap<i64, Vec<(Value, u64)>>> {
        let sql = format!("SELECT entry.session, entry.role FROM {}", matches.tables);
        let mut query = self.connection.prepare_cached(&sql)?;
        let mut rows = query.query(params_from_iter(&matches.values))?;
        let mut counts: HashMap<i64, Vec<(Value, u64)>> = HashMap::new();
        while let Some(row) = rows.next()? {
            let role = row.get_ref(1)?;
            let roles = counts.entry(row.get(0)?).or_default();
            match roles.iter_mut().find(|(known, _)| ValueRef::from(known) == role) {
                Some((_, entries)) => *entries += 1,
                None => roles.push((Value::try_from(role)?, 1)),
            }
        }
        Ok(counts)
    }

    /// The first matching entries by tool and model.
    fn count_tools(&self, matches: &MatchedEntries) -> rusqlite::Result<Vec<ToolMatchGroup>> {
        let sql = format!(
            "SELECT tool, model, count(*) FROM (SELECT entry.tool AS tool, entry.model AS model
             FROM {} LIMIT {MAX_LOOKED_UP}) GROUP BY 1, 2",
            matches.tables
        );
        let mut query = self.connection.prepare_cached(&sql)?;
        let groups = query.query_map(params_from_iter(&matches.values), |row| {
            Ok(ToolMatchGroup {
                tool: row.get(0)?,
                model: row.get(1)?,
                entries: row.get::<_, i64>(2)?.unsigned_abs(),
            })
        })?;
        groups.collect()
    }
}

/// Which sessions the best hits are of, and how many sessions have matching entries.
struct FurtherSessions {
    shown: HashSet<i64>,
    all: usize,
}

impl FurtherSessions {
    /// Whether more sessions are wanted and there are more.
    fn are_wanted(&self, limit: usize) -> bool {
        self.shown.len() < limit.min(self.all)
    }
}

fn session_ids(found: &[SearchCandidate]) -> HashSet<i64> {
    found.iter().map(|one| one.session).collect()
}

fn count_sessions(groups: &[MatchGroup]) -> usize {
    groups.iter().map(|group| (&group.agent, &group.session)).collect::<HashSet<_>>().len()
}

/// How many hits of each session were selected.
struct SelectedHits {
    max_sessions: usize,
    hits: HashMap<i64, usize>,
}

impl SelectedHits {
    /// Whether no further session is selected.
    fn is_full(&self) -> bool {
        self.hits.len() >= self.max_sessions
    }

    /// Whether one more hit of a session is selected.
    fn wants(&self, session: i64) -> bool {
        self.hits.get(&session).map_or(!self.is_full(), |hits| *hits < MAX_SESSION_HITS)
    }

    /// Selects one more hit of a session. Returns whether it is wanted.
    fn accept(&mut self, session: i64) -> bool {
        let is_wanted = self.wants(session);
        if is_wanted {
            *self.hits.entry(session).or_default() += 1;
        }
        is_wanted
    }
}

/// The tables and conditions that select all matching entries.
pub(super) struct MatchedEntries {
    pub(super) tables: String,
    pub(super) values: Vec<Value>,
}

impl MatchedEntries {
    /// Selects the entries of a search. A regular expression was already matched with the texts of the candidates.
    pub(super) fn new(search: &SearchRequest<'_>, candidates: &[SearchCandidate]) -> Self {
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
        Self { tables: format!("{tables}{conditions}"), values }
    }
}
