//! Pushes to a bucket: packs frames and records, sends segments, and replaces the owner's manifest last.

use std::collections::HashSet;

use super::bucket_objects::ConditionalPut;
use super::owner_manifest::{OwnerManifest, PublishedSession, SessionRecord, piece_context};
use super::packed_push::{PackedPush, UnpublishedSession};
use super::session_keys::LiveKey;
use super::{BucketRemote, KnownManifest, damaged};
use crate::frame_chain::{FrameHash, SentFrame};
use crate::manifest::{SessionKey, SessionManifest};
use crate::team_error::TeamError;
use steno_store::session_owners::SessionVisibility;

/// How often a manifest is tried when other machines replace it too.
const MAX_ATTEMPTS: u32 = 100;

impl BucketRemote {
    /// The state of the push. The first time, checks which segments of an interrupted one were sent.
    pub(super) fn push(&mut self) -> Result<&mut PackedPush, TeamError> {
        let push = match self.push.take() {
            Some(push) => push,
            None => {
                let mut push = PackedPush::open(&self.folder);
                for name in push.segments() {
                    if !self.objects.has_segment(self.keys.owner(), &name)? {
                        push.discard_segment(name);
                    }
                }
                push
            }
        };
        Ok(self.push.insert(push))
    }

    pub(crate) fn known_frames(
        &mut self,
        key: &SessionKey,
        hashes: &[FrameHash],
    ) -> Result<HashSet<FrameHash>, TeamError> {
        let Some(live) = self.live_key(key)? else { return Ok(HashSet::new()) };
        let mut known = HashSet::new();
        if let Some((published, live)) = self.find_published(key)? {
            let record = self.open_record(&published, &live)?;
            known.extend(hashes.iter().filter(|hash| record.places.contains_key(hash)));
        }
        let push = self.push()?;
        known.extend(hashes.iter().filter(|hash| push.has_frame(key, live.id, hash)));
        Ok(known)
    }

    pub(crate) fn put_frames(
        &mut self,
        manifest: &SessionManifest,
        frames: &[SentFrame],
    ) -> Result<(), TeamError> {
        let key = &manifest.key;
        let live = self.own_key(key, manifest.visibility)?;
        for (hash, stored) in frames {
            let sealed = live.key.seal_piece(&piece_context(key, "frame"), stored);
            self.push()?.push_frame(key, live.id, *hash, &sealed);
        }
        self.flush_if_full()
    }

    /// The key for what is pushed of an own session.
    fn own_key(
        &mut self,
        key: &SessionKey,
        visibility: SessionVisibility,
    ) -> Result<LiveKey, TeamError> {
        if self.prepared.get(key) == Some(&visibility)
            && let Some(live) = self.live_keys.get(key)
        {
            return Ok(live.clone());
        }
        let live = self.keys.find_or_create(&self.objects, key, visibility)?;
        self.live_keys.insert(key.clone(), live.clone());
        self.keyless.remove(key);
        self.prepared.insert(key.clone(), visibility);
        Ok(live)
    }

    /// Packs the record of a session. It is published with its segment.
    pub(crate) fn swap_manifest(
        &mut self,
        expected: Option<FrameHash>,
        manifest: &SessionManifest,
    ) -> Result<bool, TeamError> {
        let key = &manifest.key;
        let live = self.own_key(key, manifest.visibility)?;
        let published = self.find_published(key)?;
        if published.as_ref().map(|(found, _)| found.revision) != expected {
            let owner = self.owner().to_owned();
            self.load_manifest(&owner)?;
            return Ok(false);
        }
        let mut places = match &published {
            Some((found, live)) => self.open_record(found, live)?.places.clone(),
            None => Default::default(),
        };
        places.extend(self.push()?.places(key, live.id));
        let named: HashSet<FrameHash> = manifest.frames().map(|frame| frame.hash).collect();
        places.retain(|hash, _| named.contains(hash));
        if let Some(missing) = named.iter().find(|hash| !places.contains_key(hash)) {
            return Err(damaged(key, format!("frame {missing} is missing")));
        }
        let record = SessionRecord { manifest: manifest.clone(), places };
        let sealed = record.seal(&live.key);
        let push = self.push()?;
        let session = PublishedSession {
            key: key.clone(),
            visibility: manifest.visibility,
            revision: manifest.revision(),
            data_key: live.id,
            record: push.packer.push_piece(&sealed),
        };
        push.unpublished.insert(key.clone(), UnpublishedSession { expected, session });
        self.flush_if_full()?;
        Ok(true)
    }

    fn flush_if_full(&mut self) -> Result<(), TeamError> {
        match self.push()?.packer.is_full() {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Sends the segment that is being packed, and publishes the sessions in it.
    fn flush(&mut self) -> Result<(), TeamError> {
        if let Some((name, bytes)) = self.push()?.take_segment()?
            && let Err(error) = self.objects.put_segment(self.keys.owner(), &name, bytes)
        {
            // The next attempt asks which of the announced segments are there.
            self.push = None;
            return Err(error);
        }
        self.publish()
    }

    /// Sends what is packed and publishes it. Returns the sessions that another machine has published first.
    pub(crate) fn finish_push(&mut self) -> Result<Vec<SessionKey>, TeamError> {
        self.flush()?;
        let contended = std::mem::take(&mut self.push()?.contended);
        // Another machine may have replaced the key, too.
        self.live_keys.retain(|key, _| !contended.contains(key));
        self.prepared.clear();
        self.keyless.clear();
        Ok(contended)
    }

    fn publish(&mut self) -> Result<(), TeamError> {
        let unpublished = self.push()?.unpublished.clone();
        let mut contended = Vec::new();
        if !unpublished.is_empty() {
            self.change_manifest(&mut |manifest| {
                contended.clear();
                for (key, new) in &unpublished {
                    let present = manifest.find(key);
                    let present = present.filter(|known| known.data_key == new.session.data_key);
                    if present == Some(&new.session) {
                        continue;
                    }
                    match present.map(|known| known.revision) == new.expected {
                        true => manifest.insert(new.session.clone()),
                        false => contended.push(key.clone()),
                    }
                }
            })?;
        }
        Ok(self.push()?.finish_published(contended)?)
    }

    /// Changes the own manifest, as often as another machine replaces it meanwhile.
    pub(super) fn change_manifest(
        &mut self,
        change: &mut dyn FnMut(&mut OwnerManifest),
    ) -> Result<(), TeamError> {
        let owner = self.owner().to_owned();
        for attempt in 0..MAX_ATTEMPTS {
            let KnownManifest { manifest, version } = self.known_manifest(&owner)?.clone();
            let mut next = manifest.clone();
            self.forgotten.iter().for_each(|key| next.remove(key));
            change(&mut next);
            if next == manifest {
                return Ok(());
            }
            let names = ["manifests", &format!("{owner}.json.zst")];
            match self.objects.swap(&names, version, next.to_bytes())? {
                ConditionalPut::Written(version) => {
                    let known = KnownManifest { manifest: next, version: Some(version) };
                    self.manifests.insert(owner, known);
                    return Ok(());
                }
                ConditionalPut::Refused => {
                    // Machines that began together try again at different times.
                    let spread = u64::from(std::process::id() % 29 + attempt % 11);
                    std::thread::sleep(std::time::Duration::from_millis(spread));
                    self.load_manifest(&owner)?;
                }
            }
        }
        Err(TeamError::Contended(format!("the manifest of {owner}")))
    }
}
