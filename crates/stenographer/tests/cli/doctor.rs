//! `steno doctor`: what is found, kept and wrong on a machine.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::harness::{Home, Output};

const LINE: &str = r#"{"type":"user","uuid":"a","sessionId":"aaaa1111","timestamp":"2026-01-01T00:00:00Z","cwd":"/w","version":"2.1.0","message":{"role":"user","content":"fix the login"}}"#;

/// Writes a session of Claude Code that was last changed some days ago.
fn write_session(home: &Home, days_ago: u64) {
    let path = home.file(".claude/projects/-w/aaaa1111.jsonl", format!("{LINE}\n"));
    let file = std::fs::File::options().append(true).open(path).unwrap();
    // Half a day more, so that the number of whole days left does not depend on the time of day.
    let age = Duration::from_secs(days_ago * 86_400 + 43_200);
    file.set_modified(SystemTime::now() - age).unwrap();
}

fn json(home: &Home) -> Value {
    serde_json::from_str(&home.steno(&["doctor", "--json"]).stdout).unwrap()
}

/// Replaces sizes, which differ by machine.
fn without_sizes(output: Output) -> String {
    let sizes = regex::Regex::new(r"\d+(\.\d+)? [KMGT]?B\b").unwrap();
    sizes.replace_all(&output.to_string(), "SIZE").into_owned()
}

#[test]
fn a_fresh_machine_is_no_problem_and_stays_untouched() {
    let home = Home::new();
    insta::assert_snapshot!(without_sizes(home.steno(&["doctor"])), @r"
    store: ~/store: not created yet, SIZE free
    last sync: never
    index: not built yet

    next: no agent was found; run `steno run`, `steno exec` or `steno import`
    --- exit 0
    ");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn sessions_that_are_not_kept_are_counted_with_the_days_left() {
    let home = Home::new();
    write_session(&home, 27);
    insta::assert_snapshot!(without_sizes(home.steno(&["doctor"])), @r"
    store: ~/store: not created yet, SIZE free
    last sync: never
    index: not built yet

    AGENT        KEPT  LAST MESSAGE  NEW FILES  HOOKS          FOLDER
    claude-code  0     -             1          not installed  ~/.claude/projects

    Claude Code deletes session files after 30 days (cleanupPeriodDays):
    the next one in 2 days, 1 file within a week, 1 of them not kept yet

    next: run `steno sync` to copy 1 new or changed file into the store
    next: run `steno hooks install` to record claude-code as they work
    --- exit 0
    ");
}

#[test]
fn kept_sessions_are_counted_with_their_last_message() {
    let home = Home::new();
    write_session(&home, 1);
    home.steno(&["sync"]).ok();
    home.steno(&["hooks", "install"]).ok();
    let report = json(&home);
    assert_eq!(report["store"]["sessions"], 1);
    assert_eq!(report["store"]["index"], "current");
    assert!(report["store"]["last_sync"].is_string(), "{report}");
    let agent = &report["agents"][0];
    assert_eq!(agent["agent"], "claude-code");
    assert_eq!((&agent["sessions"], &agent["new_files"]), (&1.into(), &0.into()));
    assert_eq!(agent["last_message"], "2026-01-01T00:00:00.000Z");
    assert_eq!(agent["hooks"], "installed");
    assert_eq!(report["purge"]["oldest_goes_in_days"], 28);
    assert_eq!(report["purge"]["files_within_a_week"], 0);
    assert_eq!(
        report["next"],
        serde_json::json!(["run `steno` to browse, `steno search WORDS` to search"])
    );
    home.file(".claude/projects/-w/aaaa1111.jsonl", format!("{LINE}\n{LINE}\n"));
    assert_eq!(json(&home)["agents"][0]["new_files"], 1);
}

#[test]
fn the_period_comes_from_the_settings_of_the_agent() {
    let home = Home::new();
    write_session(&home, 27);
    home.file(".claude/settings.json", r#"{"cleanupPeriodDays":365}"#);
    let purge = &json(&home)["purge"];
    assert_eq!((&purge["period_days"], &purge["oldest_goes_in_days"]), (&365.into(), &337.into()));
    home.file(".claude/settings.json", r#"{"cleanupPeriodDays":7}"#);
    assert_eq!(json(&home)["purge"]["oldest_goes_in_days"], 0);
}

#[test]
fn sessions_are_counted_without_an_index() {
    let home = Home::new();
    write_session(&home, 1);
    home.steno(&["sync"]).ok();
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        let _ = std::fs::remove_file(home.path().join("store").join(name));
    }
    let output = home.steno(&["doctor"]).ok();
    assert!(output.starts_with("store: ~/store: 1 session, "), "{output}");
    assert!(output.contains("index: not built yet; the next search builds it\n"), "{output}");
    assert!(output.contains("claude-code  1     -"), "{output}");
    let report = json(&home);
    assert_eq!(report["store"]["index"], "absent");
    assert_eq!(
        (&report["store"]["sessions"], &report["agents"][0]["sessions"]),
        (&1.into(), &1.into())
    );
    assert!(!home.path().join("store/index.db").exists(), "doctor changes nothing");
}

#[test]
fn wrong_settings_and_a_damaged_index_are_problems() {
    let home = Home::new();
    write_session(&home, 1);
    home.steno(&["sync"]).ok();
    assert_eq!(home.steno(&["doctor"]).code, 0);
    home.file("store/config.toml", "[sync]\nautomatic = 3\n");
    for name in ["index.db-wal", "index.db-shm"] {
        home.file(&format!("store/{name}"), "");
    }
    home.file("store/index.db", "not a database ".repeat(20));
    let output = home.steno(&["doctor"]);
    assert_eq!(output.code, 1, "{output}");
    let settings = "problem: $HOME/store/config.toml:2: automatic is not true or false\n";
    assert!(output.stdout.contains(settings), "{output}");
    assert!(output.stdout.contains("index: cannot be read\n"), "{output}");
    assert!(
        output.stdout.contains("problem: index $HOME/store/index.db: file is not a database"),
        "{output}"
    );
    assert_eq!(json(&home)["store"]["index"], "unreadable");
}

#[test]
fn a_mistake_in_any_table_of_the_settings_is_a_problem() {
    let home = Home::new();
    let mistakes = [
        ("[budget]\nmonht = 5", "unknown budget monht; one of: day, month, projects"),
        ("[budget]\nmonth = -5", "month is not an amount in dollars"),
        ("[gateway]\nlimit = 5", "unknown setting limit; one of: body_limit"),
        ("[upstreams]\nx = 3", "an upstream is not a URL"),
        ("[proxy]\nhosts = 3", "[proxy] has a list of hosts"),
        ("[redact]\nwords = 3", "words is not a list of strings"),
        ("[remote.x]\nurl = 3", "config.toml:2"),
    ];
    for (text, message) in mistakes {
        home.file("store/config.toml", text);
        let output = home.steno(&["doctor"]);
        assert!(output.code == 1 && output.stdout.contains(message), "{text}: {output}");
    }
}

#[test]
fn a_hook_that_failed_is_a_problem() {
    let home = Home::new();
    write_session(&home, 1);
    home.file("store/hook.log", "2026-01-01T00:00:00Z claude-code: no space left\n");
    let output = home.steno(&["doctor"]);
    assert_eq!(output.code, 1, "{output}");
    assert!(
        output.stdout.contains(
            "problem: the last hook failed: 2026-01-01T00:00:00Z claude-code: no space left\n"
        ),
        "{output}"
    );
}
