//! Tests of `steno sync`.

use std::fs;

use crate::harness::{Home, Output};

const SESSION: &str = ".claude/projects/-p/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl";

fn line(n: u32) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"u{n}\",\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/p\",\
         \"sessionId\":\"1b4e28ba-2fa1-41d2-883f-0016d3cca427\",\"version\":\"2.1.0\",\
         \"timestamp\":\"2026-01-05T09:15:3{n}.000Z\",\
         \"message\":{{\"role\":\"user\",\"content\":\"prompt {n}\"}}}}\n"
    )
}

/// Runs `sync` with the system clock: files that were just written may still grow.
fn sync(home: &Home, args: &[&str]) -> Output {
    home.finish(home.command(&[&["sync"], args].concat()), b"")
}

fn prompts(home: &Home) -> usize {
    home.steno(&["show", "1b4e28ba", "--json"]).stdout.lines().count()
}

#[test]
fn new_files_are_copied_and_no_others_are_read() {
    let home = Home::new();
    home.file(SESSION, line(1));
    insta::assert_snapshot!(sync(&home, &["--dry-run"]), @"
    AGENT        SESSIONS  ENTRIES  BYTES CHANGED  BYTES KEPT  PROBLEMS
    claude-code  1         0        232            0           0
    --- exit 0
    ");
    assert!(!home.path().join("store").exists(), "a dry run leaves nothing behind");
    let kept = sync(&home, &[]).ok();
    let numbers: Vec<_> = kept.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(numbers[..4], ["claude-code", "1", "1", "232"]);
    assert!(numbers[4].parse::<u64>().unwrap() > 232, "with its headers");
    assert_eq!(prompts(&home), 1);
    insta::assert_snapshot!(sync(&home, &[]), @"
    --- stderr
    nothing new
    --- exit 0
    ");
    home.file(SESSION, line(1) + &line(2) + "{\"type\":\"us");
    let row = sync(&home, &["--json", "--agent", "claude-code"]).ok();
    let row: serde_json::Value = serde_json::from_str(&row).unwrap();
    let numbers = ["sessions", "entries", "bytes_new", "problems"].map(|name| row[name].as_u64());
    assert_eq!(numbers, [1, 2, 243, 1].map(Some), "with the line that has only begun");
    assert_eq!(prompts(&home), 2);
    home.file(SESSION, line(1) + &line(2) + &line(3));
    assert_eq!(sync(&home, &["--agent", "codex"]).stdout, "");
    assert_eq!(prompts(&home), 2);
    sync(&home, &["."]).ok();
    assert_eq!(prompts(&home), 3);
    home.steno(&["verify"]).ok();
}

#[test]
fn a_damaged_header_is_reported_and_the_file_copied_again() {
    let home = Home::new();
    home.file(SESSION, line(1));
    sync(&home, &[]).ok();
    let folder = "store/vault/claude-code/1b4e28ba-2fa1-41d2-883f-0016d3cca427";
    let kept = home.path().join(folder).join("1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl.zst");
    let mut bytes = fs::read(&kept).unwrap();
    let at = bytes.windows(8).position(|window| window == b"projects").unwrap();
    bytes[at] = b'q';
    fs::write(&kept, bytes).unwrap();
    home.file(SESSION, line(1) + &line(2));
    let printed = sync(&home, &[]);
    assert!(printed.stderr.contains("its header was changed"), "{printed}");
    assert!(printed.ok().lines().nth(1).unwrap().ends_with('1'));
    assert_eq!(prompts(&home), 2);
    home.file(SESSION, line(1) + &line(2) + &line(3));
    assert!(!sync(&home, &[]).stderr.contains("header"), "it is reported once");
    assert_eq!(prompts(&home), 3);
}

#[test]
fn a_purged_tree_comes_back_as_it_was() {
    let home = Home::new();
    home.file(SESSION, line(1) + &line(2));
    let agent = SESSION.replace(".jsonl", "/subagents/agent-a1.jsonl");
    home.file(
        &agent,
        line(3).replace("false", "true").replace("\"uuid\"", "\"agentId\":\"a1\",\"uuid\""),
    );
    sync(&home, &[]).ok();
    let before = [SESSION, &agent].map(|name| fs::read(home.path().join(name)).unwrap());
    fs::remove_dir_all(home.path().join(".claude")).unwrap();
    home.steno(&["restore", "1b4e"]).ok();
    assert_eq!([SESSION, &agent].map(|name| fs::read(home.path().join(name)).unwrap()), before);
    insta::assert_snapshot!(sync(&home, &[]), @"
    --- stderr
    nothing new
    --- exit 0
    ");
}

#[test]
fn what_is_purged_of_a_living_session_stays() {
    let home = Home::new();
    home.file(SESSION, line(1) + &line(2));
    let agent = SESSION.replace(".jsonl", "/subagents/agent-a1.jsonl");
    let said = line(3).replace("false", "true").replace("\"uuid\"", "\"agentId\":\"a1\",\"uuid\"");
    let file = home.file(&agent, &said);
    sync(&home, &[]).ok();
    let before = home.steno(&["show", "1b4e", "--json"]).ok();
    assert!(before.contains("prompt 3"), "{before}");
    fs::remove_file(&file).unwrap();
    home.file(SESSION, line(1) + &line(2) + &line(4));
    sync(&home, &[]).ok();
    let after = home.steno(&["show", "1b4e", "--json"]).ok();
    assert!(after.contains("prompt 3") && after.contains("prompt 4"), "{after}");
    assert_eq!(after.lines().count(), 4);
    assert!(home.steno(&["search", "prompt 3"]).ok().contains("prompt 3"));
    home.steno(&["restore", "1b4e"]).ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), said);
    home.steno(&["verify"]).ok();
    sync(&home, &[]).ok();
    assert_eq!(home.steno(&["show", "1b4e", "--json"]).ok(), after);
}

#[test]
fn a_machine_without_agents_has_nothing_new() {
    let home = Home::new();
    insta::assert_snapshot!(sync(&home, &[]), @"
    --- stderr
    nothing new
    --- exit 0
    ");
    assert_eq!(sync(&home, &["nowhere"]).code, 1);
}

#[test]
fn nothing_is_forgotten_between_runs() {
    let home = Home::new();
    home.file(SESSION, line(1) + line(2).trim_end());
    sync(&home, &[]).ok();
    assert_eq!(prompts(&home), 2, "a last line without its newline is kept at once");
    // Sessions that one run does not index are indexed by the next.
    home.file(&SESSION.replace("1b4e", "2b4e"), line(1).replace("1b4e", "2b4e"));
    assert_eq!(sync(&home, &["--agent", "codex", ".claude"]).stdout, "");
    assert!(sync(&home, &[".claude/projects/../projects"]).stdout.contains("claude-code"));
    assert_eq!(home.steno(&["list", "--json"]).stdout.lines().count(), 2);
    fs::remove_dir_all(home.path().join("store/vault")).unwrap();
    sync(&home, &[]).ok();
    assert_eq!(home.steno(&["list", "--json"]).stdout.lines().count(), 2);
}

#[test]
fn a_session_lost_from_the_vault_is_copied_again() {
    let home = Home::new();
    home.file(SESSION, line(1));
    home.file(&SESSION.replace("1b4e", "2b4e"), line(1).replace("1b4e", "2b4e"));
    sync(&home, &[]).ok();
    let lost = home.vault().root().join("claude-code/1b4e28ba-2fa1-41d2-883f-0016d3cca427");
    fs::remove_dir_all(&lost).unwrap();
    let row = sync(&home, &["--json"]).ok();
    assert!(row.contains("\"sessions\":1,"), "only that one is read: {row}");
    assert_eq!(prompts(&home), 1);
    assert_eq!(sync(&home, &[]).stdout, "");
    fs::remove_dir_all(home.vault().root()).unwrap();
    fs::create_dir(home.vault().root()).unwrap();
    let row = sync(&home, &["--json"]).ok();
    assert!(row.contains("\"sessions\":2,"), "{row}");
}

#[test]
fn files_seen_by_other_readers_are_read_again_and_not_stored_twice() {
    let home = Home::new();
    home.file(SESSION, line(1));
    sync(&home, &[]).ok();
    let seen = home.path().join("store/seen.json");
    let mut list: serde_json::Value = serde_json::from_slice(&fs::read(&seen).unwrap()).unwrap();
    list["readers"] = 0.into();
    fs::write(&seen, list.to_string()).unwrap();
    let row = sync(&home, &["--json"]).ok();
    assert!(row.contains("\"sessions\":1,\"entries\":1,\"bytes_new\":0"), "{row}");
    assert_eq!(sync(&home, &[]).stdout, "");
}

#[test]
fn unreadable_records_are_reported_with_their_locations() {
    let home = Home::new();
    home.file(SESSION, line(1) + &"{\"type\":\n".repeat(7) + &line(2));
    let printed = sync(&home, &[]);
    assert_eq!(printed.code, 0, "their bytes are kept: {printed}");
    let lines: Vec<&str> = printed.stderr.lines().collect();
    assert_eq!(lines.len(), 6, "{printed}");
    let first = format!("warning: $HOME/{SESSION}:2: not JSON: ");
    assert!(lines[0].starts_with(&first), "{printed}");
    assert_eq!(lines[5], "warning: 2 more problems of claude-code");
    fs::remove_dir_all(home.path().join("store")).unwrap();
    let printed = sync(&home, &["--json"]);
    assert_eq!(printed.stderr.lines().count(), 7, "{printed}");
    assert!(printed.stdout.contains("\"problems\":7"), "{printed}");
}

#[test]
fn a_folder_that_a_crash_left_empty_is_used() {
    let home = Home::new();
    home.file(SESSION, line(1));
    let id = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
    fs::create_dir_all(home.path().join("store/vault/claude-code").join(id)).unwrap();
    sync(&home, &[]).ok();
    assert_eq!(prompts(&home), 1);
    assert_eq!(home.steno(&["list", "--json"]).stdout.lines().count(), 1);
}

#[test]
fn a_project_folder_by_itself_is_read_as_part_of_its_place() {
    let home = Home::new();
    home.file(SESSION, line(1));
    let agent = SESSION.replace(".jsonl", "/subagents/agent-a1.jsonl");
    home.file(&agent, line(2).replace("\"isSidechain\":false", "\"isSidechain\":true"));
    sync(&home, &[".claude/projects/-p"]).ok();
    let listed = home.steno(&["list", "--json"]).ok();
    assert_eq!(listed.lines().count(), 1, "{listed}");
    sync(&home, &[]).ok();
    assert_eq!(home.steno(&["list", "--json"]).ok(), listed);
}

#[test]
fn files_beside_a_session_are_copied_with_it() {
    let home = Home::new();
    let session = "{\"type\":\"session_start\",\"id\":\"s1\",\"title\":\"t\",\"cwd\":\"/p\"}\n";
    home.file(".factory/sessions/s1.jsonl", session);
    home.file(".factory/sessions/s1.settings.json", "{\"tokenUsage\":{\"inputTokens\":7}}");
    sync(&home, &[]).ok();
    home.file(".factory/sessions/s1.settings.json", "{\"tokenUsage\":{\"inputTokens\":70}}");
    let changed = sync(&home, &[]).ok();
    assert!(changed.contains("droid"), "{changed}");
    let listed = home.steno(&["list", "--json"]).ok();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["tokens"]["input"], 70, "{listed}");
}

#[test]
fn an_agent_that_is_not_known_is_refused() {
    let home = Home::new();
    let refused = sync(&home, &["--agent", "nope"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("claude-code"), "{}", refused.stderr);
}

const HISTORY: &str = ".claude/history.jsonl";

/// A line of Claude Code's history.
fn history_line(session: &str, text: &str) -> String {
    let line = serde_json::json!({"display": text, "pastedContents": {}, "project": "/p",
        "timestamp": 1767603600000_u64, "sessionId": session});
    format!("{line}\n")
}

#[test]
fn prompts_of_a_purged_session_are_read_from_the_history() {
    let home = Home::new();
    let (live, gone) =
        ("1b4e28ba-2fa1-41d2-883f-0016d3cca427", "9b4e28ba-2fa1-41d2-883f-0016d3cca427");
    home.file(SESSION, line(1));
    let history = history_line(gone, "Fix the nest")
        + &history_line(live, "prompt 1")
        + &history_line(gone, "/clear");
    home.file(HISTORY, &history);
    sync(&home, &[]).ok();
    assert_eq!(home.steno(&["list", "--json"]).stdout.lines().count(), 2);
    let shown = home.steno(&["show", "9b4e", "--json"]).ok();
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.contains("Fix the nest"), "{shown}");
    assert_eq!(sync(&home, &[]).stdout, "", "nothing new");
    let refused = home.steno(&["restore", "9b4e"]);
    assert!(refused.stderr.contains("known only from the agent's history"), "{refused}");
    home.file(HISTORY, history + &history_line(gone, "Go on") + &history_line(live, "prompt 2"));
    let row = sync(&home, &["--json"]).ok();
    assert!(row.contains("\"sessions\":1,\"entries\":3"), "{row}");
    home.steno(&["verify"]).ok();
}

#[test]
fn the_file_of_a_session_takes_precedence_over_the_history() {
    let home = Home::new();
    let id = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
    home.file(".claude/projects/-p/memory/x.md", "");
    home.file(HISTORY, history_line(id, "prompt 1"));
    sync(&home, &[]).ok();
    assert_eq!(prompts(&home), 1);
    // The file is created again.
    home.file(SESSION, line(1) + &line(2));
    sync(&home, &[]).ok();
    assert_eq!(prompts(&home), 2, "from the file alone");
    assert_eq!(home.steno(&["list", "--json"]).stdout.lines().count(), 1);
    // A session that was synced before it was purged.
    fs::remove_file(home.path().join(SESSION)).unwrap();
    home.file(HISTORY, history_line(id, "prompt 1") + &history_line(id, "prompt 2"));
    assert_eq!(sync(&home, &[]).stdout, "", "all of it is kept");
    assert_eq!(prompts(&home), 2);
    home.steno(&["restore", id]).ok();
    assert_eq!(fs::read_to_string(home.path().join(SESSION)).unwrap(), line(1) + &line(2));
    home.steno(&["verify"]).ok();
    // The same without the list of seen files.
    fs::remove_file(home.path().join("store/seen.json")).unwrap();
    sync(&home, &[]).ok();
    assert_eq!(home.steno(&["list", "--json"]).stdout.lines().count(), 1);
    assert_eq!(prompts(&home), 2);
}

#[test]
fn a_subagent_that_is_found_first_joins_its_session() {
    let home = Home::new();
    let side = |n| line(n).replace("\"isSidechain\":false", "\"isSidechain\":true");
    let nested = SESSION.replace(".jsonl", "/subagents/agent-a1.jsonl");
    for flat in [".claude/projects/-p/agent-b1.jsonl", &nested] {
        fs::remove_dir_all(home.path().join(".claude")).ok();
        fs::remove_dir_all(home.path().join("store")).ok();
        home.file(flat, side(3));
        sync(&home, &[]).ok();
        let listed = home.steno(&["list", "--json"]).ok();
        assert!(listed.contains("\"1b4e28ba-2fa1-41d2-883f-0016d3cca427\""), "{listed}");
        home.file(SESSION, line(1) + &line(2));
        sync(&home, &[]).ok();
        assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 1);
        assert_eq!(prompts(&home), 3);
        // Files left after the session's own file is removed take nothing away.
        fs::remove_file(home.path().join(SESSION)).unwrap();
        home.file(flat, side(3) + &side(4));
        sync(&home, &[]).ok();
        assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 1);
        assert_eq!(prompts(&home), 4);
        home.steno(&["restore", "1b4e"]).ok();
        assert_eq!(fs::read_to_string(home.path().join(SESSION)).unwrap(), line(1) + &line(2));
        home.steno(&["verify"]).ok();
    }
}
