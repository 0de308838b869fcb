//! Tombstones: what was removed from the vault, when, why and by whom. They contain nothing of what was removed.
//!
//! `<root>/forgotten.jsonl` has the format of live logs, and the journal lists it, so an edited or removed tombstone is
//! found. A tombstone is on disk before anything is removed. When all is removed, a second line with its id follows;
//! a process that finds a tombstone without it completes the removal.

mod log;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(crate) use self::log::{FORGOTTEN_FILE, FORGOTTEN_HEAD_FILE, FORGOTTEN_LOCK_FILE};
pub(crate) use self::log::{TombstoneLog, TombstoneState};
use super::frame::HexHash;
use steno_model::timestamp::Timestamp;

/// The record of one removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tombstone {
    /// Its id.
    pub id: Uuid,
    /// When the removal was decided.
    pub at: Timestamp,
    /// Who decided it.
    pub by: String,
    /// Why, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The session: `AGENT/ID`.
    pub session: String,
    /// What was removed of it.
    pub scope: ForgottenScope,
}

/// What was removed of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ForgottenScope {
    /// The whole session, which had these files.
    Session(Vec<ForgottenFile>),
    /// Parts of its files, which have masks of the same length instead.
    Parts(ForgottenParts),
}

/// A removed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgottenFile {
    /// Its name in the session's folder.
    pub file: String,
    /// Its length in bytes.
    pub length: u64,
}

/// Removed parts of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgottenParts {
    /// Numbers of the entries that the user selected; empty if the parts were found otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<u64>,
    /// The parts of each file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MaskedFile>,
    /// Number of masked notes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub notes: u64,
    /// How to recognize the texts when an agent's file brings them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<TextPrint>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The masked parts of a sealed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskedFile {
    /// Its name in the session's folder.
    pub file: String,
    /// Offset in the session file, and length, of each part.
    pub ranges: Vec<(u64, u64)>,
}

/// A text that must not be kept again, known by a hash under the store's secret key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextPrint {
    /// The keyed hash.
    pub(crate) hash: HexHash,
    /// Length of the text in bytes.
    pub length: u64,
    /// Offset in the text, and length, of each part to mask.
    pub masks: Vec<(u64, u64)>,
}

/// The seal of a file with masks: a hash over the pieces that have some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileSeal {
    pub(crate) file: String,
    pub(crate) seal: HexHash,
}

impl Tombstone {
    /// Whether the whole session was removed.
    pub fn is_whole_session(&self) -> bool {
        matches!(self.scope, ForgottenScope::Session(_))
    }

    /// The removed parts; `None` if the whole session was removed.
    pub fn parts(&self) -> Option<&ForgottenParts> {
        match &self.scope {
            ForgottenScope::Parts(parts) => Some(parts),
            ForgottenScope::Session(_) => None,
        }
    }

    /// The start of the id, for masks and messages.
    pub fn short_id(&self) -> String {
        self.id.simple().to_string()[..SHORT_ID_DIGITS].to_owned()
    }

    /// The number of removed bytes.
    pub fn bytes(&self) -> u64 {
        match &self.scope {
            ForgottenScope::Session(files) => files.iter().map(|file| file.length).sum(),
            ForgottenScope::Parts(parts) => {
                let ranges = parts.files.iter().flat_map(|file| &file.ranges);
                ranges.map(|(_, length)| length).sum()
            }
        }
    }
}

const SHORT_ID_DIGITS: usize = 8;
