//! Where `steno sync` finds sessions: in project folders, and in databases among other files.

use std::fs;

use rusqlite::Connection;

use crate::harness::Home;

const CLAUDE: &str = r#"{"type":"user","uuid":"u","parentUuid":null,"isSidechain":false,"cwd":"$P","sessionId":"1b4e28ba-2fa1-41d2-883f-0016d3cca427","version":"2.1.0","timestamp":"2026-01-05T09:15:31.000Z","message":{"role":"user","content":"Fix it"}}
"#;
const AIDER: &str = "\n# aider chat started at 2026-01-01 00:00:00\n\n#### Fix it  \n\nDone.\n";
const CRUSH: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, cost REAL,
        created_at INTEGER);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, model TEXT,
        created_at INTEGER);";

fn crush(home: &Home, name: &str, session: &str) {
    let connection = Connection::open(home.file(name, "")).unwrap();
    connection.execute_batch(CRUSH).unwrap();
    connection.execute("INSERT INTO sessions VALUES (?1, NULL, 'T', 0, 1000)", [session]).unwrap();
}

fn sync(home: &Home, args: &[&str]) -> String {
    home.finish(home.command(&[&["sync"], args].concat()), b"").ok()
}

fn agents(home: &Home) -> Vec<String> {
    let mut agents: Vec<String> =
        home.vault().list_sessions().unwrap().iter().map(|dir| dir.agent().to_owned()).collect();
    agents.sort();
    agents
}

#[test]
fn projects_that_are_known_are_looked_at() {
    let home = Home::new();
    let project = home.path().join("work/birds");
    home.file("work/birds/.git/config", "[remote \"origin\"]\n\turl = https://x.org/birds.git\n");
    home.file("work/birds/.aider.chat.history.md", AIDER);
    home.file("work/unknown/.aider.chat.history.md", AIDER);
    crush(&home, "work/birds/.crush/crush.db", "s1");
    crush(&home, "elsewhere/crush.db", "s2");
    let [path, data] = ["work/noted", "elsewhere"].map(|name| home.path().join(name));
    let noted = serde_json::json!({"projects": [{"path": path, "data_dir": data,
        "last_accessed": "2026-01-01T00:00:00Z"}]});
    home.file(".local/share/crush/projects.json", noted.to_string());
    sync(&home, &[]);
    assert_eq!(agents(&home), ["crush"], "only the one that Crush has noted");
    let session = ".claude/projects/-p/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl";
    home.file(session, CLAUDE.replace("$P", &project.display().to_string()));
    sync(&home, &["--agent", "claude-code"]);
    assert_eq!(agents(&home), ["claude-code", "crush"]);
    fs::remove_dir_all(home.path().join("store")).unwrap();
    sync(&home, &[]);
    assert_eq!(agents(&home), ["aider", "claude-code", "crush", "crush"], "in one run");
    assert_eq!(sync(&home, &[]), "");
}

#[test]
fn the_database_of_an_editor_is_seen_with_its_log() {
    let home = Home::new();
    let file = home.file(".config/Cursor/User/globalStorage/state.vscdb", "");
    home.file(".config/Cursor/User/globalStorage/some.extension/x.jsonl", CLAUDE);
    let connection = Connection::open(file).unwrap();
    let tables = "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0;
        CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB);
        CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB);";
    connection.execute_batch(tables).unwrap();
    let say = |id: &str, text: &str| {
        let record = serde_json::json!({"name": "Birds", "conversation":
            [{"bubbleId": "b1", "type": 1, "text": text}]});
        let row = (format!("composerData:{id}"), record.to_string());
        connection.execute("INSERT INTO cursorDiskKV VALUES (?1, ?2)", row).unwrap();
    };
    say("first", "one");
    sync(&home, &["--agent", "cursor"]);
    assert_eq!(agents(&home), ["cursor"]);
    say("second", "two");
    sync(&home, &[]);
    assert_eq!(agents(&home), ["cursor", "cursor"], "and nothing of other extensions");
    assert_eq!(sync(&home, &[]), "");
    say("third", "three");
    sync(&home, &[".config/Cursor/User/globalStorage/state.vscdb-wal"]);
    assert_eq!(agents(&home).len(), 3, "a log alone tells nothing, so its database was looked at");
}
