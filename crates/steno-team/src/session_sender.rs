//! Sends one session after the other over one connection.
//!
//! # Resuming
//! Frames are sent before the manifest that names them, and those that the remote has are not sent again. A push that
//! was killed leaves at most frames without a manifest, which the next push uses.
//!
//! # Two machines
//! Both read the manifest, and only one can replace it. The other reads it again: if its own content continues a stream,
//! it appends to that; if it differs, it adds a stream of the next generation.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use steno_model::durable::OnPath;
use steno_model::{Session, Timestamp};
use steno_store::view::redaction::SecretRedactor;
use steno_vault::{SessionDir, Vault};

use crate::copy_content::CopySpace;
use crate::frame_chain::{FrameHash, SentFrame, compress};
use crate::manifest::{REMOTE_VERSION, SessionKey, SessionManifest};
use crate::push_summary::PushSummary;
use crate::redacted_copy::{RedactedCopy, find_continued, next_generation, stream_end};
use crate::remote::TeamRemote;
use crate::remote_settings::RemoteSettings;
use crate::session_receiver::SessionReceiver;
use crate::team_error::TeamError;

/// How often a session is tried when other machines push it too.
pub(crate) const MAX_ATTEMPTS: usize = 20;

/// How many bytes are sent at once.
const MAX_SENT_BYTES: usize = 2 << 20;

/// A session to push.
#[derive(Clone, Debug)]
pub struct OutgoingSession {
    /// Its folder in the vault.
    pub dir: SessionDir,
    /// What lists show of it.
    pub heading: Session,
}

impl OutgoingSession {
    /// Whether it ended before a moment, in milliseconds since 1970.
    pub(crate) fn ended_before(&self, moment: i64) -> bool {
        let ended = self.heading.ended.or(self.heading.started);
        ended.is_some_and(|ended| ended.instant().as_millisecond() < moment)
    }
}

/// One connection of a push.
#[derive(Debug)]
pub(crate) struct SessionSender<'a> {
    remote: &'a mut TeamRemote,
    settings: &'a RemoteSettings,
    folder: &'a Path,
    large_texts: &'a Mutex<()>,
    /// What was done so far.
    pub(crate) summary: PushSummary,
}

impl<'a> SessionSender<'a> {
    /// Sends nothing yet. `folder` is this machine's own folder for the remote. Of all senders with the same `large_texts`,
    /// one at a time sends a session with large texts, which take much memory.
    pub(crate) fn new(
        remote: &'a mut TeamRemote,
        settings: &'a RemoteSettings,
        folder: &'a Path,
        large_texts: &'a Mutex<()>,
    ) -> Self {
        Self { remote, settings, folder, large_texts, summary: PushSummary::default() }
    }

    /// Pushes one session. Returns its revision; `None` if it was not pushed.
    pub(crate) fn push_session(
        &mut self,
        session: &OutgoingSession,
    ) -> Result<Option<FrameHash>, TeamError> {
        if session.dir.is_being_recorded()? {
            return Ok(None);
        }
        // What the remote has of a damaged file may be the last whole copy.
        if let Some(fault) = session.dir.find_faults()?.into_iter().next() {
            return Err(TeamError::Content { path: fault.path, reason: fault.reason });
        }
        let Some(files) = session.dir.transfer_files()? else {
            self.summary.shared += 1;
            return Ok(None);
        };
        let space = CopySpace::default();
        let (mut turn, large_texts) = (None, self.large_texts);
        let mut on_large = || {
            turn.get_or_insert_with(|| large_texts.lock().unwrap_or_else(PoisonError::into_inner));
        };
        let redact = self.settings.redact;
        let make = |file| RedactedCopy::make(file, redact, &space, &mut on_large);
        let copies = files.iter().map(make).collect::<Result<Vec<_>, _>>()?;
        let draft = self.draft_manifest(session)?;
        let manifest = match self.push_copies(&draft, &copies) {
            Err(TeamError::Forgotten(_)) => {
                self.summary.refused += 1;
                return Ok(None);
            }
            other => other?,
        };
        if self.remote.has_entries() {
            self.push_rows(&manifest, &copies, session.heading.started)?;
        }
        Ok(Some(manifest.revision()))
    }

    /// The manifest without files.
    fn draft_manifest(&self, session: &OutgoingSession) -> Result<SessionManifest, TeamError> {
        let OutgoingSession { dir, heading } = session;
        let owner = self.remote.owner().to_owned();
        let key = SessionKey { owner, agent: dir.agent().to_owned(), id: dir.id().clone() };
        let mut heading = heading.clone();
        heading.extra.clear();
        if self.settings.redact {
            SecretRedactor::default().redact_session(&mut heading);
        }
        let forgotten = dir.part_tombstones()?.iter().map(|tombstone| tombstone.id).collect();
        let mut notes = dir.read_notes()?;
        if self.settings.redact {
            let mut redactor = SecretRedactor::default();
            for note in &mut notes.all {
                note.text = redactor.redact_text(&note.text).into_owned();
            }
        }
        Ok(SessionManifest {
            version: REMOTE_VERSION,
            key,
            visibility: self.settings.visibility,
            heading: serde_json::to_value(&heading).unwrap_or_default(),
            forgotten,
            notes: notes.all,
            removed_notes: notes.removed,
            files: Vec::new(),
        })
    }

    /// Sends what the remote lacks. Returns the session as the remote has it then.
    fn push_copies(
        &mut self,
        draft: &SessionManifest,
        copies: &[RedactedCopy],
    ) -> Result<SessionManifest, TeamError> {
        for _ in 0..MAX_ATTEMPTS {
            let mut present = self.remote.read_manifest(&draft.key)?;
            if present.as_ref().is_some_and(|present| present.forgotten != draft.forgotten) {
                self.remote.clear_session(&draft.key)?;
                present = None;
            }
            let expected = present.as_ref().map(SessionManifest::revision);
            let mut manifest = draft.clone();
            let (mut notes, mut removed) = (Vec::new(), Vec::new());
            if let Some(present) = present {
                (notes, removed) = (present.notes, present.removed_notes);
                manifest.files = present.files;
            }
            match self.settings.notes {
                true => manifest.merge_notes(notes, removed),
                false => manifest.leave_out_notes(notes, removed),
            }
            for copy in copies {
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
        copy: &RedactedCopy,
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
            let known = sender.remote.known_frames(&before, &[link.hash])?;
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
        copies: &[RedactedCopy],
        started: Option<Timestamp>,
    ) -> Result<(), TeamError> {
        let staging = tempfile::Builder::new().prefix("staging-").tempdir_in(self.folder);
        let staging = staging.on("create a folder in", self.folder)?;
        let vault = Vault::new(staging.path().join("vault"));
        let dir = manifest.key.session_dir(&vault)?;
        let commit = vault.begin_commit();
        let mut receiver = SessionReceiver { key: &manifest.key, dir: &dir, commit };
        for stream in &manifest.files {
            let own = copies.iter().find(|copy| copy.is_copy_of(stream));
            let Some(copy) = own else {
                // Another machine has pushed more of the session, or something else.
                receiver.receive_stream(self.remote, stream)?;
                continue;
            };
            if copy.starts_with(&stream.frames)? {
                receiver.receive_content(stream, &mut copy.content_from(0))?;
            } else {
                receiver.receive_stream(self.remote, stream)?;
            }
        }
        receiver.commit.finish()?;
        self.summary.rows += self.remote.put_rows(&manifest.key, &dir, started)?;
        Ok(())
    }
}
