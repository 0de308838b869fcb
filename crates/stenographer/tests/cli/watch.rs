//! Tests of `steno watch`.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;

use crate::harness::Home;

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const SESSION: &str = ".claude/projects/-p/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl";

/// Timeout; far longer than needed, so that only a failure waits this long.
const TIMEOUT: Duration = Duration::from_secs(60);

fn line(n: u32) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"u{n}\",\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/p\",\
         \"sessionId\":\"{ID}\",\"version\":\"2.1.0\",\"timestamp\":\"2026-01-05T09:15:3{n}.000Z\",\
         \"message\":{{\"role\":\"user\",\"content\":\"prompt {n}\"}}}}\n"
    )
}

fn append(home: &Home, name: &str, text: &str) {
    let path = home.path().join(name);
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// A running `steno watch --json`.
pub(crate) struct Watch {
    child: Child,
    events: Receiver<Value>,
}

impl Watch {
    /// Starts it and waits until the first sync has ended.
    fn start(home: &Home, args: &[&str]) -> Self {
        Self::of(home.command(&[&["watch", "--json", "--debounce", "50"], args].concat()))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, events) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let watch = Self { child, events };
        watch.until(|event| event["event"] == "ready");
        watch
    }

    /// Returns the first event for which `is_wanted` is true.
    #[track_caller]
    pub(crate) fn until(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.events.recv_timeout(TIMEOUT).expect("an event in time");
            if is_wanted(&event) {
                return event;
            }
        }
    }

    /// Waits until the session has this number of entries.
    #[track_caller]
    fn until_kept(&self, entries: u64) -> Value {
        self.until(|event| event["event"] == "kept" && event["entries"] == entries)
    }

    /// Stops it by a signal. Returns its last event and its messages.
    pub(crate) fn stop(mut self) -> (Value, String) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let printed = self.until(|event| event["event"] == "stopped");
        let mut stderr = self.child.stderr.take().unwrap();
        let said = std::io::read_to_string(&mut stderr).unwrap();
        assert!(self.child.wait().unwrap().success());
        (printed, said)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It has already ended unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the session's files in the vault, in order.
fn kept_files(home: &Home) -> Vec<String> {
    let dir = home.path().join("store/vault/claude-code").join(ID);
    let names = fs::read_dir(dir).unwrap().map(|item| item.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().replace(ID, "S")).collect();
    names.retain(|name| name.ends_with(".zst"));
    names.sort();
    names
}

#[test]
fn sessions_are_copied_while_they_grow() {
    let home = Home::new();
    let watch = Watch::start(&home, &[]);
    // The agent's folder is created only now.
    home.file(SESSION, line(1));
    let printed = watch.until_kept(1);
    assert_eq!(printed["agent"], "claude-code");
    assert_eq!(printed["session"], ID);
    append(&home, SESSION, &line(2));
    assert_eq!(watch.until_kept(2)["bytes_new"], line(2).len());
    // An incomplete line is copied too.
    append(&home, SESSION, "{\"type\":\"us");
    watch.until(|event| event["bytes_new"] == "{\"type\":\"us".len());
    // A subagent's file leads to its session.
    let agent = line(3).replace("false", "true").replace("\"uuid\"", "\"agentId\":\"a\",\"uuid\"");
    home.file(&SESSION.replace(".jsonl", "/subagents/agent-a.jsonl"), agent);
    watch.until_kept(3);
    append(&home, SESSION, "er\"}\n");
    watch.until(|event| event["bytes_new"] == "er\"}\n".len());
    let (printed, said) = watch.stop();
    assert_eq!(printed["sessions"], 1);
    assert_eq!(said, "");
    assert_eq!(kept_files(&home), ["S%2Fsubagents%2Fagent-a.jsonl.zst", "S.jsonl.zst"]);
    home.steno(&["verify"]).ok();
}

#[test]
fn nothing_is_lost_when_files_are_cut_moved_replaced_or_removed() {
    let home = Home::new();
    let path = home.file(SESSION, line(1) + &line(2));
    let watch = Watch::start(&home, &[]);
    // Truncated in place.
    fs::write(&path, line(3)).unwrap();
    watch.until_kept(1);
    // Rotated: the old file is renamed, and a new one created.
    let side = home.file("new", line(4) + &line(5));
    fs::rename(&path, home.path().join("old")).unwrap();
    fs::write(&path, fs::read(&side).unwrap()).unwrap();
    watch.until_kept(2);
    // Replaced by rename.
    fs::write(&side, line(6) + &line(7) + &line(8)).unwrap();
    fs::rename(&side, &path).unwrap();
    watch.until_kept(3);
    // Removed and created again.
    fs::remove_file(&path).unwrap();
    home.file(SESSION, line(9));
    watch.until_kept(1);
    // The agent's whole folder is removed and created again.
    fs::remove_dir_all(home.path().join(".claude")).unwrap();
    home.file(SESSION, line(1) + &line(3) + &line(5) + &line(7));
    watch.until_kept(4);
    append(&home, SESSION, &line(9));
    watch.until_kept(5);
    watch.stop();
    let generations = (1..6).map(|n| format!("S.jsonl@{n}.zst"));
    let expected: Vec<_> = ["S.jsonl.zst".to_owned()].into_iter().chain(generations).collect();
    assert_eq!(kept_files(&home), expected);
    home.steno(&["verify"]).ok();
}

#[test]
fn a_signal_ends_it_after_what_is_pending() {
    let home = Home::new();
    home.file(SESSION, line(1));
    let watch = Watch::of(home.command(&["watch", "--json", "--debounce", "600000"]));
    append(&home, SESSION, &line(2));
    let (printed, _) = watch.stop();
    assert_eq!(printed["bytes_new"], line(1).len() + line(2).len());
    let sync = home.finish(home.command(&["sync"]), b"");
    assert_eq!(sync.stderr, "nothing new\n");
}

#[test]
fn a_last_line_without_its_newline_is_copied_at_once() {
    let home = Home::new();
    home.file(SESSION, line(1) + line(2).trim_end());
    Watch::start(&home, &[]).stop();
    assert_eq!(home.steno(&["show", ID, "--json"]).stdout.lines().count(), 2);
}

#[test]
fn a_vault_that_is_removed_is_filled_again() {
    let home = Home::new();
    home.file(SESSION, line(1));
    let watch = Watch::start(&home, &[]);
    append(&home, SESSION, &line(2));
    watch.until_kept(2);
    fs::remove_dir_all(home.path().join("store/vault")).unwrap();
    assert_eq!(watch.until_kept(2)["bytes_new"], line(1).len() + line(2).len());
    watch.stop();
    assert_eq!(home.steno(&["list", "--json"]).stdout.lines().count(), 1);
}

#[test]
fn a_synced_session_is_printed_on_one_line() {
    let home = Home::new();
    let mut command = home.command(&["watch", "--debounce", "50", "later"]);
    command.env("STENO_NOW", "2026-01-05T09:15:32Z");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut status = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let waiting = status.next().unwrap();
    assert!(waiting.starts_with("waiting for missing path: "), "{waiting}");
    assert_eq!(status.next().unwrap(), "watching 0 folders, synced 0 sessions");
    home.file("later/s.jsonl", line(1));
    let said = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(said, "09:15:32 claude-code 1b4e28ba  prompt 1  1 entry, 232 bytes new");
}

#[test]
fn looking_at_a_database_is_no_change() {
    let home = Home::new();
    let path = home.file(".local/share/opencode/opencode.db", "");
    let database = Connection::open(path).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    let tables = "CREATE TABLE session(id TEXT, project_id TEXT, parent_id TEXT, title TEXT,
                      directory TEXT, version TEXT, time_created INT, time_updated INT);
                  CREATE TABLE message(id TEXT, session_id TEXT, time_created INT, data TEXT);
                  CREATE TABLE part(id TEXT, message_id TEXT, session_id TEXT, data TEXT);";
    database.execute_batch(tables).unwrap();
    home.file(SESSION, line(1));
    let watch = Watch::start(&home, &[]);
    let session = "INSERT INTO session VALUES('ses_1', 'p', NULL, 't', '/p', '1', 1, 1)";
    database.execute(session, []).unwrap();
    let rounds = 8;
    for n in 2..2 + rounds {
        append(&home, SESSION, &line(n));
        watch.until_kept(n.into());
    }
    let (printed, _) = watch.stop();
    let looks = printed["looks"].as_u64().unwrap();
    // One per line, and at most one for each of the database's files.
    assert!((u64::from(rounds)..=u64::from(rounds) + 3).contains(&looks), "{looks} looks");
}

#[test]
fn a_database_among_other_files_is_followed_by_its_log() {
    let home = Home::new();
    let watch = Watch::start(&home, &[]);
    let file = home.file(".config/Cursor/User/globalStorage/state.vscdb", "");
    let connection = Connection::open(file).unwrap();
    let tables = "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0;
        CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB);";
    connection.execute_batch(tables).unwrap();
    for count in 1..=3 {
        let bubble = serde_json::json!({"type": 1, "text": "hi"});
        let record = serde_json::json!({"name": "N", "conversation": vec![bubble; count]});
        let row = ("composerData:c1", record.to_string());
        connection.execute("REPLACE INTO cursorDiskKV VALUES (?1, ?2)", row).unwrap();
        watch.until_kept(count as u64);
    }
    watch.stop();
}

#[test]
fn the_store_in_a_watched_folder_is_not_looked_at() {
    let home = Home::new();
    let rollout = "work/rollout-2026-01-05T09-15-32-0199a213-81c0-7800-8aa1-bbab2a035a53.jsonl";
    let meta = "{\"timestamp\":\"2026-01-05T09:15:32.000Z\",\"type\":\"session_meta\",\"payload\":\
                {\"id\":\"0199a213-81c0-7800-8aa1-bbab2a035a53\",\"timestamp\":\"2026-01-05T09:15:32.000Z\",\
                \"cwd\":\"/p\",\"originator\":\"codex_cli_rs\",\"cli_version\":\"0.42.0\"}}\n";
    home.file(rollout, meta);
    let watch = Watch::start(&home, &["."]);
    for n in 1..4 {
        append(&home, rollout, "{\"timestamp\":\"2026-01-05T09:15:33.000Z\",\"type\":\"other\"}\n");
        watch.until(|event| event["event"] == "kept" && event["path"].to_string().contains("work"));
        assert!(n < 4);
    }
    let (printed, _) = watch.stop();
    assert_eq!(printed["looks"], 3);
    home.finish(home.command(&["sync", "."]), b"").ok();
    assert_eq!(home.steno(&["list", "--json"]).stdout.lines().count(), 1);
}

#[test]
fn several_watchers_and_sync_do_no_harm() {
    let home = Home::new();
    home.file(SESSION, line(1));
    let watchers = [Watch::start(&home, &[]), Watch::start(&home, &[".claude"])];
    for n in 2..8 {
        append(&home, SESSION, &line(n));
        home.finish(home.command(&["sync"]), b"").ok();
    }
    watchers.into_iter().for_each(|watch| drop(watch.stop()));
    assert_eq!(home.steno(&["show", ID, "--json"]).stdout.lines().count(), 7);
    assert_eq!(kept_files(&home), ["S.jsonl.zst"]);
    home.steno(&["verify"]).ok();
    let sync = home.finish(home.command(&["sync"]), b"");
    assert_eq!(sync.stderr, "nothing new\n");
}

#[test]
fn a_file_and_another_agent_can_be_named() {
    let home = Home::new();
    let path: PathBuf = home.file(SESSION, line(1));
    let file = Watch::start(&home, &[SESSION]);
    let other = Watch::start(&home, &["--agent", "codex", ".claude"]);
    // Replaced under its name.
    let side = home.file("side", line(1) + &line(2));
    fs::rename(side, path).unwrap();
    file.until_kept(2);
    let (printed, _) = other.stop();
    assert_eq!(printed["sessions"], 0);
    file.stop();
}

#[test]
fn without_events_folders_are_polled() {
    let home = Home::new();
    let limited = "echo 0 > /proc/sys/user/max_inotify_watches && exec \"$@\"";
    let steno = env!("CARGO_BIN_EXE_steno");
    let args = ["-r", "sh", "-c", limited, "sh", steno, "watch", "--json", "--debounce", "50"];
    let possible = home.program("unshare", &["-r", "sh", "-c", limited, "sh", "true"]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        eprintln!("the limit of watches cannot be set here: nothing is shown");
        return;
    }
    home.file(SESSION, line(1));
    let watch = Watch::of(home.program("unshare", &args));
    append(&home, SESSION, &line(2));
    watch.until_kept(2);
    let (_, said) = watch.stop();
    assert_eq!(said.matches("warning: ").count(), 1, "{said}");
}
