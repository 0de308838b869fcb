//! Listing, searching, archiving and cleaning up.

use std::fs;
use std::path::Path;

use super::super::*;
use super::{at, clock};

const NOW: &str = "2025-03-01T00:00:00Z";

/// A store with one completed run per day, named `YYYY-MM-DD-f-n`.
fn filled(dir: &Path, days: &[&str]) -> RunStore {
    for day in days {
        let store = RunStore::open(dir, clock(&format!("{day}T10:00:00Z"))).unwrap();
        let id = start(&store, "f");
        let turn = RunTurn::new("user", format!("said on {day} with <b>&</b>"), 10);
        store.record_turn(&id, turn).unwrap();
        store.set_cost(&id, 0.25).unwrap();
        store.complete_run(&id).unwrap();
    }
    RunStore::open(dir, clock(NOW)).unwrap()
}

fn start(store: &RunStore, flow: &str) -> RunId {
    let new =
        NewRun { flow: flow.to_owned(), identifier: Some("n".to_owned()), ..NewRun::default() };
    store.start_run(&new).unwrap()
}

fn ids(runs: &[RunMetadata]) -> Vec<&str> {
    runs.iter().map(|run| run.run_id.as_str()).collect()
}

fn few() -> RetentionPolicy {
    RetentionPolicy { keep_min_runs: 0, ..RetentionPolicy::default() }
}

#[test]
fn lists_are_filtered_and_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), &["2025-01-01", "2025-01-02", "2025-01-03"]);
    let failed = start(&store, "g");
    store.fail_run(&failed, "x").unwrap();
    let list = |filter: RunFilter| store.list_runs(&filter).unwrap();
    assert_eq!(
        ids(&list(RunFilter::default())),
        ["2025-03-01-g-n", "2025-01-03-f-n", "2025-01-02-f-n", "2025-01-01-f-n"]
    );
    let bounded = RunFilter {
        after: Some(at("2025-01-02T10:00:00Z")),
        before: Some(at("2025-01-03T11:00:00+01:00")),
        ..RunFilter::default()
    };
    assert_eq!(ids(&list(bounded)), ["2025-01-03-f-n", "2025-01-02-f-n"]);
    let narrow = RunFilter {
        flow: Some("f".to_owned()),
        status: Some("completed".to_owned()),
        limit: Some(1),
        ..RunFilter::default()
    };
    assert_eq!(ids(&list(narrow)), ["2025-01-03-f-n"]);
    let stats = RunStats::from_runs(&list(RunFilter::default()));
    assert_eq!((stats.total_runs, stats.completed_runs, stats.failed_runs), (4, 3, 1));
    assert_eq!((stats.total_tokens_in, stats.average_tokens_in()), (30, 7));
}

#[test]
fn the_index_follows_the_files_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), &["2025-01-01", "2025-01-02"]);
    let path = dir.path().join("runs/index.json");
    let index = fs::read_to_string(&path).unwrap();
    assert!(index.starts_with("{\n  \"runs\": [\n    {\n      \"runId\": \"2025-01-02-f-n\",\n      \"flowId\": \"f\",\n      \"status\": \"completed\",\n      \"startedAt\": \"2025-01-02T10:00:00Z\"\n    },"));
    assert!(index.ends_with("\"lastUpdated\": \"2025-01-02T10:00:00Z\"\n}"), "{index}");
    fs::remove_dir_all(dir.path().join("runs/2025-01-01-f-n")).unwrap();
    assert_eq!(store.list_runs(&RunFilter::default()).unwrap().len(), 1);
    for broken in ["", "{\"runs\": 5}", "[]"] {
        fs::write(&path, broken).unwrap();
        assert_eq!(store.list_runs(&RunFilter::default()).unwrap().len(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), broken, "listing writes nothing");
    }
    store.archive_run(&"2025-01-02-f-n".parse().unwrap()).unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with("{\n  \"runs\": [],"));
    store.restore_run(&"2025-01-02-f-n".parse().unwrap()).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("2025-01-02-f-n"));
    store.delete_run(&"2025-01-02-f-n".parse().unwrap()).unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with("{\n  \"runs\": [],"));
}

/// The files below a folder with their content and time.
fn tree(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let content = if path.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        if path.is_dir() {
            found.extend(tree(&path));
        }
        found.push((path, content, time));
    }
    found.sort();
    found
}

#[test]
fn a_run_that_another_program_changed_is_listed_as_it_is_now() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), &["2025-01-01", "2025-01-02"]);
    let path = dir.path().join("runs/2025-01-01-f-n/metadata.json");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let metadata = fs::read_to_string(&path).unwrap();
    let changed = metadata.replace("\"flowId\": \"f\"", "\"flowId\": \"g\"");
    let changed = changed.replace("\"totalTokensIn\": 10", "\"totalTokensIn\": 99");
    assert_eq!(changed.len(), metadata.len());
    fs::write(&path, changed).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_modified(time).unwrap();
    let of_flow = |flow: &str| {
        let filter = RunFilter { flow: Some(flow.to_owned()), ..RunFilter::default() };
        store.list_runs(&filter).unwrap()
    };
    assert_eq!(ids(&of_flow("f")), ["2025-01-02-f-n"]);
    assert_eq!(ids(&of_flow("g")), ["2025-01-01-f-n"]);
    assert_eq!(
        RunStats::from_runs(&store.list_runs(&RunFilter::default()).unwrap()).total_tokens_in,
        109
    );
    let index = dir.path().join("runs/index.json");
    let edited = fs::read_to_string(&index).unwrap().replace("completed", "canceled");
    fs::write(&index, edited).unwrap();
    let filter = RunFilter { status: Some("completed".to_owned()), ..RunFilter::default() };
    assert_eq!(store.list_runs(&filter).unwrap().len(), 2);
}

#[test]
fn metadata_that_a_crash_left_running_gives_way_to_the_transcript() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), &["2025-01-01"]);
    let path = dir.path().join("runs/2025-01-01-f-n/metadata.json");
    let started = "{\"runId\":\"2025-01-01-f-n\",\"flowId\":\"f\",\"startedAt\":\"2025-01-01T10:00:00Z\",\"status\":\"running\"}";
    fs::write(&path, started).unwrap();
    let listed = store.list_runs(&RunFilter::default()).unwrap().remove(0);
    assert_eq!((listed.status.as_str(), listed.turn_count), ("completed", Some(1)));
    assert_eq!(listed.total_tokens_in, 10);
}

#[test]
fn a_store_that_is_opened_for_reading_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), &["2025-01-01"]);
    let id = start(&store, "live");
    store.record_turn(&id, RunTurn::new("user", "Hi", 5)).unwrap();
    fs::remove_file(dir.path().join("runs/index.json")).unwrap();
    let reader = || RunStore::open_read_only(dir.path(), clock(NOW));
    assert_eq!(reader().load_run(&id).unwrap().run.metadata.status, "running");
    drop(store);
    let before = tree(dir.path());
    let read = reader();
    let run = read.load_run(&id).unwrap().run;
    assert_eq!((run.metadata.status.as_str(), run.turns.len()), ("failed", 1));
    assert_eq!(read.load_metadata(&id).unwrap().status, "failed");
    assert_eq!(read.list_runs(&RunFilter::default()).unwrap().len(), 2);
    let query = RunQuery { text: "Hi".to_owned(), ..RunQuery::default() };
    assert_eq!(read.search_runs(&query).unwrap().len(), 1);
    let dry = CleanupOptions { dry_run: true, delete: true };
    read.clean_up(&few(), dry).unwrap();
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn a_run_that_cannot_be_read_is_reported_by_a_listing() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), &["2025-01-01"]);
    for (name, content) in [("broken", "{"), ("empty", "")] {
        let folder = dir.path().join("runs").join(name);
        fs::create_dir_all(folder.join("artifacts")).unwrap();
        if !content.is_empty() {
            fs::write(folder.join("metadata.json"), content).unwrap();
        }
    }
    let list = store.list_runs_with_problems(&RunFilter::default()).unwrap();
    assert_eq!(ids(&list.runs), ["2025-01-01-f-n"]);
    assert_eq!(list.problems.len(), 1);
    assert!(list.problems[0].to_string().contains("broken"), "{}", list.problems[0]);
}

#[test]
fn nothing_is_created_by_looking() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join(".devflow");
    let store = RunStore::open(&base, clock(NOW)).unwrap();
    assert_eq!(store.list_runs(&RunFilter::default()).unwrap(), []);
    assert_eq!(store.search_runs(&RunQuery::default()).unwrap(), []);
    assert!(!base.exists());
}

#[test]
fn searches_messages_not_their_encoding() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), &["2025-01-01"]);
    let large = start(&store, "large");
    let mut turn = RunTurn::new("assistant", "x".repeat(200_000) + " the NEEDLE\nhere", 1);
    let input = steno_model::json::Object::from_iter([("path".to_owned(), "hidden/place".into())]);
    turn.tool_calls.push(TurnToolCall::with_output("ls", Some(input), "out"));
    store.record_turn(&large, turn).unwrap();
    store.complete_run(&large).unwrap();
    assert!(store.run_folder(&large).join("transcript.json.gz").exists());
    let find = |text: &str, case_sensitive| {
        let query = RunQuery { text: text.to_owned(), case_sensitive, ..RunQuery::default() };
        let hits = store.search_runs(&query).unwrap();
        hits.into_iter().map(|hit| hit.excerpt).collect::<Vec<_>>()
    };
    assert_eq!(find("<B>&", false), ["said on 2025-01-01 with <b>&</b>"]);
    assert_eq!(find("<B>&", true).len(), 0);
    assert_eq!(find("needle", false), [format!("...{} the NEEDLE here", "x".repeat(25))]);
    assert_eq!(find("hidden/", false), ["hidden/place"]);
    assert_eq!(find("-e", false).len(), 0);
}

#[test]
fn an_archive_brings_the_whole_run_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), &["2025-01-01"]);
    let id: RunId = "2025-01-01-f-n".parse().unwrap();
    let nested = store.run_folder(&id).join("artifacts/files");
    fs::create_dir_all(&nested).unwrap();
    fs::write(nested.join("spec.md"), "spec").unwrap();
    let before = store.load_run(&id).unwrap().run;
    let path = store.archive_run(&id).unwrap();
    assert_eq!(path, dir.path().join("archive/2025-01/2025-01-01-f-n.tar.gz"));
    assert!(!store.run_folder(&id).exists());
    assert_eq!(
        names(&path),
        [
            "2025-01-01-f-n",
            "2025-01-01-f-n/artifacts",
            "2025-01-01-f-n/artifacts/files",
            "2025-01-01-f-n/artifacts/files/spec.md",
            "2025-01-01-f-n/metadata.json",
            "2025-01-01-f-n/transcript.json"
        ]
    );
    assert!(matches!(store.load_run(&id), Err(RunStoreError::NotFound(_))));
    assert_eq!(store.restore_run(&id).unwrap(), store.run_folder(&id));
    assert_eq!(store.load_run(&id).unwrap().run, before);
    assert_eq!(fs::read(nested.join("spec.md")).unwrap(), b"spec");
    let again = store.restore_run(&id).unwrap_err().to_string();
    assert_eq!(again, "run already exists: 2025-01-01-f-n");
    let missing = store.restore_run(&"nope".parse().unwrap()).unwrap_err();
    assert_eq!(missing.to_string(), "archive not found: nope");
    let left: Vec<_> = fs::read_dir(dir.path().join("runs")).unwrap().collect();
    assert_eq!(left.len(), 2, "the run and the index");
}

fn names(archive: &Path) -> Vec<String> {
    let file = fs::File::open(archive).unwrap();
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let entries = tar.entries().unwrap();
    entries
        .map(|entry| String::from_utf8(entry.unwrap().path_bytes().into_owned()).unwrap())
        .collect()
}

/// An archive of `evil` with one entry of this name and type.
fn evil_archive(base: &Path, name: &str, kind: tar::EntryType) {
    let folder = base.join("archive/x");
    fs::create_dir_all(&folder).unwrap();
    let file = fs::File::create(folder.join("evil.tar.gz")).unwrap();
    let gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(0);
    header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
    if kind == tar::EntryType::Symlink {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    tar.append(&header, std::io::empty()).unwrap();
    tar.into_inner().unwrap().finish().unwrap();
}

#[test]
fn archives_cannot_write_outside_of_their_run() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("base");
    let store = RunStore::open(&base, clock(NOW)).unwrap();
    let cases = [
        ("evil/../../../out", tar::EntryType::Regular),
        ("../out", tar::EntryType::Regular),
        ("evil-too/out", tar::EntryType::Regular),
        ("evil/link", tar::EntryType::Symlink),
        ("evil/link", tar::EntryType::Link),
    ];
    for (name, kind) in cases {
        evil_archive(&base, name, kind);
        let error = store.restore_run(&"evil".parse().unwrap()).unwrap_err();
        assert!(matches!(error, RunStoreError::Unsafe { .. }), "{name}: {error}");
        assert!(!base.join("runs/evil").exists() && !dir.path().join("out").exists());
    }
    assert_eq!(fs::read_dir(base.join("runs")).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn a_run_with_a_link_stays_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), &["2025-01-01"]);
    let id: RunId = "2025-01-01-f-n".parse().unwrap();
    std::os::unix::fs::symlink("/etc", store.run_folder(&id).join("link")).unwrap();
    assert!(matches!(store.archive_run(&id), Err(RunStoreError::Unsafe { .. })));
    assert!(store.load_run(&id).is_ok());
}

#[test]
fn cleanup_archives_and_deletes_only_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let days = ["2025-01-01", "2025-02-15", "2025-02-28"];
    let store = filled(dir.path(), &days);
    let old = RunStore::open(dir.path(), clock("2025-01-02T00:00:00Z")).unwrap();
    let failed = start(&old, "failing");
    old.fail_run(&failed, "x").unwrap();
    let names = |ids: &[RunId]| ids.iter().map(RunId::to_string).collect::<Vec<_>>();
    let dry = CleanupOptions { dry_run: true, delete: true };
    let would = store.clean_up(&few(), dry).unwrap();
    assert_eq!(names(&would.deleted), ["2025-01-01-f-n"]);
    assert_eq!(names(&would.archived), ["2025-02-15-f-n"]);
    assert_eq!(names(&would.kept), ["2025-01-02-failing-n", "2025-02-28-f-n"]);
    assert!(would.space_saved > 0);
    assert_eq!(store.list_runs(&RunFilter::default()).unwrap().len(), 4);
    let done = store.clean_up(&few(), CleanupOptions::default()).unwrap();
    assert_eq!(names(&done.archived), ["2025-01-01-f-n", "2025-02-15-f-n"]);
    assert_eq!(done.deleted, []);
    assert_eq!(done.errors, Vec::<String>::new());
    assert_eq!(store.list_runs(&RunFilter::default()).unwrap().len(), 2);
    let usage = store.disk_usage().unwrap();
    assert_eq!((usage.run_count, usage.archive_count), (2, 2));
}

#[test]
fn cleanup_keeps_the_newest_and_reports_unreadable_files() {
    let dir = tempfile::tempdir().unwrap();
    let days = ["2025-01-01", "2025-01-02", "2025-01-03"];
    let store = filled(dir.path(), &days);
    let broken = dir.path().join("runs/broken");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("metadata.json"), "{").unwrap();
    let keep_two = RetentionPolicy { keep_min_runs: 2, ..RetentionPolicy::default() };
    let done = store.clean_up(&keep_two, CleanupOptions::default()).unwrap();
    assert_eq!(done.archived.len(), 1);
    assert_eq!(done.kept.len(), 2);
    assert!(
        done.errors[0].starts_with("load broken: run is corrupt: broken: "),
        "{:?}",
        done.errors
    );
    let all = store.clean_up(&RetentionPolicy::default(), CleanupOptions::default());
    assert_eq!(all.unwrap().archived, []);
}

#[test]
fn deleting_takes_one_run_only() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), &["2025-01-01", "2025-01-02"]);
    store.delete_run(&"2025-01-01-f-n".parse().unwrap()).unwrap();
    store.delete_run(&"2025-01-01-f-n".parse().unwrap()).unwrap();
    assert_eq!(store.list_runs(&RunFilter::default()).unwrap().len(), 1);
}

#[test]
fn retention_is_configured_in_part_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(RetentionPolicy::from_config(dir.path()).unwrap(), RetentionPolicy::default());
    let path = dir.path().join("config.json");
    fs::write(&path, "{\"artifacts\":{\"keepMinRuns\":3,\"keepFailed\":false},\"x\":1}").unwrap();
    let configured = RetentionPolicy::from_config(dir.path()).unwrap();
    assert_eq!((configured.keep_min_runs, configured.keep_failed), (3, false));
    assert_eq!(configured.retention_days, 30);
    fs::write(&path, "{\n\"artifacts\": 5}").unwrap();
    assert!(RetentionPolicy::from_config(dir.path()).is_err());
}

#[test]
fn a_run_that_another_program_ends_is_seen_to_end() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("runs/theirs");
    fs::create_dir_all(&folder).unwrap();
    let metadata = |status: &str| {
        let json = format!(
            "{{\"runId\":\"other-name\",\"flowId\":\"f\",\"startedAt\":\"{NOW}\",\"endedAt\":\"0001-01-01T00:00:00Z\",\"status\":\"{status}\"}}"
        );
        fs::write(folder.join("metadata.json"), json).unwrap();
    };
    metadata("running");
    let store = RunStore::open(dir.path(), clock(NOW)).unwrap();
    let listed = || store.list_runs(&RunFilter::default()).unwrap().remove(0);
    assert_eq!((listed().run_id, listed().status), ("theirs".to_owned(), "running".to_owned()));
    metadata("completed");
    assert_eq!(listed().status, "completed");
    assert!(!dir.path().join("runs/index.json").exists());
}
