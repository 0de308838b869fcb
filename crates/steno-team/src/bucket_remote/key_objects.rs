//! Keys in the bucket itself, for a team without a database.
//!
//! `team-key.json` has the team's key, wrapped for age recipients; a member has the identity of one in a file.
//! `keys/OWNER/AGENT/ID` has the key of a session, encrypted with the team's key, and `forgotten/OWNER/AGENT/ID` is a
//! tombstone. Whoever has an identity and can read the bucket can read all sessions.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use steno_cipher::{AgeIdentity, DataKey, KeyFile, KeySlot, MasterKey, UnlockSecret};
use steno_model::SessionId;
use uuid::Uuid;

use crate::bucket_remote::bucket_objects::{BucketObjects, ConditionalPut};
use crate::bucket_remote::session_keys::LiveKey;
use crate::manifest::SessionKey;
use crate::remote_tombstone::RemoteTombstone;
use crate::team_error::TeamError;

const TEAM_KEY: &str = "team-key.json";
const KEYS: &str = "keys";
const FORGOTTEN: &str = "forgotten";

/// How often a key is replaced when other machines write it too.
const MAX_ATTEMPTS: usize = 20;

/// Keys of sessions in the bucket.
#[derive(Debug)]
pub(crate) struct KeyObjects {
    owner: String,
    identities: Vec<AgeIdentity>,
    team: Option<MasterKey>,
}

/// The object with the key of a session.
#[derive(Serialize, Deserialize)]
struct KeyObject {
    id: Uuid,
    wrapped: Vec<u8>,
}

impl KeyObjects {
    pub(crate) fn new(user: &str, identities: Vec<AgeIdentity>) -> Self {
        let owner = SessionId::for_native("owner", user).to_string();
        Self { owner, identities, team: None }
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    pub(crate) fn initialise(&mut self, objects: &BucketObjects) -> Result<bool, TeamError> {
        if objects.read(&[TEAM_KEY])?.is_some() {
            return self.unlock(objects).map(|_| false);
        }
        let refused = || TeamError::NoKey(objects.url.clone());
        let recipient = self.identities.first().ok_or_else(refused)?.recipient();
        let slot = KeySlot::for_recipient(&MasterKey::generate(), &recipient);
        let file = KeyFile::new(slot.map_err(|_| refused())?);
        objects.swap(&[TEAM_KEY], None, file.to_json())?;
        self.unlock(objects).map(|_| true)
    }

    /// The team's key.
    pub(crate) fn unlock(&mut self, objects: &BucketObjects) -> Result<&MasterKey, TeamError> {
        let team = match self.team.take() {
            Some(team) => team,
            None => {
                let Some(object) = objects.read(&[TEAM_KEY])? else {
                    return Err(TeamError::NotInitialised(objects.url.clone()));
                };
                let damaged = |reason: String| TeamError::Damaged {
                    session: "the key of the team".to_owned(),
                    reason,
                };
                let file = KeyFile::from_json(&object.bytes);
                let file = file.map_err(|error| damaged(error.to_string()))?;
                let secret = UnlockSecret::Identities(self.identities.clone());
                file.unwrap_key(&secret).map_err(|_| TeamError::NoKey(objects.url.clone()))?
            }
        };
        Ok(self.team.insert(team))
    }

    /// All sessions with a key.
    pub(crate) fn list_visible(
        &mut self,
        objects: &BucketObjects,
    ) -> Result<HashMap<SessionKey, Option<LiveKey>>, TeamError> {
        let listed = objects.list(KEYS)?;
        Ok(listed.iter().filter_map(|names| Some((key_from_names(names)?, None))).collect())
    }

    pub(crate) fn find(
        &mut self,
        objects: &BucketObjects,
        key: &SessionKey,
    ) -> Result<Option<LiveKey>, TeamError> {
        let Some(object) = objects.read(&names(KEYS, key))? else { return Ok(None) };
        self.open_key(objects, key, &object.bytes).map(Some)
    }

    fn open_key(
        &mut self,
        objects: &BucketObjects,
        key: &SessionKey,
        bytes: &[u8],
    ) -> Result<LiveKey, TeamError> {
        let team = self.unlock(objects)?;
        let opened = serde_json::from_slice::<KeyObject>(bytes).ok().and_then(|object| {
            let context = key_context(key, object.id);
            let key = DataKey::unwrap_for_team(&object.wrapped, team, &context)?;
            Some(LiveKey { id: object.id, key })
        });
        opened.ok_or_else(|| TeamError::Damaged {
            session: key.to_string(),
            reason: "its key cannot be decrypted".to_owned(),
        })
    }

    /// A new key as an object.
    fn new_key(&mut self, objects: &BucketObjects, key: &SessionKey) -> Result<Vec<u8>, TeamError> {
        let new = LiveKey::generate();
        let wrapped = new.key.wrap_for_team(self.unlock(objects)?, &key_context(key, new.id));
        let object = KeyObject { id: new.id, wrapped };
        Ok(serde_json::to_vec(&object).expect("a key object has only texts and numbers"))
    }

    pub(crate) fn find_or_create(
        &mut self,
        objects: &BucketObjects,
        key: &SessionKey,
    ) -> Result<LiveKey, TeamError> {
        if let Some(found) = self.find(objects, key)? {
            return Ok(found);
        }
        let new = self.new_key(objects, key)?;
        // Another machine may have created one since. Then that is used.
        objects.swap(&names(KEYS, key), None, new)?;
        // A tombstone is written before its key is removed, so it is seen here, or this key is removed.
        if objects.read(&names(FORGOTTEN, key))?.is_some() {
            objects.remove(&names(KEYS, key))?;
            return Err(TeamError::Forgotten(key.to_string()));
        }
        self.find(objects, key)?.ok_or_else(|| TeamError::Forgotten(key.to_string()))
    }

    pub(crate) fn replace(
        &mut self,
        objects: &BucketObjects,
        key: &SessionKey,
    ) -> Result<(), TeamError> {
        for _ in 0..MAX_ATTEMPTS {
            let Some(present) = objects.read(&names(KEYS, key))? else { return Ok(()) };
            let new = self.new_key(objects, key)?;
            let put = objects.swap(&names(KEYS, key), Some(present.version), new)?;
            if put != ConditionalPut::Refused {
                return Ok(());
            }
        }
        Err(TeamError::Contended(key.to_string()))
    }

    pub(crate) fn forget(
        &mut self,
        objects: &BucketObjects,
        forgotten: &RemoteTombstone,
    ) -> Result<(), TeamError> {
        let text = serde_json::to_vec(forgotten).expect("a tombstone has only texts and numbers");
        objects.swap(&names(FORGOTTEN, &forgotten.key), None, text)?;
        objects.remove(&names(KEYS, &forgotten.key))
    }

    pub(crate) fn list_tombstones(
        &mut self,
        objects: &BucketObjects,
    ) -> Result<Vec<RemoteTombstone>, TeamError> {
        let mut tombstones = Vec::new();
        for listed in objects.list(FORGOTTEN)? {
            let Some(key) = key_from_names(&listed) else { continue };
            let Some(object) = objects.read(&names(FORGOTTEN, &key))? else { continue };
            let read = serde_json::from_slice::<RemoteTombstone>(&object.bytes);
            // The path states whose session it is.
            tombstones.extend(read.ok().filter(|read| read.key == key));
        }
        Ok(tombstones)
    }
}

fn names<'a>(folder: &'a str, key: &'a SessionKey) -> [&'a str; 4] {
    [folder, &key.owner, &key.agent, key.id.as_str()]
}

fn key_from_names(names: &[String]) -> Option<SessionKey> {
    let [owner, agent, id] = names else { return None };
    Some(SessionKey { owner: owner.clone(), agent: agent.clone(), id: id.parse().ok()? })
}

fn key_context(key: &SessionKey, id: Uuid) -> String {
    let SessionKey { owner, agent, id: session } = key;
    format!("key {id}\n{owner}\n{agent}\n{session}")
}
