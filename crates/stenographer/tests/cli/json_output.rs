//! `--json` of every command that has it: each line is one JSON value, and nothing else is on standard output.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::Home;
use crate::listing::home_with_sessions;

#[track_caller]
fn values(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Returns the commands and nested commands with `--json`.
fn commands_with_json(home: &Home) -> Vec<String> {
    let paths = home.steno(&["man", "--dir", "man1"]).ok();
    let mut names = Vec::new();
    for path in paths.lines() {
        let file = path.strip_prefix("$HOME/man1/").unwrap();
        let page = std::fs::read_to_string(home.path().join("man1").join(file)).unwrap();
        if page.contains("\n\\fB\\-\\-json\\fR\n") {
            names.push(file.trim_start_matches("steno-").trim_end_matches(".1").to_owned());
        }
    }
    names
}

/// Command lines whose output is checked below, in this order, in one home.
const COMMAND_LINES: &[(&str, &str)] = &[
    ("sync", "sync --json"),
    ("import", "import logs --json"),
    ("list", "list --json"),
    ("search", "search login --json"),
    ("cost", "cost --json"),
    ("stats", "stats --json"),
    ("show", "show latest --json"),
    ("handoff", "handoff 2bcd --json"),
    ("doctor", "doctor --json"),
    ("diff", "diff 2bcd 3cde --json"),
    ("inspect", "inspect logs --json"),
    ("verify", "verify --json"),
    ("reindex", "reindex --json"),
    ("replay", "replay 2bcd --json"),
    ("restore", "restore 2bcd --to restored --json"),
    ("export", "export 2bcd 3cde --format md -o out --json"),
    ("export", "export --format html --site site --json"),
    ("hooks-status", "hooks status --json"),
    ("hooks-install", "hooks install claude-code --json"),
    ("hooks-remove", "hooks remove claude-code --json"),
    ("mcp-status", "mcp status --json"),
    ("mcp-install", "mcp install claude-code --all --json"),
    ("mcp-remove", "mcp remove claude-code --json"),
    ("annotate", "annotate --json"),
    ("init", "init --yes --json"),
    ("objective-create", "objective create Ship --json"),
    ("objective-list", "objective list --json"),
    ("objective-status", "objective status latest --json"),
    ("spawn", "spawn First --json"),
    ("spawn", "spawn Second --json"),
    ("status", "status --json"),
    ("context", "context latest --json"),
    ("artifacts", "artifacts latest --json"),
    ("transcript", "transcript latest 2bcd --json"),
    ("inject", "inject latest Hurry --json"),
    ("transfer", "transfer latest handoff --to human --json"),
    ("run", "run --agent rehearsal --json hello"),
    ("lifecycle", "lifecycle latest archive --json"),
    ("cat", "cat 2bcd --json"),
    ("forget", "forget 2bcd --dry-run --json"),
    ("forget", "forget 2bcd --yes --json"),
];

/// Commands with `--json` that other tests run, as they need another process, two threads or a Git repository.
const TESTED_ELSEWHERE: &[&str] = &[
    "serve",
    "watch",
    "resume",
    "reference",
    "merge",
    "blame",
    "log",
    "prune",
    "secrets",
    "load",
    "remote-list",
    "remote-prune",
    "push",
    "pull",
    "encrypt",
    "decrypt",
];

#[test]
fn every_json_option_prints_json_only() {
    let home = home_with_sessions();
    for (_, line) in COMMAND_LINES {
        let args: Vec<&str> = line.split(' ').collect();
        let output = home.steno(&args);
        assert!(output.code == 0 || line.starts_with("diff"), "{line}: {output}");
        let rows = values(&output.stdout);
        let may_be_empty = ["sync", "verify", "annotate"];
        assert!(
            !rows.is_empty() || may_be_empty.iter().any(|it| line.starts_with(it)),
            "{line}: {output}"
        );
        assert!(rows.iter().all(Value::is_object), "{line}: {output}");
    }
}

#[test]
fn every_command_with_a_json_option_is_tested() {
    let home = Home::new();
    let tested = |name: &String| {
        COMMAND_LINES.iter().any(|(tested, _)| tested == name)
            || TESTED_ELSEWHERE.contains(&name.as_str())
            || name.starts_with("as-")
    };
    let missing: Vec<String> =
        commands_with_json(&home).into_iter().filter(|name| !tested(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
    for (name, _) in COMMAND_LINES {
        assert!(commands_with_json(&home).iter().any(|known| known == name), "{name}");
    }
}

#[test]
fn references_and_merges_print_json() {
    let home = Home::new();
    home.steno(&["init", "--yes"]).ok();
    home.steno(&["objective", "create", "Ship"]).ok();
    let ids =
        ["First", "Second"].map(|intent| home.steno(&["spawn", intent]).ok().trim().to_owned());
    values(&home.steno(&["reference", &ids[0], &ids[1], "--json"]).ok());
    values(&home.steno(&["merge", &ids[1], "--into", &ids[0], "--json"]).ok());
}

#[test]
fn the_rows_say_what_was_done() {
    let home = home_with_sessions();
    assert_eq!(home.steno(&["reindex", "--json"]).ok(), "{\"sessions\":6}\n");
    let restored = values(&home.steno(&["restore", "2bcd", "--to", "r", "--json"]).ok());
    assert_eq!(restored[0]["written"], true);
    assert!(restored[0]["path"].as_str().unwrap().ends_with("2bcd.jsonl"), "{restored:?}");
    let again = values(&home.steno(&["restore", "2bcd", "--to", "r", "--json"]).ok());
    assert_eq!(again[0]["written"], false);
    let exported =
        values(&home.steno(&["export", "2bcd", "--format", "md", "-o", "x.md", "--json"]).ok());
    assert_eq!((&exported[0]["session"], &exported[0]["path"]), (&"2bcd".into(), &"x.md".into()));
    assert_eq!(exported[0]["secrets_redacted"], 0);
    assert!(home.path().join("x.md").exists());
    let refused = home.steno(&["export", "2bcd", "--format", "md", "--json"]);
    assert_eq!((refused.stdout.as_str(), refused.code), ("", 2), "{refused}");
    let replayed = values(&home.steno(&["replay", "2bcd", "--json"]).ok());
    assert_eq!(replayed[0]["content"], "Write the feed");
    assert_eq!(replayed.len(), 2);
}

#[test]
fn the_address_of_the_page_is_json() {
    let home = home_with_sessions();
    let mut command = home.command(&["serve", "--port", "0", "--json"]);
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut first).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let row = &values(&first)[0];
    assert!(row["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{first}");
}
