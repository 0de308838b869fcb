//! A remote in a bucket: S3, or what `object_store` gives besides.
//!
//! | object | content |
//! |---|---|
//! | `steno-remote.json` | version and id of the remote |
//! | `segments/OWNER/HASH` | frames and records of sessions, each encrypted with its session's key |
//! | `manifests/OWNER.json.zst` | which sessions the owner has pushed, and where their records are |
//!
//! Segments never change, and are never removed: forgetting removes the key of a session (`session_keys`).
//!
//! # Two machines
//! A push packs frames and records into segments, and then replaces its owner's manifest, if that is still the one it
//! knows. Otherwise it reads the other one, and adds its sessions to that. A session that another machine has published
//! meanwhile is contended: [`BucketRemote::finish_push`] returns it, and [`crate::SessionPush`] pushes it again.

pub(crate) mod bucket_objects;
mod key_database;
mod key_objects;
mod object_access;
mod owner_manifest;
mod packed_push;
mod publishing;
mod segment;
mod session_keys;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use object_store::UpdateVersion;
use uuid::Uuid;

use self::bucket_objects::{BucketObjects, ConditionalPut};
use self::owner_manifest::{OwnerManifest, PublishedSession, SessionRecord, piece_context};
use self::packed_push::PackedPush;
use self::session_keys::{BucketMarker, KeyStorage, LiveKey, SessionKeys};
use crate::frame_chain::{FrameHash, FrameLink};
use crate::manifest::{REMOTE_VERSION, SessionKey, SessionManifest};
use crate::remote_tombstone::RemoteTombstone;
use crate::team_error::TeamError;
use steno_store::session_owners::SessionVisibility;

pub use self::object_access::{BucketAccess, BucketOptions, KeyAccess};

const MARKER: &str = "steno-remote.json";

/// A bucket and the keys of its sessions.
#[derive(Debug)]
pub struct BucketRemote {
    objects: BucketObjects,
    keys: SessionKeys,
    /// This machine's own folder for the remote.
    folder: PathBuf,
    live_keys: HashMap<SessionKey, LiveKey>,
    /// Sessions without a key when it was asked for last.
    keyless: HashSet<SessionKey>,
    /// Own sessions whose key exists for this visibility.
    prepared: HashMap<SessionKey, SessionVisibility>,
    manifests: HashMap<String, KnownManifest>,
    /// The record that was read last.
    opened: Option<(PublishedSession, SessionRecord)>,
    push: Option<PackedPush>,
    /// Own sessions that were forgotten. A machine that was killed may have left them in the manifest.
    forgotten: Vec<SessionKey>,
}

/// The manifest of an owner as it was read.
#[derive(Clone, Debug)]
struct KnownManifest {
    manifest: OwnerManifest,
    /// `None` if there is no object yet.
    version: Option<UpdateVersion>,
}

impl BucketRemote {
    fn new(objects: BucketObjects, keys: SessionKeys, folder: &Path) -> Self {
        Self {
            objects,
            keys,
            folder: folder.to_owned(),
            live_keys: HashMap::new(),
            keyless: HashSet::new(),
            prepared: HashMap::new(),
            manifests: HashMap::new(),
            opened: None,
            push: None,
            forgotten: Vec::new(),
        }
    }

    pub(crate) fn owner(&self) -> &str {
        self.keys.owner()
    }

    fn read_marker(&self) -> Result<Option<BucketMarker>, TeamError> {
        let Some(object) = self.objects.read(&[MARKER])? else { return Ok(None) };
        let parsed = serde_json::from_slice(&object.bytes);
        parsed.map(Some).map_err(|error| TeamError::Damaged {
            session: MARKER.to_owned(),
            reason: error.to_string(),
        })
    }

    fn check_marker(&self, marker: &BucketMarker) -> Result<(), TeamError> {
        let remote = self.objects.url.clone();
        let found = marker.steno_remote;
        if found > REMOTE_VERSION {
            return Err(TeamError::NewerSchema { remote, found, known: REMOTE_VERSION });
        }
        if found < REMOTE_VERSION {
            return Err(TeamError::OlderSchema { remote, found, needed: REMOTE_VERSION });
        }
        match marker.keys == self.keys.storage() {
            true => Ok(()),
            false => Err(TeamError::OtherKeys(remote)),
        }
    }

    pub(crate) fn check_version(&mut self) -> Result<(), TeamError> {
        let Some(marker) = self.read_marker()? else {
            return Err(TeamError::NotInitialised(self.objects.url.clone()));
        };
        self.check_marker(&marker)?;
        self.keys.check_version(&self.objects, &marker)
    }

    pub(crate) fn initialise(&mut self) -> Result<bool, TeamError> {
        let mut is_new = false;
        let marker = match self.read_marker()? {
            Some(marker) => marker,
            None => {
                let keys = self.keys.storage();
                let new = BucketMarker { steno_remote: REMOTE_VERSION, id: Uuid::new_v4(), keys };
                let text = serde_json::to_vec(&new).expect("a marker has only texts and numbers");
                is_new = self.objects.swap(&[MARKER], None, text)? != ConditionalPut::Refused;
                self.read_marker()?.unwrap_or(new)
            }
        };
        self.check_marker(&marker)?;
        Ok(self.keys.initialise(&self.objects, &marker)? || is_new)
    }

    /// Reads the manifest of an owner anew.
    fn load_manifest(&mut self, owner: &str) -> Result<&KnownManifest, TeamError> {
        let known = match self.objects.read(&["manifests", &format!("{owner}.json.zst")])? {
            Some(object) => KnownManifest {
                manifest: OwnerManifest::parse(&object.bytes, owner)?,
                version: Some(object.version),
            },
            None => KnownManifest { manifest: OwnerManifest::new(owner), version: None },
        };
        Ok(self.manifests.entry(owner.to_owned()).insert_entry(known).into_mut())
    }

    fn known_manifest(&mut self, owner: &str) -> Result<&KnownManifest, TeamError> {
        match self.manifests.contains_key(owner) {
            true => Ok(&self.manifests[owner]),
            false => self.load_manifest(owner),
        }
    }

    /// The present key of a session, if this user may see it.
    fn live_key(&mut self, key: &SessionKey) -> Result<Option<LiveKey>, TeamError> {
        if let Some(live) = self.live_keys.get(key) {
            return Ok(Some(live.clone()));
        }
        if self.keyless.contains(key) {
            return Ok(None);
        }
        let found = self.keys.find(&self.objects, key)?;
        match &found {
            Some(live) => {
                self.live_keys.insert(key.clone(), live.clone());
            }
            None => {
                self.keyless.insert(key.clone());
            }
        }
        Ok(found)
    }

    /// A session in its owner's manifest, with its key; `None` if the key was removed or replaced.
    fn find_published(
        &mut self,
        key: &SessionKey,
    ) -> Result<Option<(PublishedSession, LiveKey)>, TeamError> {
        let Some(found) = self.known_manifest(&key.owner)?.manifest.find(key).cloned() else {
            return Ok(None);
        };
        let live = self.live_key(key)?.filter(|live| live.id == found.data_key);
        Ok(live.map(|live| (found, live)))
    }

    pub(crate) fn list_revisions(&mut self) -> Result<Vec<(SessionKey, FrameHash)>, TeamError> {
        let visible = self.keys.list_visible(&self.objects)?;
        let live = visible.iter().filter_map(|(key, live)| Some((key.clone(), live.clone()?)));
        self.live_keys = live.collect();
        self.keyless.clear();
        self.prepared.clear();
        self.manifests.clear();
        let own = self.owner().to_owned();
        let is_shared = self.keys.storage() == KeyStorage::Bucket;
        let owners: BTreeSet<&String> = visible.keys().map(|key| &key.owner).collect();
        let mut revisions = Vec::new();
        for owner in owners {
            for session in self.load_manifest(owner)?.manifest.sessions() {
                let is_live = visible.get(&session.key).is_some_and(|live| {
                    live.as_ref().is_none_or(|live| live.id == session.data_key)
                });
                // With a key that all share, a private session is only hidden.
                let is_hidden =
                    is_shared && *owner != own && session.visibility == SessionVisibility::Private;
                if is_live && !is_hidden {
                    revisions.push((session.key.clone(), session.revision));
                }
            }
        }
        Ok(revisions)
    }

    pub(crate) fn read_manifest(
        &mut self,
        key: &SessionKey,
    ) -> Result<Option<SessionManifest>, TeamError> {
        let Some((published, live)) = self.find_published(key)? else { return Ok(None) };
        Ok(Some(self.open_record(&published, &live)?.manifest.clone()))
    }

    fn open_record(
        &mut self,
        published: &PublishedSession,
        live: &LiveKey,
    ) -> Result<&SessionRecord, TeamError> {
        let opened = match self.opened.take().filter(|(known, _)| known == published) {
            Some(opened) => opened,
            None => {
                let piece = self.objects.read_piece(&published.key.owner, &published.record)?;
                let piece = piece.map_err(|reason| damaged(&published.key, reason))?;
                let mut record = SessionRecord::open(&piece, published, &live.key)?;
                if let Some(name) = published.record.segment {
                    let places = record.places.values_mut();
                    places.for_each(|place| *place = place.in_segment(name));
                }
                (published.clone(), record)
            }
        };
        Ok(&self.opened.insert(opened).1)
    }

    pub(crate) fn read_frame(
        &mut self,
        key: &SessionKey,
        frame: &FrameLink,
    ) -> Result<Option<Vec<u8>>, TeamError> {
        let Some((published, live)) = self.find_published(key)? else { return Ok(None) };
        let record = self.open_record(&published, &live)?;
        let Some(place) = record.places.get(&frame.hash).cloned() else { return Ok(None) };
        let sealed = self.objects.read_piece(&key.owner, &place)?;
        let sealed = sealed.map_err(|reason| damaged(key, reason))?;
        let stored = live.key.open_piece(&piece_context(key, "frame"), &sealed);
        stored.map(Some).ok_or_else(|| {
            let segment = place.segment.map(|name| name.to_string()).unwrap_or_default();
            damaged(key, format!("frame {} in segment {segment} was changed", frame.hash))
        })
    }

    /// Replaces the key first: from then on, nothing that was sent before can be read.
    pub(crate) fn clear_session(&mut self, key: &SessionKey) -> Result<(), TeamError> {
        self.keys.replace(&self.objects, key)?;
        self.remove_session(key)
    }

    pub(crate) fn list_tombstones(&mut self) -> Result<Vec<RemoteTombstone>, TeamError> {
        let tombstones = self.keys.list_tombstones(&self.objects)?;
        let own = tombstones.iter().filter(|known| known.key.owner == self.keys.owner());
        self.forgotten = own.map(|known| known.key.clone()).collect();
        Ok(tombstones)
    }

    /// Removes the key first: from then on, nobody can read the session.
    pub(crate) fn forget_session(&mut self, forgotten: &RemoteTombstone) -> Result<(), TeamError> {
        self.keys.forget(&self.objects, forgotten)?;
        self.remove_session(&forgotten.key)
    }

    fn remove_session(&mut self, key: &SessionKey) -> Result<(), TeamError> {
        self.live_keys.remove(key);
        self.keyless.remove(key);
        self.prepared.remove(key);
        self.opened = None;
        self.push()?.discard_session(key);
        self.change_manifest(&mut |manifest| manifest.remove(key))
    }
}

fn damaged(key: &SessionKey, reason: String) -> TeamError {
    TeamError::Damaged { session: key.to_string(), reason }
}
