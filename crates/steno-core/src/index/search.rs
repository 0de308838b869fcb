//! Finds entries: by words, ranked by how well they match and how new they are, or by a regular expression.

use std::cmp::Ordering;
use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};

use super::query::Query;
use super::rank::{RELEVANCE, Ranking};
use super::{Index, IndexError, blocks};
use crate::entry::Kind;
use crate::session::SessionId;
use crate::timestamp::Timestamp;

/// How many of the newest matches are ranked by how well they match; more would take longer than anybody waits.
const RANKED: usize = 400;

/// After how many milliseconds a match is worth half as much again less.
const FRESH: f64 = 14.0 * 86_400_000.0;

/// What to search for, where, and how much of it is wanted.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    /// The question.
    pub query: &'a Query,
    /// Which entries are asked.
    pub filter: Filter,
    /// Which come first.
    pub order: Order,
    /// At most so many.
    pub limit: usize,
    /// When it is asked.
    pub now: Timestamp,
}

/// Which entries are asked; a field that is not set asks all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this agent.
    pub agent: Option<String>,
    /// Of sessions in this folder or below it; the last part of its name will do.
    pub project: Option<String>,
    /// Of this role.
    pub role: Option<String>,
    /// Calls and results of this tool.
    pub tool: Option<String>,
    /// Written by a model whose name has this in it.
    pub model: Option<String>,
    /// Said at this time or later.
    pub since: Option<Timestamp>,
    /// Said before this time.
    pub until: Option<Timestamp>,
    /// Of this session.
    pub session: Option<SessionId>,
    /// Of sessions of this thread.
    pub thread: Option<String>,
    /// Errors and tools that failed only.
    pub errors: bool,
}

/// Which hits come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The best, where newer is better.
    Relevance,
    /// The newest.
    Time,
}

/// An entry that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its session.
    pub session: SessionId,
    /// Who held that.
    pub agent: String,
    /// The folder that it was about.
    pub project: Option<String>,
    /// What it was about.
    pub title: Option<String>,
    /// Which entry of the session it is, from 0.
    pub number: u64,
    /// When it was said, in UTC.
    pub time: Option<Timestamp>,
    /// Who said it.
    pub role: String,
    /// What it is.
    pub kind: Kind,
    /// The tool that was called or answered.
    pub tool: Option<String>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// `primary` or `subagent:<id>`.
    pub source: String,
    /// How many further entries say exactly the same.
    pub copies: u64,
    /// What was said.
    pub text: String,
}

/// An entry that may be a hit.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) text: i64,
    pub(super) session: i64,
    pub(super) number: i64,
    pub(super) time: Option<i64>,
    pub(super) score: f64,
    pub(super) copies: u64,
}

impl Index {
    /// What matches, best or newest first.
    pub fn search(&self, search: &Search<'_>) -> Result<Vec<Hit>, IndexError> {
        let mut candidates = match &search.query.regex {
            Some(regex) => self.scan(search, regex)?,
            None => self.candidates(search)?,
        };
        let is_ranked = search.order == Order::Relevance && search.query.regex.is_none();
        candidates.sort_by(|a, b| {
            let better = if is_ranked { b.score.total_cmp(&a.score) } else { Ordering::Equal };
            better.then(b.time.cmp(&a.time)).then(b.text.cmp(&a.text))
        });
        candidates.truncate(search.limit);
        let hits = candidates.iter().map(|candidate| self.hit(candidate));
        Ok(hits.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The newest matches of words, each text once.
    fn candidates(&self, search: &Search<'_>) -> Result<Vec<Candidate>, IndexError> {
        let (conditions, mut values) = search.filter.conditions();
        let ranked = search.order == Order::Relevance;
        let ranking = if ranked { self.ranking(search.query)? } else { Ranking::Nothing };
        let relevance = if ranking == Ranking::Whole { RELEVANCE } else { "0.0" };
        let order = if ranked { "words.rowid DESC" } else { "time DESC" };
        let limit = search.limit.saturating_mul(4);
        let limit = if ranked { limit.max(RANKED) } else { limit };
        // All that is asked of an entry here stands in that index: a common word has too many to look each up.
        let sql = format!(
            "SELECT words.rowid, {relevance}, entry.session, entry.number, {MOMENT} AS time, entry.kind
             FROM words CROSS JOIN entry INDEXED BY entry_text ON entry.text = words.rowid
             WHERE words MATCH ?1{conditions} ORDER BY {order} LIMIT {limit}"
        );
        values.insert(0, search.query.words.clone().into());
        let now = search.now.instant().as_millisecond();
        let mut texts: HashMap<i64, Candidate> = HashMap::new();
        let collect = || -> rusqlite::Result<()> {
            let mut found = self.connection.prepare_cached(&sql)?;
            let mut rows = found.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                let candidate = candidate(row, now)?;
                match texts.get_mut(&candidate.text) {
                    Some(known) => known.join(candidate),
                    None => _ = texts.insert(candidate.text, candidate),
                }
            }
            Ok(())
        };
        self.on(collect())?;
        if let (Ranking::Part(words), Some(oldest)) = (ranking, texts.keys().min()) {
            let relevance = self.relevance(&words, *oldest)?;
            for (text, candidate) in &mut texts {
                candidate.score *= 1.0 + relevance.get(text).copied().unwrap_or_default();
            }
        }
        Ok(texts.into_values().collect())
    }

    fn hit(&self, candidate: &Candidate) -> Result<Option<Hit>, IndexError> {
        let Some(text) = self.on(blocks::read(&self.connection, candidate.text))? else {
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
            Ok(Some(Hit {
                session,
                agent: row.get(1)?,
                project: row.get(2)?,
                title: row.get(3)?,
                number: candidate.number as u64,
                time: instant.map(|instant| Timestamp::from_instant(instant, 3)),
                role: row.get(4)?,
                kind: Kind::named(row.get_ref(5)?.as_str().unwrap_or_default()),
                tool: row.get(6)?,
                model: row.get(7)?,
                source: row.get(8)?,
                copies: candidate.copies,
                text,
            }))
        };
        let find = || -> rusqlite::Result<Option<Hit>> {
            let mut find = self.connection.prepare_cached(sql)?;
            find.query_row(params![candidate.session, candidate.number], read)
        };
        self.on(find())
    }
}

impl Hit {
    /// Who said it and what it is, in a few words.
    pub fn heading(&self) -> String {
        self.kind.heading(&self.role, self.tool.as_deref())
    }
}

impl Candidate {
    /// The same text was said once more: the newest stands for all.
    pub(super) fn join(&mut self, other: Candidate) {
        let copies = self.copies + 1;
        if other.time > self.time {
            *self = other;
        }
        self.copies = copies;
    }
}

/// A match, whose score says how well it matches, how new it is, and whether it was said rather than run or read.
fn candidate(row: &Row<'_>, now: i64) -> rusqlite::Result<Candidate> {
    let (relevance, time): (f64, Option<i64>) = (row.get(1)?, row.get(4)?);
    let age = time.map_or(f64::INFINITY, |time| now.saturating_sub(time).max(0) as f64);
    let weight = match row.get_ref(5)?.as_str().unwrap_or_default() {
        "text" => 1.2,
        "tool_result" => 0.9,
        _ => 1.0,
    };
    let score = (1.0 + relevance) * weight * (1.0 + FRESH / (FRESH + age));
    let (text, session, number) = (row.get(0)?, row.get(2)?, row.get(3)?);
    Ok(Candidate { text, session, number, time, score, copies: 0 })
}

impl Filter {
    /// The conditions in SQL, for values from the second on.
    pub(super) fn conditions(&self) -> (String, Vec<Value>) {
        let moment =
            |at: Option<Timestamp>| at.map(|at| Value::from(at.instant().as_millisecond()));
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let session = self.session.as_ref().map(|id| Value::from(id.as_str().to_owned()));
        let (since, until) = (format!("{MOMENT} >= ?"), format!("{MOMENT} < ?"));
        let wanted: [(&str, _); 9] = [
            (AGENT, text(&self.agent)),
            (PROJECT, text(&self.project)),
            ("entry.role = ?", text(&self.role)),
            ("lower(entry.tool) = lower(?)", text(&self.tool)),
            ("instr(lower(entry.model), lower(?)) > 0", text(&self.model)),
            (&since, moment(self.since)),
            (&until, moment(self.until)),
            (SESSION, session),
            (THREAD, text(&self.thread)),
        ];
        let (mut sql, mut values) = (String::new(), Vec::new());
        for (condition, value) in wanted {
            if let Some(value) = value {
                values.push(value);
                let place = format!("?{}", values.len() + 1);
                sql.push_str(&format!(" AND {}", condition.replace('?', &place)));
            }
        }
        if self.errors {
            sql.push_str(" AND entry.failed");
        }
        (sql, values)
    }

    /// Whether all entries are asked.
    pub(super) fn is_open(&self) -> bool {
        self.conditions().0.is_empty()
    }
}

/// When an entry was said, as far as that is known.
pub(super) const MOMENT: &str =
    "coalesce(entry.time, (SELECT started_at FROM session WHERE id = entry.session))";
const AGENT: &str = "entry.session IN (SELECT id FROM session WHERE agent = ?)";
const SESSION: &str = "entry.session IN (SELECT id FROM session WHERE name = ?)";
const THREAD: &str = "entry.session IN (SELECT id FROM session WHERE thread = ?)";
const PROJECT: &str = "entry.session IN (SELECT id FROM session WHERE project = ?
    OR substr(project, 1, length(?) + 1) = ? || '/' OR substr(project, -length(?) - 1) = '/' || ?)";
