//! Pushes sessions to a remote.
//!
//! # Resuming
//! Frames are sent before the manifest that names them, and those that the remote has are not sent again. A push that
//! was killed leaves at most frames without a manifest, which the next push uses.
//!
//! # Two machines
//! Both read the manifest, and only one can replace it. The other reads it again: if its own content continues a stream,
//! it appends to that; if it differs, it adds a stream of the next generation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use steno_cipher::store_fs;
use steno_model::Session;
use steno_model::durable::OnPath;
use steno_store::index::session_rows::SessionRowReader;
use steno_store::view::redaction::SecretRedactor;
use steno_vault::{SessionDir, Vault};

use crate::frame_chain::{FrameHash, SentFrame, compress};
use crate::manifest::{REMOTE_VERSION, SessionKey, SessionManifest};
use crate::redacted_copy::{RedactedCopy, find_continued, next_generation, stream_end};
use crate::remote::TeamRemote;
use crate::remote_settings::RemoteSettings;
use crate::remote_tombstone::RemoteTombstone;
use crate::session_receiver::SessionReceiver;
use crate::team_error::TeamError;

/// How often a session is tried when other machines push it too.
const MAX_ATTEMPTS: usize = 20;

/// How many bytes are sent at once.
const MAX_SENT_BYTES: usize = 4 << 20;

/// What a push has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PushSummary {
    /// Sessions with something new.
    pub sessions: u64,
    /// Sessions without anything new.
    pub unchanged: u64,
    /// Sessions that share a file with others, and so cannot be pushed alone.
    pub shared: u64,
    /// Sessions that the remote refused, as they were forgotten.
    pub refused: u64,
    /// Sent frames.
    pub frames: u64,
    /// Sent rows of entries and usage.
    pub rows: u64,
    /// Bytes of content in the sent frames.
    pub bytes: u64,
    /// Secrets replaced in what was sent.
    pub secrets: u64,
    /// Sessions removed from the remote.
    pub forgotten: u64,
}

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
    rows: Option<SessionRowReader>,
    /// Pushed sessions that a remote may still refuse, as it publishes many at once.
    unconfirmed: Vec<(SessionKey, SessionDir, Session)>,
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
        let (folder, summary) = (folder.to_owned(), PushSummary::default());
        let unconfirmed = Vec::new();
        Ok(Self { remote, settings, folder, pushed, revisions, rows: None, unconfirmed, summary })
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
            self.remote.forget_session(&RemoteTombstone { key, tombstone })?;
            self.summary.forgotten += 1;
        }
        Ok(())
    }

    /// Pushes one session.
    pub fn push_session(&mut self, dir: &SessionDir, heading: &Session) -> Result<(), TeamError> {
        let owner = self.remote.owner().to_owned();
        let key = SessionKey { owner, agent: dir.agent().to_owned(), id: dir.id().clone() };
        let name = format!("{}/{}", key.agent, key.id);
        let (stamp, settings) = (dir.files_stamp()?, self.settings_text());
        let is_unchanged = |pushed: &PushedSession| {
            pushed.stamp == stamp
                && pushed.settings == settings
                && self.revisions.get(&key) == Some(&pushed.revision)
        };
        if self.pushed.sessions.get(&name).is_some_and(is_unchanged) {
            self.summary.unchanged += 1;
            return Ok(());
        }
        let Some(files) = dir.transfer_files()? else {
            self.summary.shared += 1;
            return Ok(());
        };
        let make = |file| RedactedCopy::make(file, self.settings.redact);
        let mut copies = files.iter().map(make).collect::<Result<Vec<_>, _>>()?;
        let draft = self.draft_manifest(key, dir, heading)?;
        let manifest = match self.push_copies(&draft, &mut copies) {
            Err(TeamError::Forgotten(_)) => {
                self.summary.refused += 1;
                return Ok(());
            }
            other => other?,
        };
        if self.remote.has_entries() {
            self.push_rows(&manifest, &mut copies)?;
        }
        let revision = manifest.revision();
        if self.remote.has_late_refusals() {
            self.unconfirmed.push((manifest.key, dir.clone(), heading.clone()));
        }
        self.pushed.sessions.insert(name, PushedSession { stamp, settings, revision });
        Ok(())
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
            again.retain(|(key, ..)| contended.contains(key));
            for (key, dir, heading) in again {
                self.summary.sessions -= 1;
                self.pushed.sessions.remove(&format!("{}/{}", key.agent, key.id));
                self.push_session(&dir, &heading)?;
            }
        }
        let contended = self.unconfirmed.first().map(|(key, ..)| key.to_string());
        Err(TeamError::Contended(contended.unwrap_or_default()))
    }

    fn settings_text(&self) -> String {
        let RemoteSettings { url, visibility, redact, .. } = self.settings;
        format!("{REMOTE_VERSION} {url} {visibility} {redact}")
    }

    /// The manifest without files.
    fn draft_manifest(
        &self,
        key: SessionKey,
        dir: &SessionDir,
        heading: &Session,
    ) -> Result<SessionManifest, TeamError> {
        let mut heading = heading.clone();
        heading.extra.clear();
        if self.settings.redact {
            SecretRedactor::default().redact_session(&mut heading);
        }
        let forgotten = dir.part_tombstones()?.iter().map(|tombstone| tombstone.id).collect();
        Ok(SessionManifest {
            version: REMOTE_VERSION,
            key,
            visibility: self.settings.visibility,
            heading: serde_json::to_value(&heading).unwrap_or_default(),
            forgotten,
            files: Vec::new(),
        })
    }

    /// Sends what the remote lacks. Returns the session as the remote has it then.
    fn push_copies(
        &mut self,
        draft: &SessionManifest,
        copies: &mut [RedactedCopy],
    ) -> Result<SessionManifest, TeamError> {
        for _ in 0..MAX_ATTEMPTS {
            let mut present = self.remote.read_manifest(&draft.key)?;
            if present.as_ref().is_some_and(|present| present.forgotten != draft.forgotten) {
                self.remote.clear_session(&draft.key)?;
                present = None;
            }
            let expected = present.as_ref().map(SessionManifest::revision);
            let mut manifest = SessionManifest {
                files: present.map(|present| present.files).unwrap_or_default(),
                ..draft.clone()
            };
            for copy in &mut *copies {
                self.push_copy(copy, &mut manifest)?;
            }
            if expected == Some(manifest.revision()) {
                self.summary.unchanged += 1;
                return Ok(manifest);
            }
            if self.remote.swap_manifest(expected, &manifest)? {
                self.summary.sessions += 1;
                return Ok(manifest);
            }
        }
        Err(TeamError::Contended(draft.key.to_string()))
    }

    /// Adds a copy to the manifest, and sends the frames that the remote lacks.
    fn push_copy(
        &mut self,
        copy: &mut RedactedCopy,
        manifest: &mut SessionManifest,
    ) -> Result<(), TeamError> {
        let at = match find_continued(copy, &manifest.files)? {
            Some(at) => at,
            None => {
                let generation = next_generation(copy, &manifest.files);
                manifest.files.push(copy.new_stream(generation));
                manifest.files.len() - 1
            }
        };
        let (offset, chain) = stream_end(&manifest.files[at], &manifest.key);
        if offset >= copy.length() {
            return Ok(());
        }
        manifest.files[at].redaction.clone_from(&copy.redaction);
        let mut batch: Vec<SentFrame> = Vec::new();
        let mut batch_bytes = 0;
        let mut links = Vec::new();
        let (before, sender) = (manifest.clone(), &mut *self);
        copy.for_each_frame(offset, chain, &mut |link, content| {
            let known = sender.remote.known_frames(&before.key, &[link.hash])?;
            if !known.contains(&link.hash) {
                let stored = compress(&content).map_err(|error| TeamError::Content {
                    path: before.key.id.as_str().into(),
                    reason: error.to_string(),
                })?;
                batch_bytes += stored.len();
                batch.push((link.hash, stored));
                (sender.summary.frames, sender.summary.bytes) =
                    (sender.summary.frames + 1, sender.summary.bytes + link.length);
            }
            links.push(link);
            if batch_bytes >= MAX_SENT_BYTES {
                sender.remote.put_frames(&before, &batch)?;
                batch.clear();
                batch_bytes = 0;
            }
            Ok(())
        })?;
        if !batch.is_empty() {
            self.remote.put_frames(&before, &batch)?;
        }
        self.summary.secrets += copy.redaction.as_ref().map_or(0, |redaction| redaction.count);
        manifest.files[at].frames.extend(links);
        Ok(())
    }

    /// Sends entries and usage, as they are read from what the remote has of the session now.
    fn push_rows(
        &mut self,
        manifest: &SessionManifest,
        copies: &mut [RedactedCopy],
    ) -> Result<(), TeamError> {
        let staging = tempfile::Builder::new().prefix("staging-").tempdir_in(&self.folder);
        let staging = staging.on("create a folder in", &self.folder)?;
        let vault = Vault::new(staging.path().join("vault"));
        let dir = manifest.key.session_dir(&vault)?;
        let commit = vault.begin_commit();
        let mut receiver = SessionReceiver { key: &manifest.key, dir: &dir, commit };
        for stream in &manifest.files {
            let own = copies.iter_mut().find(|copy| copy.is_copy_of(stream));
            let Some(copy) = own else {
                // Another machine has pushed more of the session, or something else.
                receiver.receive_stream(self.remote, stream)?;
                continue;
            };
            if copy.starts_with(&stream.frames)? {
                receiver.receive_content(stream, &mut copy.content_from(0)?)?;
            } else {
                receiver.receive_stream(self.remote, stream)?;
            }
        }
        receiver.commit.finish()?;
        let reader = match &mut self.rows {
            Some(reader) => reader,
            None => self.rows.insert(SessionRowReader::new(&self.folder)?),
        };
        let rows = reader.read(&dir)?;
        self.summary.rows += self.remote.put_rows(&manifest.key, &rows)?;
        Ok(())
    }
}
