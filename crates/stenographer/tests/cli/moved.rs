//! Sessions with moved or copied files: each is stored and counted once.

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use crate::harness::Home;

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const OLD: &str = ".claude/projects/-p/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl";
const NEW: &str = ".config/claude/projects/-p/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl";

/// A response of ten tokens.
fn answer(n: u32) -> String {
    format!(
        "{{\"type\":\"assistant\",\"uuid\":\"u{n}\",\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/p\",\
         \"sessionId\":\"{ID}\",\"version\":\"2.1.0\",\"timestamp\":\"2026-01-05T09:15:{:02}.000Z\",\
         \"requestId\":\"r{n}\",\"message\":{{\"id\":\"m{n}\",\"role\":\"assistant\",\"model\":\"m\",\
         \"content\":[{{\"type\":\"text\",\"text\":\"answer {n}\"}}],\
         \"usage\":{{\"input_tokens\":10,\"output_tokens\":1}}}}}}\n",
        n % 60
    )
}

fn answers(numbers: &[u32]) -> String {
    numbers.iter().map(|n| answer(*n)).collect()
}

fn sync(home: &Home) {
    home.finish(home.command(&["sync"]), b"").ok();
    home.steno(&["verify"]).ok();
}

/// Returns the input tokens of every session, smallest first.
fn tokens(home: &Home) -> Vec<u64> {
    let listed = home.steno(&["list", "--json"]).ok();
    let rows = listed.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut tokens: Vec<u64> =
        rows.map(|row| row["tokens"]["input"].as_u64().unwrap_or_default()).collect();
    tokens.sort_unstable();
    tokens
}

fn rename(home: &Home, from: &str, to: &str) {
    let to = home.path().join(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(home.path().join(from), to).unwrap();
}

#[test]
fn a_moved_folder_continues_its_sessions() {
    let home = Home::new();
    home.file(OLD, answers(&[1, 2]));
    let agent = OLD.replace(".jsonl", "/subagents/agent-a1.jsonl");
    home.file(&agent, answer(9).replace("\"uuid\"", "\"agentId\":\"a1\",\"uuid\""));
    sync(&home);
    rename(&home, ".claude", ".config/claude");
    sync(&home);
    assert_eq!(tokens(&home), [30]);
    fs::write(home.path().join(NEW), answers(&[1, 2, 3])).unwrap();
    sync(&home);
    assert_eq!(tokens(&home), [40]);
    // It is restored to its last path.
    fs::remove_dir_all(home.path().join(".config")).unwrap();
    home.steno(&["restore", "1b4e"]).ok();
    assert_eq!(fs::read_to_string(home.path().join(NEW)).unwrap(), answers(&[1, 2, 3]));
    assert!(home.path().join(agent.replace(".claude", ".config/claude")).is_file());
    assert!(!home.path().join(".claude").exists());
    // It may also move back.
    rename(&home, ".config/claude", ".claude");
    sync(&home);
    fs::remove_dir_all(home.path().join(".claude")).unwrap();
    home.steno(&["restore", "1b4e"]).ok();
    assert!(home.path().join(OLD).is_file() && !home.path().join(NEW).exists());
    assert_eq!(tokens(&home), [40]);
}

#[test]
fn copies_are_one_session_until_they_grow_apart() {
    let home = Home::new();
    home.file(OLD, answers(&[1, 2]));
    sync(&home);
    home.file(NEW, answers(&[1, 2]));
    home.file(&OLD.replace(".claude", "backup"), answer(1));
    home.steno(&["import", "backup"]).ok();
    sync(&home);
    assert_eq!(tokens(&home), [20]);
    let restored = home.steno(&["restore", "1b4e"]);
    assert!(restored.stdout.contains(OLD) || restored.stderr.contains(OLD), "{restored}");
    home.file(OLD, answers(&[1, 2, 3]));
    sync(&home);
    home.file(NEW, answers(&[1, 2, 4, 5]));
    sync(&home);
    assert_eq!(tokens(&home), [30, 40]);
    home.file(OLD, answers(&[1, 2, 3, 6, 7, 8]));
    home.file(NEW, answers(&[1, 2, 4, 5, 9]));
    sync(&home);
    assert_eq!(tokens(&home), [50, 60]);
    let before = [OLD, NEW].map(|name| fs::read(home.path().join(name)).unwrap());
    fs::remove_dir_all(home.path().join(".claude")).unwrap();
    fs::remove_dir_all(home.path().join(".config")).unwrap();
    for dir in home.vault().list_sessions().unwrap() {
        home.steno(&["restore", dir.id().as_str()]).ok();
    }
    assert_eq!([OLD, NEW].map(|name| fs::read(home.path().join(name)).unwrap()), before);
}

#[test]
fn what_only_has_the_same_name_is_a_session_of_its_own() {
    let home = Home::new();
    home.file(OLD, answers(&[1, 2]));
    home.file(NEW, answers(&[1, 3]));
    sync(&home);
    assert_eq!(tokens(&home), [20, 20]);
    fs::remove_file(home.path().join(OLD)).unwrap();
    home.file(NEW, answers(&[1, 3, 4]));
    sync(&home);
    assert_eq!(tokens(&home), [20, 30]);
}

#[test]
fn without_the_list_of_seen_files_nothing_is_stored_twice() {
    let home = Home::new();
    home.file(OLD, answers(&[1, 2]));
    sync(&home);
    home.file(NEW, answers(&[1, 2, 3]));
    sync(&home);
    fs::remove_file(home.path().join("store/seen.json")).unwrap();
    sync(&home);
    assert_eq!(tokens(&home), [30]);
    let files = fs::read_dir(home.path().join("store/vault/claude-code").join(ID)).unwrap();
    let sealed = files
        .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "zst"));
    assert_eq!(sealed.count(), 1, "no second generation");
}

#[test]
fn a_moved_database_continues_its_sessions() {
    let home = Home::new();
    let old = home.file(".local/share/opencode/opencode.db", "");
    let connection = Connection::open(&old).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT);
             CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, directory TEXT, title TEXT,
                 version TEXT, time_created INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
             INSERT INTO project VALUES ('p', '/p');
             INSERT INTO session VALUES ('ses_1', 'p', '/p', 'One', '1.2.0', 1000);",
        )
        .unwrap();
    drop(connection);
    say(&old, 1);
    sync(&home);
    // An older copy, and the database itself moved and changed.
    let copy = home.path().join("copy.db");
    fs::copy(&old, &copy).unwrap();
    say(&old, 2);
    sync(&home);
    home.steno(&["import", "copy.db"]).ok();
    assert_eq!(tokens(&home), [20]);
    let new = home.path().join("data/opencode.db");
    rename(&home, ".local/share/opencode", "data");
    say(&new, 3);
    home.steno(&["import", "data"]).ok();
    assert_eq!(tokens(&home), [30]);
    fs::remove_file(&new).unwrap();
    let mut restore = home.command(&["restore", "ses_1"]);
    restore.env("OPENCODE_DB", &new);
    home.finish(restore, b"").ok();
    assert!(new.is_file() && !old.exists());
    // The copy has diverged.
    say(&copy, 4);
    home.steno(&["import", "copy.db"]).ok();
    assert_eq!(tokens(&home), [20, 30]);
}

/// Parts of a Codex rollout.
const CODEX: [&str; 2] = [
    r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"1b4e28ba-2fa1-41d2-883f-0016d3cca427","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p","cli_version":"0.140.0"}}
"#,
    r#"{"timestamp":"2026-01-01T00:00:01.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":1,"reasoning_output_tokens":0,"total_tokens":11},"last_token_usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":1,"reasoning_output_tokens":0,"total_tokens":11}}}}
"#,
];
const ROLLOUT: &str = ".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl";

#[test]
fn a_rollout_that_was_archived_and_compressed_stays_one_session() {
    let home = Home::new();
    home.file(ROLLOUT, CODEX[0]);
    sync(&home);
    let archived = ROLLOUT.replace("sessions/2026/01/01", "archived_sessions");
    rename(&home, ROLLOUT, &archived);
    sync(&home);
    assert_eq!(tokens(&home), [0]);
    let packed = zstd::encode_all(CODEX.concat().as_bytes(), 1).unwrap();
    fs::remove_file(home.path().join(&archived)).unwrap();
    home.file(&format!("{archived}.zst"), &packed);
    sync(&home);
    assert_eq!(tokens(&home), [10]);
    // Codex decompresses a rollout that it resumes.
    fs::remove_dir_all(home.path().join(".codex")).unwrap();
    home.file(ROLLOUT, CODEX.concat());
    sync(&home);
    assert_eq!(tokens(&home), [10]);
    fs::remove_dir_all(home.path().join(".codex")).unwrap();
    home.steno(&["restore", "1b4e"]).ok();
    assert_eq!(fs::read_to_string(home.path().join(ROLLOUT)).unwrap(), CODEX.concat());
    assert!(!home.path().join(archived + ".zst").exists());
}

#[test]
fn a_title_from_another_file_is_stored() {
    let home = Home::new();
    home.file(ROLLOUT, CODEX[0]);
    let line = |id: &str, title: &str| format!("{{\"id\":\"{id}\",\"thread_name\":\"{title}\"}}\n");
    let index = line(ID, "Birds") + &line("other", "Secret") + &line(ID, "Water birds");
    let index = home.file(".codex/session_index.jsonl", index);
    sync(&home);
    fs::remove_dir_all(home.path().join(".codex")).unwrap();
    let listed = home.steno(&["list", "--json"]).ok();
    assert!(listed.contains("\"title\":\"Water birds\""), "{listed}");
    let excerpt = home.path().join("store/vault/codex").join(ID).join("session_index.jsonl.zst");
    let kept = zstd::decode_all(fs::File::open(excerpt).unwrap()).unwrap();
    assert_eq!(String::from_utf8(kept).unwrap(), line(ID, "Birds") + &line(ID, "Water birds"));
    // The index does not belong to the session: it is neither created nor changed.
    home.steno(&["restore", ID]).ok();
    assert!(!index.exists() && home.path().join(ROLLOUT).is_file());
    home.file(ROLLOUT, CODEX.concat());
    sync(&home);
    assert!(home.steno(&["list", "--json"]).ok().contains("Water birds"));
}

/// Adds a response of ten tokens.
fn say(database: &Path, n: u32) {
    let connection = Connection::open(database).unwrap();
    let data = r#"{"role":"assistant","time":{"created":1000},"tokens":{"input":10,"output":1,"reasoning":0,"cache":{"read":0,"write":0}}}"#;
    let message = (format!("msg_{n}"), n, data);
    connection.execute("INSERT INTO message VALUES (?1, 'ses_1', ?2, ?3)", message).unwrap();
    let part = r#"{"type":"text","text":"answer"}"#;
    let part = (format!("prt_{n}"), format!("msg_{n}"), part);
    connection.execute("INSERT INTO part VALUES (?1, ?2, 'ses_1', ?3)", part).unwrap();
    connection.execute("UPDATE session SET title = 'Changed ' || ?1", [n]).unwrap();
}
