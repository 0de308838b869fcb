//! The full-text search, updated while the user types.

use steno_store::index::match_lines::MatchLine as MarkedLine;
use steno_store::index::query::QueryError;
use steno_store::index::{SearchHit, SearchQuery};

use super::list_selection::ListSelection;
use super::text_input::TextInput;

/// Limit of hits shown.
pub(crate) const MAX_HITS: usize = 200;

/// A hit and its matching lines.
#[derive(Clone, Debug)]
pub(crate) struct BrowserHit {
    pub(crate) hit: SearchHit,
    pub(crate) lines: Vec<MarkedLine>,
}

/// The query and its hits.
#[derive(Debug, Default)]
pub(crate) struct SearchPane {
    pub(crate) input: TextInput,
    pub(crate) selection: ListSelection,
    pub(crate) hits: Vec<BrowserHit>,
    /// Error of the last query.
    pub(crate) error_message: Option<String>,
    /// Number of the latest query, and of the latest one that was answered.
    query_number: u64,
    answered_number: u64,
}

impl SearchPane {
    /// Starts the next query; none if the text is blank.
    pub(crate) fn next_query(&mut self) -> Option<(u64, String)> {
        self.query_number += 1;
        self.error_message = None;
        if self.input.text().trim().is_empty() {
            self.answered_number = self.query_number;
            self.hits.clear();
            return None;
        }
        Some((self.query_number, self.input.text().to_owned()))
    }

    /// Stores a result, unless it belongs to an older query.
    pub(crate) fn take_result(&mut self, ticket: u64, answer: Result<Vec<BrowserHit>, String>) {
        if ticket != self.query_number {
            return;
        }
        self.answered_number = ticket;
        match answer {
            Ok(found) => self.hits = found,
            Err(trouble) => self.error_message = Some(trouble),
        }
    }

    /// Stops waiting for a result.
    pub(crate) fn stop_waiting(&mut self) {
        self.answered_number = self.query_number;
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.answered_number != self.query_number
    }

    pub(crate) fn selected_hit(&self) -> Option<&BrowserHit> {
        self.hits.get(self.selection.selected)
    }

    /// Parses the current text.
    pub(crate) fn parse_query(&self) -> Option<SearchQuery> {
        parse_unfinished_query(self.input.text()).ok()
    }
}

/// Parses a query that is still being typed: the last word matches as a prefix, and an open phrase is closed.
pub(crate) fn parse_unfinished_query(text: &str) -> Result<SearchQuery, QueryError> {
    let mut text = text.to_owned();
    let last = text.split_whitespace().next_back().unwrap_or_default();
    let may_go_on = text.ends_with(char::is_alphanumeric) && last != "OR" && !last.contains('/');
    if text.matches('"').count() % 2 == 1 {
        text.push('"');
    } else if may_go_on && !last.contains('"') {
        text.push('*');
    }
    SearchQuery::parse(&text)
}

/// Parses the text to find in one session: a phrase that may end within a word, or a `/regex/`.
pub(crate) fn parse_find_query(text: &str) -> Result<SearchQuery, QueryError> {
    if text.starts_with('/') && text.len() > 2 && text[1..].contains('/') {
        return SearchQuery::parse(text);
    }
    SearchQuery::parse(&format!("\"{}\"*", text.replace('"', " ")))
}
