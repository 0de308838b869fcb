//! Tests of a bucket in memory, with keys in the bucket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use proptest::prelude::*;
use serde_json::json;
use steno_cipher::AgeIdentity;
use steno_vault::tombstone::Tombstone;
use tempfile::TempDir;

use super::key_objects::KeyObjects;
use super::segment::SEGMENT_BYTES;
use super::*;
use crate::frame_chain::SentFrame;
use crate::manifest::FileStream;

/// A bucket with a team of people who share an identity.
struct Team {
    store: Arc<InMemory>,
    identity: AgeIdentity,
}

/// A machine of a person.
struct Machine {
    remote: BucketRemote,
    folder: TempDir,
    user: String,
}

impl Team {
    fn new() -> Self {
        let team = Self { store: Arc::new(InMemory::new()), identity: AgeIdentity::generate() };
        assert!(team.machine("ada").remote.initialise().unwrap());
        assert!(!team.machine("bob").remote.initialise().unwrap());
        team
    }

    fn remote(&self, user: &str, folder: &Path, identity: &AgeIdentity) -> BucketRemote {
        let prefix = ObjectPath::parse("steno").unwrap();
        let objects = BucketObjects::new(self.store.clone(), prefix, "s3://team/steno").unwrap();
        let keys = KeyObjects::new(user, vec![identity.clone()]);
        BucketRemote::new(objects, SessionKeys::Objects(keys), folder)
    }

    fn machine(&self, user: &str) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let remote = self.remote(user, folder.path(), &self.identity);
        Machine { remote, folder, user: user.to_owned() }
    }

    /// Kills the push of a machine: what was not sent is lost.
    fn restart(&self, machine: &mut Machine) {
        machine.remote = self.remote(&machine.user, machine.folder.path(), &self.identity);
    }

    /// All objects by path.
    fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        use futures_util::TryStreamExt;
        run(async {
            let listed: Vec<_> = self.store.list(None).try_collect().await.unwrap();
            let mut objects = BTreeMap::new();
            for meta in listed {
                let bytes = self.store.get(&meta.location).await.unwrap().bytes().await.unwrap();
                objects.insert(meta.location.to_string(), bytes.to_vec());
            }
            objects
        })
    }

    fn segments(&self) -> BTreeMap<String, Vec<u8>> {
        let mut objects = self.objects();
        objects.retain(|path, _| path.starts_with("steno/segments/"));
        objects
    }

    fn overwrite(&self, path: &str, bytes: Vec<u8>) {
        let path = ObjectPath::parse(path).unwrap();
        run(self.store.put(&path, PutPayload::from(bytes))).unwrap();
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn key(owner: &str, id: &str) -> SessionKey {
    SessionKey { owner: owner.to_owned(), agent: "codex".to_owned(), id: id.parse().unwrap() }
}

fn stored(word: &str) -> Vec<u8> {
    format!("compressed {word}").into_bytes()
}

/// The manifest of a session with a frame for each word.
fn manifest(key: &SessionKey, words: &[String]) -> SessionManifest {
    let description = serde_json::from_value(json!({
        "name": "a.jsonl", "generation": 0, "path": "/a.jsonl", "root": "/a.jsonl", "form": "bytes",
    }));
    let mut file =
        FileStream { description: description.unwrap(), redaction: None, frames: Vec::new() };
    for word in words {
        let link = file.chain_end(key).link_frame(word.as_bytes());
        file.frames.push(link);
    }
    SessionManifest {
        version: REMOTE_VERSION,
        key: key.clone(),
        visibility: SessionVisibility::Team,
        heading: json!({ "title": "the secret plan" }),
        forgotten: Vec::new(),
        notes: Vec::new(),
        removed_notes: Vec::new(),
        files: vec![file],
    }
}

fn words(manifest: &SessionManifest, remote: &mut BucketRemote) -> Vec<String> {
    let frames: Vec<FrameLink> = manifest.frames().cloned().collect();
    let mut read = |frame: &FrameLink| {
        let stored = remote.read_frame(&manifest.key, frame).unwrap().unwrap();
        let word = String::from_utf8(stored).unwrap();
        let word = word.strip_prefix("compressed ").unwrap().to_owned();
        assert_eq!(FrameHash::of(word.as_bytes()), frame.hash);
        word
    };
    frames.iter().map(&mut read).collect()
}

impl Machine {
    /// Adds words to what the remote has of a session. Sends only what it lacks; returns how many frames.
    fn add(&mut self, id: &str, new: &[&str]) -> Result<usize, TeamError> {
        let key = key(self.remote.owner(), id);
        let present = self.remote.read_manifest(&key)?;
        let expected = present.as_ref().map(SessionManifest::revision);
        let mut all = present.map(|present| words(&present, &mut self.remote)).unwrap_or_default();
        all.extend(
            new.iter()
                .map(|word| (*word).to_owned())
                .filter(|word| !all.contains(word))
                .collect::<Vec<_>>(),
        );
        let manifest = manifest(&key, &all);
        let hashes: Vec<FrameHash> = manifest.frames().map(|frame| frame.hash).collect();
        let known = self.remote.known_frames(&key, &hashes)?;
        let mut frames: Vec<SentFrame> = Vec::new();
        for (word, hash) in all.iter().zip(&hashes) {
            if !known.contains(hash) {
                frames.push((*hash, stored(word)));
            }
        }
        self.remote.put_frames(&manifest, &frames)?;
        assert!(self.remote.swap_manifest(expected, &manifest)?);
        Ok(frames.len())
    }

    /// Adds words until they are published.
    fn push(&mut self, id: &str, new: &[&str]) -> usize {
        loop {
            let sent = self.add(id, new).unwrap();
            if self.remote.finish_push().unwrap().is_empty() {
                return sent;
            }
        }
    }

    /// All sessions that this user sees, with their words.
    fn read(&mut self) -> BTreeMap<String, BTreeSet<String>> {
        let revisions = self.remote.list_revisions().unwrap();
        let mut read = BTreeMap::new();
        for (key, revision) in revisions {
            let manifest = self.remote.read_manifest(&key).unwrap().unwrap();
            assert_eq!(manifest.revision(), revision);
            let words = words(&manifest, &mut self.remote);
            read.insert(format!("{}/{}", key.owner, key.id), words.into_iter().collect());
        }
        read
    }

    fn forget(&mut self, id: &str) {
        let key = key(self.remote.owner(), id);
        let tombstone: Tombstone = serde_json::from_value(json!({
            "id": Uuid::new_v4(), "session": format!("codex/{id}"),
            "at": "2026-01-05T09:15:00Z", "by": "ada", "scope": { "session": [] },
        }))
        .unwrap();
        self.remote.forget_session(&RemoteTombstone { key, tombstone }).unwrap();
    }
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_push_is_read_by_others_and_sent_once() {
    let team = Team::new();
    let (mut ada, mut bob) = (team.machine("ada"), team.machine("bob"));
    assert_eq!(ada.push("s1", &["apricot", "walnut"]), 2);
    let before = team.objects();
    assert_eq!(ada.push("s1", &["apricot"]), 0);
    assert_eq!(team.machine("ada").push("s1", &["walnut"]), 0, "another machine");
    let kept: Vec<_> = team.segments().into_keys().collect();
    assert!(before.keys().filter(|path| path.contains("segments")).all(|path| kept.contains(path)));
    assert_eq!(bob.push("s2", &["plum"]), 1);
    let expected = BTreeMap::from([
        ("ada/s1".to_owned(), set(&["apricot", "walnut"])),
        ("bob/s2".to_owned(), set(&["plum"])),
    ]);
    assert_eq!(ada.read(), expected);
    assert_eq!(bob.read(), expected);
    for (path, bytes) in team.objects() {
        for word in ["apricot", "secret plan", "a.jsonl"] {
            let has = memchr::memmem::find(&bytes, word.as_bytes()).is_some();
            assert!(!has, "{word} in {path}");
        }
    }
}

#[test]
fn a_private_session_is_hidden() {
    let team = Team::new();
    let (mut ada, mut bob) = (team.machine("ada"), team.machine("bob"));
    let key = key("ada", "s1");
    let private = SessionManifest { visibility: SessionVisibility::Private, ..manifest(&key, &[]) };
    assert!(ada.remote.swap_manifest(None, &private).unwrap());
    assert!(ada.remote.finish_push().unwrap().is_empty());
    assert_eq!((ada.read().len(), bob.read().len()), (1, 0));
}

#[test]
fn the_second_of_two_machines_is_contended_and_loses_nothing() {
    let team = Team::new();
    let (mut desktop, mut laptop) = (team.machine("ada"), team.machine("ada"));
    desktop.add("s1", &["apricot"]).unwrap();
    laptop.add("s1", &["walnut"]).unwrap();
    laptop.add("s2", &["plum"]).unwrap();
    assert!(desktop.remote.finish_push().unwrap().is_empty());
    assert_eq!(laptop.remote.finish_push().unwrap(), [key("ada", "s1")]);
    assert_eq!(laptop.push("s1", &["walnut"]), 0, "the frame is sent already");
    let both = BTreeMap::from([
        ("ada/s1".to_owned(), set(&["apricot", "walnut"])),
        ("ada/s2".to_owned(), set(&["plum"])),
    ]);
    assert_eq!(desktop.read(), both);
}

#[test]
fn segments_have_their_size_and_an_interrupted_push_goes_on() {
    let team = Team::new();
    let mut ada = team.machine("ada");
    let key = key("ada", "s1");
    let names: Vec<String> = (0..21).map(|n| format!("part {n}")).collect();
    let manifest = manifest(&key, &names);
    let hashes: Vec<FrameHash> = manifest.frames().map(|frame| frame.hash).collect();
    let send = |ada: &mut Machine, hashes: &[FrameHash]| {
        for hash in hashes {
            ada.remote.put_frames(&manifest, &[(*hash, vec![7; 2 << 20])]).unwrap();
        }
    };
    send(&mut ada, &hashes[..20]);
    team.restart(&mut ada);
    let known = ada.remote.known_frames(&key, &hashes).unwrap();
    assert_eq!(known.len(), 16, "two segments were sent");
    let rest: Vec<FrameHash> =
        hashes.iter().filter(|hash| !known.contains(hash)).copied().collect();
    send(&mut ada, &rest);
    assert!(ada.remote.swap_manifest(None, &manifest).unwrap());
    assert!(ada.remote.finish_push().unwrap().is_empty());
    let segments = team.segments();
    let sizes: Vec<usize> = segments.values().map(Vec::len).collect();
    assert_eq!(sizes.len(), 3);
    let in_range = sizes.iter().filter(|size| (SEGMENT_BYTES..SEGMENT_BYTES * 2).contains(*size));
    assert_eq!(in_range.count(), 2, "{sizes:?}");
    for (path, bytes) in &segments {
        assert!(path.ends_with(&FrameHash::of(bytes).to_string()), "named by its bytes");
    }
    let mut bob = team.machine("bob");
    bob.remote.list_revisions().unwrap();
    for frame in manifest.frames() {
        assert_eq!(bob.remote.read_frame(&key, frame).unwrap().unwrap(), vec![7; 2 << 20]);
    }
    assert!(!ada.folder.path().join("sent.json").exists(), "nothing is left to resume");
}

#[test]
fn a_segment_that_was_announced_but_not_sent_is_sent_again() {
    let team = Team::new();
    let mut ada = team.machine("ada");
    ada.add("s1", &["apricot"]).unwrap();
    ada.remote.push().unwrap().take_segment().unwrap();
    team.restart(&mut ada);
    assert_eq!(ada.push("s1", &["apricot"]), 1);
    // It was sent, but no manifest names it.
    ada.add("s2", &["walnut"]).unwrap();
    let (name, bytes) = ada.remote.push().unwrap().take_segment().unwrap().unwrap();
    ada.remote.objects.put_segment("ada", &name, bytes).unwrap();
    team.restart(&mut ada);
    assert_eq!(ada.push("s2", &["walnut"]), 0);
    assert_eq!(team.machine("bob").read()["ada/s2"], set(&["walnut"]));
}

#[test]
fn a_segment_that_could_not_be_sent_is_sent_by_the_next_attempt() {
    let team = Team::new();
    let mut ada = team.machine("ada");
    ada.add("s1", &["apricot"]).unwrap();
    // Nothing listens on this port.
    let options = [
        ("aws_endpoint_url", "http://127.0.0.1:9"),
        ("aws_access_key_id", "team-id"),
        ("aws_secret_access_key", "-"),
    ];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = BucketOptions(options.to_vec());
    let (store, prefix) = object_access::open_bucket("s3://team/steno", &options).unwrap();
    let down = BucketObjects::new(store, prefix, "s3://team/steno").unwrap();
    let up = std::mem::replace(&mut ada.remote.objects, down);
    let error = ada.remote.finish_push().unwrap_err();
    assert!(matches!(error, TeamError::Objects { .. }), "{error}");
    ada.remote.objects = up;
    assert!(ada.remote.finish_push().unwrap().is_empty());
    assert!(team.machine("bob").read().is_empty(), "nothing without its segment is published");
    assert_eq!(ada.push("s1", &["apricot"]), 1);
    assert_eq!(team.machine("bob").read()["ada/s1"], set(&["apricot"]));
}

#[test]
fn a_forgotten_session_cannot_be_read_or_pushed() {
    let team = Team::new();
    let (mut ada, mut laptop, mut bob) =
        (team.machine("ada"), team.machine("ada"), team.machine("bob"));
    ada.push("s1", &["apricot"]);
    ada.push("s2", &["plum"]);
    let known = bob.read();
    assert_eq!(known.len(), 2);
    laptop.add("s1", &["walnut"]).unwrap();
    ada.forget("s1");
    // No key opens what the segments still have.
    let mut keys = team.objects();
    keys.retain(|path, _| path.starts_with("steno/keys/"));
    assert_eq!(keys.into_keys().collect::<Vec<_>>(), ["steno/keys/ada/codex/s2"]);
    // A machine that was about to publish more of it.
    assert_eq!(laptop.remote.finish_push().unwrap(), [key("ada", "s1")]);
    for machine in [&mut ada, &mut laptop, &mut bob, &mut team.machine("eve")] {
        assert_eq!(machine.read().into_keys().collect::<Vec<_>>(), ["ada/s2"]);
        assert_eq!(machine.remote.read_manifest(&key("ada", "s1")).unwrap(), None);
    }
    let refused = laptop.add("s1", &["walnut"]).unwrap_err();
    assert!(matches!(refused, TeamError::Forgotten(_)), "{refused}");
    assert_eq!(bob.remote.list_tombstones().unwrap()[0].key, key("ada", "s1"));
}

#[test]
fn a_manifest_loses_what_was_forgotten_by_a_killed_machine() {
    let team = Team::new();
    let mut ada = team.machine("ada");
    ada.push("s1", &["apricot"]);
    let before = ada.remote.known_manifest("ada").unwrap().manifest.clone();
    ada.forget("s1");
    // As if it had been killed before it could change the manifest.
    let path = "steno/manifests/ada.json.zst";
    team.overwrite(path, before.to_bytes());
    let mut laptop = team.machine("ada");
    assert!(laptop.read().is_empty());
    laptop.remote.list_tombstones().unwrap();
    laptop.push("s2", &["plum"]);
    let after = OwnerManifest::parse(&team.objects()[path], "ada").unwrap();
    assert!(after.find(&key("ada", "s1")).is_none() && after.find(&key("ada", "s2")).is_some());
}

#[test]
fn removing_parts_replaces_the_key() {
    let team = Team::new();
    let (mut ada, mut bob) = (team.machine("ada"), team.machine("bob"));
    let key = key("ada", "s1");
    ada.push("s1", &["apricot", "walnut"]);
    let before = ada.remote.live_key(&key).unwrap().unwrap();
    ada.remote.clear_session(&key).unwrap();
    // Killed here: nothing of the session is shown.
    assert!(bob.read().is_empty());
    assert_eq!(ada.push("s1", &["walnut"]), 1, "all is sent with the new key");
    assert_eq!(bob.read()["ada/s1"], set(&["walnut"]));
    let after = ada.remote.live_key(&key).unwrap().unwrap();
    assert!(before.id != after.id && before.key != after.key);
}

#[test]
fn every_change_of_a_segment_is_found() {
    let team = Team::new();
    team.machine("ada").push("s1", &["apricot", "walnut", "plum"]);
    let (path, bytes) = team.segments().pop_first().unwrap();
    let check = || -> Result<(), TeamError> {
        let mut bob = team.machine("bob");
        let (key, _) = bob.remote.list_revisions()?.remove(0);
        let manifest = bob.remote.read_manifest(&key)?.unwrap();
        for frame in manifest.frames() {
            bob.remote.read_frame(&key, frame)?.unwrap();
        }
        Ok(())
    };
    check().unwrap();
    let is_damage = |error: &TeamError| matches!(error, TeamError::Damaged { .. });
    for at in (8..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        team.overwrite(&path, changed);
        let error = check().unwrap_err();
        assert!(is_damage(&error), "byte {at}: {error}");
    }
    for length in [0, 8, bytes.len() / 2, bytes.len() - 1] {
        team.overwrite(&path, bytes[..length].to_vec());
        let error = check().unwrap_err();
        assert!(is_damage(&error), "cut to {length}: {error}");
    }
    run(team.store.delete(&ObjectPath::parse(&path).unwrap())).unwrap();
    let error = check().unwrap_err();
    assert!(is_damage(&error) && error.to_string().contains("missing"), "{error}");
    team.overwrite(&path, bytes);
    check().unwrap();
}

#[test]
fn a_manifest_cannot_name_the_record_of_another_session() {
    let team = Team::new();
    let mut ada = team.machine("ada");
    ada.push("s1", &["apricot"]);
    ada.push("s2", &["walnut"]);
    ada.remote
        .change_manifest(&mut |manifest| {
            let other = manifest.find(&key("ada", "s2")).unwrap().clone();
            let swapped = manifest.find(&key("ada", "s1")).unwrap().clone();
            manifest.insert(PublishedSession { record: other.record, ..swapped });
        })
        .unwrap();
    let mut bob = team.machine("bob");
    bob.remote.list_revisions().unwrap();
    let error = bob.remote.read_manifest(&key("ada", "s1")).unwrap_err();
    assert!(matches!(error, TeamError::Damaged { .. }), "{error}");
}

#[test]
fn strangers_and_other_versions_are_refused() {
    let team = Team::new();
    team.machine("ada").push("s1", &["apricot"]);
    let folder = tempfile::tempdir().unwrap();
    let mut eve = team.remote("eve", folder.path(), &AgeIdentity::generate());
    assert!(matches!(eve.check_version(), Err(TeamError::NoKey(_))));
    assert!(matches!(eve.read_manifest(&key("ada", "s1")), Err(TeamError::NoKey(_))));
    let mut ada = team.machine("ada");
    let marker = String::from_utf8(team.objects()["steno/steno-remote.json"].clone()).unwrap();
    let mut check = |from: &str, to: &str| {
        let changed = marker.replace(from, to);
        assert_ne!(changed, marker);
        team.overwrite("steno/steno-remote.json", changed.into_bytes());
        ada.remote.check_version()
    };
    let version = "\"steno_remote\":1";
    assert!(matches!(check(version, "\"steno_remote\":9"), Err(TeamError::NewerSchema { .. })));
    assert!(matches!(check(version, "\"steno_remote\":0"), Err(TeamError::OlderSchema { .. })));
    assert!(matches!(check("bucket", "database"), Err(TeamError::OtherKeys(_))));
    assert!(matches!(check("{", "["), Err(TeamError::Damaged { .. })));
}

/// A step of one of two machines of a person.
#[derive(Clone, Debug)]
enum Step {
    Add { machine: usize, session: usize },
    Finish { machine: usize },
    Kill { machine: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2usize, 0..3usize).prop_map(|(machine, session)| Step::Add { machine, session }),
        2 => (0..2usize).prop_map(|machine| Step::Finish { machine }),
        1 => (0..2usize).prop_map(|machine| Step::Kill { machine }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pushes_of_two_machines_lose_nothing(steps in proptest::collection::vec(step(), 1..40)) {
        let team = Team::new();
        let mut machines = [team.machine("ada"), team.machine("ada")];
        // What each machine has of each session. Killed or refused, it is pushed again.
        let mut own: Vec<[Vec<String>; 3]> = vec![Default::default(), Default::default()];
        for (n, step) in steps.iter().enumerate() {
            match *step {
                Step::Add { machine, session } => {
                    own[machine][session].push(format!("word {n} of {machine}"));
                    let all: Vec<&str> = own[machine][session].iter().map(String::as_str).collect();
                    let remote = &mut machines[machine].remote;
                    // A session is pushed once in a push.
                    if remote.push().unwrap().unpublished.is_empty() {
                        machines[machine].add(&format!("s{session}"), &all).unwrap();
                    }
                }
                Step::Finish { machine } => drop(machines[machine].remote.finish_push().unwrap()),
                Step::Kill { machine } => team.restart(&mut machines[machine]),
            }
        }
        let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (machine, sessions) in machines.iter_mut().zip(&own) {
            machine.remote.finish_push().unwrap();
            for (session, words) in sessions.iter().enumerate().filter(|(_, words)| !words.is_empty()) {
                let all: Vec<&str> = words.iter().map(String::as_str).collect();
                machine.push(&format!("s{session}"), &all);
                expected.entry(format!("ada/s{session}")).or_default().extend(words.iter().cloned());
            }
        }
        prop_assert_eq!(team.machine("bob").read(), expected);
    }
}
