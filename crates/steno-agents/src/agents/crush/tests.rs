use std::fs;
use std::path::Path;

use proptest::prelude::*;
use rusqlite::Connection;

use super::*;
use crate::decoding::temporary_vault;
use crate::{reader, registry};
use steno_model::session::Transcript;

const TABLES: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
        prompt_tokens INTEGER, cost REAL, created_at INTEGER, summary_message_id TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT,
        model TEXT, created_at INTEGER);
    INSERT INTO sessions VALUES ('s1', NULL, 'First', 100, 0.5, 1000, 'm4');
    INSERT INTO sessions VALUES ('s2', 's1', 'Second', 0, 0, 2000, NULL);";

const MESSAGES: [(&str, &str, &str); 4] = [
    ("m1", "user", r#"[{"type":"text","data":{"text":"hi"}},{"type":"finish","data":{}}]"#),
    (
        "m2",
        "assistant",
        r#"[{"type":"reasoning","data":{"thinking":"hm"}},
            {"type":"tool_call","data":{"id":"c1","name":"ls","input":"{\"path\":\"/\"}"}},
            {"type":"tool_call","data":{"id":"c2","name":"ls","input":"{\"pa"}},
            {"type":"shell_command","data":{"command":"ls"}}]"#,
    ),
    (
        "m3",
        "tool",
        r#"[{"type":"tool_result","data":{"tool_call_id":"c1","content":"no","is_error":true}}]"#,
    ),
    (
        "m4",
        "assistant",
        r#"[{"type":"finish","data":{"reason":"error","message":"API","details":"400"}}]"#,
    ),
];

fn made(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(TABLES).unwrap();
    for (id, role, parts) in MESSAGES {
        let insert = "INSERT INTO messages VALUES (?1, 's1', ?2, ?3, 'gpt', 1000)";
        connection.execute(insert, (id, role, parts)).unwrap();
    }
    connection
}

fn first(path: &Path) -> Transcript {
    reader::read_transcript(&READER, &READER.find_at(path).unwrap()[0]).unwrap()
}

#[test]
fn parts_become_entries() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crush.db");
    made(&file);
    let transcript = first(&file);
    let kinds: Vec<_> = transcript.entries.iter().map(|e| (e.role.as_str(), e.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("user", EntryKind::Text),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("assistant", EntryKind::ToolCall),
            ("system", EntryKind::Other),
            ("tool", EntryKind::ToolResult),
            ("assistant", EntryKind::Text),
            ("system", EntryKind::Compaction),
            ("assistant", EntryKind::Error),
        ]
    );
    assert_eq!(transcript.entries[2].tool_input.as_ref().unwrap()["path"], "/");
    assert_eq!(transcript.entries[3].tool_input.as_ref().unwrap(), "{\"pa");
    assert_eq!(transcript.entries[8].content, "API: 400");
    assert_eq!(transcript.session.started.unwrap().unix_seconds(), 1000);
    assert_eq!(transcript.session.totals.cost, Some(0.5));
    assert_eq!(transcript.session.extra["prompt_tokens"], 100);
}

#[test]
fn a_database_holds_several_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crush.db");
    made(&file);
    let found = registry::find_sessions(&file).unwrap();
    let keys: Vec<_> = found.iter().map(|found| found.bundle.key.clone().unwrap()).collect();
    assert_eq!(keys, ["s1", "s2"]);
    let second = found[1].read_transcript().unwrap();
    assert_eq!(second.session.parent.as_deref(), Some("s1"));
    assert!(second.entries.is_empty());
    let unnamed = SessionBundle { key: None, ..found[0].bundle.clone() };
    assert!(reader::read_transcript(&READER, &unnamed).is_err());
}

#[test]
fn one_bad_row_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crush.db");
    let connection = made(&file);
    connection.execute("UPDATE messages SET parts = '[{' WHERE id = 'm1'", []).unwrap();
    let transcript = first(&file);
    assert!(transcript.problems[0].reason.starts_with("message m1: not JSON"));
    assert_eq!(transcript.entries.len(), 8);
}

#[test]
fn kept_rows_read_as_the_database_did() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crush.db");
    made(&file);
    assert_eq!(temporary_vault::check_kept_sessions(&READER, &file), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_parts_are_read(parts: Vec<u8>, kind in "text|tool_call|finish|binary|x") {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("crush.db");
        let connection = made(&file);
        let typed = format!(r#"[{{"type":"{kind}","data":{}}}, 5, "x"]"#, parts.len());
        let update = "UPDATE messages SET parts = ?1 WHERE id = ?2";
        connection.execute(update, (parts, "m1")).unwrap();
        connection.execute(update, (typed, "m2")).unwrap();
        first(&file);
    }

    #[test]
    fn damaged_databases_are_errors(at in 100usize..16384, byte: u8, cut in 0usize..16384) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("crush.db");
        drop(made(&file));
        let mut bytes = fs::read(&file).unwrap();
        bytes.truncate(bytes.len().saturating_sub(cut / 8));
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        fs::write(&file, bytes).unwrap();
        for bundle in READER.find_at(&file).unwrap() {
            let _ = reader::read_transcript(&READER, &bundle);
        }
    }
}
