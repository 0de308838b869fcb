//! Recording into a store, and recovery after a crash.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::*;
use super::{at, clock};
use steno_model::timestamp::Clock;

const NOW: &str = "2025-01-15T10:30:00Z";

fn store(dir: &Path) -> RunStore {
    RunStore::open(dir, clock(NOW)).unwrap()
}

fn ticket() -> NewRun {
    NewRun {
        flow: "ticket-to-pr".to_owned(),
        identifier: Some("TK-421".to_owned()),
        ..NewRun::default()
    }
}

#[test]
fn a_run_is_on_disk_from_start_to_end() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let id = store.start_run(&ticket()).unwrap();
    assert_eq!(id.as_str(), "2025-01-15-ticket-to-pr-TK421");
    let folder = store.run_folder(&id);
    let metadata = fs::read_to_string(folder.join("metadata.json")).unwrap();
    assert!(metadata.contains("\"status\": \"running\"") && !metadata.contains("endedAt"));
    store.record_turn(&id, RunTurn::new("user", "Hi", 5)).unwrap();
    assert_eq!(store.record_turn(&id, RunTurn::new("assistant", "Ho", 7)).unwrap(), 2);
    store.record_tool_call(&id, TurnToolCall::with_error("ls", None, "no")).unwrap();
    store.set_cost(&id, 0.1).unwrap();
    store.add_cost(&id, 0.02).unwrap();
    let live = store.load_run(&id).unwrap().run;
    assert_eq!(store.load_metadata(&id).unwrap().turn_count, Some(2));
    let elsewhere = self::store(dir.path());
    assert_eq!(elsewhere.load_run(&id).unwrap().run.turns, live.turns);
    store.complete_run(&id).unwrap();
    let run = elsewhere.load_run(&id).unwrap().run;
    assert_eq!(run.turns, live.turns);
    assert_eq!(run.metadata.status, "completed");
    assert_eq!(run.metadata.ended_at, Some(at(NOW)));
    assert_eq!((run.metadata.total_tokens_in, run.metadata.total_tokens_out), (5, 7));
    assert_eq!(run.metadata.total_cost, 0.12000000000000001);
    assert!(!folder.join("journal.jsonl").exists());
    let metadata = fs::read_to_string(folder.join("metadata.json")).unwrap();
    assert!(metadata.contains("\"turnCount\": 2"));
}

#[test]
fn errors_are_those_of_devflow_with_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let id: RunId = "r1".parse().unwrap();
    let text = |result: Result<(), RunStoreError>| result.unwrap_err().to_string();
    assert_eq!(text(store.complete_run(&id)), "run not started: r1");
    assert_eq!(text(store.load_run(&id).map(|_| ())), "run not found: r1");
    assert_eq!(text(store.load_metadata(&id).map(|_| ())), "run not found: r1");
    store.start_run_as(&id, &ticket()).unwrap();
    assert_eq!(text(store.start_run_as(&id, &ticket())), "run already exists: r1");
    let call = TurnToolCall::with_output("ls", None, "x");
    assert_eq!(text(store.record_tool_call(&id, call)), "no turns to add tool call to: r1");
    assert_eq!(text(store.add_cost(&id, f64::NAN)), "cost is not a finite number: NaN");
    store.fail_run(&id, "boom").unwrap();
    assert_eq!(text(store.add_cost(&id, 1.0)), "run already ended: r1");
    assert_eq!(text(store.start_run_as(&id, &ticket())), "run already exists: r1");
    assert_eq!(store.load_run(&id).unwrap().run.metadata.error, "boom");
    assert!(!store.run_folder(&id).join("journal.jsonl").exists());
}

#[test]
fn a_folder_made_for_artifacts_does_not_hinder_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let id: RunId = "r1".parse().unwrap();
    fs::create_dir_all(store.run_folder(&id).join("artifacts")).unwrap();
    store.start_run_as(&id, &ticket()).unwrap();
}

#[test]
fn no_name_is_given_twice() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let first = store.start_run(&ticket()).unwrap();
    let second = store.start_run(&ticket()).unwrap();
    assert_eq!(second.as_str(), format!("{first}-2"));
    store.complete_run(&second).unwrap();
    store.archive_run(&second).unwrap();
    assert_eq!(store.start_run(&ticket()).unwrap().as_str(), format!("{first}-3"));
    let unnamed =
        store.start_run(&NewRun { flow: "manual".to_owned(), ..NewRun::default() }).unwrap();
    let identifier = unnamed.as_str().strip_prefix("2025-01-15-manual-").unwrap();
    assert!(identifier.len() == 8 && identifier.chars().all(|c| c.is_ascii_hexdigit()));
}

#[test]
fn an_abandoned_run_is_ended_as_failed() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    let id = first.start_run(&ticket()).unwrap();
    let mut turn = RunTurn::new("user", "Hi", 5);
    turn.timestamp = Some(at("2025-01-15T10:31:00Z"));
    first.record_turn(&id, turn).unwrap();
    let journal = first.run_folder(&id).join("journal.jsonl");
    let untouched = store(dir.path());
    assert_eq!(untouched.load_metadata(&id).unwrap().status, "running");
    drop(first);
    let mut file = fs::OpenOptions::new().append(true).open(&journal).unwrap();
    file.write_all(b"{\"turn\":{\"role\":\"assis").unwrap();
    let run = store(dir.path()).load_run(&id).unwrap().run;
    assert_eq!(run.turns.len(), 1);
    assert_eq!(run.metadata.status, "failed");
    assert_eq!(run.metadata.error, "the recorder stopped without ending the run");
    assert_eq!(run.metadata.ended_at, Some(at("2025-01-15T10:31:00Z")));
    assert!(!journal.exists());
}

#[test]
fn a_crash_while_finishing_keeps_how_the_run_ended() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    let id = first.start_run(&ticket()).unwrap();
    let folder = first.run_folder(&id);
    drop(first);
    let end = "{\"end\":{\"runId\":\"r\",\"flowId\":\"f\",\"status\":\"canceled\",\"endedAt\":\"2025-01-15T11:00:00Z\"}}\n";
    steno_model::durable::append_lines(&folder.join("journal.jsonl"), end.as_bytes()).unwrap();
    fs::remove_file(folder.join("metadata.json")).unwrap();
    let run = store(dir.path()).load_run(&id).unwrap().run;
    assert_eq!(run.metadata.status, "canceled");
    assert!(folder.join("metadata.json").exists() && !folder.join("journal.jsonl").exists());
}

#[test]
fn a_damaged_journal_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    let id = first.start_run(&ticket()).unwrap();
    let folder = first.run_folder(&id);
    drop(first);
    let lines = b"noise\n{\"turn\":{\"role\":\"user\",\"content\":\"Hi\"}}\n";
    steno_model::durable::append_lines(&folder.join("journal.jsonl"), lines).unwrap();
    let recovered = store(dir.path());
    assert_eq!(recovered.load_run(&id).unwrap().run.turns[0].content, "Hi");
    assert_eq!(recovered.problems()[0].line, Some(2));
    assert!(!folder.join("journal.jsonl").exists());
    let kept = fs::read(folder.join("journal-damaged.jsonl")).unwrap();
    assert!(kept.starts_with(b"{\"start\"") && kept.ends_with(lines));
    assert_eq!(store(dir.path()).problems(), []);
}

/// Not a test of its own: the process that the next test kills.
#[test]
fn recorder_to_be_killed() {
    let Ok(dir) = std::env::var("STENO_TEST_RECORDER") else {
        return;
    };
    let store = RunStore::open(Path::new(&dir), Clock::fixed(at(NOW))).unwrap();
    let id = store.start_run(&ticket()).unwrap();
    for number in 0.. {
        store.record_turn(&id, RunTurn::new("user", format!("turn {number}"), 1)).unwrap();
        fs::write(Path::new(&dir).join("acknowledged"), number.to_string()).unwrap();
    }
}

#[test]
fn a_killed_recorder_loses_nothing_that_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "devflow::tests::recording::recorder_to_be_killed"])
        .env("STENO_TEST_RECORDER", dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let acknowledged = || {
        let text = fs::read_to_string(dir.path().join("acknowledged")).ok()?;
        text.parse::<usize>().ok()
    };
    let patience = std::time::Instant::now();
    while acknowledged().is_none_or(|count| count < 5) {
        assert!(patience.elapsed().as_secs() < 30, "the recorder does not record");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let id: RunId = "2025-01-15-ticket-to-pr-TK421".parse().unwrap();
    let during = store(dir.path());
    assert_eq!(during.load_metadata(&id).unwrap().status, "running");
    assert!(during.is_recording(&id).unwrap());
    assert!(matches!(during.delete_run(&id), Err(RunStoreError::Recording(_))));
    child.kill().unwrap();
    child.wait().unwrap();
    let count = acknowledged().unwrap_or(0);
    let run = store(dir.path()).load_run(&id).unwrap().run;
    assert_eq!(run.metadata.status, "failed");
    assert!(run.turns.len() > count, "{} turns, {count} acknowledged", run.turns.len());
    for (number, turn) in run.turns.iter().enumerate() {
        assert_eq!(turn.content, format!("turn {number}"));
    }
}
