//! The data keys of sessions: who may see a session gets its key, and nobody gets that of a forgotten one.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use steno_cipher::DataKey;
use uuid::Uuid;

use crate::bucket_remote::bucket_objects::BucketObjects;
use crate::bucket_remote::key_database::KeyDatabase;
use crate::bucket_remote::key_objects::KeyObjects;
use crate::manifest::SessionKey;
use crate::remote_tombstone::RemoteTombstone;
use crate::team_error::TeamError;
use steno_store::session_owners::SessionVisibility;

/// Where the keys are.
#[derive(Debug)]
pub(crate) enum SessionKeys {
    /// A database, which gives a key only to those who may see the session.
    Database(Box<KeyDatabase>),
    /// The bucket itself, encrypted with a key that the team shares.
    Objects(KeyObjects),
}

/// The present key of a session.
#[derive(Clone, Debug)]
pub(crate) struct LiveKey {
    pub(crate) id: Uuid,
    pub(crate) key: DataKey,
}

/// What a bucket states of itself in `steno-remote.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BucketMarker {
    pub(crate) steno_remote: i64,
    /// Identifies the bucket to its database.
    pub(crate) id: Uuid,
    pub(crate) keys: KeyStorage,
}

/// Where the keys of a bucket are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyStorage {
    Database,
    Bucket,
}

impl LiveKey {
    pub(crate) fn generate() -> Self {
        Self { id: Uuid::new_v4(), key: DataKey::generate() }
    }
}

impl SessionKeys {
    /// The name under which this user pushes.
    pub(crate) fn owner(&self) -> &str {
        match self {
            Self::Database(database) => database.owner(),
            Self::Objects(keys) => keys.owner(),
        }
    }

    pub(crate) fn storage(&self) -> KeyStorage {
        match self {
            Self::Database(_) => KeyStorage::Database,
            Self::Objects(_) => KeyStorage::Bucket,
        }
    }

    /// Creates what the keys need. Returns whether anything changed.
    pub(crate) fn initialise(
        &mut self,
        objects: &BucketObjects,
        marker: &BucketMarker,
    ) -> Result<bool, TeamError> {
        match self {
            Self::Database(database) => database.initialise(marker),
            Self::Objects(keys) => keys.initialise(objects),
        }
    }

    /// Checks that this version can use the keys, and that they are those of the bucket.
    pub(crate) fn check_version(
        &mut self,
        objects: &BucketObjects,
        marker: &BucketMarker,
    ) -> Result<(), TeamError> {
        match self {
            Self::Database(database) => database.check_version(marker),
            Self::Objects(keys) => keys.unlock(objects).map(drop),
        }
    }

    /// The sessions that this user may see, with the ids of their keys where these are known at once.
    pub(crate) fn list_visible(
        &mut self,
        objects: &BucketObjects,
    ) -> Result<HashMap<SessionKey, Option<LiveKey>>, TeamError> {
        match self {
            Self::Database(database) => database.list_visible(),
            Self::Objects(keys) => keys.list_visible(objects),
        }
    }

    /// The present key of a session, if this user may see it.
    pub(crate) fn find(
        &mut self,
        objects: &BucketObjects,
        key: &SessionKey,
    ) -> Result<Option<LiveKey>, TeamError> {
        match self {
            Self::Database(database) => database.find(key),
            Self::Objects(keys) => keys.find(objects, key),
        }
    }

    /// The present key of an own session, which gets one if it has none.
    pub(crate) fn find_or_create(
        &mut self,
        objects: &BucketObjects,
        key: &SessionKey,
        visibility: SessionVisibility,
    ) -> Result<LiveKey, TeamError> {
        match self {
            Self::Database(database) => database.find_or_create(key, visibility),
            Self::Objects(keys) => keys.find_or_create(objects, key),
        }
    }

    /// Replaces the key of an own session, so that nothing of what was sent can be read.
    pub(crate) fn replace(
        &mut self,
        objects: &BucketObjects,
        key: &SessionKey,
    ) -> Result<(), TeamError> {
        match self {
            Self::Database(database) => database.replace(key),
            Self::Objects(keys) => keys.replace(objects, key),
        }
    }

    /// Removes the key of an own session for ever.
    pub(crate) fn forget(
        &mut self,
        objects: &BucketObjects,
        forgotten: &RemoteTombstone,
    ) -> Result<(), TeamError> {
        match self {
            Self::Database(database) => database.forget(forgotten),
            Self::Objects(keys) => keys.forget(objects, forgotten),
        }
    }

    /// What was forgotten.
    pub(crate) fn list_tombstones(
        &mut self,
        objects: &BucketObjects,
    ) -> Result<Vec<RemoteTombstone>, TeamError> {
        match self {
            Self::Database(database) => database.list_tombstones(),
            Self::Objects(keys) => keys.list_tombstones(objects),
        }
    }
}
