//! What a push has packed but not published yet.
//!
//! # Resuming
//! The journal `sent.json` in this machine's folder names the frames in segments that no manifest names yet. It is written
//! before the segment, so a push that was killed loses at most one segment, and sends nothing else again.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use steno_cipher::store_fs;
use steno_model::durable::FileError;
use uuid::Uuid;

use crate::bucket_remote::owner_manifest::PublishedSession;
use crate::bucket_remote::segment::{PiecePlace, SegmentPacker};
use crate::frame_chain::FrameHash;
use crate::manifest::SessionKey;

/// The frames of one session that are in segments or in the packer, but in no manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SentSession {
    pub(crate) key: SessionKey,
    /// The key that the frames are sealed with.
    pub(crate) data_key: Uuid,
    /// The frames in the segment that is being packed are without a name.
    places: Vec<SentPiece>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SentPiece {
    hash: FrameHash,
    place: PiecePlace,
}

/// A session that the next manifest will name.
#[derive(Clone, Debug)]
pub(crate) struct UnpublishedSession {
    /// The revision that this one replaces.
    pub(crate) expected: Option<FrameHash>,
    pub(crate) session: PublishedSession,
}

/// The state of a push.
#[derive(Debug)]
pub(crate) struct PackedPush {
    journal: PathBuf,
    pub(crate) packer: SegmentPacker,
    sent: HashMap<SessionKey, SentSession>,
    pub(crate) unpublished: BTreeMap<SessionKey, UnpublishedSession>,
    /// Sessions that another machine has published first.
    pub(crate) contended: Vec<SessionKey>,
}

impl PackedPush {
    /// Reads the journal of a push that was interrupted. `folder` is this machine's own folder for the remote.
    pub(crate) fn open(folder: &Path) -> Self {
        let journal = folder.join("sent.json");
        let text = store_fs::read(&journal).ok();
        let sent: Vec<SentSession> =
            text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let sent = sent.into_iter().map(|session| (session.key.clone(), session)).collect();
        let packer = SegmentPacker::new();
        Self { journal, packer, sent, unpublished: BTreeMap::new(), contended: Vec::new() }
    }

    /// The segments that the journal names.
    pub(crate) fn segments(&self) -> Vec<FrameHash> {
        let pieces = self.sent.values().flat_map(|session| &session.places);
        let mut names: Vec<FrameHash> = pieces.filter_map(|piece| piece.place.segment).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Forgets the frames in a segment that was not sent.
    pub(crate) fn discard_segment(&mut self, name: FrameHash) {
        for session in self.sent.values_mut() {
            session.places.retain(|piece| piece.place.segment != Some(name));
        }
    }

    /// Where the sent frames of a session are that were sealed with a key.
    pub(crate) fn places(
        &self,
        key: &SessionKey,
        data_key: Uuid,
    ) -> BTreeMap<FrameHash, PiecePlace> {
        let sent = self.sent.get(key).filter(|sent| sent.data_key == data_key);
        let pieces = sent.into_iter().flat_map(|sent| &sent.places);
        pieces.map(|piece| (piece.hash, piece.place.clone())).collect()
    }

    /// Whether a frame of a session was sent, sealed with a key.
    pub(crate) fn has_frame(&self, key: &SessionKey, data_key: Uuid, hash: &FrameHash) -> bool {
        let sent = self.sent.get(key).filter(|sent| sent.data_key == data_key);
        sent.is_some_and(|sent| sent.places.iter().any(|piece| piece.hash == *hash))
    }

    /// Packs a sealed frame.
    pub(crate) fn push_frame(
        &mut self,
        key: &SessionKey,
        data_key: Uuid,
        hash: FrameHash,
        sealed: &[u8],
    ) {
        let place = self.packer.push_piece(sealed);
        let new = || SentSession { key: key.clone(), data_key, places: Vec::new() };
        let sent = self.sent.entry(key.clone()).or_insert_with(new);
        if sent.data_key != data_key {
            *sent = new();
        }
        sent.places.push(SentPiece { hash, place });
    }

    /// Forgets what was sent of a session.
    pub(crate) fn discard_session(&mut self, key: &SessionKey) {
        self.sent.remove(key);
        self.unpublished.remove(key);
    }

    /// Ends the segment that is being packed: all places in it get its name, and the journal is written.
    pub(crate) fn take_segment(&mut self) -> Result<Option<(FrameHash, Vec<u8>)>, FileError> {
        if self.packer.is_empty() {
            return Ok(None);
        }
        let (name, bytes) = self.packer.take_segment();
        let pieces = self.sent.values_mut().flat_map(|session| &mut session.places);
        pieces.for_each(|piece| piece.place = piece.place.in_segment(name));
        for new in self.unpublished.values_mut() {
            new.session.record = new.session.record.in_segment(name);
        }
        self.save_journal()?;
        Ok(Some((name, bytes)))
    }

    /// Removes what was published. The frames of contended sessions are used again.
    pub(crate) fn finish_published(&mut self, contended: Vec<SessionKey>) -> Result<(), FileError> {
        for key in std::mem::take(&mut self.unpublished).into_keys() {
            if !contended.contains(&key) {
                self.sent.remove(&key);
            }
        }
        self.contended.extend(contended);
        self.save_journal()
    }

    fn save_journal(&self) -> Result<(), FileError> {
        let is_sent =
            |sent: &&SentSession| sent.places.iter().any(|piece| piece.place.segment.is_some());
        let mut sessions: Vec<&SentSession> = self.sent.values().filter(is_sent).collect();
        if sessions.is_empty() {
            return match store_fs::exists(&self.journal) {
                true => store_fs::remove_file(&self.journal),
                false => Ok(()),
            };
        }
        sessions.sort_by(|a, b| a.key.cmp(&b.key));
        let text = serde_json::to_vec(&sessions).expect("a journal has only texts and numbers");
        store_fs::write_atomic(&self.journal, &text)
    }
}
