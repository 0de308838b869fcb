//! The search of all texts while it is being typed.

use steno_core::index::mark::Line as MarkedLine;
use steno_core::index::query::QueryError;
use steno_core::index::{Hit, Query};

use super::choice::Choice;
use super::line::Line;

/// How many hits are shown at most.
pub(crate) const MOST: usize = 200;

/// A hit with the lines of it that match.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) hit: Hit,
    pub(crate) lines: Vec<MarkedLine>,
}

/// What is looked for, and what was found.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    pub(crate) line: Line,
    pub(crate) choice: Choice,
    pub(crate) found: Vec<Found>,
    /// What stands in the way.
    pub(crate) trouble: Option<String>,
    /// The question whose answer is awaited or was given last.
    ticket: u64,
    answered: u64,
}

impl Finder {
    /// The next question, if the text is one.
    pub(crate) fn ask(&mut self) -> Option<(u64, String)> {
        self.ticket += 1;
        self.trouble = None;
        if self.line.text().trim().is_empty() {
            self.answered = self.ticket;
            self.found.clear();
            return None;
        }
        Some((self.ticket, self.line.text().to_owned()))
    }

    /// Takes an answer, unless a later question was asked meanwhile.
    pub(crate) fn answer(&mut self, ticket: u64, answer: Result<Vec<Found>, String>) {
        if ticket != self.ticket {
            return;
        }
        self.answered = ticket;
        match answer {
            Ok(found) => self.found = found,
            Err(trouble) => self.trouble = Some(trouble),
        }
    }

    /// Waits for no answer any more.
    pub(crate) fn give_up(&mut self) {
        self.answered = self.ticket;
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.answered != self.ticket
    }

    pub(crate) fn chosen(&self) -> Option<&Found> {
        self.found.get(self.choice.at)
    }

    /// The question as it is asked.
    pub(crate) fn query(&self) -> Option<Query> {
        as_typed(self.line.text()).ok()
    }
}

/// A question that may not be typed to its end: the last word may go on, a phrase may be open.
pub(crate) fn as_typed(text: &str) -> Result<Query, QueryError> {
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
pub(crate) fn in_session(text: &str) -> Result<Query, QueryError> {
    if text.starts_with('/') && text.len() > 2 && text[1..].contains('/') {
        return Query::parse(text);
    }
    Query::parse(&format!("\"{}\"*", text.replace('"', " ")))
}
