//! Several sessions in one file: `sync`, `show` and `restore` of databases and logs.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use steno_vault::sealed::SealedFile;

use crate::harness::{Home, Output};

const PLACE: &str = ".local/share/opencode/opencode.db";

/// OpenCode's database with two sessions of one project.
fn opencode(home: &Home) -> Connection {
    let file = home.file(PLACE, "");
    let connection = Connection::open(file).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = wal;
             CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT);
             CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL
                 REFERENCES project(id) ON DELETE CASCADE, directory TEXT, title TEXT, version TEXT,
                 time_created INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL
                 REFERENCES session(id) ON DELETE CASCADE, time_created INTEGER, data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL
                 REFERENCES message(id) ON DELETE CASCADE, session_id TEXT, data TEXT);
             CREATE TABLE account (token TEXT);
             CREATE TABLE migration (id TEXT PRIMARY KEY, time_completed INTEGER);
             INSERT INTO project VALUES ('p', '/p');
             INSERT INTO migration VALUES ('20260101_first', 1);
             INSERT INTO account VALUES ('hush');
             INSERT INTO session VALUES ('ses_1', 'p', '/p', 'One', '1.2.0', 1000),
                 ('ses_2', 'p', '/p', 'Two', '1.2.0', 2000);",
        )
        .unwrap();
    say(&connection, "ses_1", 1, "first");
    say(&connection, "ses_2", 2, "second");
    connection
}

fn say(connection: &Connection, session: &str, n: u32, text: &str) {
    let message = r#"{"role":"user","time":{"created":1000}}"#;
    let insert = "INSERT INTO message VALUES (?1, ?2, ?3, ?4)";
    connection.execute(insert, (format!("msg_{n}"), session, n, message)).unwrap();
    let part = format!(r#"{{"type":"text","text":"{text}"}}"#);
    let insert = "INSERT INTO part VALUES (?1, ?2, ?3, ?4)";
    connection.execute(insert, (format!("prt_{n}"), format!("msg_{n}"), session, part)).unwrap();
}

fn sync(home: &Home) -> Output {
    home.finish(home.command(&["sync", "--json"]), b"")
}

/// Returns the number of sessions that `sync` imported.
fn synced(home: &Home) -> Option<u64> {
    let row = sync(home).ok();
    let row: serde_json::Value = serde_json::from_str(row.lines().next()?).unwrap();
    assert_eq!(row["problems"], 0);
    assert!(row["bytes_kept"].as_u64() > Some(0));
    row["sessions"].as_u64()
}

fn shown(home: &Home, session: &str) -> String {
    home.steno(&["show", session, "--json"]).ok()
}

fn titles(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT title FROM session ORDER BY id").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn rows_are_copied_as_they_come_and_go() {
    let home = Home::new();
    let connection = opencode(&home);
    assert_eq!(synced(&home), Some(2));
    assert_eq!(sync(&home).stdout, "", "nothing new");
    say(&connection, "ses_2", 3, "third");
    let change = r#"UPDATE part SET data = '{"type":"text","text":"changed"}' WHERE id = 'prt_2'"#;
    connection.execute_batch(change).unwrap();
    assert_eq!(synced(&home), Some(1), "only the session that changed");
    let log = home.path().join("store/vault/opencode/ses_2/opencode.db.rows.jsonl.zst");
    let log = unsealed(&log);
    assert!(log.contains("second") && log.contains("changed") && !log.contains("hush"));
    connection.execute_batch("DELETE FROM message WHERE id = 'msg_3'").unwrap();
    assert_eq!(synced(&home), Some(1));
    drop(connection);
    let before = ["ses_1", "ses_2"].map(|id| shown(&home, &format!("{PLACE}#{id}")));
    fs::remove_file(home.path().join(PLACE)).unwrap();
    assert_eq!(["ses_1", "ses_2"].map(|id| shown(&home, id)), before);
    assert!(before[1].contains("changed") && !before[1].contains("third"));
    assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 2);
    assert!(home.steno(&["export", "ses_1", "--format", "md"]).ok().contains("first"));
    home.steno(&["verify"]).ok();
}

/// Returns the content of a sealed file.
fn unsealed(path: &Path) -> String {
    let mut text = String::new();
    SealedFile::open(path).unwrap().reader_from(0).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn importing_keeps_each_session_once() {
    let home = Home::new();
    drop(opencode(&home));
    assert_eq!(home.steno(&["import", PLACE]).ok(), "ses_1\nses_2\n");
    let again = home.steno(&["import", PLACE]);
    assert!(again.stderr.contains("nothing new"), "{again}");
    assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 2);
}

#[test]
fn a_database_that_is_gone_is_made_anew() {
    let home = Home::new();
    drop(opencode(&home));
    synced(&home);
    let before = shown(&home, "ses_1");
    fs::remove_file(home.path().join(PLACE)).unwrap();
    insta::assert_snapshot!(home.steno(&["restore", "ses_1"]), @"
    $HOME/.local/share/opencode/opencode.db
    --- exit 0
    ");
    assert_eq!(shown(&home, &format!("{PLACE}#ses_1")), before);
    let connection = Connection::open(home.path().join(PLACE)).unwrap();
    assert_eq!(titles(&connection), ["One"]);
    let migrations = "SELECT count(*) FROM migration";
    let migrations: i64 = connection.query_row(migrations, [], |row| row.get(0)).unwrap();
    let accounts = "SELECT count(*) FROM account";
    let accounts: i64 = connection.query_row(accounts, [], |row| row.get(0)).unwrap();
    assert_eq!((migrations, accounts), (1, 0), "the tables are there, the secrets are not");
    drop(connection);
    // The second session goes into the database that the first restore created.
    home.steno(&["restore", "ses_2", "--to", "copy"]).ok();
    home.steno(&["restore", "ses_1", "--to", "copy"]).ok();
    let copy = Connection::open(home.path().join("copy/opencode.db")).unwrap();
    assert_eq!(titles(&copy), ["One", "Two"]);
    // None of this is new.
    assert_eq!(sync(&home).stdout, "");
}

#[test]
fn rows_go_back_into_a_database_that_is_used() {
    let home = Home::new();
    let connection = opencode(&home);
    synced(&home);
    connection.execute_batch("DELETE FROM session WHERE id = 'ses_1'").unwrap();
    connection.execute_batch("UPDATE project SET worktree = '/moved'").unwrap();
    home.steno(&["restore", "ses_1"]).ok();
    assert_eq!(titles(&connection), ["One", "Two"]);
    let folder = home.path().join(".local/share/opencode");
    assert!(folder.join("opencode.db.before-restore-1.zst").is_file());
    let there = home.steno(&["restore", "ses_1"]);
    assert!(there.stderr.contains("is up to date"), "{there}");
    assert!(!folder.join("opencode.db.before-restore-2.zst").exists());
    connection.execute_batch("UPDATE session SET title = 'Other' WHERE id = 'ses_1'").unwrap();
    insta::assert_snapshot!(home.steno(&["restore", "ses_1"]), @"
    --- stderr
    error: could not restore the rows into $HOME/.local/share/opencode/opencode.db: a different row exists: session ses_1
    hint: use --force to replace it, or --to DIR
    --- exit 1
    ");
    home.steno(&["restore", "ses_1", "--force"]).ok();
    assert_eq!(titles(&connection), ["One", "Two"]);
    connection.execute_batch("DROP TABLE part").unwrap();
    let refused = home.steno(&["restore", "ses_1", "--force"]);
    assert!(refused.stderr.contains("the database has no such table or column: part"));
    // Neither the copies nor the restored rows are new sessions.
    connection.execute_batch("DROP TABLE message").unwrap();
    sync(&home);
    assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 2);
}

#[test]
fn rows_of_another_session_are_not_replaced_by_force() {
    let home = Home::new();
    let connection = opencode(&home);
    synced(&home);
    connection.execute_batch("DELETE FROM session WHERE id = 'ses_1'").unwrap();
    // The agent used the id for a message of another session.
    connection
        .execute_batch(
            "PRAGMA foreign_keys = off; UPDATE message SET id = 'msg_1' WHERE id = 'msg_2'",
        )
        .unwrap();
    insta::assert_snapshot!(home.steno(&["restore", "ses_1", "--force"]), @"
    --- stderr
    error: could not restore the rows into $HOME/.local/share/opencode/opencode.db: the row belongs to another session: message msg_1
    hint: use --to DIR to restore to another folder
    --- exit 1
    ");
    assert_eq!(titles(&connection), ["Two"]);
    let owner = "SELECT session_id FROM message WHERE id = 'msg_1'";
    let owner: String = connection.query_row(owner, [], |row| row.get(0)).unwrap();
    assert_eq!(owner, "ses_2");
    home.steno(&["restore", "ses_1", "--to", "copy"]).ok();
}

#[test]
fn a_log_without_its_database_is_in_the_way() {
    let home = Home::new();
    drop(opencode(&home));
    synced(&home);
    fs::remove_file(home.path().join(PLACE)).unwrap();
    home.file(&format!("{PLACE}-wal"), "rows of another");
    let refused = home.steno(&["restore", "ses_1"]);
    assert!(refused.stderr.contains("opencode.db-wal"), "{refused}");
    assert!(!home.path().join(PLACE).exists());
}

fn call(id: u32, trace: &str) -> String {
    format!(
        r#"{{"id":"{id}","trace_id":"{trace}","call_type":"acompletion","response_cost":0.25,"status":"success","model":"m","startTime":1767603600.5,"endTime":1767603601.0,"prompt_tokens":7,"completion_tokens":3,"messages":[{{"role":"user","content":"say {id}"}}],"response":{{"id":"r{id}","choices":[{{"index":0,"message":{{"role":"assistant","content":"said {id}"}}}}]}}}}"#
    ) + "\n"
}

fn sizes(home: &Home, session: &str) -> u64 {
    let folder = home.path().join("store/vault/litellm").join(session);
    let files = fs::read_dir(folder).unwrap().flatten();
    files.map(|file| file.metadata().unwrap().len()).sum()
}

#[test]
fn a_file_with_several_sessions_is_stored_once() {
    let home = Home::new();
    let calls = call(1, "t1") + &call(2, "t2") + &call(3, "t1");
    let file: PathBuf = home.file("logs/calls.jsonl", &calls);
    home.finish(home.command(&["sync", "logs"]), b"").ok();
    assert!(sizes(&home, "t2") < sizes(&home, "t1"));
    home.file("logs/calls.jsonl", calls.clone() + &call(4, "t2"));
    home.finish(home.command(&["sync", "logs"]), b"").ok();
    let names = ["logs/calls.jsonl#t1", "logs/calls.jsonl#t2"];
    let before = names.map(|name| shown(&home, name));
    fs::remove_file(&file).unwrap();
    assert_eq!(["t1", "t2"].map(|id| shown(&home, id)), before);
    assert!(before[1].contains("said 4") && !before[1].contains("said 3"));
    home.steno(&["restore", "t2", "--to", "logs"]).ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), calls + &call(4, "t2"));
    home.steno(&["verify"]).ok();
    fs::remove_dir_all(home.path().join("store/vault/litellm/t1")).unwrap();
    let damaged = home.steno(&["verify"]);
    assert_eq!(damaged.code, 1);
    assert!(damaged.stdout.contains("the file is kept with t1, where it is missing"), "{damaged}");
}

#[test]
fn a_log_that_is_rotated_costs_no_session() {
    let home = Home::new();
    let sync = |calls: &[String]| {
        home.file("logs/calls.jsonl", calls.concat());
        home.finish(home.command(&["sync", "logs"]), b"").ok();
    };
    let said = |session: &str| -> Vec<String> {
        let shown = shown(&home, session);
        let answers = shown.split("said ").skip(1).map(|rest| rest[..1].to_owned());
        answers.collect()
    };
    sync(&[call(1, "t1"), call(2, "t2"), call(3, "t3")]);
    // The session that holds the shared file grows, and one that only refers to it.
    sync(&[call(4, "t1"), call(5, "t3")]);
    assert_eq!(["t1", "t2", "t3"].map(said), [vec!["1", "4"], vec!["2"], vec!["3", "5"]]);
    // Now the holder is not among them.
    sync(&[call(6, "t2"), call(7, "t3")]);
    sync(&[call(6, "t2"), call(7, "t3"), call(8, "t3")]);
    let all = [vec!["1", "4"], vec!["2", "6"], vec!["3", "5", "7", "8"]];
    assert_eq!(["t1", "t2", "t3"].map(said), all);
    assert!(home.steno(&["search", "said"]).ok().contains("said 5"));
    home.steno(&["verify"]).ok();
    home.steno(&["restore", "t1", "--to", "copy"]).ok();
    let copy = fs::read_to_string(home.path().join("copy/calls.jsonl")).unwrap();
    assert_eq!(copy, call(4, "t1") + &call(5, "t3"));
    assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 3);
}

#[test]
fn a_tree_of_files_is_copied_with_its_name() {
    let home = Home::new();
    let base = ".local/share/opencode/storage";
    for n in 1..3 {
        let info =
            format!(r#"{{"id":"ses_{n}","title":"T{n}","version":"1","time":{{"created":{n}}}}}"#);
        home.file(&format!("{base}/session/p/ses_{n}.json"), info);
        let message = format!(r#"{{"id":"msg_{n}","role":"user","time":{{"created":{n}}}}}"#);
        home.file(&format!("{base}/message/ses_{n}/msg_{n}.json"), message);
        let part = format!(r#"{{"id":"prt_{n}","type":"text","text":"hello {n}"}}"#);
        home.file(&format!("{base}/part/msg_{n}/prt_{n}.json"), part);
    }
    let others = ["project/p.json", "migration", "session_diff/ses_1.json", "part/prt_9.json"];
    for name in others {
        let part =
            r#"{"id":"prt_9","type":"text","text":"flat","sessionID":"ses_2","messageID":"msg_2"}"#;
        home.file(&format!("{base}/{name}"), part);
    }
    assert_eq!(synced(&home), Some(2));
    let before = ["ses_1", "ses_2"].map(|id| shown(&home, id));
    assert!(before[1].contains("flat"));
    assert!(before[0].contains("hello 1") && !before[0].contains("hello 2"));
    fs::remove_dir_all(home.path().join(base)).unwrap();
    home.steno(&["restore", "ses_1"]).ok();
    let part = fs::read_to_string(home.path().join(base).join("part/msg_1/prt_1.json")).unwrap();
    assert!(part.contains("hello 1"));
    home.steno(&["restore", "ses_2"]).ok();
    for name in others {
        assert!(home.path().join(base).join(name).is_file(), "{name}");
    }
}
