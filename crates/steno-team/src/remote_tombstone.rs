//! What was forgotten, as a remote keeps it.

use serde::{Deserialize, Serialize};
use steno_vault::tombstone::Tombstone;

use crate::manifest::SessionKey;

/// The record of a session that its owner has removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteTombstone {
    /// The session.
    pub key: SessionKey,
    /// The tombstone of the owner's store.
    pub tombstone: Tombstone,
}
