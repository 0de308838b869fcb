//! Finds entries: by words, ranked by relevance and age, or by a regular expression.

use std::cmp::Ordering;
use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};

use super::query::SearchQuery;
use super::ranking::{QueryRanking, RELEVANCE_SQL};
use super::stored_name::{StoredName, stored_value};
use super::{Index, IndexError, text_blocks};
use crate::entry_filter::EntryFilter;
use steno_model::entry::EntryKind;
use steno_model::session::SessionId;
use steno_model::timestamp::Timestamp;

/// How many of the newest matches are ranked by relevance. More would be too slow.
const MAX_RANKED: usize = 400;

/// The age in milliseconds at which the bonus for a new match has halved.
const FRESHNESS_MS: f64 = 14.0 * 86_400_000.0;

/// A search request.
#[derive(Clone, Debug)]
pub struct SearchRequest<'a> {
    /// The query.
    pub query: &'a SearchQuery,
    /// Which entries to search.
    pub filter: EntryFilter,
    /// The order of the hits.
    pub order: SearchOrder,
    /// Maximum number of hits; of sessions, if all matches are counted.
    pub limit: usize,
    /// The current time.
    pub now: Timestamp,
}

/// The order of the hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchOrder {
    /// The best first; newer entries score higher.
    Relevance,
    /// The newest first.
    Time,
}

/// A found entry.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: String,
    /// The project folder.
    pub project: Option<String>,
    /// The session's title.
    pub title: Option<String>,
    /// The entry's number in the session, from 0.
    pub number: u64,
    /// When the entry was created, in UTC.
    pub time: Option<Timestamp>,
    /// The role.
    pub role: String,
    /// The kind of entry.
    pub kind: EntryKind,
    /// The tool of a call or result.
    pub tool: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// `primary` or `subagent:<id>`.
    pub source: String,
    /// How many further entries have the same text.
    pub copies: u64,
    /// The text.
    pub text: String,
}

/// A possible hit.
#[derive(Clone, Debug)]
pub(super) struct SearchCandidate {
    pub(super) text: i64,
    pub(super) session: i64,
    pub(super) number: i64,
    pub(super) time: Option<i64>,
    pub(super) score: f64,
    pub(super) copies: u64,
}

impl Index {
    /// The hits, best or newest first.
    pub fn search(&self, search: &SearchRequest<'_>) -> Result<Vec<SearchHit>, IndexError> {
        let mut candidates = search.sort_candidates(self.find_all_candidates(search)?);
        candidates.truncate(search.limit);
        self.load_hits(&candidates)
    }

    /// The entries that may be hits, in no order.
    pub(super) fn find_all_candidates(
        &self,
        search: &SearchRequest<'_>,
    ) -> Result<Vec<SearchCandidate>, IndexError> {
        match &search.query.regex {
            Some(regex) => self.scan_texts(search, regex),
            None => self.find_candidates(search),
        }
    }

    /// Loads the hits of candidates, in their order.
    pub(super) fn load_hits(
        &self,
        candidates: &[SearchCandidate],
    ) -> Result<Vec<SearchHit>, IndexError> {
        let hits = candidates.iter().map(|candidate| self.load_hit(candidate));
        Ok(hits.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The newest matches of the query's words, one per text.
    fn find_candidates(
        &self,
        search: &SearchRequest<'_>,
    ) -> Result<Vec<SearchCandidate>, IndexError> {
        let (conditions, mut values) = search.filter.sql_conditions();
        let ranked = search.order == SearchOrder::Relevance;
        let ranking =
            if ranked { self.choose_ranking(search.query)? } else { QueryRanking::Unranked };
        let relevance = if ranking == QueryRanking::ByAll { RELEVANCE_SQL } else { "0.0" };
        let order = if ranked { "words.rowid DESC" } else { "time DESC" };
        let limit = search.limit.saturating_mul(4);
        let limit = if ranked { limit.max(MAX_RANKED) } else { limit };
        // The index `entry_text` covers all columns used here. A common word has too many entries to look up each row.
        let sql = format!(
            "SELECT words.rowid, {relevance}, entry.session, entry.number, {ENTRY_TIME_SQL} AS time, entry.kind
             FROM words CROSS JOIN entry INDEXED BY entry_text ON entry.text = words.rowid
             WHERE words MATCH ?1{conditions} ORDER BY {order} LIMIT {limit}"
        );
        values.insert(0, search.query.match_expression.clone().into());
        let now = search.now.instant().as_millisecond();
        let mut texts: HashMap<i64, SearchCandidate> = HashMap::new();
        let collect = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                let candidate = candidate_from_row(row, now)?;
                match texts.get_mut(&candidate.text) {
                    Some(known) => known.merge_copy(candidate),
                    None => _ = texts.insert(candidate.text, candidate),
                }
            }
            Ok(())
        };
        self.wrap_error(collect())?;
        if let (QueryRanking::BySome(words), Some(oldest)) = (ranking, texts.keys().min()) {
            let relevance = self.weigh_texts(&words, *oldest)?;
            for (text, candidate) in &mut texts {
                candidate.score *= 1.0 + relevance.get(text).copied().unwrap_or_default();
            }
        }
        Ok(texts.into_values().collect())
    }

    fn load_hit(&self, candidate: &SearchCandidate) -> Result<Option<SearchHit>, IndexError> {
        let Some(text) =
            self.wrap_error(text_blocks::read_text(&self.connection, candidate.text))?
        else {
            return Ok(None);
        };
        let sql = "SELECT session.name, session.agent, session.project, session.title, entry.role,
                entry.kind, entry.tool, entry.model, entry.source
             FROM entry JOIN session ON session.id = entry.session
             WHERE entry.session = ?1 AND entry.number = ?2";
        let read = |row: &Row<'_>| {
            let Ok(session) = row.get_ref(0)?.as_str().unwrap_or_default().parse() else {
                return Ok(None);
            };
            let instant = candidate.time.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
            Ok(Some(SearchHit {
                session,
                agent: row.get(1)?,
                project: row.get(2)?,
                title: row.get(3)?,
                number: candidate.number as u64,
                time: instant.map(|instant| Timestamp::from_instant(instant, 3)),
                role: row.get::<_, StoredName<_>>(4)?.0,
                kind: EntryKind::from_name(&row.get::<_, StoredName<String>>(5)?.0),
                tool: row.get(6)?,
                model: row.get(7)?,
                source: row.get::<_, StoredName<_>>(8)?.0,
                copies: candidate.copies,
                text,
            }))
        };
        let find = || -> rusqlite::Result<Option<SearchHit>> {
            let mut find = self.connection.prepare_cached(sql)?;
            find.query_row(params![candidate.session, candidate.number], read)
        };
        self.wrap_error(find())
    }
}

impl SearchRequest<'_> {
    /// Sorts candidates, the best or the newest first.
    pub(super) fn sort_candidates(
        &self,
        mut candidates: Vec<SearchCandidate>,
    ) -> Vec<SearchCandidate> {
        let is_ranked = self.order == SearchOrder::Relevance && self.query.regex.is_none();
        candidates.sort_by(|a, b| {
            let better = if is_ranked { b.score.total_cmp(&a.score) } else { Ordering::Equal };
            better.then(b.time.cmp(&a.time)).then(b.text.cmp(&a.text))
        });
        candidates
    }
}

impl SearchHit {
    /// The role and kind as a short heading.
    pub fn heading(&self) -> String {
        self.kind.heading(&self.role, self.tool.as_deref())
    }
}

impl SearchCandidate {
    /// Merges another entry with the same text. The newest one is kept.
    pub(super) fn merge_copy(&mut self, other: SearchCandidate) {
        let copies = self.copies + 1;
        if other.time > self.time {
            *self = other;
        }
        self.copies = copies;
    }
}

/// Builds a candidate. Its score combines relevance and age; messages score higher than tool output.
fn candidate_from_row(row: &Row<'_>, now: i64) -> rusqlite::Result<SearchCandidate> {
    let (relevance, time): (f64, Option<i64>) = (row.get(1)?, row.get(4)?);
    let age = time.map_or(f64::INFINITY, |time| now.saturating_sub(time).max(0) as f64);
    let kind: StoredName<String> = row.get(5)?;
    let weight = match kind.0.as_str() {
        "text" => 1.2,
        "tool_result" => 0.9,
        _ => 1.0,
    };
    let score = (1.0 + relevance) * weight * (1.0 + FRESHNESS_MS / (FRESHNESS_MS + age));
    let (text, session, number) = (row.get(0)?, row.get(2)?, row.get(3)?);
    Ok(SearchCandidate { text, session, number, time, score, copies: 0 })
}

impl EntryFilter {
    /// The SQL conditions and their values. Parameters start at `?2`.
    pub(super) fn sql_conditions(&self) -> (String, Vec<Value>) {
        let moment =
            |at: Option<Timestamp>| at.map(|at| Value::from(at.instant().as_millisecond()));
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let session = self.session.as_ref().map(|id| Value::from(id.as_str().to_owned()));
        let role = self.role.as_deref().map(stored_value);
        let (since, until) = (format!("{ENTRY_TIME_SQL} >= ?"), format!("{ENTRY_TIME_SQL} < ?"));
        let only = self.only.as_ref().map(|only| Value::from(only.to_json()));
        let conditions: [(&str, _); 11] = [
            (AGENT_CONDITION, text(&self.agent)),
            (PROJECT_CONDITION, text(&self.project)),
            ("entry.role = ?", role),
            ("lower(entry.tool) = lower(?)", text(&self.tool)),
            ("instr(lower(entry.model), lower(?)) > 0", text(&self.model)),
            (&since, moment(self.since)),
            (&until, moment(self.until)),
            (SESSION_CONDITION, session),
            (THREAD_CONDITION, text(&self.thread)),
            (PRIVACY_CONDITION, self.private.sql_value()),
            (SELECTED_CONDITION, only),
        ];
        let (mut sql, mut values) = (String::new(), Vec::new());
        for (condition, value) in conditions {
            if let Some(value) = value {
                values.push(value);
                let parameter = format!("?{}", values.len() + 1);
                sql.push_str(&format!(" AND {}", condition.replace('?', &parameter)));
            }
        }
        if self.only_errors {
            sql.push_str(" AND entry.failed");
        }
        (sql, values)
    }

    /// Whether the filter matches all entries.
    pub(super) fn is_unrestricted(&self) -> bool {
        self.sql_conditions().0.is_empty()
    }
}

/// The time of an entry, or its session's start.
pub(super) const ENTRY_TIME_SQL: &str =
    "coalesce(entry.time, (SELECT started_at FROM session WHERE id = entry.session))";
const AGENT_CONDITION: &str = "entry.session IN (SELECT id FROM session WHERE agent = ?)";
const SESSION_CONDITION: &str = "entry.session IN (SELECT id FROM session WHERE name = ?)";
const THREAD_CONDITION: &str = "entry.session IN (SELECT id FROM session WHERE thread = ?)";
const PRIVACY_CONDITION: &str = "entry.session NOT IN (SELECT value FROM json_each(?))";
const SELECTED_CONDITION: &str = "entry.session IN (SELECT id FROM session
    WHERE agent || '/' || name IN (SELECT value FROM json_each(?)))";
const PROJECT_CONDITION: &str = "entry.session IN (SELECT id FROM session WHERE project = ?
    OR substr(project, 1, length(?) + 1) = ? || '/' OR substr(project, -length(?) - 1) = '/' || ?)";
