//! The signs of trouble in sessions, counted.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use steno_model::{Entry, EntryKind};
use steno_store::view::quality::SessionQuality;

use crate::units::{count_of, exact_count};

/// What counts as a retry.
pub(crate) const RETRY_MEANING: &str =
    "The same call again in the same turn after it failed, with no edit between";

/// The problems of a session in a few words: `3 failed calls, 1 other error, 2 not repaired, 1 retry`.
pub(crate) fn problem_summary(quality: &SessionQuality) -> String {
    let (failed, others) = split_errors(quality);
    let (errors, unrepaired) = (quality.failures.len(), quality.count_unrepaired());
    // An error of a session without failed calls is not another one.
    let other = if failed > 0 { "other error" } else { "error" };
    let counted = |count: usize, noun| (count > 0).then(|| count_of(count as u64, noun));
    let open = match unrepaired {
        0 => None,
        // One thing is not said twice.
        1 if errors == 1 => Some("not repaired".to_owned()),
        open if open == errors => Some("none repaired".to_owned()),
        open => Some(format!("{} not repaired", exact_count(open as u64))),
    };
    let found = [
        counted(failed, "failed call"),
        counted(others, other),
        open,
        counted(quality.retries.len(), "retry"),
        counted(quality.undone_edits.len(), "undone edit"),
        counted(quality.compactions.len(), "compaction"),
    ];
    let found: Vec<String> = found.into_iter().flatten().collect();
    if found.is_empty() { "no problems".to_owned() } else { found.join(", ") }
}

/// How many errors of a session are failed calls, and how many are others.
pub(crate) fn split_errors(quality: &SessionQuality) -> (usize, usize) {
    (quality.failed_calls, quality.failures.len().saturating_sub(quality.failed_calls))
}

/// The signs of trouble in one session or in several, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QualityCounts {
    pub(crate) sessions: u64,
    pub(crate) tool_calls: u64,
    pub(crate) failed_calls: u64,
    /// Errors that are not results of tools.
    pub(crate) other_errors: u64,
    /// Errors of both kinds that nothing later repaired.
    pub(crate) unrepaired: u64,
    pub(crate) retries: u64,
    pub(crate) undone_edits: u64,
    pub(crate) compactions: u64,
    /// The tokens of the longest prompt.
    pub(crate) largest_context: u64,
}

impl QualityCounts {
    /// Counts the signs of trouble in one session.
    pub(crate) fn from_entries(entries: &[Entry]) -> Self {
        let quality = SessionQuality::from_entries(entries);
        let count =
            |is: fn(&Entry) -> bool| entries.iter().filter(|entry| is(entry)).count() as u64;
        let (failed_calls, other_errors) = split_errors(&quality);
        Self {
            sessions: 1,
            tool_calls: count(|entry| entry.kind == EntryKind::ToolCall),
            failed_calls: failed_calls as u64,
            other_errors: other_errors as u64,
            unrepaired: quality.count_unrepaired() as u64,
            retries: quality.retries.len() as u64,
            undone_edits: quality.undone_edits.len() as u64,
            compactions: quality.compactions.len() as u64,
            largest_context: quality.largest_context.map_or(0, |peak| peak.tokens),
        }
    }

    /// Adds the counts of other sessions.
    pub(crate) fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.tool_calls += other.tool_calls;
        self.failed_calls += other.failed_calls;
        self.other_errors += other.other_errors;
        self.unrepaired += other.unrepaired;
        self.retries += other.retries;
        self.undone_edits += other.undone_edits;
        self.compactions += other.compactions;
        self.largest_context = self.largest_context.max(other.largest_context);
    }

    /// How many problems there are of all kinds.
    pub(crate) fn problems(&self) -> u64 {
        self.failed_calls + self.other_errors + self.retries + self.undone_edits + self.compactions
    }

    /// The failed calls in percent of all calls; `None` without calls.
    pub(crate) fn failure_percent(&self) -> Option<f64> {
        (self.tool_calls > 0).then(|| self.failed_calls as f64 / self.tool_calls as f64 * 100.0)
    }
}

/// The counts of the sessions that were read, each with the size of the session in the vault at that time.
#[derive(Default)]
pub(crate) struct QualityCache {
    known: Mutex<HashMap<(String, String), (u64, QualityCounts)>>,
}

impl QualityCache {
    /// The counts of a session, unless it is unknown or has changed since.
    pub(crate) fn find(&self, key: &(String, String), size: u64) -> Option<QualityCounts> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(key).filter(|(read, _)| *read == size).map(|(_, counts)| counts.clone())
    }

    /// Remembers the counts of a session.
    pub(crate) fn insert(&self, key: (String, String), size: u64, counts: QualityCounts) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key, (size, counts));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steno_model::Role;

    use super::*;

    fn call(id: &str, command: &str) -> Entry {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        entry.tool_call_id = Some(id.to_owned());
        entry.tool_input = Some(json!({ "command": command }));
        entry
    }

    fn failure(id: &str) -> Entry {
        let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, "broken");
        entry.tool_call_id = Some(id.to_owned());
        entry.extra.insert("is_error".to_owned(), json!(true));
        entry
    }

    #[test]
    fn problems_of_sessions_are_counted_and_added() {
        let entries = [
            call("1", "make"),
            failure("1"),
            call("2", "make"),
            Entry::new(Role::System, EntryKind::Error, "overloaded"),
        ];
        let one = QualityCounts::from_entries(&entries);
        assert_eq!((one.tool_calls, one.failed_calls, one.other_errors, one.retries), (2, 1, 1, 1));
        assert_eq!(one.unrepaired, 2);
        assert_eq!((one.problems(), one.failure_percent()), (3, Some(50.0)));
        let mut all = one.clone();
        all.add(&one);
        assert_eq!((all.sessions, all.problems()), (2, 6));
        assert_eq!(QualityCounts::default().failure_percent(), None);
        let quality = SessionQuality::from_entries(&entries);
        assert_eq!(
            problem_summary(&quality),
            "1 failed call, 1 other error, none repaired, 1 retry"
        );
        assert_eq!(problem_summary(&SessionQuality::default()), "no problems");
    }

    #[test]
    fn a_session_that_has_grown_is_counted_again() {
        let cache = QualityCache::default();
        let key = ("codex".to_owned(), "one".to_owned());
        cache.insert(key.clone(), 10, QualityCounts::default());
        assert_eq!(cache.find(&key, 10), Some(QualityCounts::default()));
        assert_eq!(cache.find(&key, 11), None);
    }
}
