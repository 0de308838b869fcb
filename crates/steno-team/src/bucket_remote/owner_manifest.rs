//! The manifest of a person: which sessions they have pushed to a bucket, and where the records of these are.
//!
//! There is one object for each person, as all machines of a person must agree on a session. It is replaced last, and
//! only by a machine that knows the present one. It reveals agents and ids of sessions, and nothing else of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steno_cipher::DataKey;
use uuid::Uuid;

use crate::bucket_remote::segment::PiecePlace;
use crate::frame_chain::FrameHash;
use crate::manifest::{REMOTE_VERSION, SessionKey, SessionManifest};
use crate::team_error::TeamError;
use steno_store::session_owners::SessionVisibility;

/// A manifest is decompressed to at most this size: millions of sessions.
const MAX_MANIFEST_BYTES: usize = 1 << 30;

/// What a person has pushed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnerManifest {
    version: i64,
    owner: String,
    sessions: Vec<PublishedSession>,
}

/// One session in a manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PublishedSession {
    pub(crate) key: SessionKey,
    pub(crate) visibility: SessionVisibility,
    pub(crate) revision: FrameHash,
    /// The id of the data key. After another key has replaced it, the record cannot be read.
    pub(crate) data_key: Uuid,
    /// Where the sealed [`SessionRecord`] is.
    pub(crate) record: PiecePlace,
}

/// A session's manifest, and where its frames are. It is sealed with the session's key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    pub(crate) manifest: SessionManifest,
    pub(crate) places: BTreeMap<FrameHash, PiecePlace>,
}

impl OwnerManifest {
    pub(crate) fn new(owner: &str) -> Self {
        Self { version: REMOTE_VERSION, owner: owner.to_owned(), sessions: Vec::new() }
    }

    /// The manifest as the bytes of an object.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let text = serde_json::to_vec(self).expect("a manifest has only texts, numbers and lists");
        zstd::bulk::compress(&text, 3).expect("memory can be compressed")
    }

    /// Parses the object of an owner.
    pub(crate) fn parse(bytes: &[u8], owner: &str) -> Result<Self, TeamError> {
        let damaged = |reason: String| TeamError::Damaged {
            session: format!("the manifest of {owner}"),
            reason,
        };
        let text = decompress_text(bytes).map_err(&damaged)?;
        let manifest: Self = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        if manifest.version > REMOTE_VERSION {
            let (found, known) = (manifest.version, REMOTE_VERSION);
            return Err(TeamError::NewerSchema { remote: owner.to_owned(), found, known });
        }
        let is_own = |session: &PublishedSession| session.key.owner == owner;
        if manifest.owner != owner || !manifest.sessions.iter().all(is_own) {
            return Err(damaged("it belongs to somebody else".to_owned()));
        }
        match manifest.sessions.is_sorted_by(|a, b| a.key < b.key) {
            true => Ok(manifest),
            false => Err(damaged("its sessions are not in order".to_owned())),
        }
    }

    pub(crate) fn sessions(&self) -> &[PublishedSession] {
        &self.sessions
    }

    pub(crate) fn find(&self, key: &SessionKey) -> Option<&PublishedSession> {
        self.search(key).ok().map(|at| &self.sessions[at])
    }

    /// The place of a session, as they are in order.
    fn search(&self, key: &SessionKey) -> Result<usize, usize> {
        self.sessions.binary_search_by(|session| session.key.cmp(key))
    }

    /// Adds a session, or replaces it.
    pub(crate) fn insert(&mut self, session: PublishedSession) {
        match self.search(&session.key) {
            Ok(at) => self.sessions[at] = session,
            Err(at) => self.sessions.insert(at, session),
        }
    }

    /// Removes a session.
    pub(crate) fn remove(&mut self, key: &SessionKey) {
        if let Ok(at) = self.search(key) {
            self.sessions.remove(at);
        }
    }
}

/// What binds a piece to its session.
pub(crate) fn piece_context(key: &SessionKey, kind: &str) -> String {
    let SessionKey { owner, agent, id } = key;
    format!("{kind}\n{owner}\n{agent}\n{id}")
}

impl SessionRecord {
    pub(crate) fn seal(&self, key: &DataKey) -> Vec<u8> {
        let text = serde_json::to_vec(self).expect("a record has only texts, numbers and lists");
        let packed = zstd::bulk::compress(&text, 3).expect("memory can be compressed");
        key.seal_piece(&piece_context(&self.manifest.key, "record"), &packed)
    }

    /// Decrypts a record and checks that it is the one that its owner's manifest names.
    pub(crate) fn open(
        sealed: &[u8],
        published: &PublishedSession,
        data_key: &DataKey,
    ) -> Result<Self, TeamError> {
        let key = &published.key;
        let damaged = |reason: &str| TeamError::Damaged {
            session: key.to_string(),
            reason: reason.to_owned(),
        };
        let packed = data_key.open_piece(&piece_context(key, "record"), sealed);
        let packed = packed.ok_or_else(|| damaged("its record cannot be decrypted"))?;
        let text = decompress_text(&packed).map_err(|reason| damaged(&reason))?;
        let read: Self =
            serde_json::from_slice(&text).map_err(|error| damaged(&error.to_string()))?;
        let manifest = SessionManifest::parse(&read.manifest.to_json(), key)?;
        if manifest.revision() != published.revision {
            return Err(damaged("its record is another one than its owner has published"));
        }
        Ok(read)
    }
}

fn decompress_text(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut decoder = zstd::Decoder::new(bytes).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let most = MAX_MANIFEST_BYTES as u64;
    std::io::Read::read_to_end(&mut std::io::Read::take(&mut decoder, most), &mut text)
        .map_err(|error| error.to_string())?;
    Ok(text)
}
