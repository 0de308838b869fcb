//! Takes in what is in the vault and not in the index, without looking at every session.
//!
//! Sessions that have changed are marked ([`Pending`]); sessions that have come or gone without a mark, as in a
//! vault that was put back, show in the time of their agent's folder.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::UNIX_EPOCH;

use rusqlite::{OptionalExtension, params};

use super::pending::Pending;
use super::{Index, IndexAccess, IndexError};
use crate::vault::{SessionDir, Vault};

/// How many bytes are gathered before they are put in, under one lock.
pub const GATHERED: usize = 44 << 20;

/// What a look at the vault brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Sessions that were taken in.
    pub taken: usize,
    /// Sessions that another process is keeping right now.
    pub pending: usize,
}

/// How an agent's folder in the vault differs from the index.
#[derive(Debug)]
pub(super) struct FolderChange {
    /// The sessions that the index does not have in whole.
    pub(super) come: Vec<SessionDir>,
    /// The rows of sessions whose folders are gone, and their ids.
    pub(super) gone: Vec<(i64, String)>,
}

/// A session of which something is missing or damaged in the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TroubledSession {
    /// The agent.
    pub agent: String,
    /// The session's id.
    pub id: String,
    /// What is wrong.
    pub reason: String,
}

/// Told of each session before it is taken in: how many there are, and which it is.
pub type Pass<'a> = &'a mut dyn FnMut(usize, &SessionDir);

impl Index {
    /// Takes in what was kept since the index was last looked after.
    pub fn refresh(&self, vault: &Vault, pass: Pass<'_>) -> Result<Refreshed, IndexError> {
        let pending = Pending::new(&self.store);
        let marked = pending.sessions(vault)?;
        let mut refreshed = Refreshed::default();
        let is_shared = self.access != IndexAccess::Memory;
        let mut claimed = Vec::new();
        let mut wanted = Vec::new();
        for dir in &marked {
            // An index in memory leaves the markers to the one of the store.
            let marker = if is_shared { pending.claim(dir) } else { None };
            match marker {
                Some(marker) => claimed.push(marker),
                // Somebody is at it. A session that is recorded may take hours; any other is in soon.
                None if is_shared && dir.is_imported()? => {
                    refreshed.pending += 1;
                    continue;
                }
                None => {}
            }
            wanted.push(dir.clone());
        }
        let folders = self.changed_folders(vault)?;
        let missing = if folders.is_empty() { Vec::new() } else { vault.missing_sessions()? };
        let is_marked: HashSet<_> = marked.iter().map(SessionDir::path).collect();
        for (agent, _) in &folders {
            let FolderChange { come, mut gone } = self.compare_folder(vault, agent)?;
            let missing = missing.iter().filter(|dir| dir.agent() == agent);
            let missing: HashSet<_> = missing.map(|dir| dir.id().as_str()).collect();
            // What the journal lists stays, and is reported.
            gone.retain(|(_, id)| !missing.contains(id.as_str()));
            if !gone.is_empty() {
                let mut gone = gone.into_iter();
                self.transaction(|| gone.try_for_each(|(session, _)| self.remove(session)))?;
            }
            wanted.extend(come.into_iter().filter(|dir| !is_marked.contains(dir.path())));
        }
        self.report_missing(&missing)?;
        let unfinished = self.unfinished_sessions(vault)?.into_iter();
        wanted.extend(unfinished.filter(|dir| !is_marked.contains(dir.path()) && dir.exists()));
        wanted.sort_by(|a, b| a.path().cmp(b.path()));
        wanted.dedup();
        // One that was marked and never kept is not there.
        wanted.retain(|dir| !dir.is_empty().unwrap_or(false));
        wanted.retain(|dir| !self.is_up_to_date(dir).unwrap_or(false));
        refreshed.taken = wanted.len();
        self.take_in(&mut wanted, pass)?;
        if !wanted.is_empty() {
            self.settle();
        }
        if self.is_in_place() {
            self.note_folders(&folders)?;
            claimed.into_iter().for_each(super::pending::Marker::done);
        }
        Ok(refreshed)
    }

    /// The sessions that are not whole in the index: somebody died putting them in, or the system failed to read them.
    fn unfinished_sessions(&self, vault: &Vault) -> Result<Vec<SessionDir>, IndexError> {
        let all = || -> rusqlite::Result<Vec<(String, String)>> {
            let query = "SELECT agent, name FROM session WHERE kept < 0";
            let mut all = self.connection.prepare_cached(query)?;
            all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let names = self.on(all())?.into_iter();
        let session = |(agent, id): (String, String)| {
            Some(vault.session(&agent.parse().ok()?, &id.parse().ok()?))
        };
        Ok(names.filter_map(session).collect())
    }

    /// Notes that sessions are missing in the vault, although its journal lists them.
    fn report_missing(&self, missing: &[SessionDir]) -> Result<(), IndexError> {
        if missing.is_empty() {
            return Ok(());
        }
        self.transaction(|| {
            for dir in missing {
                let names = params![dir.agent(), dir.id().as_str()];
                let insert = "INSERT OR IGNORE INTO session (agent, name) VALUES (?1, ?2)";
                self.on(self.connection.execute(insert, names))?;
                let update =
                    "UPDATE session SET kept = -1, trouble = 'its folder is missing in the vault'
                    WHERE agent = ?1 AND name = ?2";
                self.on(self.connection.execute(update, names))?;
            }
            Ok(())
        })
    }

    /// Sessions that could not be read in whole, and why: the first `limit` of them.
    pub fn troubled_sessions(&self, limit: usize) -> Result<Vec<TroubledSession>, IndexError> {
        let all = || -> rusqlite::Result<Vec<TroubledSession>> {
            let query =
                "SELECT agent, name, trouble FROM session WHERE trouble IS NOT NULL LIMIT ?1";
            let mut all = self.connection.prepare_cached(query)?;
            let row = |row: &rusqlite::Row<'_>| {
                Ok(TroubledSession { agent: row.get(0)?, id: row.get(1)?, reason: row.get(2)? })
            };
            all.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], row)?.collect()
        };
        self.on(all())
    }

    /// Whether the index has all that is kept of a session.
    pub(super) fn is_up_to_date(&self, dir: &SessionDir) -> Result<bool, IndexError> {
        let query = "SELECT kept FROM session WHERE agent = ?1 AND name = ?2";
        let names = params![dir.agent(), dir.id().as_str()];
        let find = || {
            let mut find = self.connection.prepare_cached(query)?;
            find.query_row(names, |row| row.get::<_, i64>(0)).optional()
        };
        let kept = self.on(find())?;
        Ok(kept.is_some_and(|kept| {
            u64::try_from(kept).is_ok_and(|kept| dir.size().ok() == Some(kept))
        }))
    }

    /// Reads sessions from the vault and puts them in, oldest first so that later rows are later texts.
    fn take_in(&self, sessions: &mut [SessionDir], pass: Pass<'_>) -> Result<(), IndexError> {
        if sessions.len() > 1 {
            sessions.sort_by_cached_key(|dir| dir.modified().ok());
        }
        let (mut gathered, mut size) = (Vec::new(), 0);
        for dir in sessions.iter() {
            pass(sessions.len(), dir);
            let Some(prepared) = self.take(dir)? else { continue };
            size += prepared.size();
            gathered.push(prepared);
            if size >= GATHERED {
                self.put(&std::mem::take(&mut gathered))?;
                size = 0;
            }
        }
        self.put(&gathered)
    }

    /// The agents whose folders have changed, with the time that each has now.
    pub(super) fn changed_folders(&self, vault: &Vault) -> Result<Vec<(String, i64)>, IndexError> {
        let known = || -> rusqlite::Result<HashMap<String, i64>> {
            let mut all = self.connection.prepare_cached("SELECT agent, changed FROM folder")?;
            all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let mut known = self.on(known())?;
        // Sessions go into the index before their folder was ever looked at.
        for agent in self.agents()? {
            known.entry(agent).or_insert(0);
        }
        let mut changed = Vec::new();
        for agent in vault.agents()? {
            let now = changed_at(&vault.root().join(&agent));
            if known.remove(&agent) != Some(now) {
                changed.push((agent, now));
            }
        }
        changed.extend(known.into_keys().map(|agent| (agent, 0)));
        Ok(changed)
    }

    /// Compares the sessions of an agent in the vault with those in the index.
    pub(super) fn compare_folder(
        &self,
        vault: &Vault,
        agent: &str,
    ) -> Result<FolderChange, IndexError> {
        let known = || -> rusqlite::Result<HashMap<String, (i64, bool)>> {
            let query = "SELECT name, id, kept >= 0 FROM session WHERE agent = ?1";
            let mut all = self.connection.prepare_cached(query)?;
            all.query_map([agent], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?.collect()
        };
        let mut known = self.on(known())?;
        let mut come = Vec::new();
        if let Ok(name) = agent.parse() {
            vault.each_session_id(&name, &mut |id| {
                if known.remove(id.as_str()).is_none_or(|(_, is_whole)| !is_whole) {
                    come.push(vault.session(&name, &id));
                }
            })?;
        }
        let gone = known.into_iter().map(|(name, (session, _))| (session, name)).collect();
        Ok(FolderChange { come, gone })
    }

    /// Compares all sessions with the vault once after each start of the machine, which `boot` names: when that stopped,
    /// the index may have lost what it was told last, though the vault has not.
    pub fn doubt(&self, vault: &Vault, boot: &str) -> Result<(), IndexError> {
        let known = self.known_boot()?;
        if known.as_deref() == Some(boot) {
            return Ok(());
        }
        let mut differing = Vec::new();
        if self.has_sessions()? {
            for dir in vault.sessions()? {
                if !self.is_up_to_date(&dir)? {
                    differing.push(dir);
                }
            }
        }
        self.transaction(|| {
            for dir in &differing {
                let sql = "UPDATE session SET kept = -1 WHERE agent = ?1 AND name = ?2";
                let names = params![dir.agent(), dir.id().as_str()];
                self.on(self.connection.execute(sql, names))?;
            }
            self.on(self.connection.execute("DELETE FROM folder", []))?;
            let sql = "INSERT OR REPLACE INTO meta VALUES ('boot', ?1)";
            self.on(self.connection.execute(sql, [boot])).map(|_| ())
        })
    }

    /// Notes in an index that is still empty since which start of the machine it is written: what it gets from now on need
    /// not be compared with the vault before the next start.
    pub fn note_first_boot(&self, boot: &str) -> Result<(), IndexError> {
        let sql = "INSERT OR IGNORE INTO meta
            SELECT 'boot', ?1 WHERE NOT EXISTS (SELECT 1 FROM session)";
        self.on(self.connection.execute(sql, [boot])).map(drop)
    }

    fn has_sessions(&self) -> Result<bool, IndexError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM session)";
        self.on(self.connection.query_row(sql, [], |row| row.get(0)))
    }

    /// Names the start of the machine since which the index was compared with the vault.
    pub(super) fn known_boot(&self) -> Result<Option<String>, IndexError> {
        let query = "SELECT value FROM meta WHERE name = 'boot'";
        let known = self.connection.query_row(query, [], |row| row.get(0)).optional();
        self.on(known)
    }

    fn note_folders(&self, folders: &[(String, i64)]) -> Result<(), IndexError> {
        if folders.is_empty() {
            return Ok(());
        }
        self.transaction(|| {
            for (agent, changed) in folders {
                let sql = match changed {
                    0 => "DELETE FROM folder WHERE agent = ?1 AND ?2 = 0",
                    _ => "INSERT OR REPLACE INTO folder VALUES (?1, ?2)",
                };
                self.on(self.connection.execute(sql, params![agent, changed]))?;
            }
            Ok(())
        })
    }
}

/// When a folder was last changed, in nanoseconds; 0 for one that is gone.
fn changed_at(path: &std::path::Path) -> i64 {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let distance = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    distance.map_or(0, |distance| i64::try_from(distance.as_nanos()).unwrap_or(0))
}
