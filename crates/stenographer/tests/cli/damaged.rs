//! A store with damaged frames: every command that answers short warns and exits with 1, also after `steno reindex`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Home, Output};

/// A session file of Claude Code with this many prompts.
fn write_session(home: &Home, prompts: usize) {
    let line = |number: usize| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"sessionId\":\"grown\",\"version\":\"2.0.0\",\
             \"timestamp\":\"2026-01-05T09:15:3{number}.000Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"needle {number}\"}}}}\n"
        )
    };
    home.file("grown.jsonl", (0..prompts).map(line).collect::<String>());
}

/// Imports a session as it grows to three prompts, a frame for each. Returns its id and its sealed file.
fn import_grown_session(home: &Home) -> (String, PathBuf) {
    for prompts in 1..=3 {
        write_session(home, prompts);
        home.steno(&["import", "grown.jsonl"]).ok();
    }
    let dir = home.vault().list_agent_sessions("claude-code").unwrap().remove(0);
    (dir.id().to_string(), dir.path().join("grown.jsonl.zst"))
}

/// Flips a bit in the compressed data of the second frame. Returns the bytes before.
fn damage_middle_frame(path: &Path) -> Vec<u8> {
    let whole = fs::read(path).unwrap();
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let mut frames = whole.windows(4).enumerate().filter(|(_, window)| *window == magic);
    let start = frames.nth(1).unwrap().0;
    let mut damaged = whole.clone();
    damaged[start + 20] ^= 4;
    fs::write(path, damaged).unwrap();
    whole
}

const QUERIES: [&[&str]; 7] = [
    &["list"],
    &["list", "--json"],
    &["search", "needle"],
    &["search", "needle", "--json"],
    &["cost"],
    &["stats"],
    &["stats", "--json"],
];

fn assert_warns(read: &Output, args: &[&str]) {
    assert_eq!(read.code, 1, "{args:?}: {read}");
    assert!(read.stderr.contains("grown.jsonl.zst: damaged frame"), "{args:?}: {read}");
}

#[test]
fn queries_after_a_reindex_warn_about_a_damaged_frame() {
    let home = Home::new();
    let (_, sealed) = import_grown_session(&home);
    let whole = damage_middle_frame(&sealed);
    let reindexed = home.steno(&["reindex"]);
    assert_warns(&reindexed, &["reindex"]);
    for args in QUERIES {
        assert_warns(&home.steno(args), args);
    }
    let found = home.steno(&["search", "needle", "--json"]);
    assert_eq!(found.stdout.lines().count(), 2, "the other frames are found: {found}");
    let latest = home.steno(&["show", "latest", "--json"]);
    assert!(latest.code == 1 && latest.stdout.contains("needle 2"), "{latest}");
    fs::write(&sealed, whole).unwrap();
    for args in QUERIES {
        let repaired = home.steno(args);
        assert!(repaired.code == 0 && !repaired.stderr.contains("warning"), "{args:?}: {repaired}");
    }
    assert_eq!(home.steno(&["search", "needle", "--json"]).ok().lines().count(), 3);
}

#[test]
fn a_search_for_secrets_warns_about_damage() {
    let home = Home::new();
    let (_, sealed) = import_grown_session(&home);
    home.steno(&["secrets"]).ok();
    damage_middle_frame(&sealed);
    assert_warns(&home.steno(&["secrets"]), &["secrets"]);
    let forget = ["forget", "--secret", "000000000000"];
    assert_warns(&home.steno(&forget), &forget);
}

/// The agent's file is whole, but `show` reads the vault: the index must agree with it.
#[test]
fn growth_of_a_damaged_session_does_not_end_the_warning() {
    let home = Home::new();
    let (id, sealed) = import_grown_session(&home);
    damage_middle_frame(&sealed);
    assert_eq!(home.steno(&["reindex"]).code, 1);
    write_session(&home, 4);
    home.steno(&["import", "grown.jsonl"]);
    let found = home.steno(&["search", "needle", "--json"]);
    assert_warns(&found, &["search"]);
    let shown = home.steno(&["show", &id, "--json"]);
    assert_warns(&shown, &["show"]);
    let entries = shown.stdout.lines().filter(|line| line.contains("needle")).count();
    assert_eq!((found.stdout.lines().count(), entries), (3, 3), "{found}{shown}");
}

/// What an agent wrote is kept as it is; a line that is no record is no damage.
#[test]
fn a_bad_line_of_an_agent_is_not_damage() {
    let home = Home::new();
    write_session(&home, 2);
    let path = home.path().join("grown.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}not JSON\n")).unwrap();
    home.steno(&["import", "grown.jsonl"]);
    for _ in 0..2 {
        for args in QUERIES {
            assert_eq!(home.steno(args).code, 0, "{args:?}");
        }
        home.steno(&["reindex"]).ok();
    }
}
