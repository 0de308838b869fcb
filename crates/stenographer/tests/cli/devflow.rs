//! Tests of `steno as devflow`, end to end.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use steno_model::json::Object;
use steno_model::{Clock, Timestamp};
use steno_seeds::devflow::{NewRun, RunId, RunStore, RunTurn, TurnToolCall};

use crate::harness::Home;

/// A folder with a `.devflow`, and a fixed clock.
struct Project {
    home: Home,
}

/// Output of a command.
struct Printed {
    code: i32,
    out: String,
    err: String,
}

impl Project {
    fn new() -> Self {
        Self { home: Home::new() }
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    fn store(&self, now: &str) -> RunStore {
        let now: Timestamp = now.parse().unwrap();
        RunStore::open(&self.path().join(".devflow"), Clock::fixed(now)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(&[&["as", "devflow"], args].concat());
        command.env("STENO_NOW", "2025-01-16T12:00:00Z");
        command
    }

    fn run(&self, args: &[&str]) -> Printed {
        self.command(args).output().unwrap().into()
    }

    /// A project with a completed and a failed run.
    fn filled() -> Self {
        let project = Self::new();
        let store = project.store("2025-01-15T10:30:00Z");
        let id = start(&store, "ticket-to-pr", "TK-421");
        let user = RunTurn::new("user", "Fix <b>authentication</b>\nplease", 1500);
        store.record_turn(&id, user).unwrap();
        store.record_turn(&id, RunTurn::new("assistant", "Reading.", 2500)).unwrap();
        let input = Object::from_iter([("path".to_owned(), "api/handler.go".into())]);
        let call = TurnToolCall::with_output("read_file", Some(input), "package api...");
        store.record_tool_call(&id, call).unwrap();
        store.set_cost(&id, 0.12).unwrap();
        store.complete_run(&id).unwrap();
        let store = project.store("2025-01-16T09:00:00Z");
        let id = start(&store, "manual-run", "001");
        let long = "long ".repeat(40_000) + "authentication failed";
        store.record_turn(&id, RunTurn::new("user", long, 3)).unwrap();
        store.fail_run(&id, "operation timed out").unwrap();
        project
    }
}

impl From<Output> for Printed {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Printed {
    #[track_caller]
    fn done(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }
}

fn start(store: &RunStore, flow: &str, identifier: &str) -> RunId {
    let new = NewRun {
        flow: flow.to_owned(),
        identifier: Some(identifier.to_owned()),
        ..NewRun::default()
    };
    store.start_run(&new).unwrap()
}

const TICKET: &str = "2025-01-15-ticket-to-pr-TK421";
const MANUAL: &str = "2025-01-16-manual-run-001";

#[test]
fn view_shows_a_run_or_a_part_of_it() {
    let project = Project::filled();
    let view = |args: &[&str]| project.run(&[&["transcript", "view"], args].concat()).done();
    let full = view(&[TICKET]);
    insta::assert_snapshot!(full, @r#"
    ============================================================
    Run: 2025-01-15-ticket-to-pr-TK421
    Flow: ticket-to-pr | Status: completed
    Started: 2025-01-15 10:30:00 | Duration: 0s
    Tokens: 1500 in / 2500 out | Cost: $0.12
    ============================================================

    [1] USER (10:30:00) [1500 tokens in]
    ------------------------------------------------------------
    Fix <b>authentication</b>
    please

    [2] ASSISTANT (10:30:00) [2500 tokens out]
    ------------------------------------------------------------
    Reading.

      Tool: read_file
         Input: {
           "path": "api/handler.go"
         }
         Output: package api...
    "#);
    assert_eq!(view(&["2025-01-15-t"]), full, "a beginning is enough");
    let assistant = view(&["--assistant-only", TICKET]);
    assert!(assistant.contains("[2] ASSISTANT") && !assistant.contains("[1] USER"));
    let summary = view(&["--summary", TICKET]);
    assert!(
        summary
            .ends_with("  [1] user: Fix <b>authentication</b> please\n  [2] assistant: Reading.\n")
    );
    assert!(view(&["--turn", "1", TICKET]).starts_with("\n[1] USER"));
    assert!(view(&["--style", "adr-013", TICKET]).contains("Tokens: 1,500 in"));
    assert!(view(&["latest"]).contains("Error: operation timed out\n"));
    let none = project.run(&["transcript", "view", "--turn", "9", TICKET]);
    assert_eq!(none.err, "error: no such turn: 9\nhint: the run has 2 turns\n");
    let both = project.run(&["transcript", "view", "--turn", "1", "--summary", TICKET]);
    assert_eq!(both.code, 2);
}

#[test]
fn export_and_diff_print_whole_runs() {
    let project = Project::filled();
    let export = |args: &[&str]| project.run(&[&["transcript", "export"], args].concat());
    let markdown = export(&["--format", "md", TICKET]).done();
    assert!(markdown.starts_with("# Transcript: 2025-01-15-ticket-to-pr-TK421\n\n## Metadata\n"));
    let json = export(&["--format", "json", TICKET]).done();
    let path = format!(".devflow/runs/{TICKET}/transcript.json");
    let stored = fs::read_to_string(project.path().join(path)).unwrap();
    assert_eq!(json, stored + "\n");
    let strict = export(&["--format", "json", "--strict", TICKET]).done();
    assert!(!strict.contains("turnCount"));
    assert_eq!(export(&["--strict", TICKET]).code, 2);
    let diff = project.run(&["transcript", "diff", TICKET, MANUAL]).done();
    assert!(
        diff.starts_with(
            "Comparing transcripts:\n  A: 2025-01-15-ticket-to-pr-TK421 (completed)\n"
        )
    );
    assert!(diff.ends_with("  Turn 2: assistant (8 chars) vs [missing]\n"));
}

#[test]
fn search_finds_turns() {
    let project = Project::filled();
    let search = |args: &[&str]| project.run(&[&["transcript", "search"], args].concat());
    assert_eq!(
        search(&["AUTHENTICATION"]).done(),
        "2025-01-16-manual-run-001: Turn 1: \"...long long long long long long authentication failed\"\n\
         2025-01-15-ticket-to-pr-TK421: Turn 1: \"Fix <b>authentication</b> please\"\n"
    );
    assert_eq!(search(&["--max", "1", "authentication"]).done().lines().count(), 1);
    assert_eq!(search(&["<b>auth"]).done().lines().count(), 1);
    let json = search(&["--json", "handler.go"]).done();
    assert_eq!(
        json,
        format!(
            "{{\"runId\":\"{TICKET}\",\"turnId\":2,\"role\":\"assistant\",\"content\":\"api/handler.go\"}}\n"
        )
    );
    let none = search(&["--case-sensitive", "AUTHENTICATION"]);
    assert_eq!((none.code, none.out.as_str()), (1, ""));
}

#[test]
fn list_cost_and_usage_add_up() {
    let project = Project::filled();
    let run = |args: &[&str]| project.run(&[&["transcript"], args].concat());
    assert_eq!(
        run(&["list"]).done(),
        "RUN ID                         STATUS     STARTED              COST\n\
         2025-01-16-manual-run-001      failed     2025-01-16 09:00:00  $0.00\n\
         2025-01-15-ticket-to-pr-TK421  completed  2025-01-15 10:30:00  $0.12\n"
    );
    let only = |args: &[&str]| run(&[&["list"], args].concat()).done().lines().count();
    assert_eq!(only(&["--since", "24h"]), 2);
    assert_eq!(only(&["--flow", "ticket-to-pr"]), 2);
    assert_eq!(run(&["list", "--status", "canceled"]).done(), "No runs found.\n");
    assert!(run(&["list", "--long"]).done().ends_with("\nTotal: 2 runs\n"));
    let json = run(&["list", "--json", "--status", "failed"]).done();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["error"], "operation timed out");
    assert_eq!(value["turnCount"], 1);
    assert_eq!(run(&["list", "--since", "soon"]).code, 2);
    assert_eq!(run(&["cost"]).done(), "Last 30 days: $0.12 across 2 runs\n");
    assert_eq!(run(&["cost", "--since", "1d"]).done(), "Last 1 day: $0.00 across 1 run\n");
    assert_eq!(
        run(&["usage", "--flow", "ticket-to-pr"]).done(),
        "ticket-to-pr (1 run):\n  Input:  1,500 tokens\n  Output: 2,500 tokens\n  Avg:    1,500 in / 2,500 out per run\n"
    );
    assert_eq!(run(&["usage"]).done().lines().count(), 8);
    assert_eq!(run(&["usage", "--flow", "none"]).code, 1);
}

#[test]
fn commands_that_only_read_write_nothing() {
    let project = Project::filled();
    let store = project.store("2025-01-16T10:00:00Z");
    let dead = start(&store, "dead", "1");
    store.record_turn(&dead, RunTurn::new("user", "authentication", 0)).unwrap();
    drop(store);
    fs::remove_file(project.path().join(".devflow/runs/index.json")).unwrap();
    let files = || {
        let mut files = Vec::new();
        let mut folders = vec![project.path().join(".devflow")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let modified = fs::metadata(&entry).unwrap().modified().unwrap();
                files.push((entry.clone(), modified));
                folders.extend(entry.is_dir().then_some(entry));
            }
        }
        files.sort();
        files
    };
    let before = files();
    assert!(project.run(&["transcript", "list"]).done().contains("failed     2025-01-16 10:00:00"));
    assert!(project.run(&["transcript", "view", "latest"]).done().contains("Status: failed"));
    for args in [
        &["transcript", "export", TICKET][..],
        &["transcript", "diff", TICKET, MANUAL],
        &["transcript", "search", "authentication"],
        &["transcript", "cost"],
        &["transcript", "usage"],
        &["cleanup", "--dry-run"],
    ] {
        project.run(args).done();
    }
    let followed = project.run(&["transcript", "follow", dead.as_str()]);
    assert!(followed.err.contains("the recorder stopped without ending the run"));
    assert_eq!(files(), before);
}

#[test]
fn artifacts_are_listed_shown_and_exported() {
    let project = Project::filled();
    let store = project.store("2025-01-16T10:00:00Z");
    let id: RunId = TICKET.parse().unwrap();
    store.save_artifact(&id, "spec.md", "# Spec\n".repeat(3000).as_bytes()).unwrap();
    store.save_file(&id, "api.go", b"package api\n").unwrap();
    let run = |args: &[&str]| project.run(&[&["artifact"], args].concat());
    let listed = run(&["list", TICKET]).done();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("NAME          TYPE"), "{listed}");
    assert!(lines[1].starts_with("files/api.go  code                  12  "), "{listed}");
    assert!(lines[2].starts_with("spec.md ") && lines[2].ends_with(" (compressed)"), "{listed}");
    let json = run(&["list", "--json", TICKET]).done();
    assert!(json.contains("\"name\":\"files/api.go\",\"size\":12,\"compressed\":false"), "{json}");
    assert_eq!(run(&["view", TICKET, "files/api.go"]).done(), "package api\n");
    assert_eq!(run(&["export", TICKET, "spec.md"]).done(), "# Spec\n".repeat(3000));
    let all = run(&["export", TICKET, "-o", "out"]);
    assert_eq!((all.code, all.err.as_str()), (0, "wrote 2 artifacts\n"));
    let exported = fs::read_to_string(project.path().join("out/spec.md")).unwrap();
    assert_eq!(exported.len(), 21_000);
    let again = run(&["export", TICKET, "spec.md", "-o", "out/spec.md"]);
    assert!(again.err.starts_with("error: file exists: "), "{}", again.err);
    let missing = run(&["view", TICKET, "nope.md"]);
    assert_eq!(missing.err, format!("error: artifact not found: nope.md of {TICKET}\n"));
    assert_eq!(run(&["list", MANUAL]).done(), "No artifacts found.\n");
}

#[test]
fn tokens_narrow_a_search() {
    let project = Project::filled();
    let search = |args: &[&str]| project.run(&[&["transcript", "search"], args].concat());
    assert_eq!(
        search(&["--tokens", "1000.."]).done(),
        "2025-01-15-ticket-to-pr-TK421: 1500 in / 2500 out\n"
    );
    assert_eq!(search(&["--tokens", "in:..10", "authentication"]).done().lines().count(), 1);
    assert_eq!(search(&["--tokens", "out:9999..", "authentication"]).code, 1);
    assert_eq!(search(&["--tokens", "many"]).code, 2);
    assert_eq!(search(&[]).code, 2);
}

#[test]
fn one_archive_can_be_deleted() {
    let project = Project::filled();
    let config = "{\"artifacts\": {\"keepMinRuns\": 0, \"archiveAfterDays\": 1}}";
    fs::write(project.path().join(".devflow/config.json"), config).unwrap();
    project.run(&["cleanup"]).done();
    assert_eq!(project.run(&["archive", "list"]).done(), format!("{TICKET}\n"));
    let deleted = project.run(&["archive", "delete", TICKET]).done();
    assert_eq!(deleted, format!("Deleted the archive of {TICKET}\n"));
    assert_eq!(project.run(&["archive", "list"]).done(), "");
    let again = project.run(&["archive", "delete", TICKET]);
    assert_eq!(again.err, format!("error: archive not found: {TICKET}\n"));
}

#[test]
fn unknown_runs_are_reported_with_a_hint() {
    let project = Project::filled();
    let view = |id: &str| project.run(&["transcript", "view", id]);
    let near = view("tk421");
    assert_eq!(
        (near.code, near.err.as_str()),
        (1, "error: run not found: tk421\nhint: did you mean 2025-01-15-ticket-to-pr-TK421?\n")
    );
    assert_eq!(
        view("nope").err,
        "error: run not found: nope\nhint: `steno as devflow transcript list` shows all runs\n"
    );
    assert!(view("../x").err.starts_with("error: not a run id"));
    let empty = Project::new();
    assert_eq!(empty.run(&["transcript", "list"]).done(), "No runs found.\n");
    assert!(!empty.path().join(".devflow").exists());
}

#[test]
fn a_corrupt_run_is_not_called_missing() {
    let project = Project::filled();
    let folder = project.path().join(".devflow/runs").join(MANUAL);
    let gz = folder.join("transcript.json.gz");
    let bytes = fs::read(&gz).unwrap();
    fs::write(&gz, &bytes[..bytes.len() / 2]).unwrap();
    let shown = project.run(&["transcript", "view", MANUAL]);
    assert_eq!(shown.code, 1);
    assert!(shown.err.contains("transcript.json.gz: corrupt gzip"), "{}", shown.err);
    assert!(shown.out.contains("Status: failed"));
    let searched = project.run(&["transcript", "search", "authentication"]);
    assert_eq!((searched.code, searched.out.lines().count()), (1, 1));
    assert!(searched.err.contains("transcript.json.gz: corrupt gzip"), "{}", searched.err);
    fs::remove_file(folder.join("metadata.json")).unwrap();
    let lost = project.run(&["transcript", "view", MANUAL]);
    assert_eq!(lost.code, 1);
    assert!(lost.err.starts_with("error: run is corrupt: "), "{}", lost.err);
}

#[test]
fn cleanup_archives_and_restore_brings_back() {
    let project = Project::filled();
    let config = "{\"artifacts\": {\"keepMinRuns\": 0, \"archiveAfterDays\": 1}}";
    fs::write(project.path().join(".devflow/config.json"), config).unwrap();
    let dry = project.run(&["cleanup", "--dry-run"]).done();
    assert!(dry.starts_with("Would archive (older than 1 day):\n  2025-01-15-ticket-to-pr-TK421\n\nWould keep: 1 run\nSpace to be freed: "), "{dry}");
    let done = project.run(&["cleanup"]).done();
    assert!(done.starts_with("Archived 1 run\nDeleted 0 runs\nFreed "), "{done}");
    assert_eq!(project.run(&["cleanup", "--quiet"]).done(), "");
    assert_eq!(project.run(&["transcript", "view", TICKET]).code, 1);
    assert_eq!(
        project.run(&["restore", TICKET]).done(),
        format!("Restored to .devflow/runs/{TICKET}\n")
    );
    assert!(project.run(&["transcript", "view", TICKET]).done().contains("TK421"));
    let again = project.run(&["restore", TICKET]);
    assert_eq!(again.err, format!("error: run already exists: {TICKET}\n"));
}

#[test]
fn follow_prints_turns_until_the_run_ends() {
    let project = Project::new();
    let store = project.store("2025-01-15T10:30:00Z");
    let id = start(&store, "live", "1");
    store.record_turn(&id, RunTurn::new("user", "first", 0)).unwrap();
    let mut child = project
        .command(&["transcript", "follow", id.as_str()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |wanted: &str| lines.by_ref().map(Result::unwrap).any(|line| line == wanted);
    assert!(until("first"));
    store.record_turn(&id, RunTurn::new("assistant", "second", 0)).unwrap();
    assert!(until("second"));
    store.record_tool_call(&id, TurnToolCall::with_output("ls", None, "third")).unwrap();
    assert!(until("     Output: third"));
    store.cancel_run(&id).unwrap();
    assert!(lines.next().is_none());
    assert!(child.wait().unwrap().success());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(err, "2025-01-15-live-1: canceled\n");
}

#[test]
fn runs_one_folder_too_deep_are_found() {
    let project = Project::filled();
    let base = project.path().join(".devflow");
    fs::rename(base.join("runs"), project.path().join("kept")).unwrap();
    fs::create_dir(base.join("runs")).unwrap();
    fs::rename(project.path().join("kept"), base.join("runs/runs")).unwrap();
    assert_eq!(project.run(&["transcript", "list"]).done().lines().count(), 3);
    let elsewhere = project.run(&["--dir", ".devflow/runs", "transcript", "list"]);
    assert_eq!(elsewhere.done().lines().count(), 3);
}
