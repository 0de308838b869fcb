//! Searches in the index. The words of the query are split and folded here, as those of the texts were.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use steno_model::Timestamp;
use steno_model::entry::EntryKind;
use steno_store::index::word_query::{WordColumn, WordTerm};
use steno_store::index::word_tokens::WordTokenizer;
use steno_store::index::{EntryFilter, SearchHit, SearchRequest};

use super::{AnswerRow, ClickHouseIndex, MAX_NAMED_SESSIONS, integer, quote, quote_list, text};
use crate::team_error::TeamError;

/// How many words of a phrase the index is asked for; ClickHouse takes no more.
const MAX_INDEXED_WORDS: usize = 64;

/// The heading of a session that has hits.
struct HitSession {
    agent: String,
    id: String,
    project: Option<String>,
    title: Option<String>,
}

impl ClickHouseIndex {
    /// The newest hits. The query must have words.
    pub fn search(&self, request: &SearchRequest<'_>) -> Result<Vec<SearchHit>, TeamError> {
        let Some(matches) = query_condition(request)? else { return Ok(Vec::new()) };
        let (own, filter) = (self.own_rows(), entry_condition(&request.filter));
        let sessions = session_condition(&request.filter);
        let most = request.limit.saturating_mul(4);
        // Texts are read of the hits only: of all matches, that takes five times as long.
        let sql = format!(
            "SELECT session, seq, at, role, kind, tool, model, source, body FROM steno_entry
            WHERE {own} AND (session, source, seq, part) IN (
                SELECT session, source, seq, part FROM steno_entry
                WHERE {own} AND {matches}{filter} AND (session, part) IN (
                    SELECT session, arrayJoin(parts) FROM steno_session FINAL WHERE {own}{sessions})
                ORDER BY at DESC, session DESC, seq DESC LIMIT {most})
            ORDER BY at DESC, session DESC, seq DESC"
        );
        let rows = self.rows("search", &sql)?;
        let headings = self.hit_sessions(&rows)?;
        let mut hits: Vec<SearchHit> = Vec::new();
        let mut seen = HashSet::new();
        let mut texts: HashMap<String, usize> = HashMap::new();
        for row in &rows {
            let session = row.first().and_then(Value::as_str).unwrap_or_default();
            // A row that was written twice is there twice until the server merges its files.
            if !seen.insert((session, row.get(1).and_then(integer))) {
                continue;
            }
            let hit = headings.get(session).and_then(|session| hit_from_row(row, session));
            let Some(hit) = hit.filter(|hit| request.query.matches_regex(&hit.text)) else {
                continue;
            };
            match texts.get(&hit.text) {
                Some(known) => hits[*known].copies += 1,
                None => {
                    texts.insert(hit.text.clone(), hits.len());
                    hits.push(hit);
                }
            }
        }
        hits.truncate(request.limit);
        Ok(hits)
    }

    fn hit_sessions(&self, rows: &[AnswerRow]) -> Result<HashMap<String, HitSession>, TeamError> {
        let mut names: Vec<&str> = rows.iter().filter_map(|row| row.first()?.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let heading = |row: &AnswerRow| {
            let [name, agent, id, project, title] = row.as_slice() else { return None };
            let (agent, id) = (text(agent)?, text(id)?);
            let (project, title) = (text(project), text(title));
            Some((text(name)?, HitSession { agent, id, project, title }))
        };
        let mut headings = HashMap::new();
        for names in names.chunks(MAX_NAMED_SESSIONS) {
            let (own, names) = (self.own_rows(), quote_list(names.iter().copied()));
            let sql = format!(
                "SELECT session, agent, id, project, title FROM steno_session FINAL
                WHERE {own} AND session IN {names}"
            );
            let rows = self.rows("read the sessions of hits", &sql)?;
            headings.extend(rows.iter().filter_map(heading));
        }
        Ok(headings)
    }
}

fn hit_from_row(row: &AnswerRow, session: &HitSession) -> Option<SearchHit> {
    let [_, number, at, role, kind, tool, model, source, body] = row.as_slice() else {
        return None;
    };
    // An entry without any time has 0.
    let at = integer(at).filter(|at| *at != 0);
    let time = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    Some(SearchHit {
        session: session.id.parse().ok()?,
        agent: session.agent.clone(),
        project: session.project.clone(),
        title: session.title.clone(),
        number: u64::try_from(integer(number)?).ok()?,
        time: time.map(|time| Timestamp::from_instant(time, 3)),
        role: role.as_str()?.to_owned(),
        kind: EntryKind::from_name(kind.as_str()?),
        tool: text(tool),
        model: text(model),
        source: source.as_str()?.to_owned(),
        copies: 0,
        text: body.as_str()?.to_owned(),
    })
}

/// The condition for the texts of entries; `None` if the query has no words.
fn query_condition(request: &SearchRequest<'_>) -> Result<Option<String>, TeamError> {
    let mut tokenizer = WordTokenizer::new()?;
    let mut conditions = Vec::new();
    for group in request.query.word_groups() {
        let terms = group.iter().map(|term| term_condition(term, &mut tokenizer));
        let terms: Vec<String> =
            terms.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        if !terms.is_empty() {
            conditions.push(format!("({})", terms.join(" OR ")));
        }
    }
    if conditions.is_empty() {
        return Ok(None);
    }
    for term in request.query.excluded_terms() {
        conditions.extend(term_condition(&term, &mut tokenizer)?.map(|term| format!("NOT {term}")));
    }
    Ok(Some(conditions.join(" AND ")))
}

/// The condition for a word or phrase; `None` if it has only signs.
fn term_condition(
    term: &WordTerm,
    tokenizer: &mut WordTokenizer,
) -> Result<Option<String>, TeamError> {
    let mut words: Vec<String> = Vec::new();
    tokenizer.for_each_word(&term.text, &mut |word| words.push(word.to_owned()))?;
    if words.is_empty() {
        return Ok(None);
    }
    // The index answers whole words. Order, place and beginnings of words are checked in the text.
    let whole = if term.is_prefix { &words[..words.len() - 1] } else { &words[..] };
    let mut conditions = Vec::new();
    if !whole.is_empty() {
        let quoted = whole.iter().take(MAX_INDEXED_WORDS).map(|word| quote(word));
        let quoted: Vec<String> = quoted.collect();
        conditions.push(format!("hasAllTokens(words, [{}])", quoted.join(", ")));
    }
    let end = if term.is_prefix { "" } else { " " };
    let phrase = quote(&format!(" {}{end}", words.join(" ")));
    conditions.extend(match term.column {
        WordColumn::Any if words.len() == 1 && !term.is_prefix => None,
        WordColumn::Any if words.len() == 1 => Some(format!("position(words, {phrase}) > 0")),
        WordColumn::Parts => Some(format!("position(words, {phrase}, text_bytes + 1) > 0")),
        WordColumn::Any | WordColumn::Text => {
            Some(format!("position(words, {phrase}) BETWEEN 1 AND text_bytes"))
        }
    });
    Ok(Some(format!("({})", conditions.join(" AND "))))
}

/// The conditions of a filter for entries.
pub(super) fn entry_condition(filter: &EntryFilter) -> String {
    let moment = |at: Option<Timestamp>| at.map(|at| at.instant().as_millisecond());
    let conditions = [
        filter.role.as_deref().map(|role| format!("role = {}", quote(role))),
        filter.tool.as_deref().map(|tool| format!("lower(tool) = lower({})", quote(tool))),
        filter
            .model
            .as_deref()
            .map(|model| format!("position(lower(model), lower({})) > 0", quote(model))),
        moment(filter.since).map(|since| format!("at >= {since}")),
        moment(filter.until).map(|until| format!("at < {until}")),
        filter.only_errors.then(|| "is_failure".to_owned()),
    ];
    conditions.into_iter().flatten().map(|condition| format!(" AND {condition}")).collect()
}

/// The conditions of a filter for sessions.
pub(super) fn session_condition(filter: &EntryFilter) -> String {
    let project = filter.project.as_deref().map(|project| {
        let (whole, below) = (quote(project), quote(&format!("{project}/")));
        let last = quote(&format!("/{project}"));
        format!("(project = {whole} OR startsWith(project, {below}) OR endsWith(project, {last}))")
    });
    let conditions = [
        filter.agent.as_deref().map(|agent| format!("agent = {}", quote(agent))),
        filter.session.as_ref().map(|id| format!("id = {}", quote(id.as_str()))),
        filter.thread.as_deref().map(|thread| format!("thread = {}", quote(thread))),
        project,
    ];
    conditions.into_iter().flatten().map(|condition| format!(" AND {condition}")).collect()
}
