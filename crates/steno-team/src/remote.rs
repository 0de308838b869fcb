//! A remote: a shared folder, a bucket or a database, with the same operations.

use std::collections::HashSet;

use steno_model::Timestamp;
use steno_vault::SessionDir;

#[cfg(feature = "bucket")]
use crate::bucket_remote::BucketRemote;
use crate::folder_remote::FolderRemote;
use crate::frame_chain::{FrameHash, FrameLink, SentFrame};
use crate::manifest::{SessionKey, SessionManifest};
use crate::postgres_remote::PostgresRemote;
use crate::prune_summary::PruneSummary;
use crate::remote_tombstone::RemoteTombstone;
use crate::team_error::TeamError;

/// An open remote.
#[derive(Debug)]
pub enum TeamRemote {
    /// A shared folder.
    Folder(FolderRemote),
    /// A bucket.
    #[cfg(feature = "bucket")]
    Bucket(Box<BucketRemote>),
    /// A database.
    Postgres(Box<PostgresRemote>),
}

impl TeamRemote {
    /// The name under which this user pushes.
    pub fn owner(&self) -> &str {
        match self {
            Self::Folder(folder) => folder.owner(),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.owner(),
            Self::Postgres(database) => database.owner(),
        }
    }

    /// A second connection of the same user, if the remote can have several.
    pub(crate) fn connect_again(&self) -> Result<Option<Self>, TeamError> {
        match self {
            #[cfg(feature = "bucket")]
            Self::Bucket(_) => Ok(None),
            Self::Folder(_) => Ok(None),
            Self::Postgres(database) => {
                Ok(Some(Self::Postgres(Box::new(database.connect_again()?))))
            }
        }
    }

    /// Creates what the remote needs, or migrates it. Returns whether anything changed.
    pub fn initialise(&mut self) -> Result<bool, TeamError> {
        match self {
            Self::Folder(folder) => folder.initialise(),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.initialise(),
            Self::Postgres(database) => database.initialise(),
        }
    }

    /// Checks that this version can use the remote.
    pub fn check_version(&mut self) -> Result<(), TeamError> {
        match self {
            Self::Folder(folder) => folder.check_version(),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.check_version(),
            Self::Postgres(database) => database.check_version(),
        }
    }

    /// All sessions that this user may see, with their revisions.
    pub fn list_revisions(&mut self) -> Result<Vec<(SessionKey, FrameHash)>, TeamError> {
        match self {
            Self::Folder(folder) => folder.list_revisions(),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.list_revisions(),
            Self::Postgres(database) => database.list_revisions(),
        }
    }

    /// The manifest of a session.
    pub fn read_manifest(
        &mut self,
        key: &SessionKey,
    ) -> Result<Option<SessionManifest>, TeamError> {
        match self {
            Self::Folder(folder) => folder.read_manifest(key),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.read_manifest(key),
            Self::Postgres(database) => database.read_manifest(key),
        }
    }

    /// Which of these frames of an own session the remote has.
    pub(crate) fn known_frames(
        &mut self,
        manifest: &SessionManifest,
        hashes: &[FrameHash],
    ) -> Result<HashSet<FrameHash>, TeamError> {
        match self {
            Self::Folder(folder) => Ok(folder.known_frames(&manifest.key, hashes)),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.known_frames(&manifest.key, hashes),
            Self::Postgres(database) => database.known_frames(manifest, hashes),
        }
    }

    /// Sends frames of an own session.
    pub(crate) fn put_frames(
        &mut self,
        manifest: &SessionManifest,
        frames: &[SentFrame],
    ) -> Result<(), TeamError> {
        match self {
            Self::Folder(folder) => folder.put_frames(&manifest.key, frames),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.put_frames(manifest, frames),
            Self::Postgres(database) => database.put_frames(manifest, frames),
        }
    }

    /// Replaces the manifest of an own session, if it still has the expected revision. Returns whether it had.
    pub(crate) fn swap_manifest(
        &mut self,
        expected: Option<FrameHash>,
        manifest: &SessionManifest,
    ) -> Result<bool, TeamError> {
        match self {
            Self::Folder(folder) => folder.swap_manifest(expected, manifest),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.swap_manifest(expected, manifest),
            Self::Postgres(database) => database.swap_manifest(expected, manifest),
        }
    }

    /// Whether [`Self::finish_push`] can refuse sessions whose manifests were accepted before.
    pub(crate) fn has_late_refusals(&self) -> bool {
        match self {
            #[cfg(feature = "bucket")]
            Self::Bucket(_) => true,
            Self::Folder(_) | Self::Postgres(_) => false,
        }
    }

    /// Prepares a connection for a push. What is sent then need not be on disk before [`Self::finish_push`].
    pub(crate) fn begin_push(&mut self) -> Result<(), TeamError> {
        match self {
            #[cfg(feature = "bucket")]
            Self::Bucket(_) => Ok(()),
            Self::Folder(_) => Ok(()),
            Self::Postgres(database) => database.begin_push(),
        }
    }

    /// Sends what a push has packed, and waits until everything is on disk. Returns the sessions that another machine has
    /// published first.
    pub(crate) fn finish_push(&mut self) -> Result<Vec<SessionKey>, TeamError> {
        match self {
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.finish_push(),
            Self::Folder(_) => Ok(Vec::new()),
            Self::Postgres(database) => database.finish_push().map(|()| Vec::new()),
        }
    }

    /// Removes all content of an own session, so that it can be pushed again without removed parts.
    pub(crate) fn clear_session(&mut self, key: &SessionKey) -> Result<(), TeamError> {
        match self {
            Self::Folder(folder) => folder.clear_session(key),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.clear_session(key),
            Self::Postgres(database) => database.clear_session(key),
        }
    }

    /// The stored bytes of a frame; `None` if it is missing.
    pub(crate) fn read_frame(
        &mut self,
        key: &SessionKey,
        frame: &FrameLink,
    ) -> Result<Option<Vec<u8>>, TeamError> {
        match self {
            Self::Folder(folder) => folder.read_frame(key, frame),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.read_frame(key, frame),
            Self::Postgres(database) => database.read_frame(key, frame),
        }
    }

    /// What was forgotten.
    pub fn list_tombstones(&mut self) -> Result<Vec<RemoteTombstone>, TeamError> {
        match self {
            Self::Folder(folder) => folder.list_tombstones(),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.list_tombstones(),
            Self::Postgres(database) => database.list_tombstones(),
        }
    }

    /// Removes an own session for ever.
    pub(crate) fn forget_session(&mut self, forgotten: &RemoteTombstone) -> Result<(), TeamError> {
        match self {
            Self::Folder(folder) => folder.forget_session(forgotten),
            #[cfg(feature = "bucket")]
            Self::Bucket(bucket) => bucket.forget_session(forgotten),
            Self::Postgres(database) => database.forget_session(forgotten),
        }
    }

    /// Removes the sessions that ended more than this many days ago, unless it is a trial. Only the owner may.
    pub fn prune(&mut self, days: u32, is_trial: bool) -> Result<PruneSummary, TeamError> {
        match self {
            #[cfg(feature = "bucket")]
            Self::Bucket(_) => Err(TeamError::RetentionUnsupported),
            Self::Folder(_) => Err(TeamError::RetentionUnsupported),
            Self::Postgres(database) => database.prune(days, is_trial),
        }
    }

    /// The end of the oldest sessions that the remote keeps, in milliseconds since 1970.
    pub(crate) fn oldest_kept(&mut self) -> Result<Option<i64>, TeamError> {
        match self {
            #[cfg(feature = "bucket")]
            Self::Bucket(_) => Ok(None),
            Self::Folder(_) => Ok(None),
            Self::Postgres(database) => database.oldest_kept(),
        }
    }

    /// Whether the remote searches and counts by itself, so that it needs the entries of sessions.
    pub(crate) fn has_entries(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Sends what is searched and counted of an own session, which is in a folder. Entries without a time are from when it
    /// `started`.
    pub(crate) fn put_rows(
        &mut self,
        key: &SessionKey,
        dir: &SessionDir,
        started: Option<Timestamp>,
    ) -> Result<u64, TeamError> {
        match self {
            Self::Folder(_) => Ok(0),
            #[cfg(feature = "bucket")]
            Self::Bucket(_) => Ok(0),
            Self::Postgres(database) => database.put_rows(key, dir, started),
        }
    }
}
