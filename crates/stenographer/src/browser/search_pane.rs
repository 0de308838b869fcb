//! The search of all texts while it is being typed.

use steno_core::index::mark::Line as MarkedLine;
use steno_core::index::query::QueryError;
use steno_core::index::{Hit, Query};

use super::list_selection::ListSelection;
use super::text_input::TextInput;

/// How many hits are shown at most.
pub(crate) const MAX_HITS: usize = 200;

/// A hit with the lines of it that match.
#[derive(Clone, Debug)]
pub(crate) struct BrowserHit {
    pub(crate) hit: Hit,
    pub(crate) lines: Vec<MarkedLine>,
}

/// What is looked for, and what was found.
#[derive(Debug, Default)]
pub(crate) struct SearchPane {
    pub(crate) input: TextInput,
    pub(crate) selection: ListSelection,
    pub(crate) hits: Vec<BrowserHit>,
    /// What stands in the way.
    pub(crate) error_message: Option<String>,
    /// The question whose answer is awaited or was given last.
    query_number: u64,
    answered_number: u64,
}

impl SearchPane {
    /// The next question, if the text is one.
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

    /// Takes an answer, unless a later question was asked meanwhile.
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

    /// Waits for no answer any more.
    pub(crate) fn stop_waiting(&mut self) {
        self.answered_number = self.query_number;
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.answered_number != self.query_number
    }

    pub(crate) fn selected_hit(&self) -> Option<&BrowserHit> {
        self.hits.get(self.selection.selected)
    }

    /// The question as it is asked.
    pub(crate) fn parse_query(&self) -> Option<Query> {
        parse_unfinished_query(self.input.text()).ok()
    }
}

/// A question that may not be typed to its end: the last word may go on, a phrase may be open.
pub(crate) fn parse_unfinished_query(text: &str) -> Result<Query, QueryError> {
    let mut text = text.to_owned();
    let last = text.split_whitespace().next_back().unwrap_or_default();
    let may_go_on = text.ends_with(char::is_alphanumeric) && last != "OR" && !last.contains('/');
    if text.matches('"').count() % 2 == 1 {
        text.push('"');
    } else if may_go_on && !last.contains('"') {
        text.push('*');
    }
    Query::parse(&text)
}

/// A question for exactly these words, wherever one of them is a beginning; a `/regex/` is one.
pub(crate) fn parse_find_query(text: &str) -> Result<Query, QueryError> {
    if text.starts_with('/') && text.len() > 2 && text[1..].contains('/') {
        return Query::parse(text);
    }
    Query::parse(&format!("\"{}\"*", text.replace('"', " ")))
}
