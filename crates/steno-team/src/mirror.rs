//! The local copy of what a remote shows to this user. It is a store of its own, so every command can read it.
//!
//! A session is copied frame by frame; each frame is checked against its hash before it is kept. What the remote no
//! longer shows is removed from the mirror by the next pull.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use steno_cipher::store_fs;
use steno_model::durable::{self, OnPath};
use steno_model::{Clock, SessionId};
use steno_store::StoreLocation;
use steno_store::forget::SessionForgetter;
use steno_store::index::Index;
use steno_store::index::pending_sessions::PendingSessions;
use steno_store::session_owners::{SessionOwner, SessionOwners};
use steno_vault::{SessionDir, Vault};

use crate::frame_chain::FrameHash;
use crate::manifest::{FileStream, SessionKey, SessionManifest};
use crate::remote::TeamRemote;
use crate::session_receiver::{SessionReceiver, read_checked};
use crate::team_error::TeamError;

/// The list of mirrored sessions.
pub(crate) const PULLED_FILE: &str = "pulled.json";

/// What a pull has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PullSummary {
    /// Sessions with something new.
    pub sessions: u64,
    /// Sessions without anything new.
    pub unchanged: u64,
    /// Sessions of which another member has one with the same id. In the mirror, the owner's name follows their id.
    pub duplicates: u64,
    /// Received bytes of content.
    pub bytes: u64,
    /// Sessions removed from the mirror, as the remote no longer shows them.
    pub removed: u64,
    /// Own sessions removed from this machine's store, as they were forgotten on another machine.
    pub forgotten: u64,
}

/// What is in the mirror: a manifest for each session.
#[derive(Debug, Default, Serialize, Deserialize)]
struct MirroredSessions {
    sessions: BTreeMap<String, SessionManifest>,
}

/// The local copy of a remote.
#[derive(Debug)]
pub struct TeamMirror {
    folder: PathBuf,
    clock: Clock,
    mirrored: MirroredSessions,
}

impl TeamMirror {
    /// Opens the mirror in a folder, which need not exist.
    pub fn open(folder: impl Into<PathBuf>, clock: Clock) -> Self {
        let folder = folder.into();
        let mirrored = read_list(&folder);
        Self { folder, clock, mirrored }
    }

    /// The store with the copies.
    pub fn location(&self) -> StoreLocation {
        StoreLocation::new(self.folder.join("mirror"), self.clock.clone())
    }

    /// Applies what was forgotten: own sessions are removed from `store`.
    pub fn pull_tombstones(
        &self,
        remote: &mut TeamRemote,
        store: &StoreLocation,
    ) -> Result<u64, TeamError> {
        let vault = store.vault();
        let mut new = Vec::new();
        for forgotten in remote.list_tombstones()? {
            let SessionKey { owner, agent, id } = &forgotten.key;
            let stated = format!("{agent}/{id}");
            let Ok(name) = agent.parse() else { continue };
            let is_own = owner == remote.owner() && forgotten.tombstone.session == stated;
            let is_new = is_own
                && forgotten.tombstone.is_whole_session()
                && vault.session_dir(&name, id).exists()
                && !vault.is_forgotten(&name, id)?;
            if is_new {
                new.push(forgotten.tombstone);
            }
        }
        if !new.is_empty() {
            vault.add_tombstones(&new)?;
            SessionForgetter::new(store).finish_interrupted()?;
        }
        Ok(new.len() as u64)
    }

    /// Copies what is new on the remote, and removes what it no longer shows. With `only`, copies only the sessions whose
    /// id starts with it.
    pub fn pull(
        &mut self,
        remote: &mut TeamRemote,
        only: Option<&str>,
    ) -> Result<PullSummary, TeamError> {
        remote.check_version()?;
        store_fs::create_private_dir(&self.folder)?;
        // One process at a time: another may have pulled since this one has read the list.
        let _lock = self.lock()?;
        self.mirrored = read_list(&self.folder);
        let mut summary = PullSummary::default();
        let mut revisions = remote.list_revisions()?;
        // A session of this user keeps its id, even if another member has pushed one of the same id; else the session
        // keeps it that had it before.
        let own = remote.owner().to_owned();
        let is_present = |key: &SessionKey| {
            let present = self.mirrored.sessions.get(&mirror_name(&key.agent, &key.id));
            present.is_some_and(|present| present.key == *key)
        };
        revisions.sort_by_cached_key(|(key, _)| (key.owner != own, !is_present(key), key.clone()));
        let named = name_copies(&revisions);
        self.remove_hidden(&named, &mut summary)?;
        for NamedCopy { key, revision, name, id } in &named {
            if only.is_some_and(|prefix| !key.id.as_str().starts_with(prefix)) {
                continue;
            }
            summary.duplicates += u64::from(*id != key.id);
            let known = self.mirrored.sessions.get(name);
            if known.is_some_and(|known| known.key == **key && known.revision() == **revision) {
                summary.unchanged += 1;
                continue;
            }
            let Some(manifest) = remote.read_manifest(key)? else { continue };
            summary.bytes += self.receive_session(remote, &manifest, id)?;
            summary.sessions += 1;
            self.mirrored.sessions.insert(name.clone(), manifest);
            if summary.sessions % 64 == 0 {
                self.save()?;
            }
        }
        self.save()?;
        Ok(summary)
    }

    fn lock(&self) -> Result<File, TeamError> {
        let path = store_fs::lock_path(&self.folder.join(".lock"));
        let lock =
            durable::private_options().create(true).append(true).open(&path).on("open", &path)?;
        lock.lock().on("lock", &path)?;
        Ok(lock)
    }

    fn save(&self) -> Result<(), TeamError> {
        let text = serde_json::to_vec(&self.mirrored).expect("manifests have only texts and lists");
        Ok(store_fs::write_atomic(&self.folder.join(PULLED_FILE), &text)?)
    }

    /// Removes the sessions that the remote no longer shows, and those that have another name now.
    fn remove_hidden(
        &mut self,
        shown: &[NamedCopy<'_>],
        summary: &mut PullSummary,
    ) -> Result<(), TeamError> {
        let shown: HashSet<(&str, &SessionKey)> =
            shown.iter().map(|copy| (copy.name.as_str(), copy.key)).collect();
        let is_hidden =
            |name: &str, manifest: &SessionManifest| !shown.contains(&(name, &manifest.key));
        let mirrored = self.mirrored.sessions.iter();
        let hidden: Vec<String> = mirrored
            .filter(|(name, manifest)| is_hidden(name, manifest))
            .map(|(name, _)| name.clone())
            .collect();
        let vault = self.location().vault();
        for name in &hidden {
            if let Some(dir) = copy_dir(&vault, name) {
                dir.discard_copy()?;
                summary.removed += 1;
            }
            self.mirrored.sessions.remove(name);
        }
        if !hidden.is_empty() {
            self.save()?;
            self.remove_index()?;
        }
        Ok(())
    }

    /// Removes the index, which still has the texts of removed sessions.
    fn remove_index(&self) -> Result<(), TeamError> {
        let store = self.location().folder;
        if store.join("index.db").exists() {
            Index::rebuild(&store, None)?;
        }
        Ok(())
    }

    /// Copies the frames that the mirror lacks. Returns the number of received bytes.
    fn receive_session(
        &mut self,
        remote: &mut TeamRemote,
        manifest: &SessionManifest,
        id: &SessionId,
    ) -> Result<u64, TeamError> {
        let key = &manifest.key;
        let copy = SessionKey { id: id.clone(), ..key.clone() };
        let dir = copy.session_dir(&self.location().vault())?;
        let name = mirror_name(&key.agent, id);
        let known = self.mirrored.sessions.get(&name);
        if known.is_some_and(|known| known.key != *key || !continues(known, manifest)) {
            dir.discard_copy()?;
            self.mirrored.sessions.remove(&name);
            self.save()?;
            self.remove_index()?;
        }
        // The next command that reads the mirror indexes the session.
        let _marker = PendingSessions::new(&self.location().folder).mark_session(&dir)?;
        let commit = self.location().vault().begin_commit();
        let mut receiver = SessionReceiver { key, dir: &dir, commit };
        let mut bytes = 0;
        for stream in &manifest.files {
            bytes += receiver.receive_stream(remote, stream)?;
        }
        receiver.commit.finish()?;
        dir.receive_notes(&manifest.notes)?;
        Ok(bytes)
    }

    /// Reads every frame of the remote and checks hashes and chains. Calls `report` with each session and what is wrong.
    pub fn verify_remote(
        remote: &mut TeamRemote,
        report: &mut dyn FnMut(&SessionKey, Option<&TeamError>),
    ) -> Result<u64, TeamError> {
        remote.check_version()?;
        let mut bytes = 0;
        for (key, _) in remote.list_revisions()? {
            match check_session(remote, &key) {
                Ok(length) => {
                    bytes += length;
                    report(&key, None);
                }
                Err(error @ TeamError::Damaged { .. }) => report(&key, Some(&error)),
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }

    /// Whose sessions are in the mirror.
    pub fn owners(&self) -> SessionOwners {
        let mut owners = SessionOwners::default();
        for (name, SessionManifest { key, visibility, .. }) in &self.mirrored.sessions {
            if let Some((agent, id)) = name.split_once('/') {
                let (person, visibility) = (key.owner.clone(), *visibility);
                owners.insert(agent, id, SessionOwner { person, visibility });
            }
        }
        owners
    }

    /// The folder of the mirror and its lists.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Reads the list of mirrored sessions. Without it, all are compared frame by frame.
fn read_list(folder: &Path) -> MirroredSessions {
    let text = store_fs::read(&folder.join(PULLED_FILE)).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn check_session(remote: &mut TeamRemote, key: &SessionKey) -> Result<u64, TeamError> {
    let Some(manifest) = remote.read_manifest(key)? else { return Ok(0) };
    let mut bytes = 0;
    for frame in manifest.frames() {
        bytes += read_checked(remote, key, frame)?.len() as u64;
    }
    Ok(bytes)
}

/// A session of the remote, and its name in the mirror.
struct NamedCopy<'a> {
    key: &'a SessionKey,
    revision: &'a FrameHash,
    /// Agent and id.
    name: String,
    id: SessionId,
}

/// Gives each session a name of its own. The first of several with the same id keeps it.
fn name_copies(revisions: &[(SessionKey, FrameHash)]) -> Vec<NamedCopy<'_>> {
    let all: HashSet<String> =
        revisions.iter().map(|(key, _)| mirror_name(&key.agent, &key.id)).collect();
    let mut taken: HashSet<String> = HashSet::new();
    let mut named = Vec::with_capacity(revisions.len());
    for (key, revision) in revisions {
        let mut id = key.id.clone();
        let mut name = mirror_name(&key.agent, &id);
        if !taken.insert(name.clone()) {
            id = id_with_owner(key);
            name = mirror_name(&key.agent, &id);
            while all.contains(&name) || !taken.insert(name.clone()) {
                id = SessionId::for_native(&key.agent, &format!("{name}\n{}", key.owner));
                name = mirror_name(&key.agent, &id);
            }
        }
        named.push(NamedCopy { key, revision, name, id });
    }
    named
}

/// The id of a session, followed by the name of its owner.
fn id_with_owner(key: &SessionKey) -> SessionId {
    SessionId::for_native(&key.agent, &format!("{}.{}", key.id, key.owner))
}

fn mirror_name(agent: &str, id: &SessionId) -> String {
    format!("{agent}/{id}")
}

/// The folder of a session in the mirror, by its name.
fn copy_dir(vault: &Vault, name: &str) -> Option<SessionDir> {
    let (agent, id) = name.split_once('/')?;
    Some(vault.session_dir(&agent.parse().ok()?, &id.parse().ok()?))
}

/// Whether a manifest has all that an earlier one had.
fn continues(before: &SessionManifest, after: &SessionManifest) -> bool {
    let is_continued = |old: &FileStream| {
        after.files.iter().any(|new| {
            let (same, other) = (&old.description, &new.description);
            same.name == other.name
                && same.generation == other.generation
                && new.frames.starts_with(&old.frames)
        })
    };
    before.forgotten == after.forgotten && before.files.iter().all(is_continued)
}
