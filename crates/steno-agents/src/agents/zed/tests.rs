use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::json;

use super::*;
use crate::decoding::temporary_vault;
use crate::reader;
use steno_model::entry::EntryKind;
use steno_model::session::Transcript;

fn thread() -> Value {
    json!({
        "version": "0.3.0",
        "messages": [
            {"User": {"id": "u1", "content": [
                {"Text": "rename"},
                {"Mention": {"uri": {"File": {"abs_path": "/a"}}, "content": "fn a"}},
                {"Image": {"source": "aGVsbG8=", "size": null}},
            ]}},
            {"Agent": {"content": [
                {"Thinking": {"text": "hm", "signature": null}},
                {"ToolUse": {"id": "t1", "name": "edit", "input": {"path": "a"}}},
                {"Text": "done"},
                {"Novelty": 1},
            ], "tool_results": {
                "t1": {"tool_name": "edit", "is_error": true, "content": {"Text": "no"}},
                "t0": {"tool_name": "edit", "is_error": false, "content": [{"Text": "lost"}]},
            }}},
            "Resume",
            {"Compaction": {"Summary": "short"}},
            {"Agent": {"content": [], "tool_results": {}}},
            17,
        ],
        "cumulative_token_usage": {"input_tokens": 9, "output_tokens": 6,
            "cache_read_input_tokens": 50},
        "model": {"provider": "acme", "model": "m1"},
    })
}

fn from_row(kind: &str, data: &[u8]) -> Transcript {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path(), kind, data);
    reader::read_transcript(&READER, &READER.find_at(folder.path()).unwrap()[0]).unwrap()
}

fn database(folder: &Path, kind: &str, data: &[u8]) -> PathBuf {
    let file = folder.join("threads.db");
    let connection = Connection::open(&file).unwrap();
    let table = "CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT,
        data_type TEXT, data BLOB, folder_paths TEXT)";
    connection.execute_batch(table).unwrap();
    let insert = "INSERT INTO threads VALUES ('t', 'Title', '2026-02-01T10:00:00Z', ?1, ?2, ?3)";
    connection.execute(insert, (kind, data, "/home/u/p\n/home/u/q")).unwrap();
    file
}

fn kinds(transcript: &Transcript) -> Vec<(&str, EntryKind)> {
    transcript.entries.iter().map(|entry| (entry.role.as_str(), entry.kind)).collect()
}

#[test]
fn messages_become_entries() {
    let transcript = from_row("json", thread().to_string().as_bytes());
    assert_eq!(
        kinds(&transcript),
        [
            ("user", EntryKind::Text),
            ("user", EntryKind::Notice),
            ("user", EntryKind::Notice),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("assistant", EntryKind::Text),
            ("system", EntryKind::Other),
            ("tool", EntryKind::ToolResult),
            ("user", EntryKind::Notice),
            ("system", EntryKind::Compaction),
            ("assistant", EntryKind::Text),
            ("system", EntryKind::Other),
        ]
    );
    assert_eq!(transcript.entries[5].content, "no");
    assert_eq!(transcript.entries[8].content, "lost");
    assert_eq!(transcript.entries[10].content, "short");
    assert_eq!(transcript.entries[3].message_id, transcript.entries[6].message_id);
    assert_ne!(transcript.entries[3].message_id, transcript.entries[11].message_id);
    let session = &transcript.session;
    assert_eq!(session.title.as_deref(), Some("Title"));
    assert_eq!(session.project.as_deref(), Some("/home/u/p"));
    assert_eq!(session.models, ["m1"]);
    assert_eq!(session.totals.usage.cache_read, 50);
}

#[test]
fn packed_threads_are_unpacked() {
    let packed = zstd::encode_all(thread().to_string().as_bytes(), 3).unwrap();
    let (plain, packed) = (thread().to_string(), from_row("zstd", &packed));
    assert_eq!(packed.entries, from_row("json", plain.as_bytes()).entries);
}

#[test]
fn older_messages_are_read() {
    let thread = json!({"version": "0.2.0", "messages": [
        {"id": 0, "role": "user", "segments": [{"type": "text", "text": "hi"}]},
        {"id": 1, "role": "assistant", "segments": [{"type": "thinking", "text": "hm"}],
            "tool_uses": [{"id": "t", "name": "ls", "input": {}}]},
        {"id": 2, "role": "user", "is_hidden": true, "segments": [{"type": "text", "text": "x"}],
            "tool_results": [{"tool_use_id": "t", "is_error": false, "content": "a"}]},
    ]});
    assert_eq!(
        kinds(&from_row("json", thread.to_string().as_bytes())),
        [
            ("user", EntryKind::Text),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("user", EntryKind::Notice),
        ]
    );
}

#[test]
fn a_bad_thread_is_a_problem() {
    for (kind, data) in [("zstd", "{}"), ("json", "{"), ("new", "{}")] {
        assert_eq!(from_row(kind, data.as_bytes()).problems.len(), 1, "{kind}");
    }
}

#[test]
fn kept_rows_read_as_the_database_did() {
    let folder = tempfile::tempdir().unwrap();
    let packed = zstd::encode_all(thread().to_string().as_bytes(), 3).unwrap();
    assert_eq!(
        temporary_vault::check_kept_sessions(&READER, &database(folder.path(), "zstd", &packed)),
        1
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_thread_is_read(bytes: Vec<u8>, length in 0usize..900) {
        from_row("zstd", &bytes);
        let text = thread().to_string();
        from_row("json", &text.as_bytes()[..length.min(text.len())]);
    }
}
