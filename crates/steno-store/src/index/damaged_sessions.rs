//! Sessions that the index has only in part, because their files in the vault are damaged or missing.
//!
//! Every answer of the index about all sessions comes with a warning about them. A damaged session is read again when
//! its files have changed, so the warning disappears after a repair.

use rusqlite::{OptionalExtension, params};

use super::{Index, IndexError};
use steno_model::problem::{Problem, ProblemList};
use steno_vault::{SessionDir, Vault};

/// How many damaged sessions a refresh checks for changes. A damaged journal makes all sessions of a vault damaged.
const MAX_CHECKED_SESSIONS: usize = 100;

/// A session that is missing or damaged in the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedSession {
    /// The agent.
    pub agent: String,
    /// The session's id.
    pub id: String,
    /// The reason.
    pub reason: String,
}

impl Index {
    /// The first `limit` sessions that could not be read completely, with reasons.
    pub fn damaged_sessions(&self, limit: usize) -> Result<Vec<DamagedSession>, IndexError> {
        let all = || -> rusqlite::Result<Vec<DamagedSession>> {
            let query =
                "SELECT agent, name, trouble FROM session WHERE trouble IS NOT NULL LIMIT ?1";
            let mut all = self.connection.prepare_cached(query)?;
            let row = |row: &rusqlite::Row<'_>| {
                Ok(DamagedSession { agent: row.get(0)?, id: row.get(1)?, reason: row.get(2)? })
            };
            all.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], row)?.collect()
        };
        self.wrap_error(all())
    }

    /// Whether the index has the session as damaged.
    pub fn has_damage(&self, dir: &SessionDir) -> Result<bool, IndexError> {
        let find = || {
            let query = "SELECT trouble IS NOT NULL FROM session WHERE agent = ?1 AND name = ?2";
            let mut find = self.connection.prepare_cached(query)?;
            find.query_row(params![dir.agent(), dir.id().as_str()], |row| row.get(0)).optional()
        };
        Ok(self.wrap_error(find())?.unwrap_or(false))
    }

    /// Damaged sessions with files that have changed since they were read.
    pub(super) fn changed_damaged_sessions(
        &self,
        vault: &Vault,
    ) -> Result<Vec<SessionDir>, IndexError> {
        let known = || -> rusqlite::Result<Vec<(String, String, i64)>> {
            let query = "SELECT agent, name, damage_stamp FROM session
                WHERE trouble IS NOT NULL AND damage_stamp IS NOT NULL LIMIT ?1";
            let mut known = self.connection.prepare_cached(query)?;
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            known.query_map([MAX_CHECKED_SESSIONS as i64], row)?.collect()
        };
        let mut changed = Vec::new();
        for (agent, id, stamp) in self.wrap_error(known())? {
            let (Ok(agent), Ok(id)) = (agent.parse(), id.parse()) else { continue };
            let dir = vault.session_dir(&agent, &id);
            if dir.exists() && dir.files_stamp()? != stamp {
                changed.push(dir);
            }
        }
        Ok(changed)
    }
}

/// Describes the damage of a session: what reading its files found, and else what the journal shows.
pub(super) fn describe_damage(read: &ProblemList, faults: &[Problem]) -> Option<String> {
    let (found, more) = read.first_kept(1);
    let (first, more) = match (found.first(), faults) {
        (Some(first), _) => (first, more),
        (None, [first, others @ ..]) => (first, others.len() as u64),
        (None, []) => return None,
    };
    Some(if more > 0 { format!("{first} (and {more} more)") } else { first.to_string() })
}
