//! Counts the sessions of each agent.

use super::{Index, IndexError};
use steno_model::Timestamp;

/// The sessions of one agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSummary {
    /// The agent.
    pub agent: String,
    /// Number of sessions with entries.
    pub sessions: u64,
    /// Number of sessions without entries.
    pub empty_sessions: u64,
    /// When the last session ended, or began if its end is unknown.
    pub last_activity: Option<Timestamp>,
}

impl Index {
    /// Counts the sessions of each agent.
    pub fn summarize_agents(&self) -> Result<Vec<AgentSummary>, IndexError> {
        let sql = "SELECT agent, sum(entries > 0), sum(entries = 0),
            max(coalesce(ended_at, started_at)) FROM session GROUP BY agent ORDER BY agent";
        let all = || -> rusqlite::Result<Vec<AgentSummary>> {
            let mut all = self.connection.prepare_cached(sql)?;
            let read = |row: &rusqlite::Row<'_>| {
                let last = row.get::<_, Option<i64>>(3)?;
                let last = last.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
                Ok(AgentSummary {
                    agent: row.get(0)?,
                    sessions: row.get::<_, i64>(1)? as u64,
                    empty_sessions: row.get::<_, i64>(2)? as u64,
                    last_activity: last.map(|at| Timestamp::from_instant(at, 3)),
                })
            };
            all.query_map([], read)?.collect()
        };
        self.wrap_error(all())
    }
}
