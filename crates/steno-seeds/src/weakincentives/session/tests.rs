//! Rules of slices: policies, reducers, files and errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::*;
use crate::weakincentives::TRANSCRIPT_FILE;
use crate::weakincentives::reducers::{replace_latest, replace_latest_by, upsert_by};
use crate::weakincentives::slice::SliceFactory;
use steno_model::entry::{Entry, EntryKind, Role};

/// An item with a name and a state.
#[derive(Clone, Debug, PartialEq)]
struct Task(&'static str, u64);

const NAMES: [&str; 3] = ["read", "write", "test"];

impl SliceItem for Task {
    const TYPE_ID: &'static str = "app.tasks:Task";

    fn to_json(&self) -> Object {
        let (name, state) = (self.0, self.1);
        Object::from_iter([("name".into(), json!(name)), ("state".into(), json!(state))])
    }

    fn from_json(object: Object) -> Result<Self, serde_json::Error> {
        let name = NAMES.iter().find(|name| object.get("name") == Some(&json!(name)));
        let name = name.ok_or_else(|| serde::de::Error::custom("unknown task"))?;
        Ok(Self(name, object["state"].as_u64().unwrap_or(0)))
    }
}

fn memory() -> SliceSession {
    let clock = Clock::fixed("2026-01-05T09:16:00+00:00".parse().unwrap());
    SliceSession::new(Uuid::from_u128(1), clock, SliceFactoryConfig::default())
}

fn on_disk(folder: &Path) -> SliceSession {
    let mut session = memory();
    session.config.log = SliceFactory::Jsonl(folder.to_owned());
    session
}

fn entry(content: &str) -> Entry {
    let mut entry = Entry::new(Role::User, EntryKind::Text, content);
    entry.created_at = Some("2026-01-05T09:15:32+00:00".parse().unwrap());
    entry.entry_id = Uuid::new_v5(&Uuid::NAMESPACE_URL, content.as_bytes());
    entry
}

fn file(folder: &Path) -> PathBuf {
    folder.join(TRANSCRIPT_FILE)
}

#[test]
fn events_without_a_reducer_go_to_their_own_slice() {
    let mut session = memory();
    for task in [Task("read", 1), Task("write", 2), Task("read", 3)] {
        session.dispatch(task).unwrap();
    }
    let tasks = session.query::<Task>();
    assert_eq!(tasks.read_all().unwrap().len(), 3);
    assert_eq!(tasks.latest().unwrap(), Some(Task("read", 3)));
    assert_eq!(tasks.filter_items(|task| task.0 == "write").unwrap(), [Task("write", 2)]);
}

#[test]
fn reducers_select_the_kept_items() {
    let after = |register: fn(&mut SliceSession)| {
        let mut session = memory();
        register(&mut session);
        for task in [Task("read", 1), Task("write", 2), Task("read", 3)] {
            session.dispatch(task).unwrap();
        }
        session.query::<Task>().read_all().unwrap()
    };
    assert_eq!(
        after(|s| s.register_reducer(SlicePolicy::State, replace_latest::<Task>).unwrap()),
        [Task("read", 3)]
    );
    assert_eq!(
        after(|s| s.register_reducer(SlicePolicy::State, upsert_by(|t: &Task| t.0)).unwrap()),
        [Task("read", 3), Task("write", 2)]
    );
    assert_eq!(
        after(|s| s
            .register_reducer(SlicePolicy::State, replace_latest_by(|t: &Task| t.0))
            .unwrap()),
        [Task("write", 2), Task("read", 3)]
    );
}

#[test]
fn one_event_may_change_several_slices() {
    let mut session = memory();
    session.register_reducer(SlicePolicy::State, append_all::<Task>).unwrap();
    session
        .register_reducer(SlicePolicy::Log, |view: &SliceView<'_, Entry>, task: &Task| {
            let count = view.read_all()?.len();
            Ok(SliceChange::Append(vec![entry(&format!("{} {count}", task.0))]))
        })
        .unwrap();
    session.dispatch(Task("test", 1)).unwrap();
    session.dispatch(Task("read", 1)).unwrap();
    let latest = session.query::<Entry>().latest().unwrap().unwrap();
    assert_eq!(latest.content, "read 1");
    assert_eq!(session.query::<Task>().read_all().unwrap().len(), 2);
}

#[test]
fn a_policy_holds_from_before_the_slice_exists() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = on_disk(folder.path());
    session.register_reducer(SlicePolicy::Log, append_all::<Task>).unwrap();
    session.dispatch(Task("read", 1)).unwrap();
    let lines = fs::read_to_string(folder.path().join("app.tasks.Task.jsonl")).unwrap();
    assert_eq!(lines, "{\"name\":\"read\",\"state\":1}\n");
    session.set_policy::<Task>(SlicePolicy::Log).unwrap();
    let error = session.set_policy::<Task>(SlicePolicy::State).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot change the policy of a slice that exists: app.tasks:Task"
    );
}

#[test]
fn a_log_only_grows() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = on_disk(folder.path());
    session.dispatch(Task("read", 1)).unwrap();
    session.dispatch(entry("kept")).unwrap();
    let refusals = [
        session.clear::<Entry>().unwrap_err(),
        session.replace::<Entry>(&[]).unwrap_err(),
        session.reset().unwrap_err(),
    ];
    let refusals = refusals.map(|error| error.to_string());
    let slice = "a log slice: weakincentives.transcript:TranscriptEntry";
    assert_eq!(
        refusals,
        ["clear", "replace", "reset"].map(|operation| format!("cannot {operation} {slice}"))
    );
    assert_eq!(session.query::<Entry>().read_all().unwrap(), [entry("kept")]);
    assert_eq!(session.query::<Task>().read_all().unwrap(), [Task("read", 1)]);
    session.clear::<Task>().unwrap();
    assert_eq!(session.query::<Task>().read_all().unwrap(), []);
}

#[test]
fn reset_empties_state() {
    let mut session = memory();
    session.dispatch(Task("read", 1)).unwrap();
    session.reset().unwrap();
    assert_eq!(session.query::<Task>().latest().unwrap(), None);
}

#[test]
fn sessions_on_one_folder_see_each_other_and_heal_a_torn_line() {
    let folder = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (on_disk(folder.path()), on_disk(folder.path()));
    assert_eq!(one.query::<Entry>().read_all().unwrap(), []);
    assert!(!file(folder.path()).exists());
    two.dispatch(entry("a")).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(file(folder.path()))
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"{\"role\": \"tor"))
        .unwrap();
    two.dispatch(entry("b")).unwrap();
    let seen = one.query::<Entry>().read_items().unwrap();
    assert_eq!(seen.items, [entry("a"), entry("b")]);
    assert_eq!(seen.problems.len(), 1);
    assert_eq!(seen.problems[0].line, Some(2));
}

#[test]
fn a_write_error_does_not_stop_listeners() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("blocked");
    fs::write(&blocked, "a file where the folder should be").unwrap();
    let mut session = on_disk(&blocked);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    session.subscribe(move |entry: &Entry| listener.lock().unwrap().push(entry.content.clone()));
    let error = session.dispatch(entry("lost")).unwrap_err();
    assert!(matches!(error.errors[..], [SliceError::File(_)]));
    assert!(error.to_string().contains("could not create folder"));
    assert_eq!(*heard.lock().unwrap(), ["lost"]);
}

#[test]
fn a_restore_rolls_state_back_and_leaves_logs() {
    let mut session = memory();
    session.dispatch(Task("read", 1)).unwrap();
    session.dispatch(entry("a")).unwrap();
    let snapshot = session.snapshot(false).unwrap();
    assert_eq!(snapshot.slices.len(), 1);
    session.dispatch(Task("write", 2)).unwrap();
    session.dispatch(entry("b")).unwrap();
    session.restore(&snapshot).unwrap();
    assert_eq!(session.query::<Task>().read_all().unwrap(), [Task("read", 1)]);
    assert_eq!(session.query::<Entry>().read_all().unwrap().len(), 2);

    let everything = session.snapshot(true).unwrap();
    let error = memory().restore(&everything).unwrap_err();
    assert_eq!(error.to_string(), "Slice types not registered: Task, TranscriptEntry");
}

#[test]
fn every_entry_gets_an_id_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = on_disk(folder.path());
    let unnamed = Entry { entry_id: Uuid::nil(), ..entry("x") };
    session.dispatch(unnamed.clone()).unwrap();
    session.dispatch(unnamed.clone()).unwrap();
    session
        .register_reducer(SlicePolicy::Log, move |_: &SliceView<'_, Entry>, _: &Task| {
            Ok(SliceChange::Append(vec![unnamed.clone(), unnamed.clone()]))
        })
        .unwrap();
    session.dispatch(Task("read", 1)).unwrap();
    let entries = on_disk(folder.path()).query::<Entry>().read_all().unwrap();
    let ids: std::collections::HashSet<_> = entries.iter().map(|entry| entry.entry_id).collect();
    assert_eq!((entries.len(), ids.len(), ids.contains(&Uuid::nil())), (4, 4, false));
}

#[test]
fn state_slices_are_seeded_counted_and_cleared_in_part() {
    let mut session = memory();
    session.seed(&[Task("read", 1), Task("write", 2), Task("test", 3)]).unwrap();
    session.seed(&[Task("read", 4), Task("write", 5)]).unwrap();
    assert_eq!(session.query::<Task>().len().unwrap(), 2);
    assert_eq!(session.clear_where::<Task>(|task| task.1 == 4).unwrap(), 1);
    assert_eq!(session.query::<Task>().read_all().unwrap(), [Task("write", 5)]);
    assert_eq!(session.clear_where::<Task>(|_| false).unwrap(), 0);
    session.clear::<Task>().unwrap();
    assert!(session.query::<Task>().is_empty().unwrap());
}

#[test]
fn log_slices_are_seeded_only_while_empty() {
    let mut session = memory();
    session.seed(&[entry("a"), entry("b")]).unwrap();
    assert_eq!(session.query::<Entry>().len().unwrap(), 2);
    let seeded = session.seed(&[entry("c")]).unwrap_err().to_string();
    assert_eq!(seeded, "cannot seed a log slice: weakincentives.transcript:TranscriptEntry");
    let cleared = session.clear_where::<Entry>(|_| true).unwrap_err().to_string();
    assert_eq!(cleared, "cannot clear a log slice: weakincentives.transcript:TranscriptEntry");
    assert_eq!(session.query::<Entry>().len().unwrap(), 2);
}
