//! Pushes sessions to a remote.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use serde::{Deserialize, Serialize};
use steno_cipher::store_fs;
use steno_store::index::session_rows::USAGE_KEY_VERSION;
use steno_vault::{SessionDir, Vault};

use crate::frame_chain::FrameHash;
use crate::manifest::{REMOTE_VERSION, SessionKey};
use crate::push_summary::PushSummary;
use crate::remote::TeamRemote;
use crate::remote_settings::RemoteSettings;
use crate::remote_tombstone::RemoteTombstone;
use crate::session_sender::{MAX_ATTEMPTS, OutgoingSession, SessionSender};
use crate::team_error::TeamError;

/// Connections of one push. Each has a thread that reads and redacts while the database works for the other.
const MAX_CONNECTIONS: usize = 2;

/// A push of fewer sessions needs one connection.
const MIN_SESSIONS_TO_SHARE: usize = 8;

/// What was pushed last, to skip unchanged sessions. It is a cache: without it, everything is compared.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PushedSessions {
    sessions: BTreeMap<String, PushedSession>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PushedSession {
    /// The stamp of the session's files.
    stamp: i64,
    /// The settings that it was pushed with.
    settings: String,
    revision: FrameHash,
    /// The version of the keys of its usage.
    #[serde(default)]
    usage_key_version: i16,
}

/// Pushes sessions of one store to one remote.
#[derive(Debug)]
pub struct SessionPush<'a> {
    remote: &'a mut TeamRemote,
    settings: &'a RemoteSettings,
    /// A folder for what is not finished, and the list of pushed sessions.
    folder: PathBuf,
    pushed: PushedSessions,
    /// The revisions that the remote has.
    revisions: BTreeMap<SessionKey, FrameHash>,
    /// Pushed sessions that a remote may still refuse, as it publishes many at once.
    unconfirmed: Vec<OutgoingSession>,
    /// The end of the oldest sessions that the remote keeps.
    oldest_kept: Option<i64>,
    /// What was done so far.
    pub summary: PushSummary,
}

impl<'a> SessionPush<'a> {
    /// Asks the remote what it has. `folder` is this machine's own folder for the remote.
    pub fn begin(
        remote: &'a mut TeamRemote,
        settings: &'a RemoteSettings,
        folder: &Path,
    ) -> Result<Self, TeamError> {
        remote.check_version()?;
        store_fs::create_private_dir(folder)?;
        let pushed = store_fs::read(&folder.join("pushed.json")).ok();
        let pushed = pushed.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let revisions = remote.list_revisions()?.into_iter().collect();
        let oldest_kept = remote.oldest_kept()?;
        remote.begin_push()?;
        let (folder, summary) = (folder.to_owned(), PushSummary::default());
        let unconfirmed = Vec::new();
        Ok(Self { remote, settings, folder, pushed, revisions, unconfirmed, oldest_kept, summary })
    }

    /// Removes the sessions from the remote that were forgotten here.
    pub fn push_tombstones(&mut self, vault: &Vault) -> Result<(), TeamError> {
        let known = self.remote.list_tombstones()?;
        for tombstone in vault.tombstones()?.into_iter().filter(|one| one.is_whole_session()) {
            let Some((agent, id)) = tombstone.session.split_once('/') else { continue };
            let Ok(id) = id.parse() else { continue };
            let owner = self.remote.owner().to_owned();
            let key = SessionKey { owner, agent: agent.to_owned(), id };
            if known.iter().any(|known| known.key == key) {
                continue;
            }
            // The remote refuses the session from now on, whether or not it had it.
            let was_pushed = self.revisions.contains_key(&key);
            self.remote.forget_session(&RemoteTombstone { key, tombstone })?;
            self.summary.forgotten += u64::from(was_pushed);
        }
        Ok(())
    }

    /// Removes sessions from the remote that must not be there: they became private after they were pushed. They can be
    /// pushed again later.
    pub fn withdraw_sessions(&mut self, sessions: &[SessionDir]) -> Result<(), TeamError> {
        for dir in sessions {
            let owner = self.remote.owner().to_owned();
            let key = SessionKey { owner, agent: dir.agent().to_owned(), id: dir.id().clone() };
            if self.revisions.remove(&key).is_some() {
                self.remote.clear_session(&key)?;
                self.pushed.sessions.remove(&format!("{}/{}", key.agent, key.id));
                self.summary.withdrawn += 1;
            }
        }
        Ok(())
    }

    /// Pushes sessions, over several connections if there are many. Calls `report` with the result of each that has
    /// changed, in any order. After an error of the remote itself, no further session is begun.
    pub fn push_sessions(
        &mut self,
        sessions: &[OutgoingSession],
        report: &mut dyn FnMut(&OutgoingSession, Result<(), TeamError>),
    ) {
        let settings = self.settings_text();
        let changed = self.select_changed(sessions, &settings, report);
        let has_late_refusals = self.remote.has_late_refusals();
        let mut others = connect_others(self.remote, changed.len());
        let (queue, next) = (&changed, &AtomicUsize::new(0));
        let (remote_settings, folder) = (self.settings, self.folder.as_path());
        let large_texts = &Mutex::new(());
        let remotes = std::iter::once(&mut *self.remote);
        std::thread::scope(|scope| {
            let (results, received) = mpsc::channel();
            for remote in remotes.chain(&mut others) {
                let results = results.clone();
                let mut sender = SessionSender::new(remote, remote_settings, folder, large_texts);
                scope.spawn(move || {
                    while let Some((session, stamp)) =
                        queue.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let sent = sender.push_session(session);
                        let summary = std::mem::take(&mut sender.summary);
                        if results.send((*session, *stamp, sent, summary)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(results);
            for (session, stamp, sent, summary) in received {
                self.summary.add(&summary);
                if matches!(sent, Err(TeamError::Database { .. } | TeamError::Objects { .. })) {
                    next.store(queue.len(), Ordering::Relaxed);
                }
                let pushed = sent.map(|revision| {
                    let (settings, usage_key_version) = (settings.clone(), USAGE_KEY_VERSION);
                    let revision = revision?;
                    Some(PushedSession { stamp, settings, revision, usage_key_version })
                });
                if let Ok(Some(pushed)) = &pushed {
                    self.pushed.sessions.insert(session_name(session), pushed.clone());
                    if has_late_refusals {
                        self.unconfirmed.push(session.clone());
                    }
                }
                report(session, pushed.map(drop));
            }
        });
    }

    /// The sessions that have changed since they were pushed, with the stamps of their files.
    fn select_changed<'s>(
        &mut self,
        sessions: &'s [OutgoingSession],
        settings: &str,
        report: &mut dyn FnMut(&OutgoingSession, Result<(), TeamError>),
    ) -> Vec<(&'s OutgoingSession, i64)> {
        let mut changed = Vec::new();
        for session in sessions {
            if self.oldest_kept.is_some_and(|oldest| session.ended_before(oldest)) {
                self.summary.expired += 1;
                continue;
            }
            match session.dir.files_stamp() {
                Ok(stamp) if self.is_unchanged(session, stamp, settings) => {
                    self.summary.unchanged += 1;
                }
                Ok(stamp) => changed.push((session, stamp)),
                Err(error) => report(session, Err(error.into())),
            }
        }
        changed
    }

    /// Whether a session is as it was when it was pushed last, here and on the remote.
    fn is_unchanged(&self, session: &OutgoingSession, stamp: i64, settings: &str) -> bool {
        let revision = self.revisions.get(&self.session_key(session));
        let has_usage = self.remote.has_entries();
        self.pushed.sessions.get(&session_name(session)).is_some_and(|pushed| {
            pushed.stamp == stamp
                && pushed.settings == settings
                && revision == Some(&pushed.revision)
                && (!has_usage || pushed.usage_key_version == USAGE_KEY_VERSION)
        })
    }

    /// Sends what is still packed, and writes the list of pushed sessions.
    pub fn finish(mut self) -> Result<PushSummary, TeamError> {
        self.confirm_sessions()?;
        let text = serde_json::to_vec(&self.pushed).expect("a list of texts and numbers");
        store_fs::write_atomic(&self.folder.join("pushed.json"), &text)?;
        Ok(self.summary)
    }

    /// Pushes the sessions again that another machine has published first.
    fn confirm_sessions(&mut self) -> Result<(), TeamError> {
        for _ in 0..MAX_ATTEMPTS {
            let contended = self.remote.finish_push()?;
            if contended.is_empty() {
                return Ok(());
            }
            let mut again = std::mem::take(&mut self.unconfirmed);
            again.retain(|session| contended.contains(&self.session_key(session)));
            for session in &again {
                self.summary.sessions -= 1;
                self.pushed.sessions.remove(&session_name(session));
            }
            let mut failure = None;
            self.push_sessions(&again, &mut |_, result| failure = failure.take().or(result.err()));
            if let Some(error) = failure {
                return Err(error);
            }
        }
        let contended = self.unconfirmed.first().map(|one| self.session_key(one).to_string());
        Err(TeamError::Contended(contended.unwrap_or_default()))
    }

    fn session_key(&self, session: &OutgoingSession) -> SessionKey {
        let owner = self.remote.owner().to_owned();
        SessionKey { owner, agent: session.dir.agent().to_owned(), id: session.dir.id().clone() }
    }

    fn settings_text(&self) -> String {
        let RemoteSettings { url, visibility, redact, notes, .. } = self.settings;
        format!("{REMOTE_VERSION} {url} {visibility} {redact} {notes}")
    }
}

/// Further connections, for a push of many sessions. One that fails is not needed.
fn connect_others(remote: &TeamRemote, sessions: usize) -> Vec<TeamRemote> {
    let count = if sessions < MIN_SESSIONS_TO_SHARE { 0 } else { MAX_CONNECTIONS - 1 };
    let connect = |_| {
        let mut other = remote.connect_again().ok().flatten()?;
        other.begin_push().ok()?;
        Some(other)
    };
    (0..count).map_while(connect).collect()
}

fn session_name(session: &OutgoingSession) -> String {
    format!("{}/{}", session.dir.agent(), session.dir.id())
}
