//! Indexes new and changed sessions of the vault without looking at every session.
//!
//! # What the index trusts
//! The index takes its copy of a session as current unless one of these signs says otherwise:
//!
//! - A marker ([`PendingSessions`]), which is created before the first byte is written. Example: `sync` is killed after
//!   the vault's commit and before the index's.
//! - A new modification time of the agent's folder in the vault. Example: somebody copies a backup of the vault back,
//!   or deletes the folder of a session.
//! - `kept = -1` in the row of the session. Example: a process died between two transactions for one session.
//! - Another boot of the machine ([`Index::verify_after_boot`]). Example: a power failure took the last commits, which
//!   SQLite does not sync in this mode.
//! - Changed files of a session that was damaged when it was read. Example: somebody replaces a damaged file by its
//!   backup.
//!
//! A sign only selects sessions to check. A session is read again if the size of its files in the vault differs from
//! `kept`, its size when it was last indexed completely, or if it was damaged. The writer then compares a hash over the entries that the
//! index has, and appends or replaces (`index_writer`). For example, the index has 40 entries of a session and the
//! vault now 50. If the hash over the first 40 is the same, 10 rows are inserted. If the agent rewrote the file, all
//! rows are replaced.
//!
//! A change that leaves no sign, such as an edit of a kept file by hand, is not noticed here. `Vault::verify` finds it.

use std::collections::{HashMap, HashSet};
use std::time::UNIX_EPOCH;

use rusqlite::{OptionalExtension, params};

use super::pending_sessions::{PendingMarker, PendingSessions};
use super::{Index, IndexAccess, IndexError};
use steno_vault::{SessionDir, Vault};

/// Bytes collected before they are written in one transaction.
pub const MAX_BATCH_BYTES: usize = 44 << 20;

/// The result of a refresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefreshSummary {
    /// Sessions that were indexed.
    pub indexed: usize,
    /// Sessions that another process is keeping right now.
    pub pending: usize,
}

/// How an agent's folder in the vault differs from the index.
#[derive(Debug)]
pub(super) struct FolderChange {
    /// Sessions that the index lacks or has only in part.
    pub(super) added: Vec<SessionDir>,
    /// Row ids and session ids without a folder.
    pub(super) removed: Vec<(i64, String)>,
}

/// The marked sessions that this process indexes.
#[derive(Debug, Default)]
struct ClaimedSessions {
    to_index: Vec<SessionDir>,
    markers: Vec<PendingMarker>,
    /// Sessions that another process will index.
    pending_elsewhere: usize,
}

/// A callback before each session is indexed: the number of sessions, and this one.
pub type RefreshProgress<'a> = &'a mut dyn FnMut(usize, &SessionDir);

impl Index {
    /// Indexes the sessions kept since the last refresh.
    pub fn refresh(
        &self,
        vault: &Vault,
        pass: RefreshProgress<'_>,
    ) -> Result<RefreshSummary, IndexError> {
        let pending = PendingSessions::new(&self.store);
        let marked = pending.marked_sessions(vault)?;
        let ClaimedSessions { mut to_index, markers, pending_elsewhere } =
            self.claim_sessions(&pending, &marked)?;
        let folders = self.changed_folders(vault)?;
        let missing = if folders.is_empty() { Vec::new() } else { vault.missing_sessions()? };
        let is_marked: HashSet<_> = marked.iter().map(SessionDir::path).collect();
        for (agent, _) in &folders {
            let FolderChange { added, mut removed } = self.compare_folder(vault, agent)?;
            let missing = missing.iter().filter(|dir| dir.agent() == agent);
            let missing: HashSet<_> = missing.map(|dir| dir.id().as_str()).collect();
            // Sessions in the journal stay, and are reported as missing.
            removed.retain(|(_, id)| !missing.contains(id.as_str()));
            if !removed.is_empty() {
                let mut removed = removed.into_iter();
                self.run_transaction(|| {
                    removed.try_for_each(|(session, _)| self.remove_session(session))
                })?;
            }
            to_index.extend(added.into_iter().filter(|dir| !is_marked.contains(dir.path())));
        }
        self.mark_missing(&missing)?;
        let unfinished = self.unfinished_sessions(vault)?.into_iter();
        to_index.extend(unfinished.filter(|dir| !is_marked.contains(dir.path()) && dir.exists()));
        // A marked session may never have been written. Another one may have lost its lines in the journal.
        to_index.retain(|dir| !dir.is_empty().unwrap_or(false) || dir.may_be_unlisted());
        to_index.retain(|dir| !self.is_up_to_date(dir).unwrap_or(false));
        to_index.extend(self.changed_damaged_sessions(vault)?);
        to_index.sort_by(|a, b| a.path().cmp(b.path()));
        to_index.dedup();
        let indexed = to_index.len();
        self.index_sessions(&mut to_index, pass)?;
        if !to_index.is_empty() {
            self.checkpoint_log();
        }
        if self.is_current_file() {
            self.save_folder_times(&folders)?;
            markers.into_iter().for_each(PendingMarker::remove);
        }
        Ok(RefreshSummary { indexed, pending: pending_elsewhere })
    }

    /// Claims the markers of these sessions, unless another process holds them.
    fn claim_sessions(
        &self,
        pending: &PendingSessions,
        marked: &[SessionDir],
    ) -> Result<ClaimedSessions, IndexError> {
        let is_shared = self.access != IndexAccess::Memory;
        let mut claimed = ClaimedSessions::default();
        for dir in marked {
            // An index in memory leaves the markers to the store's index.
            let marker = if is_shared { pending.claim_marker(dir) } else { None };
            match marker {
                Some(marker) => claimed.markers.push(marker),
                // Another process holds the marker. Its recording may take hours and is indexed now; an import is
                // indexed soon by that process.
                None if is_shared && dir.is_imported()? => {
                    claimed.pending_elsewhere += 1;
                    continue;
                }
                None => {}
            }
            claimed.to_index.push(dir.clone());
        }
        Ok(claimed)
    }

    /// Sessions that are incomplete in the index: a process died while it wrote them, or a system error prevented
    /// reading.
    fn unfinished_sessions(&self, vault: &Vault) -> Result<Vec<SessionDir>, IndexError> {
        let all = || -> rusqlite::Result<Vec<(String, String)>> {
            let query = "SELECT agent, name FROM session WHERE kept < 0";
            let mut all = self.connection.prepare_cached(query)?;
            all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let names = self.wrap_error(all())?.into_iter();
        let session = |(agent, id): (String, String)| {
            Some(vault.session_dir(&agent.parse().ok()?, &id.parse().ok()?))
        };
        Ok(names.filter_map(session).collect())
    }

    /// Marks sessions that are missing in the vault, although its journal lists them.
    fn mark_missing(&self, missing: &[SessionDir]) -> Result<(), IndexError> {
        if missing.is_empty() {
            return Ok(());
        }
        self.run_transaction(|| {
            for dir in missing {
                let names = params![dir.agent(), dir.id().as_str()];
                let insert = "INSERT OR IGNORE INTO session (agent, name) VALUES (?1, ?2)";
                self.wrap_error(self.connection.execute(insert, names))?;
                let update =
                    "UPDATE session SET kept = -1, trouble = 'its folder is missing from the vault'
                    WHERE agent = ?1 AND name = ?2";
                self.wrap_error(self.connection.execute(update, names))?;
            }
            Ok(())
        })
    }

    /// Whether the index has all of a session.
    pub(super) fn is_up_to_date(&self, dir: &SessionDir) -> Result<bool, IndexError> {
        let query = "SELECT kept FROM session WHERE agent = ?1 AND name = ?2";
        let names = params![dir.agent(), dir.id().as_str()];
        let find = || {
            let mut find = self.connection.prepare_cached(query)?;
            find.query_row(names, |row| row.get::<_, i64>(0)).optional()
        };
        let kept = self.wrap_error(find())?;
        Ok(kept.is_some_and(|kept| {
            u64::try_from(kept).is_ok_and(|kept| dir.stored_size().ok() == Some(kept))
        }))
    }

    /// Reads sessions from the vault and writes them to the index, oldest first, so that newer texts get higher ids.
    fn index_sessions(
        &self,
        sessions: &mut [SessionDir],
        pass: RefreshProgress<'_>,
    ) -> Result<(), IndexError> {
        if sessions.len() > 1 {
            sessions.sort_by_cached_key(|dir| dir.last_modified().ok());
        }
        let (mut gathered, mut size) = (Vec::new(), 0);
        for dir in sessions.iter() {
            pass(sessions.len(), dir);
            let Some(prepared) = self.read_session(dir)? else { continue };
            size += prepared.size_bytes();
            gathered.push(prepared);
            if size >= MAX_BATCH_BYTES {
                self.write_sessions(&std::mem::take(&mut gathered))?;
                size = 0;
            }
        }
        self.write_sessions(&gathered)
    }

    /// Agents with changed folders, and the folders' modification times.
    pub(super) fn changed_folders(&self, vault: &Vault) -> Result<Vec<(String, i64)>, IndexError> {
        let known = || -> rusqlite::Result<HashMap<String, i64>> {
            let mut all = self.connection.prepare_cached("SELECT agent, changed FROM folder")?;
            all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let mut known = self.wrap_error(known())?;
        // Sessions may be indexed before their folder was first checked.
        for agent in self.list_agents()? {
            known.entry(agent).or_insert(0);
        }
        let mut changed = Vec::new();
        for agent in vault.list_agents()? {
            let now = folder_mtime_nanos(&vault.root().join(&agent));
            if known.remove(&agent) != Some(now) {
                changed.push((agent, now));
            }
        }
        changed.extend(known.into_keys().map(|agent| (agent, 0)));
        Ok(changed)
    }

    /// Compares an agent's sessions in the vault with those in the index.
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
        let mut known = self.wrap_error(known())?;
        let mut come = Vec::new();
        if let Ok(name) = agent.parse() {
            vault.for_each_session_id(&name, &mut |id| {
                if known.remove(id.as_str()).is_none_or(|(_, is_whole)| !is_whole) {
                    come.push(vault.session_dir(&name, &id));
                }
            })?;
        }
        let gone = known.into_iter().map(|(name, (session, _))| (session, name)).collect();
        Ok(FolderChange { added: come, removed: gone })
    }

    /// Compares all sessions with the vault once per boot. After a power failure the index may have lost its last
    /// commits, though the vault has not.
    pub fn verify_after_boot(&self, vault: &Vault, boot: &str) -> Result<(), IndexError> {
        let known = self.verified_boot()?;
        if known.as_deref() == Some(boot) {
            return Ok(());
        }
        let mut differing = Vec::new();
        if self.has_sessions()? {
            for dir in vault.list_sessions()? {
                if !self.is_up_to_date(&dir)? {
                    differing.push(dir);
                }
            }
        }
        self.run_transaction(|| {
            for dir in &differing {
                let sql = "UPDATE session SET kept = -1 WHERE agent = ?1 AND name = ?2";
                let names = params![dir.agent(), dir.id().as_str()];
                self.wrap_error(self.connection.execute(sql, names))?;
            }
            self.wrap_error(self.connection.execute("DELETE FROM folder", []))?;
            let sql = "INSERT OR REPLACE INTO meta VALUES ('boot', ?1)";
            self.wrap_error(self.connection.execute(sql, [boot])).map(|_| ())
        })
    }

    /// Stores the boot id in an empty index. Sessions written from now on need no comparison before the next boot.
    pub fn note_first_boot(&self, boot: &str) -> Result<(), IndexError> {
        let sql = "INSERT OR IGNORE INTO meta
            SELECT 'boot', ?1 WHERE NOT EXISTS (SELECT 1 FROM session)";
        self.wrap_error(self.connection.execute(sql, [boot])).map(drop)
    }

    fn has_sessions(&self) -> Result<bool, IndexError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM session)";
        self.wrap_error(self.connection.query_row(sql, [], |row| row.get(0)))
    }

    /// The boot in which the index was last compared with the vault.
    pub(super) fn verified_boot(&self) -> Result<Option<String>, IndexError> {
        let query = "SELECT value FROM meta WHERE name = 'boot'";
        let known = self.connection.query_row(query, [], |row| row.get(0)).optional();
        self.wrap_error(known)
    }

    fn save_folder_times(&self, folders: &[(String, i64)]) -> Result<(), IndexError> {
        if folders.is_empty() {
            return Ok(());
        }
        self.run_transaction(|| {
            for (agent, changed) in folders {
                let sql = match changed {
                    0 => "DELETE FROM folder WHERE agent = ?1 AND ?2 = 0",
                    _ => "INSERT OR REPLACE INTO folder VALUES (?1, ?2)",
                };
                self.wrap_error(self.connection.execute(sql, params![agent, changed]))?;
            }
            Ok(())
        })
    }
}

/// A folder's modification time in nanoseconds; 0 if it does not exist.
fn folder_mtime_nanos(path: &std::path::Path) -> i64 {
    let modified =
        steno_cipher::store_fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let distance = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    distance.map_or(0, |distance| i64::try_from(distance.as_nanos()).unwrap_or(0))
}
