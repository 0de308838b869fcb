//! Tests of `steno search`, `steno reindex` and `steno show HIT`.

use std::process::{Child, Stdio};
use std::time::Duration;
use std::{fs, thread};

use serde_json::Value;

use crate::harness::{Dice, Home, Output};
use steno_store::transcript::ReadTranscript;

/// Returns the id of a session of the tree.
pub(crate) fn id(session: usize) -> String {
    format!("{session:08}-2fa1-41d2-883f-0016d3cca427")
}

/// A Claude Code session with a needle in its prompt, its thought, its tool input and its tool output.
pub(crate) fn session(at: usize) -> String {
    let head = |kind: &str, second: usize| {
        format!(
            "\"type\":\"{kind}\",\"uuid\":\"{kind}{at}-{second}\",\"parentUuid\":null,\"isSidechain\":false,\
             \"cwd\":\"/code/project{}\",\"sessionId\":\"{}\",\"version\":\"2.1.0\",\
             \"timestamp\":\"2026-01-{:02}T09:15:{second:02}.000Z\"",
            at % 3,
            id(at),
            1 + at % 28,
        )
    };
    let message = format!(
        "\"id\":\"msg_{at:020}\",\"role\":\"assistant\",\"model\":\"claude-test-{}\"",
        at % 2
    );
    let usage = "\"usage\":{\"input_tokens\":3,\"output_tokens\":4}";
    let failed = at.is_multiple_of(4);
    [
        format!("{{{},\"message\":{{\"role\":\"user\",\"content\":\"please find pneedle{at}x now\"}}}}", head("user", 1)),
        format!("{{{},\"message\":{{{message},\"content\":[{{\"type\":\"thinking\",\"thinking\":\"maybe tneedle{at}x helps\",\"signature\":\"\"}}],{usage}}}}}", head("assistant", 2)),
        format!("{{{},\"message\":{{{message},\"content\":[{{\"type\":\"tool_use\",\"id\":\"t{at}\",\"name\":\"Bash\",\"input\":{{\"command\":\"grep ineedle{at}x src/deep_folder/parseLine.rs\"}}}}],{usage}}}}}", head("assistant", 3)),
        format!("{{{},\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"t{at}\",\"is_error\":{failed},\"content\":\"one\\ntwo oneedle{at}x\\nthree\"}}]}}}}", head("user", 4)),
        String::new(),
    ]
    .join("\n")
}

fn tree(home: &Home, sessions: std::ops::Range<usize>) {
    for at in sessions {
        home.file(
            &format!(".claude/projects/-work-project{}/{}.jsonl", at % 3, id(at)),
            session(at),
        );
    }
}

/// A home with some synced sessions.
pub(crate) fn synced(sessions: usize) -> Home {
    let home = Home::new();
    tree(&home, 0..sessions);
    home.steno(&["sync"]).ok();
    home
}

/// Checks that every needle is found exactly at its location.
#[track_caller]
fn all_found(home: &Home, sessions: usize) {
    for at in 0..sessions {
        for (number, place) in ["p", "t", "i", "o"].iter().enumerate() {
            let hits = home.steno(&["search", &format!("{place}needle{at}x"), "--json"]);
            assert_eq!(hits.stdout.lines().count(), 1, "{place} of {at}: {hits}");
            let hit: Value = serde_json::from_str(&hits.stdout).unwrap();
            assert_eq!(hit["hit"], format!("{}:{number}", id(at)), "{hits}");
        }
    }
}

fn hits(output: &Output) -> Vec<String> {
    let rows = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let name = |row: Value| {
        let session: usize = row["session"].as_str().unwrap()[..8].parse().unwrap();
        format!("{session}:{}", row["entry"])
    };
    rows.map(name).collect()
}

/// Returns the hits of a search with these flags, as `session:entry`.
fn found(home: &Home, args: &[&str]) -> Vec<String> {
    let mut found = hits(&home.steno(&[&["search", "--json", "-n", "100"], args].concat()));
    found.sort();
    found
}

#[test]
fn every_needle_is_found_after_sync_and_after_reindex() {
    let home = synced(6);
    all_found(&home, 6);
    insta::assert_snapshot!(home.steno(&["reindex"]), @"
    --- stderr
    6 sessions indexed
    --- exit 0
    ");
    all_found(&home, 6);
    fs::remove_dir_all(home.path().join(".claude")).unwrap();
    fs::remove_file(home.path().join("store/index.db")).unwrap();
    all_found(&home, 6);
}

#[test]
fn sessions_synced_without_the_index_are_indexed_by_the_next_search() {
    let home = Home::new();
    tree(&home, 0..3);
    let output = home.steno(&["sync", "--no-index", "--json"]);
    let row: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&row["sessions"], &row["entries"], output.code), (&3.into(), &12.into(), 0));
    assert!(!home.path().join("store/index.db").exists());
    all_found(&home, 3);
}

#[test]
fn a_hit_is_shown_with_its_lines_and_can_be_opened() {
    let home = synced(2);
    insta::assert_snapshot!(home.steno(&["search", "oneedle1x", "-C", "1"]), @"
    00000001-2fa1-41d2-883f-0016d3cca427:3 2026-01-02 09:15 claude-code tool result Bash · please find pneedle1x now
      one
      two oneedle1x
      three
    --- exit 0
    ");
    insta::assert_snapshot!(home.steno(&["show", "00000001:1", "-C", "1"]), @r#"
    please find pneedle1x now
    claude-code · 00000001-2fa1-41d2-883f-0016d3cca427 · completed
    2026-01-02 09:15:01 to 09:15:04 · 4 entries · 3 tokens in, 4 out · claude-test-1
    /code/project1

    09:15:01 user
    please find pneedle1x now

    > 09:15:02 assistant thinking
    maybe tneedle1x helps

    09:15:03 tool call Bash
    {"command":"grep ineedle1x src/deep_folder/parseLine.rs"}
    --- exit 0
    "#);
    insta::assert_snapshot!(home.steno(&["show", "00000001:9"]), @r#"
    --- stderr
    error: no such entry: 00000001:9
    hint: the last entry is 3
    --- exit 1
    "#);
    insta::assert_snapshot!(home.steno(&["search", "oneedle1x", "--json"]), @r#"
    {"hit":"00000001-2fa1-41d2-883f-0016d3cca427:3","session":"00000001-2fa1-41d2-883f-0016d3cca427","agent":"claude-code","project":"/code/project1","title":"please find pneedle1x now","entry":3,"time":"2026-01-02T09:15:04.000Z","role":"tool","kind":"tool_result","tool":"Bash","model":null,"source":"primary","copies":0,"lines":[{"line":2,"text":"two oneedle1x","marks":[[4,13]]}]}
    --- exit 0
    "#);
}

#[test]
fn an_empty_store_says_so_to_a_search_and_a_sum() {
    let home = Home::new();
    let message = "no sessions yet; run `steno sync`, `steno import PATH` or `steno record`\n";
    let hits = home.steno(&["search", "login", "--role", "user"]);
    assert_eq!((hits.code, hits.stderr.as_str()), (1, message));
    for by in ["day", "block"] {
        let sums = home.steno(&["cost", "--by", by]);
        assert_eq!((sums.code, sums.stderr.as_str()), (0, message));
    }
    home.steno_with(&["record"], br#"{"role":"user","content":"Hello"}"#).ok();
    assert_eq!(home.steno(&["search", "login"]).stderr, "no hits for: login\n");
    assert_eq!(home.steno(&["cost"]).stderr, "no charges\n");
}

#[test]
fn no_match_and_bad_queries_end_with_one() {
    let home = synced(1);
    insta::assert_snapshot!(home.steno(&["search", "absent"]), @r"
    --- stderr
    no hits for: absent
    --- exit 1
    ");
    insta::assert_snapshot!(home.steno(&["search", "find", "absent"]), @"
    --- stderr
    no hits for: find absent
    each word alone: find in 1 entry, absent in 0 entries
    all words must occur in an entry; use `OR` between words, or begin* for a beginning
    --- exit 1
    ");
    insta::assert_snapshot!(home.steno(&["search", "a \"b"]), @r#"
    --- stderr
    error: a phrase without its closing quotation mark: "b
    hint: words, "a phrase", -not, begin*, one OR other, /regex/
    --- exit 1
    "#);
    insta::assert_snapshot!(home.steno(&["search", "x", "--since", "soon"]), @r#"
    --- stderr
    error: not a time: soon
    hint: use a date such as 2026-01-05, 2026-01 or yesterday, a time such as 2026-01-05T09:15, or 90m, 12h, 7d, 2w, 1mo ago
    --- exit 1
    "#);
    assert_eq!(home.steno(&["search", "x", "--session", "none"]).code, 1);
}

#[test]
fn the_query_language() {
    let home = synced(3);
    assert_eq!(found(&home, &["please pneedle1x"]), ["1:0"]);
    assert_eq!(found(&home, &["please", "pneedle1x"]), ["1:0"]);
    assert_eq!(found(&home, &["\"find pneedle1x now\""]), ["1:0"]);
    assert_eq!(found(&home, &["\"now pneedle1x\""]), Vec::<String>::new());
    assert_eq!(found(&home, &["please -pneedle1x"]), ["0:0", "2:0"]);
    assert_eq!(found(&home, &["pneedle*"]), ["0:0", "1:0", "2:0"]);
    assert_eq!(found(&home, &["tneedle0x OR tneedle2x"]), ["0:1", "2:1"]);
    assert_eq!(found(&home, &["/[pt]needle[12]x/"]), ["1:0", "1:1", "2:0", "2:1"]);
    assert_eq!(found(&home, &["/PLEASE find/i pneedle1x"]), ["1:0"]);
    assert_eq!(found(&home, &["deep_folder ineedle1x"]), ["1:2"]);
    assert_eq!(found(&home, &["folder/parseLine.rs ineedle1x"]), ["1:2"]);
    assert_eq!(found(&home, &["line ineedle1x"]), ["1:2"]);
}

#[test]
fn each_flag_narrows() {
    let home = synced(6);
    let needles = "/needle/";
    assert_eq!(found(&home, &[needles]).len(), 24);
    insta::assert_snapshot!(home.steno(&["search", needles, "--agent", "codex"]), @"
    --- stderr
    error: no sessions of agent codex
    hint: agents with sessions: claude-code
    --- exit 1
    ");
    assert_eq!(found(&home, &[needles, "--agent", "claude-code"]).len(), 24);
    assert_eq!(
        found(&home, &["needle*", "OR", "pneedle*", "--project", "project1"]),
        ["1:0", "4:0"]
    );
    assert_eq!(found(&home, &["pneedle*", "--project", "/code"]).len(), 6);
    assert_eq!(found(&home, &[needles, "--role", "user"]).len(), 6);
    assert_eq!(
        found(&home, &[needles, "--role", "assistant", "--model", "test-1", "--tool", "bash"]),
        ["1:2", "3:2", "5:2"]
    );
    assert_eq!(
        found(&home, &["pneedle*", "--since", "2026-01-03", "--until", "2026-01-04"]),
        ["2:0", "3:0"]
    );
    assert_eq!(found(&home, &["pneedle*", "--since", "24h"]), ["4:0", "5:0"]);
    assert_eq!(found(&home, &["pneedle*", "--session", "00000003"]), ["3:0"]);
    assert_eq!(found(&home, &["pneedle*", "--session", "latest"]), ["5:0"]);
    assert_eq!(found(&home, &["pneedle*", "--thread", "none"]).len(), 0);
    assert_eq!(found(&home, &[needles, "--errors"]), ["0:3", "4:3"]);
    let newest = home.steno(&["search", "pneedle*", "--sort", "time", "-n", "2", "--json"]);
    assert_eq!(hits(&newest), ["5:0", "4:0"]);
    assert_eq!(hits(&home.steno(&["search", "pneedle*", "--limit", "1", "--json"])).len(), 1);
}

#[test]
fn what_is_recorded_now_is_found_now() {
    let home = Home::new();
    let args = ["record", "--agent", "mine", "--session", "live"];
    let mut recorder =
        home.command(&args).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let input = recorder.stdin.as_mut().unwrap();
    std::io::Write::write_all(input, b"{\"role\":\"user\",\"content\":\"spoken livenow\"}\n")
        .unwrap();
    let is_found = || home.steno(&["search", "livenow"]).code == 0;
    let tried = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(20));
        is_found()
    });
    assert!(tried);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert!(is_found());
    assert!(home.steno(&["list"]).stdout.contains("failed"));
}

#[test]
fn a_damaged_index_is_rebuilt_with_a_message() {
    let home = synced(2);
    let path = home.path().join("store/index.db");
    // All of a small index is still in its write-ahead log.
    fs::remove_file(home.path().join("store/index.db-wal")).unwrap();
    fs::write(&path, "no database".repeat(500)).unwrap();
    let output = home.steno(&["search", "pneedle1x", "--json"]);
    assert_eq!((output.stderr.as_str(), output.code), ("the index is damaged; rebuilding it\n", 0));
    all_found(&home, 2);
}

/// Starts a program and ignores its output.
fn start(home: &Home, args: &[&str]) -> Child {
    let mut command = home.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_kill_while_indexing_loses_nothing() {
    let home = Home::new();
    let mut dice = Dice(0x5eed);
    let mut sessions = 0;
    for round in 0..12 {
        tree(&home, sessions..sessions + 4);
        sessions += 4;
        let command = if round % 4 == 3 { "reindex" } else { "sync" };
        let mut child = start(&home, &[command]);
        thread::sleep(Duration::from_millis(dice.below(120)));
        child.kill().unwrap();
        child.wait().unwrap();
        // Every session in the vault must be found.
        for dir in
            home.vault().list_sessions().unwrap().iter().filter(|dir| !dir.is_empty().unwrap())
        {
            let at: usize = dir.id().as_str()[..8].parse().unwrap();
            let entries = dir.read_transcript().unwrap().entries.len();
            let hit = home.steno(&["search", &format!("oneedle{at}x")]);
            assert_eq!(hit.code, i32::from(entries < 4), "round {round}, session {at}: {hit}");
        }
    }
    home.steno(&["sync"]).ok();
    all_found(&home, sessions);
}

#[test]
fn several_syncs_a_watch_and_searches_do_no_harm() {
    let home = Home::new();
    tree(&home, 0..10);
    let mut watch = start(&home, &["watch"]);
    thread::scope(|scope| {
        for from in [10, 20] {
            let home = &home;
            scope.spawn(move || {
                for at in from..from + 10 {
                    tree(home, at..at + 1);
                    let output = home.steno(&["sync"]);
                    assert_eq!(output.code, 0, "{output}");
                }
            });
        }
        for _ in 0..10 {
            let home = &home;
            scope.spawn(move || {
                for at in 0..4 {
                    let output = home.steno(&["search", &format!("pneedle{at}x")]);
                    assert!(!output.stderr.contains("error"), "{output}");
                }
            });
        }
    });
    watch.kill().unwrap();
    watch.wait().unwrap();
    home.steno(&["sync"]).ok();
    all_found(&home, 30);
    assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 30);
}
