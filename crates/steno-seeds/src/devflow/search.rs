//! Searches runs for text: in the content of turns, not in the JSON.

use super::error::RunStoreError;
use super::run::{RunTurn, TurnToolCall};
use super::run_id::RunId;
use super::store::{RunFilter, RunStore};
use steno_model::json::Value;
use steno_model::problem::Problem;

/// Characters of context on either side of a match.
const EXCERPT_CONTEXT_CHARS: usize = 30;

/// A search query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunQuery {
    /// The text, not a pattern.
    pub text: String,
    /// Whether case matters.
    pub case_sensitive: bool,
    /// Maximum number of hits.
    pub limit: Option<usize>,
    /// The runs to search.
    pub runs: RunFilter,
}

/// A range of token counts. An absent bound is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenRange {
    /// The lower bound.
    pub least: Option<u64>,
    /// The upper bound.
    pub most: Option<u64>,
}

impl TokenRange {
    /// Whether a count is within the range, bounds included.
    pub fn contains(&self, count: u64) -> bool {
        self.least.is_none_or(|least| count >= least) && self.most.is_none_or(|most| count <= most)
    }
}

/// A turn that contains the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnHit {
    /// The run.
    pub run_id: RunId,
    /// The turn's number.
    pub turn_id: u64,
    /// The turn's role.
    pub role: String,
    /// The match with some context, on one line.
    pub excerpt: String,
}

/// The hits of a search, and the runs that could not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSearchResult {
    /// The hits, newest run first.
    pub hits: Vec<TurnHit>,
    /// Runs and turns that could not be read.
    pub problems: Vec<Problem>,
}

impl RunStore {
    /// Finds the turns that contain a text, newest run first. Compressed runs and runs being recorded are searched
    /// too.
    pub fn search_runs(&self, query: &RunQuery) -> Result<Vec<TurnHit>, RunStoreError> {
        Ok(self.search_runs_with_problems(query)?.hits)
    }

    /// Like [`RunStore::search_runs`], and returns runs that could not be read as problems.
    pub fn search_runs_with_problems(
        &self,
        query: &RunQuery,
    ) -> Result<RunSearchResult, RunStoreError> {
        let list = self.list_runs_with_problems(&query.runs)?;
        let mut found = RunSearchResult { hits: Vec::new(), problems: list.problems };
        let limit = query.limit.unwrap_or(usize::MAX);
        for run in list.runs {
            let run_id: RunId = run.run_id.parse()?;
            let decoded = match self.load_run(&run_id) {
                Ok(decoded) => decoded,
                Err(error) => {
                    found.problems.push(error.problem(&self.run_folder(&run_id)));
                    continue;
                }
            };
            found.problems.extend(decoded.problems);
            for turn in &decoded.run.turns {
                if found.hits.len() == limit {
                    return Ok(found);
                }
                let excerpt = query.find_in_turn(turn);
                found.hits.extend(excerpt.map(|excerpt| TurnHit {
                    run_id: run_id.clone(),
                    turn_id: turn.id,
                    role: turn.role.clone(),
                    excerpt,
                }));
            }
        }
        Ok(found)
    }
}

impl RunQuery {
    fn find_in_turn(&self, turn: &RunTurn) -> Option<String> {
        let calls = turn.tool_calls.iter().flat_map(call_texts);
        std::iter::once(turn.content.as_str())
            .chain(calls)
            .find_map(|text| self.excerpt_match(text))
    }

    /// The first match in a text with its context.
    fn excerpt_match(&self, text: &str) -> Option<String> {
        let (start, end) = self.find_range(text)?;
        let before: Vec<char> =
            text[..start].chars().rev().take(EXCERPT_CONTEXT_CHARS + 1).collect();
        let after: Vec<char> = text[end..].chars().take(EXCERPT_CONTEXT_CHARS + 1).collect();
        let mut out = String::new();
        if before.len() > EXCERPT_CONTEXT_CHARS {
            out.push_str("...");
        }
        out.extend(before.iter().take(EXCERPT_CONTEXT_CHARS).rev());
        out.push_str(&text[start..end]);
        out.extend(after.iter().take(EXCERPT_CONTEXT_CHARS));
        if after.len() > EXCERPT_CONTEXT_CHARS {
            out.push_str("...");
        }
        Some(out.replace(['\n', '\r', '\t'], " "))
    }

    /// The byte range of the first match.
    fn find_range(&self, text: &str) -> Option<(usize, usize)> {
        if self.case_sensitive {
            let start = text.find(&self.text)?;
            return Some((start, start + self.text.len()));
        }
        let needle = self.text.to_lowercase();
        let lower: String = text.chars().flat_map(char::to_lowercase).collect();
        let start = lower.find(&needle)?;
        Some((
            original_offset(text, start, false),
            original_offset(text, start + needle.len(), true),
        ))
    }
}

/// The offset in `text` of a byte of its lower-case form, which may have a different length.
fn original_offset(text: &str, lower_offset: usize, end: bool) -> usize {
    let mut lower = 0;
    for (at, c) in text.char_indices() {
        let width: usize = c.to_lowercase().map(char::len_utf8).sum();
        let reached = if end { lower >= lower_offset } else { lower + width > lower_offset };
        if reached {
            return at;
        }
        lower += width;
    }
    text.len()
}

/// All texts in a tool call.
fn call_texts(call: &TurnToolCall) -> Vec<&str> {
    let mut texts = vec![call.name.as_str(), call.output.as_str(), call.error.as_str()];
    let mut waiting: Vec<&Value> = call.input.iter().flat_map(|input| input.values()).collect();
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => waiting.extend(items),
            Value::Object(object) => waiting.extend(object.values()),
            _ => {}
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn excerpt(query: &str, text: &str) -> Option<String> {
        let query = RunQuery { text: query.to_owned(), ..RunQuery::default() };
        query.excerpt_match(text)
    }

    #[test]
    fn shows_matches_with_context() {
        assert_eq!(
            excerpt("AUTH", &format!("{}\nauthentication {}", "a".repeat(40), "b".repeat(40))),
            Some(format!("...{} authentication {}...", "a".repeat(29), "b".repeat(19)))
        );
        assert_eq!(excerpt("<b>", "x <B>y"), Some("x <B>y".to_owned()));
        assert_eq!(excerpt("İ", "aİb").as_deref(), Some("aİb"));
        assert_eq!(excerpt("no", "yes"), None);
    }

    proptest! {
        #[test]
        fn any_text_can_be_searched(text in "\\PC{0,60}", query in "\\PC{1,3}") {
            let _ = excerpt(&query, &text);
        }
    }
}
