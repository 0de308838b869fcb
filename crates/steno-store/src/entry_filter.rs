//! Which entries a search, a report or a list of charges covers.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::private_sessions::PrivateSessions;
use steno_model::session::SessionId;
use steno_model::timestamp::Timestamp;

/// Selects entries. A field that is `None` matches all.
#[derive(Clone, Debug, Default)]
pub struct EntryFilter {
    /// The agent.
    pub agent: Option<String>,
    /// The project folder, or a folder above it. The last component of its name is enough.
    pub project: Option<String>,
    /// The role.
    pub role: Option<String>,
    /// The tool of calls and results.
    pub tool: Option<String>,
    /// A substring of the model's name.
    pub model: Option<String>,
    /// At this time or later.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// The session.
    pub session: Option<SessionId>,
    /// The session's thread.
    pub thread: Option<String>,
    /// Only errors and failed tools.
    pub only_errors: bool,
    /// Sessions to leave out.
    pub private: PrivateSessions,
    /// The only sessions to select.
    pub only: Option<Arc<SelectedSessions>>,
}

/// Some sessions, by agent and id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedSessions {
    /// `agent/id` of each.
    names: BTreeSet<String>,
}

impl SelectedSessions {
    /// Adds a session.
    pub fn insert(&mut self, agent: &str, id: &str) {
        self.names.insert(format!("{agent}/{id}"));
    }

    /// Whether a session is selected.
    pub fn contains(&self, agent: &str, id: &str) -> bool {
        self.names.contains(&format!("{agent}/{id}"))
    }

    /// The names as a JSON list.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(&self.names).expect("a list of texts")
    }
}

impl EntryFilter {
    /// Whether a time in milliseconds since 1970 is selected.
    pub fn matches_time(&self, at: Option<i64>) -> bool {
        let moment = |at: Timestamp| at.instant().as_millisecond();
        let after = |since| at.is_some_and(|at| at >= moment(since));
        let before = |until| at.is_some_and(|at| at < moment(until));
        self.since.is_none_or(after) && self.until.is_none_or(before)
    }
}
