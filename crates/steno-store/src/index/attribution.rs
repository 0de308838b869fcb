//! Attributes recorded traffic to sessions where the requests name none.
//!
//! An agent that wrote the same answers to its own session file at the same time made the requests. The index knows
//! which sessions were active then.

use std::collections::HashSet;

use super::{Index, IndexError};
use crate::transcript::{ended_exchanges, for_each_own_entry, move_exchanges};
use steno_agents::agent_session::AgentSession;
use steno_agents::protocols::traffic::attribution::{AgentAnswers, EndedExchange, ExchangeSpan};
use steno_model::durable::FileError;
use steno_model::session::SessionId;
use steno_model::timestamp::Clock;
use steno_vault::{SessionDir, Vault};

/// How long before its first and after its last entry a session may be active, in milliseconds.
const SESSION_SLACK_MS: i64 = 60_000;

/// A span of time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MillisecondSpan {
    /// The first millisecond.
    pub from: i64,
    /// The last millisecond.
    pub to: i64,
}

/// Exchanges of one recording that belong to one session.
struct OwnedExchanges {
    owner: SessionDir,
    exchanges: HashSet<String>,
}

impl Index {
    /// Moves exchanges to the sessions of the agents that made the requests, if those sessions are kept. Considers
    /// recordings that ended within `span` or have not ended. Returns the changed sessions, which the caller must
    /// index.
    pub fn attribute_traffic(
        &self,
        vault: &Vault,
        span: MillisecondSpan,
        clock: &Clock,
    ) -> Result<Vec<SessionDir>, IndexError> {
        let mut changed = Vec::new();
        for recording in self.find_unnamed_recordings(vault, span)? {
            for OwnedExchanges { owner, exchanges } in self.assign_exchanges(vault, &recording)? {
                move_exchanges(&recording, &exchanges, &owner, clock)?;
                changed.push(owner);
                if !changed.contains(&recording) {
                    changed.push(recording.clone());
                }
            }
        }
        Ok(changed)
    }

    /// Recordings without a native session id that ended within `span` or have not ended.
    fn find_unnamed_recordings(
        &self,
        vault: &Vault,
        span: MillisecondSpan,
    ) -> Result<Vec<SessionDir>, IndexError> {
        let sql = "SELECT agent, name FROM session WHERE native_id IS NULL AND entries > 0
            AND (ended_at IS NULL OR ended_at BETWEEN ?1 AND ?2)";
        let mut recordings = self.query_session_dirs(vault, sql, span)?;
        let mut failure = None;
        recordings.retain(|dir| {
            is_only_recorded(dir).unwrap_or_else(|error| {
                failure = Some(error);
                false
            })
        });
        failure.map_or(Ok(recordings), |error| Err(error.into()))
    }

    fn query_session_dirs(
        &self,
        vault: &Vault,
        sql: &str,
        MillisecondSpan { from, to }: MillisecondSpan,
    ) -> Result<Vec<SessionDir>, IndexError> {
        let (from, to) =
            (from.saturating_sub(SESSION_SLACK_MS), to.saturating_add(SESSION_SLACK_MS));
        let all = || -> rusqlite::Result<Vec<(String, String)>> {
            let mut rows = self.connection.prepare_cached(sql)?;
            rows.query_map((from, to), |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let named = |(agent, name): (String, String)| {
            let id: SessionId = name.parse().ok()?;
            Some(vault.session_dir(&agent.parse().ok()?, &id))
        };
        Ok(self.wrap_error(all())?.into_iter().filter_map(named).collect())
    }

    /// Assigns the exchanges of a recording to sessions. If only one session matches, it also gets the exchanges
    /// without a matching answer, such as failed calls.
    fn assign_exchanges(
        &self,
        vault: &Vault,
        recording: &SessionDir,
    ) -> Result<Vec<OwnedExchanges>, IndexError> {
        let mut exchanges = ended_exchanges(recording)?;
        let Some(span) = exchange_span(&exchanges) else { return Ok(Vec::new()) };
        let milliseconds =
            MillisecondSpan { from: span.from.as_millisecond(), to: span.to.as_millisecond() };
        let sql = "SELECT agent, name FROM session WHERE started_at <= ?2 AND ended_at >= ?1";
        let mut owned = Vec::new();
        for owner in self.query_session_dirs(vault, sql, milliseconds)? {
            let is_other = AgentSession::agent_names_sessions(owner.agent()) || owner == *recording;
            if is_other || !owner.is_imported()? {
                continue;
            }
            let mut own = AgentAnswers::default();
            if for_each_own_entry(&owner, &mut |entry| own.add_entry(entry, span)).is_err() {
                // The error is reported when that session is read.
                continue;
            }
            let matched = exchanges.extract_if(.., |exchange| own.take_answer(exchange));
            let matched: HashSet<String> = matched.map(|exchange| exchange.id).collect();
            if !matched.is_empty() {
                owned.push(OwnedExchanges { owner, exchanges: matched });
            }
        }
        if let [only] = owned.as_mut_slice()
            && !recording.is_being_recorded()?
        {
            only.exchanges.extend(exchanges.into_iter().map(|exchange| exchange.id));
        }
        Ok(owned)
    }
}

/// Whether a session has only a recording and no session files.
fn is_only_recorded(dir: &SessionDir) -> Result<bool, FileError> {
    Ok(dir.is_recorded()? && !dir.is_imported()?)
}

/// The span from the first request to the last response.
fn exchange_span(exchanges: &[EndedExchange]) -> Option<ExchangeSpan> {
    let spans = exchanges.iter().filter_map(EndedExchange::span);
    spans.reduce(|a, b| ExchangeSpan { from: a.from.min(b.from), to: a.to.max(b.to) })
}
