//! The manifest of a pushed session: which frames make its files.
//!
//! A remote keeps one manifest per session and owner. It is replaced as a whole, and only by a machine that knows the
//! present one (compare-and-swap by [`SessionManifest::revision`]).

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use steno_model::SessionId;
use steno_model::note::Note;
use steno_vault::transfer::FileDescription;
use steno_vault::{AgentNameError, SessionDir, Vault};
use uuid::Uuid;

use crate::frame_chain::{FrameHash, FrameLink};
use crate::team_error::TeamError;
use steno_store::session_owners::SessionVisibility;

/// The version of remotes, and of manifests without notes.
pub(crate) const REMOTE_VERSION: i64 = 1;

/// The version of manifests with notes. Older programs refuse them, as they would lose the notes.
const NOTES_VERSION: i64 = 2;

/// A session of one owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// Who pushed it.
    pub owner: String,
    /// The agent.
    pub agent: String,
    /// The session's id.
    pub id: SessionId,
}

impl SessionKey {
    /// The session's folder in a vault.
    pub(crate) fn session_dir(&self, vault: &Vault) -> Result<SessionDir, TeamError> {
        let agent = self.agent.parse().map_err(|error: AgentNameError| TeamError::Damaged {
            session: self.to_string(),
            reason: error.to_string(),
        })?;
        Ok(vault.session_dir(&agent, &self.id))
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} of {}", self.agent, self.id, self.owner)
    }
}

/// A pushed session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionManifest {
    /// The version of this format.
    pub version: i64,
    /// The session.
    pub key: SessionKey,
    /// Who may see it.
    pub visibility: SessionVisibility,
    /// What is known of it besides its entries, without secrets.
    pub heading: Value,
    /// Ids of the tombstones of removed parts. They were removed before the files were pushed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<Uuid>,
    /// Notes on it and its entries, without secrets, by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// The ids of removed notes, so that no other machine of the owner adds them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_notes: Vec<Uuid>,
    /// Its files.
    pub files: Vec<FileStream>,
}

/// One generation of a pushed file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileStream {
    /// What is known of the file.
    pub description: FileDescription,
    /// How its content differs from the session file.
    pub redaction: Option<StreamRedaction>,
    /// Its frames.
    pub frames: Vec<FrameLink>,
}

/// Which secrets were replaced in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRedaction {
    /// How many secrets each rule found.
    pub rules: BTreeMap<String, u64>,
    /// How many secrets were replaced.
    pub count: u64,
}

impl SessionManifest {
    /// Identifies this state of the session.
    pub fn revision(&self) -> FrameHash {
        FrameHash::of(self.to_json().as_bytes())
    }

    /// The manifest as text.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a manifest has only texts, numbers and lists")
    }

    /// Parses a manifest and checks the chains of its files.
    pub(crate) fn parse(text: &str, key: &SessionKey) -> Result<Self, TeamError> {
        let damaged = |reason: String| TeamError::Damaged { session: key.to_string(), reason };
        let manifest: Self =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        if manifest.version > NOTES_VERSION {
            let (found, known) = (manifest.version, NOTES_VERSION);
            return Err(TeamError::NewerSchema { remote: key.to_string(), found, known });
        }
        if manifest.key != *key {
            return Err(damaged("its manifest belongs to another session".to_owned()));
        }
        for file in &manifest.files {
            if !file.has_valid_chain(key) {
                return Err(damaged(format!("the chain of {} is broken", file.description.name)));
            }
        }
        Ok(manifest)
    }

    /// Adds the notes that the remote has: of other machines of the owner. Those that were removed on any of them stay so.
    pub(crate) fn merge_notes(&mut self, notes: Vec<Note>, removed: Vec<Uuid>) {
        let own: HashSet<Uuid> = self.notes.iter().map(|note| note.id).collect();
        self.notes.extend(notes.into_iter().filter(|note| !own.contains(&note.id)));
        self.removed_notes.extend(removed);
        self.removed_notes.sort_unstable();
        self.removed_notes.dedup();
        let removed = &self.removed_notes;
        self.notes.retain(|note| removed.binary_search(&note.id).is_err());
        self.notes.sort_by_key(|note| (note.at.instant(), note.id));
        let has_notes = !self.notes.is_empty() || !self.removed_notes.is_empty();
        self.version = if has_notes { NOTES_VERSION } else { REMOTE_VERSION };
    }

    /// Leaves out its own notes: the remote keeps only those of other machines.
    pub(crate) fn leave_out_notes(&mut self, mut notes: Vec<Note>, removed: Vec<Uuid>) {
        let own: HashSet<Uuid> = self.notes.drain(..).map(|note| note.id).collect();
        self.removed_notes.clear();
        notes.retain(|note| !own.contains(&note.id));
        self.merge_notes(notes, removed);
    }

    /// The frames of all files.
    pub fn frames(&self) -> impl Iterator<Item = &FrameLink> {
        self.files.iter().flat_map(|file| &file.frames)
    }
}

impl FileStream {
    /// The link before the first frame.
    pub(crate) fn chain_start(description: &FileDescription, key: &SessionKey) -> FrameHash {
        let FileDescription { name, generation, .. } = description;
        let SessionKey { owner, agent, id } = key;
        FrameHash::of(format!("{owner}\n{agent}\n{id}\n{generation}\n{name}").as_bytes())
    }

    /// The link after the last frame.
    pub(crate) fn chain_end(&self, key: &SessionKey) -> FrameHash {
        let last = self.frames.last().map(|frame| frame.chain);
        last.unwrap_or_else(|| Self::chain_start(&self.description, key))
    }

    fn has_valid_chain(&self, key: &SessionKey) -> bool {
        let mut link = Self::chain_start(&self.description, key);
        self.frames.iter().all(|frame| {
            link = link.next_link(&frame.hash, frame.length);
            link == frame.chain
        })
    }

    /// The length of the content.
    pub fn length(&self) -> u64 {
        self.frames.iter().map(|frame| frame.length).sum()
    }
}
