use proptest::prelude::*;
use rusqlite::Connection;
use std::path::Path;

use super::*;
use crate::decoding::temporary_vault;
use crate::reader;
use steno_model::entry::EntryKind;
use steno_model::session::Transcript;
use steno_vault::SessionFile;

const HEAD: &str = r#"{"working_dir":"/p","description":"Count","message_count":2,"accumulated_input_tokens":7,"accumulated_output_tokens":3}"#;

const PROMPT: &str =
    r#"[{"type":"text","text":"hi"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}]"#;

const ANSWER: &str = r#"[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"toolRequest","id":"t1","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"ls"}}}},{"type":"toolRequest","id":"t2","toolCall":{"status":"error","error":"bad"}},{"type":"novelty"}]"#;

const RESULTS: &str = r#"[{"type":"toolResponse","id":"t1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"a"}],"isError":true}}},{"type":"toolResponse","id":"t2","toolResult":{"status":"success","value":[{"type":"text","text":"b"}]}},{"type":"toolResponse","id":"t3","toolResult":{"status":"error","error":"no"}}]"#;

const HIDDEN: &str =
    r#"[{"type":"text","text":"summary"},{"type":"conversationCompacted","msg":"done"}]"#;

const MESSAGES: [(&str, &str); 4] =
    [("user", PROMPT), ("assistant", ANSWER), ("user", RESULTS), ("user", HIDDEN)];

fn file() -> String {
    let mut lines = vec![HEAD.to_owned()];
    for (role, content) in MESSAGES {
        let visible = content != HIDDEN;
        lines.push(format!(
            r#"{{"role":"{role}","created":1000,"content":{content},"metadata":{{"userVisible":{visible}}}}}"#
        ));
    }
    lines.join("\n") + "\n"
}

fn from_bytes(bytes: &[u8]) -> Result<Transcript, FormatError> {
    let source = SessionFile::in_memory("20250101_1.jsonl", "20250101_1.jsonl", bytes.to_vec());
    reader::read_transcript(&READER, &SessionBundle::new("x", vec![source]))
}

fn database(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    let tables = "
        CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT, working_dir TEXT,
            created_at TIMESTAMP, input_tokens INTEGER, accumulated_input_tokens INTEGER,
            accumulated_output_tokens INTEGER, model_config_json TEXT);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,
            content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
        INSERT INTO sessions VALUES ('20250101_1', 'Count', '/p', '2025-01-01 00:00:00', 1, 7, 3,
            '{\"model_name\":\"m1\"}');";
    connection.execute_batch(tables).unwrap();
    for (role, content) in MESSAGES {
        let insert = "INSERT INTO messages (session_id, role, content_json, created_timestamp,
            metadata_json) VALUES ('20250101_1', ?1, ?2, 1000, ?3)";
        let metadata = format!(r#"{{"userVisible":{}}}"#, content != HIDDEN);
        connection.execute(insert, (role, content, metadata)).unwrap();
    }
    connection
}

#[test]
fn content_becomes_entries() {
    let transcript = from_bytes(file().as_bytes()).unwrap();
    let entries = &transcript.entries;
    let kinds: Vec<_> = entries.iter().map(|e| (e.role.as_str(), e.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("user", EntryKind::Text),
            ("user", EntryKind::Notice),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("assistant", EntryKind::ToolCall),
            ("system", EntryKind::Other),
            ("tool", EntryKind::ToolResult),
            ("tool", EntryKind::ToolResult),
            ("tool", EntryKind::ToolResult),
            ("user", EntryKind::Notice),
            ("system", EntryKind::Compaction),
        ]
    );
    let results: Vec<_> = entries[6..9]
        .iter()
        .map(|entry| (entry.content.as_str(), entry.metadata.is_some()))
        .collect();
    assert_eq!(results, [("a", true), ("b", false), ("no", true)]);
    let session = &transcript.session;
    assert_eq!(session.title.as_deref(), Some("Count"));
    assert_eq!((session.totals.usage.input, session.totals.usage.output), (7, 3));
}

#[test]
fn the_database_reads_like_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    database(&path);
    let bundles = READER.find_at(folder.path()).unwrap();
    assert_eq!(bundles[0].key.as_deref(), Some("20250101_1"));
    let got = reader::read_transcript(&READER, &bundles[0]).unwrap();
    let wanted = from_bytes(file().as_bytes()).unwrap();
    let contents = |transcript: &Transcript| -> Vec<_> {
        transcript.entries.iter().map(|e| (e.kind, e.content.clone(), e.created_at)).collect()
    };
    assert_eq!(contents(&got), contents(&wanted));
    assert_eq!(got.session.totals.usage, wanted.session.totals.usage);
    assert_eq!(got.session.models, ["m1"]);
}

#[test]
fn bad_rows_and_lines_cost_only_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    database(&path).execute("UPDATE messages SET content_json = '[' WHERE id = 2", []).unwrap();
    let transcript = reader::read_transcript(&READER, &READER.find_at(&path).unwrap()[0]).unwrap();
    assert!(transcript.problems[0].reason.starts_with("message 2: not JSON"));
    let torn = file().replace("\"role\":\"assistant\"", "\"role\":");
    let transcript = from_bytes(torn.as_bytes()).unwrap();
    assert_eq!(transcript.problems[0].line, Some(3));
    assert_eq!(transcript.entries.len(), 7);
}

#[test]
fn files_are_known_by_their_first_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), file()).unwrap();
    std::fs::write(folder.path().join("b.jsonl"), "{\"role\":\"user\"}\n").unwrap();
    assert_eq!(READER.find_at(folder.path()).unwrap().len(), 1);
}

#[test]
fn a_torn_file_is_read_to_its_tear() {
    let whole = file();
    for length in 1..whole.len() {
        let _ = from_bytes(&whole.as_bytes()[..length]);
    }
}

#[test]
fn kept_rows_read_as_the_database_did() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sessions.db");
    database(&file);
    assert_eq!(temporary_vault::check_kept_sessions(&READER, &file), 1);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = from_bytes(&bytes);
        let _ = from_bytes(&[HEAD.as_bytes(), b"\n", bytes.as_slice()].concat());
    }
}
