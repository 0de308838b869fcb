//! Searches and counts in the database.

use std::collections::HashMap;

use postgres::Row;
use serde_json::{Value, json};
use steno_model::Timestamp;
use steno_model::entry::EntryKind;
use steno_store::index::word_query::{WordColumn, WordTerm};
use steno_store::index::word_tokens::WordTokenizer;
use steno_store::index::{EntryFilter, SearchHit, SearchRequest};

use super::PostgresRemote;
use super::folded_words::cut_word;
use super::word_pairs::hash_pairs;
use crate::team_error::TeamError;

/// The words of a query for the index of the database, and what must hold for each entry that has them.
#[derive(Debug, PartialEq)]
struct DatabaseQuery {
    words: String,
    conditions: Value,
}

impl PostgresRemote {
    /// The newest hits among the sessions that this user may see. The query must have words.
    pub fn search(&mut self, request: &SearchRequest<'_>) -> Result<Vec<SearchHit>, TeamError> {
        let query = DatabaseQuery::new(request)?;
        let conditions = query.conditions.to_string();
        let filter = filter_object(&request.filter).to_string();
        let most = i64::try_from(request.limit.saturating_mul(4)).unwrap_or(i64::MAX);
        let before: Option<i64> = None;
        let sql = "SELECT owner::text, agent, id, project, title, number, at, role, kind, tool, model, source,
                text_hash, body
            FROM steno.search($1::text::tsquery, $2::text::jsonb, $3::text::jsonb, $4, $5)";
        let rows = self.run("search", |client| {
            client.query(sql, &[&query.words, &conditions, &filter, &before, &most])
        });
        if rows.as_ref().map_or(true, Vec::is_empty) {
            // Say why, if there is a reason.
            self.check_version()?;
        }
        let rows = rows?;
        let mut hits: Vec<SearchHit> = Vec::new();
        let mut texts: HashMap<Vec<u8>, usize> = HashMap::new();
        for row in &rows {
            let Some(hit) = hit_from_row(row) else { continue };
            if !request.query.matches_regex(&hit.text) {
                continue;
            }
            let text_hash: Option<&[u8]> = row.get(12);
            match text_hash.and_then(|hash| texts.get(hash)) {
                Some(known) => hits[*known].copies += 1,
                None => {
                    texts.extend(text_hash.map(|hash| (hash.to_vec(), hits.len())));
                    hits.push(hit);
                }
            }
        }
        hits.truncate(request.limit);
        Ok(hits)
    }
}

fn hit_from_row(row: &Row) -> Option<SearchHit> {
    let id: &str = row.get(2);
    let time = jiff::Timestamp::from_millisecond(row.get(6)).ok()?;
    Some(SearchHit {
        session: id.parse().ok()?,
        agent: row.get(1),
        project: row.get(3),
        title: row.get(4),
        number: u64::try_from(row.get::<_, i64>(5)).ok()?,
        time: Some(Timestamp::from_instant(time, 3)),
        role: row.get(7),
        kind: EntryKind::from_name(row.get(8)),
        tool: row.get(9),
        model: row.get(10),
        source: row.get(11),
        copies: 0,
        text: row.get::<_, Option<String>>(13)?,
    })
}

/// The filter as an object of the database's function.
fn filter_object(filter: &EntryFilter) -> Value {
    let moment = |at: Option<Timestamp>| at.map(|at| at.instant().as_millisecond());
    let fields = [
        ("agent", filter.agent.clone().map(Value::from)),
        ("project", filter.project.clone().map(Value::from)),
        ("role", filter.role.clone().map(Value::from)),
        ("tool", filter.tool.clone().map(Value::from)),
        ("model", filter.model.clone().map(Value::from)),
        ("session", filter.session.as_ref().map(|id| Value::from(id.as_str()))),
        ("thread", filter.thread.clone().map(Value::from)),
        ("since", moment(filter.since).map(Value::from)),
        ("until", moment(filter.until).map(Value::from)),
        ("errors", filter.only_errors.then(|| Value::from("true"))),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(fields.collect())
}

impl DatabaseQuery {
    fn new(request: &SearchRequest<'_>) -> Result<Self, TeamError> {
        let mut tokenizer = WordTokenizer::new()?;
        let (mut words, mut conditions) = (Vec::new(), Vec::new());
        for group in request.query.word_groups() {
            let terms = group.iter().map(|term| DatabaseTerm::new(term, &mut tokenizer));
            let terms = terms.collect::<Result<Vec<_>, _>>()?;
            let any: Vec<_> = terms.iter().map(|term| format!("({})", term.words)).collect();
            words.push(format!("({})", any.join(" | ")));
            // The index answers words alone; order and place of words are checked.
            if terms.iter().any(|term| !term.is_exact) {
                let any: Vec<_> = terms.iter().map(|term| term.condition.clone()).collect();
                conditions.push(json!({ "any": any }));
            }
        }
        let excluded = request.query.excluded_terms();
        let excluded = excluded.iter().map(|term| DatabaseTerm::new(term, &mut tokenizer));
        let (words_alone, phrases): (Vec<_>, Vec<_>) =
            excluded.collect::<Result<Vec<_>, _>>()?.into_iter().partition(|term| term.is_exact);
        words.extend(words_alone.iter().map(|term| format!("!({})", term.words)));
        if !phrases.is_empty() {
            let any: Vec<_> = phrases.into_iter().map(|term| term.condition).collect();
            conditions.push(json!({ "any": any, "not": "true" }));
        }
        Ok(Self { words: words.join(" & "), conditions: Value::Array(conditions) })
    }
}

/// A term as the database needs it.
struct DatabaseTerm {
    /// As a `tsquery`.
    words: String,
    /// Whether the `tsquery` is all that must hold.
    is_exact: bool,
    condition: Value,
}

impl DatabaseTerm {
    fn new(term: &WordTerm, tokenizer: &mut WordTokenizer) -> Result<Self, TeamError> {
        let mut all: Vec<String> = Vec::new();
        tokenizer.for_each_word(&term.text, &mut |word| all.push(cut_word(word).to_owned()))?;
        let last = all.len().saturating_sub(1);
        let quoted = |(at, word): (usize, &String)| {
            // Words have letters and digits only, so there is nothing to escape.
            let star = if term.is_prefix && at == last { ":*" } else { "" };
            format!("'{word}'{star}")
        };
        let words = all.iter().enumerate().map(quoted).collect::<Vec<_>>().join(" & ");
        let is_exact = term.column == WordColumn::Any && all.len() == 1;
        let pairs = hash_pairs(if term.is_prefix { &all[..last] } else { &all });
        let end = if term.is_prefix { "" } else { " " };
        let text = format!(" {}{end}", all.join(" "));
        let condition = match term.column {
            _ if is_exact => json!({ "in": "words", "query": words }),
            WordColumn::Parts => json!({ "in": "parts", "text": text, "pairs": pairs }),
            WordColumn::Any | WordColumn::Text => {
                json!({ "in": "folded", "text": text, "pairs": pairs })
            }
        };
        Ok(Self { words, is_exact, condition })
    }
}
