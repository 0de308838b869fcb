//! Tests of `steno forget` and `steno prune`.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Home, Output};

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const OTHER: &str = "2b4e28ba-2fa1-41d2-883f-0016d3cca427";

/// No file.
const NOWHERE: [PathBuf; 0] = [];

/// A line of Claude Code.
fn line(id: &str, n: u32, text: &str) -> String {
    let record = json!({"type": "user", "uuid": format!("00000000-0000-4000-8000-{n:012}"),
        "parentUuid": null, "isSidechain": false, "cwd": "/p", "sessionId": id, "version": "2.1.0",
        "timestamp": format!("2026-01-05T09:15:{:02}.000Z", n % 60),
        "message": {"role": "user", "content": text}});
    format!("{record}\n")
}

fn place(id: &str) -> String {
    format!(".claude/projects/-p/{id}.jsonl")
}

fn sync(home: &Home) -> Output {
    home.finish(home.command(&["sync"]), b"")
}

/// A home with two sessions of three prompts.
fn synced() -> Home {
    let home = Home::new();
    for (id, word) in [(ID, "apricot"), (OTHER, "walnut")] {
        let lines = (0..3).map(|n| line(id, n, &format!("the {word} of prompt number {n}")));
        home.file(&place(id), lines.collect::<String>());
    }
    sync(&home).ok();
    home
}

fn contents(home: &Home, id: &str) -> Vec<String> {
    let shown = home.steno(&["show", id, "--json"]).ok();
    let rows = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| row["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Every file below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => files.extend(files_below(&path)),
            path => files.push(path),
        }
    }
    files
}

fn has_bytes(haystack: &[u8], needle: &str) -> bool {
    memchr::memmem::find(haystack, needle.as_bytes()).is_some()
}

/// The zstd frames anywhere in some bytes, decompressed.
fn decompressed_frames(bytes: &[u8]) -> Vec<u8> {
    let mut raw = Vec::new();
    for at in memchr::memmem::find_iter(bytes, &[0x28, 0xb5, 0x2f, 0xfd]) {
        let mut frame = Vec::new();
        let mut decoder = zstd::Decoder::new(&bytes[at..]).unwrap().single_frame();
        if std::io::copy(&mut decoder, &mut frame).is_ok() {
            raw.extend(frame);
        }
    }
    raw
}

/// The files of the store in which a text is found: as it is, or in zstd frames.
fn holders(home: &Home, needle: &str) -> Vec<PathBuf> {
    let mut files = files_below(&home.path().join("store"));
    files.retain(|file| {
        let bytes = fs::read(file).unwrap();
        has_bytes(&bytes, needle) || has_bytes(&decompressed_frames(&bytes), needle)
    });
    files
}

#[test]
fn a_session_is_gone_for_good_and_leaves_a_tombstone() {
    let home = synced();
    home.steno(&["annotate", ID, "an apricot of a session"]).ok();
    assert!(!holders(&home, "apricot").is_empty());
    let listed = home.steno(&["forget", ID, "--dry-run"]).ok();
    assert!(listed.contains(ID) && !listed.contains(OTHER), "{listed}");
    assert_eq!(contents(&home, ID).len(), 3);
    let refused = home.steno(&["forget", ID]);
    assert!(refused.code == 2 && refused.stderr.contains("--yes"), "{refused}");
    home.steno(&["forget", ID, "--yes", "--reason", "asked for"]).ok();
    assert_eq!(holders(&home, "apricot"), NOWHERE);
    let shown = home.steno(&["show", ID]);
    let message =
        "error: this session was forgotten on 2026-01-05 (asked for): claude-code/1b4e28ba";
    assert!(shown.code == 1 && shown.stderr.starts_with(message), "{shown}");
    assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 1);
    let verified = home.steno(&["verify"]).ok();
    assert!(verified.contains(ID) && verified.contains("asked for"), "{verified}");
    // The agent's own file is still there, and grows.
    home.file(&place(ID), line(ID, 0, "the apricot") + &line(ID, 1, "more apricot"));
    sync(&home).ok();
    assert_eq!(holders(&home, "apricot"), NOWHERE);
    let imported = home.steno(&["import", &place(ID)]);
    assert!(imported.code == 1 && imported.stderr.contains("was forgotten"), "{imported}");
    let recorded = home.steno_with(
        &["record", "--agent", "claude-code", "--session", ID],
        b"{\"role\":\"user\",\"content\":\"apricot\"}\n",
    );
    assert_eq!(recorded.code, 1, "{recorded}");
    assert_eq!(holders(&home, "apricot"), NOWHERE);
    home.steno(&["verify"]).ok();
    assert_eq!(contents(&home, OTHER).len(), 3);
}

#[test]
fn entries_are_masked_and_all_others_keep_their_numbers() {
    let home = synced();
    let before = contents(&home, ID);
    home.steno(&["forget", &format!("{ID}:1"), "--yes"]).ok();
    let after = contents(&home, ID);
    assert_eq!((after.len(), &after[0], &after[2]), (3, &before[0], &before[2]));
    assert!(after[1].starts_with("[forgotten "), "{after:?}");
    assert_eq!(holders(&home, "apricot of prompt number 1"), NOWHERE);
    assert!(!holders(&home, "apricot of prompt number 2").is_empty());
    home.steno(&["verify"]).ok();
    // A sync of the same file, of a longer one, and of one that the agent rewrote.
    let lines = |from: u32, to: u32| -> String {
        (from..to).map(|n| line(ID, n, &format!("the apricot of prompt number {n}"))).collect()
    };
    let path = home.path().join(place(ID));
    for text in [lines(0, 3), lines(0, 4), lines(1, 5)] {
        fs::write(&path, text).unwrap();
        sync(&home).ok();
        assert_eq!(holders(&home, "apricot of prompt number 1"), NOWHERE);
        home.steno(&["verify"]).ok();
    }
    assert!(contents(&home, ID).iter().any(|text| text.contains("prompt number 4")));
    let generations = home.path().join(format!("store/vault/claude-code/{ID}"));
    let names = files_below(&generations).into_iter().filter(|file| file.ends_with("zst"));
    assert!(names.count() <= 2);
}

#[test]
fn a_pattern_is_masked_everywhere() {
    let home = synced();
    home.file(&place(OTHER), line(OTHER, 0, "the key is key-4711, not \"key-4712\", ok?"));
    let record = br#"{"role":"user","content":"use key-4711 here"}"#;
    home.steno_with(&["record", "--agent", "bot", "--session", "r"], record).ok();
    let again = br#"{"role":"assistant","content":"done with it"}"#;
    home.steno_with(&["record", "--agent", "bot", "--session", "r"], again).ok();
    home.steno(&["annotate", "r", "rotate key-4711 soon"]).ok();
    home.steno(&["annotate", "r", "and tell everybody"]).ok();
    sync(&home).ok();
    let row = home.steno(&["forget", "--match", "key-\\d+", "--dry-run", "--json"]).ok();
    assert_eq!(row.lines().filter(|line| line.contains("\"session\"")).count(), 2, "{row}");
    home.steno(&["forget", "--match", "key-\\d+", "--yes", "--json"]).ok();
    for needle in ["key-4711", "key-4712"] {
        assert_eq!(holders(&home, needle), NOWHERE, "{needle}");
    }
    assert_eq!(contents(&home, OTHER)[0], "the key is ********, not \"********\", ok?");
    assert_eq!(contents(&home, "r"), ["use ******** here", "done with it"]);
    let notes = home.steno(&["annotate", "r"]).ok();
    assert!(notes.contains("rotate ******** soon") && notes.contains("and tell"), "{notes}");
    home.steno(&["verify"]).ok();
    // The recording goes on after it.
    home.steno_with(&["record", "--agent", "bot", "--session", "r"], again).ok();
    home.steno(&["annotate", "r", "one more"]).ok();
    home.steno(&["verify"]).ok();
    assert_eq!(contents(&home, "r").len(), 3);
}

#[test]
fn rows_of_a_database_stay_masked() {
    let home = Home::new();
    let file = home.file(".local/share/opencode/opencode.db", "");
    let connection = Connection::open(file).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT);
             CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, directory TEXT,
                 title TEXT, version TEXT, time_created INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL,
                 time_created INTEGER, data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT,
                 data TEXT);
             INSERT INTO project VALUES ('p', '/p');
             INSERT INTO session VALUES ('ses_1', 'p', '/p', 'One', '1.2.0', 1000);",
        )
        .unwrap();
    let say = |n: u32, text: &str| {
        let message = r#"{"role":"user","time":{"created":1000}}"#;
        let values = (format!("msg_{n}"), "ses_1", n, message);
        connection.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?4)", values).unwrap();
        let part = json!({"type": "text", "text": text}).to_string();
        let values = (format!("prt_{n}"), format!("msg_{n}"), "ses_1", part);
        connection.execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4)", values).unwrap();
    };
    say(1, "a \"sentence\" with the first apricot");
    say(2, "a sentence with the second apricot");
    sync(&home).ok();
    let listed = home.steno(&["list", "--json"]).ok();
    let row: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let id = row["id"].as_str().unwrap();
    home.steno(&["forget", &format!("{id}:0"), "--yes"]).ok();
    say(3, "one more");
    sync(&home).ok();
    assert_eq!(holders(&home, "first apricot"), NOWHERE);
    let texts = contents(&home, id);
    assert!(texts[0].starts_with("[forgotten ") && texts[1].contains("second"), "{texts:?}");
    assert_eq!(texts.len(), 3);
    home.steno(&["verify"]).ok();
}

#[test]
fn an_edited_or_removed_tombstone_is_found() {
    let home = synced();
    home.steno(&["forget", &format!("{ID}:1"), "--yes", "--reason", "first"]).ok();
    home.steno(&["forget", OTHER, "--yes", "--reason", "second"]).ok();
    home.steno(&["verify"]).ok();
    let path = home.path().join("store/vault/forgotten.jsonl");
    let whole = fs::read(&path).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let without = |skip: usize| {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != skip).map(|(_, line)| *line);
        kept.collect::<String>()
    };
    let mut states: Vec<String> = (0..lines.len()).map(without).collect();
    states.push(text.replace("first", "thief"));
    states.push(String::new());
    for state in states {
        fs::write(&path, &state).unwrap();
        let verified = home.steno(&["verify"]);
        assert_eq!(verified.code, 1, "{state}\n{verified}");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(home.steno(&["verify"]).code, 1);
    fs::write(&path, &whole).unwrap();
    home.steno(&["verify"]).ok();
}

#[test]
fn old_sessions_and_those_of_a_project_are_selected() {
    let home = synced();
    let other_project = line(OTHER, 0, "elsewhere").replace("\"/p\"", "\"/srv/acme\"");
    home.file(&place(OTHER), other_project);
    sync(&home).ok();
    let count = |args: &[&str]| {
        let args = [&["forget", "--dry-run", "--json"], args].concat();
        home.steno(&args).stdout.lines().filter(|line| line.contains("\"session\"")).count()
    };
    assert_eq!(count(&["--project", "acme"]), 1);
    assert_eq!(count(&["--older", "2026-01-06"]), 2);
    assert_eq!(count(&["--older", "2026-01-05"]), 0);
    assert_eq!(count(&["--match", "apricot", "--project", "acme"]), 0);
    home.steno(&["forget", "--project", "acme", "--yes"]).ok();
    assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 1);
    let none = home.steno(&["forget"]);
    assert!(none.code == 2 && none.stderr.contains("--match"), "{none}");
    for filter in [["--project", "acme"], ["--older", "1d"], ["--secret", "0123456789ab"]] {
        let both = home.steno(&[&["forget", ID, "--yes"][..], &filter].concat());
        assert_eq!(both.code, 2, "{both}");
    }
    let wrong = home.steno(&["forget", "--match", "(", "--yes"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("regular expression"), "{wrong}");
    let beyond = home.steno(&["forget", &format!("{ID}:9"), "--yes"]);
    assert!(beyond.code == 1 && beyond.stderr.contains("no such entry"), "{beyond}");
}

#[test]
fn the_agents_own_files_are_named_scrubbed_or_removed() {
    let home = synced();
    let file = |id: &str| home.path().join(place(id));
    let masked = home.steno(&["forget", ID, "--match", "apricot", "--yes"]);
    assert!(masked.stderr.contains(&place(ID)), "{masked}");
    assert!(fs::read_to_string(file(ID)).unwrap().contains("apricot"));
    let rest = ["forget", ID, "--match", "prompt", "--agent-files", "scrub", "--yes"];
    let scrubbed = home.steno(&rest);
    assert!(scrubbed.stderr.contains("masked it in the agent's own file"), "{scrubbed}");
    let text = fs::read_to_string(file(ID)).unwrap();
    assert!(!text.contains("apricot") && !text.contains("prompt"), "{text}");
    assert!(text.contains("the ******* of ****** number 0"), "{text}");
    sync(&home).ok();
    home.steno(&["verify"]).ok();
    assert_eq!(contents(&home, ID)[0], "the ******* of ****** number 0");
    let removed = home.steno(&["forget", OTHER, "--agent-files", "remove", "--yes", "--json"]).ok();
    assert!(removed.contains("\"change\":\"deleted\""), "{removed}");
    assert!(!file(OTHER).exists() && file(ID).exists());
    home.steno(&["forget", ID, "--agent-files", "keep", "--yes"]).ok();
    assert!(file(ID).exists());
}

#[test]
fn prune_removes_what_the_configuration_does_not_keep() {
    let home = Home::new();
    for id in [ID, OTHER] {
        home.file(&place(id), line(id, 0, "a walnut").replace("2026-01-05", "2025-06-05"));
    }
    sync(&home).ok();
    let without = home.steno(&["prune", "--dry-run"]);
    assert!(without.code == 1 && without.stderr.contains("[keep]"), "{without}");
    home.file("store/config.toml", "[keep]\ndays = 100000\n");
    home.steno(&["prune", "--dry-run"]).ok();
    home.file("store/config.toml", "[keep]\ndays = 100000\nprojects = { p = 1 }\n");
    let listed = home.steno(&["prune", "--dry-run", "--json"]).ok();
    let sessions = home.steno(&["list", "--json"]).ok().lines().count();
    assert_eq!((sessions, listed.matches("\"session\"").count() > 0), (2, true), "{listed}");
    home.steno(&["prune", "--yes", "--json", "--reason", "too old"]).ok();
    assert_eq!(home.steno(&["list", "--json"]).stdout, "");
    assert_eq!(holders(&home, "walnut"), NOWHERE);
    home.file("store/config.toml", "[keep]\nweeks = 3\n");
    let wrong = home.steno(&["prune", "--dry-run"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("config.toml:2"), "{wrong}");
    home.steno(&["verify"]).ok();
}

#[test]
fn two_hundred_needles_are_found_nowhere() {
    let home = Home::new();
    let needle = |n: u32| format!("needle-{n:03}-{}", 7919 * n + 13);
    for (file, id) in [ID, OTHER].into_iter().enumerate() {
        let lines = (0..80).map(|n| {
            let (first, text) =
                (file as u32 * 80, format!("say {} again", needle(n + file as u32 * 80)));
            line(id, n + first, &text)
        });
        home.file(&place(id), lines.collect::<String>());
    }
    let records: String = (160..200)
        .map(|n| json!({"role": "user", "content": needle(n)}).to_string() + "\n")
        .collect();
    home.steno_with(&["record", "--agent", "bot", "--session", "r"], records.as_bytes()).ok();
    sync(&home).ok();
    home.steno(&["search", "needle"]).ok();
    let all: Vec<String> = (0..200).map(needle).collect();
    assert!(all.iter().all(|needle| !holders(&home, needle).is_empty()));
    home.steno(&["forget", "--match", "needle-\\d+-\\d+", "--yes"]).ok();
    home.steno(&["verify"]).ok();
    sync(&home).ok();
    let found: Vec<_> = all.iter().filter(|needle| !holders(&home, needle).is_empty()).collect();
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(home.steno(&["search", "needle"]).code, 1);
    home.steno(&["forget", ID, OTHER, "r", "--yes"]).ok();
    assert_eq!(home.steno(&["list", "--json"]).stdout, "");
    home.steno(&["verify"]).ok();
}

#[test]
fn a_secret_of_the_report_is_masked() {
    let home = Home::new();
    let secret = ["ghp_", "R7qZx2Lm9Vt4Kc8Wb1Ns6Yd3Hf5Jg0PaQe2U"].concat();
    let nested = json!({"env": format!("export GITHUB_TOKEN={secret}")}).to_string();
    home.file(&place(ID), line(ID, 0, &format!("use {secret} please")) + &line(ID, 1, &nested));
    sync(&home).ok();
    let report = home.steno(&["secrets", "--json"]).stdout;
    let row: Value = serde_json::from_str(report.lines().next().unwrap()).unwrap();
    let id = row["id"].as_str().unwrap();
    home.steno(&["forget", "--secret", id, "--yes"]).ok();
    assert_eq!(holders(&home, &secret), NOWHERE);
    sync(&home).ok();
    assert_eq!(holders(&home, &secret), NOWHERE);
    assert_eq!(contents(&home, ID)[0].len(), format!("use {secret} please").len());
    home.steno(&["secrets"]).ok();
    let gone = home.steno(&["forget", "--secret", id, "--yes"]);
    assert!(gone.code == 1 && gone.stderr.contains("no such secret"), "{gone}");
    let wrong = home.steno(&["forget", "--secret", "hunter2", "--yes"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("not the id of a secret"), "{wrong}");
}

#[test]
fn a_text_in_a_compressed_file_is_named() {
    let home = Home::new();
    let name = "2026/01/03/rollout-2026-01-03T16-20-05-019b8478-3f10-7b52-9a0e-5d41c2f7e863.jsonl";
    let example = crate::readme::root().join("docs/examples/codex").join(name);
    let text = fs::read(example).unwrap();
    let compressed = zstd::encode_all(text.as_slice(), 3).unwrap();
    home.file(&format!(".codex/sessions/{name}.zst"), compressed);
    sync(&home).ok();
    let masked = home.steno(&["forget", "--match", "dark theme", "--yes"]);
    assert!(masked.code == 1 && masked.stderr.contains("019b8478"), "{masked}");
    assert!(masked.stderr.contains("compressed"), "{masked}");
    let entry = home.steno(&["forget", "019b8478:0", "--yes"]);
    assert!(entry.code == 1 && entry.stderr.contains("forget the whole session"), "{entry}");
    home.steno(&["forget", "019b8478", "--yes"]).ok();
    assert_eq!(holders(&home, "dark theme"), NOWHERE);
}
