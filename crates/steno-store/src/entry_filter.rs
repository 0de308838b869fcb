//! Which entries a search, a report or a list of charges covers.

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
