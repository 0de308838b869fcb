use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::decoding::large;
use crate::{reader, registry};
use steno_model::entry::EntryKind;
use steno_model::session::Transcript;

const DOCUMENT: &str = r#"{"version":3,"creationDate":1762576472674,"responderUsername":"GitHub Copilot","initialLocation":"panel","sessionId":"s","customTitle":"Rust","requests":[
{"requestId":"r","timestamp":1762576780191,"modelId":"copilot/x","responseId":"a","message":{"text":"Rewrite"},"response":[{"kind":"thinking","value":"plan"},{"kind":"toolInvocationSerialized","toolCallId":"shown-1","toolId":"copilot_readFile"},{"value":"See "},{"kind":"inlineReference","inlineReference":{"path":"/p/main.rs"}},{"value":"."},{"kind":"undoStop"},{"kind":"dream"}],
"result":{"errorDetails":{"message":"cut"},"metadata":{"toolCallRounds":[{"toolCalls":[{"id":"c","name":"read_file","arguments":"{\"filePath\":\"main.rs\"}"}]}],"toolCallResults":{"c":{"content":[{"value":"fn main(){}"}]}}}}}]}"#;

fn bundle(name: &str, text: &[u8]) -> SessionBundle {
    SessionBundle::new(name, vec![SessionFile::in_memory(name, name, text.to_vec())])
}

fn log() -> String {
    let first = DOCUMENT.replace('\n', "").replace("\"customTitle\":\"Rust\",", "");
    let changes = [
        r#"{"kind":1,"k":["customTitle"],"v":"Rust"}"#,
        r#"{"kind":2,"k":["requests"],"v":[{"requestId":"r2","timestamp":1762576890000,"message":{"text":"Tests"},"response":[{"value":"partial"}]}]}"#,
        r#"{"kind":2,"k":["requests",1,"response"],"v":[{"value":"Added."}],"i":0}"#,
        r#"{"kind":1,"k":["requests",1,"draft"],"v":1}"#,
        r#"{"kind":3,"k":["requests",1,"draft"]}"#,
        r#"{"kind":1,"k":["requests",7,"x"],"v":1}"#,
        r#"{"kind":9}"#,
    ];
    format!("{{\"kind\":0,\"v\":{first}}}\n{}\n", changes.join("\n"))
}

fn summarize(transcript: &Transcript) -> Vec<(&str, EntryKind)> {
    transcript.entries.iter().map(|entry| (entry.role.as_str(), entry.kind)).collect()
}

const EXPECTED_ENTRIES: [(&str, EntryKind); 7] = [
    ("user", EntryKind::Text),
    ("assistant", EntryKind::Thinking),
    ("assistant", EntryKind::ToolCall),
    ("tool", EntryKind::ToolResult),
    ("assistant", EntryKind::Text),
    ("system", EntryKind::Other),
    ("system", EntryKind::Error),
];

#[test]
fn reads_a_document() {
    let transcript =
        reader::read_transcript(&READER, &bundle("s.json", DOCUMENT.as_bytes())).unwrap();
    assert_eq!(summarize(&transcript), EXPECTED_ENTRIES);
    assert_eq!(transcript.entries[2].tool_input.as_ref().unwrap()["filePath"], "main.rs");
    assert_eq!(transcript.entries[3].content, "fn main(){}");
    assert_eq!(transcript.entries[4].content, "See `main.rs`.");
    assert_eq!(transcript.session.title.as_deref(), Some("Rust"));
    assert_eq!(transcript.session.models, ["copilot/x"]);
}

#[test]
fn content_decides_between_log_and_document_not_the_name() {
    for name in ["full.jsonl", "chat.txt", "chat.json"] {
        let document =
            reader::read_transcript(&READER, &bundle(name, DOCUMENT.as_bytes())).unwrap();
        assert_eq!(summarize(&document), EXPECTED_ENTRIES, "{name}");
        let replayed = reader::read_transcript(&READER, &bundle(name, log().as_bytes())).unwrap();
        assert_eq!(replayed.entries.len(), 9, "{name}");
    }
}

#[test]
fn a_log_of_changes_is_replayed() {
    let transcript =
        reader::read_transcript(&READER, &bundle("s.jsonl", log().as_bytes())).unwrap();
    assert_eq!(summarize(&transcript)[..7], EXPECTED_ENTRIES);
    assert_eq!(transcript.entries[8].content, "Added.");
    assert_eq!(transcript.entries.len(), 9);
    assert_eq!(transcript.session.title.as_deref(), Some("Rust"));
    assert_eq!(transcript.session.ended.unwrap().to_string(), "2025-11-08T04:41:30.000Z");
    assert_eq!(transcript.problems.len(), 2);
}

#[test]
fn a_log_larger_than_may_be_held_is_read() {
    let mut text = log();
    for number in 2..11 {
        let change = json!({"kind": 1, "k": ["requests", 1, "draft"], "v": "~"});
        let request = json!({"kind": 2, "k": ["requests"], "v": [{"requestId": number}]});
        text += &format!("{change}\n{request}\n");
    }
    let deleted =
        [json!({"kind": 3, "k": ["requests", 5]}), json!({"kind": 2, "k": ["requests"], "i": 8})];
    deleted.iter().for_each(|change| text += &format!("{change}\n"));
    let (session, kinds, problems) =
        large::read_large(&READER, large::large_source("s.jsonl", &text));
    let small = reader::read_transcript(&READER, &bundle("s.jsonl", text.as_bytes())).unwrap();
    assert_eq!((kinds.len(), problems), (small.entries.len(), 2));
    assert_eq!((session.title, small.entries.len()), (small.session.title, 15));
}

#[test]
fn reads_an_endlessly_growing_request_as_it_was() {
    let mut text = log();
    for _ in 0..60 {
        let more = json!({"kind": 2, "k": ["requests", 1, "response"], "v": [{"value": "~"}]});
        text += &format!("{more}\n");
    }
    text += &format!("{}\n", json!({"kind": 2, "k": ["requests"], "v": [{"requestId": "z"}]}));
    let (_, kinds, problems) = large::read_large(&READER, large::large_source("s.jsonl", &text));
    assert_eq!((kinds.len(), problems), (10, 3));
}

#[test]
fn shown_calls_count_without_a_round() {
    let shown = DOCUMENT.replace("toolCallRounds", "other");
    let transcript = reader::read_transcript(&READER, &bundle("s.json", shown.as_bytes())).unwrap();
    assert_eq!(transcript.entries[2].tool_call_id.as_deref(), Some("shown-1"));
}

#[test]
fn a_chat_is_found_with_its_older_copy_and_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let chats = dir.path().join("abc/chatSessions");
    std::fs::create_dir_all(&chats).unwrap();
    std::fs::write(chats.join("s.json"), DOCUMENT).unwrap();
    std::fs::write(chats.join("s.jsonl"), log()).unwrap();
    std::fs::write(dir.path().join("abc/workspace.json"), r#"{"folder":"file:///p"}"#).unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    let names: Vec<_> = found[0].files.iter().map(SessionFile::name).collect();
    assert_eq!((found.len(), names), (1, vec!["s.jsonl", "s.json", "workspace.json"]));
    let transcript = reader::read_transcript(&READER, &found[0]).unwrap();
    assert_eq!(transcript.entries.len(), 9);
    assert_eq!(transcript.session.project.as_deref(), Some("/p"));
}

#[test]
fn every_cut_can_be_read() {
    let log = log();
    for end in 0..log.len() {
        reader::read_transcript(&READER, &bundle("s.jsonl", &log.as_bytes()[..end])).unwrap();
    }
    for end in 0..DOCUMENT.len() {
        reader::read_transcript(&READER, &bundle("s.json", &DOCUMENT.as_bytes()[..end])).unwrap();
    }
}

proptest! {
    #[test]
    fn any_change_can_be_applied(
        kind in 0..5,
        path in "(\"a\"|\"requests\"|0|1|-1|99|null)(,(\"a\"|0|\\[\\]))?",
        index in "[0-9]{1,20}",
    ) {
        let text = format!("{}{{\"kind\":{kind},\"k\":[{path}],\"v\":[{{}}],\"i\":{index}}}\n", log());
        reader::read_transcript(&READER, &bundle("s.jsonl", text.as_bytes())).unwrap();
    }

    #[test]
    fn any_bytes_can_be_read(bytes: Vec<u8>) {
        reader::read_transcript(&READER, &bundle("s.jsonl", &bytes)).unwrap();
    }
}

/// A workspace folder with two chats in its database, one of them moved to a file.
fn workspace_of_2025(folder: &std::path::Path) -> std::path::PathBuf {
    let file = folder.join("state.vscdb");
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute_batch("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)").unwrap();
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let mut moved = document.clone();
    moved["sessionId"] = "moved".into();
    let chats = serde_json::to_string(&[&document, &moved]).unwrap();
    let insert = "INSERT INTO ItemTable VALUES ('interactive.sessions', ?1)";
    connection.execute(insert, [chats]).unwrap();
    std::fs::create_dir(folder.join("chatSessions")).unwrap();
    std::fs::write(folder.join("chatSessions/moved.json"), moved.to_string()).unwrap();
    std::fs::write(folder.join(WORKSPACE_FILE), r#"{"folder":"file:///p"}"#).unwrap();
    file
}

#[test]
fn chats_in_the_database_read_as_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = workspace_of_2025(folder.path());
    let found = registry::find_sessions(folder.path()).unwrap();
    assert_eq!(found.len(), 2, "a moved chat is read from its file only");
    let [moved, stored] = [0, 1].map(|index| found[index].read_transcript().unwrap());
    assert_eq!(stored.session.native_id.as_deref(), Some("s"));
    assert_eq!(stored.session.title, moved.session.title);
    assert_eq!(stored.session.project.as_deref(), Some("/p"));
    assert_eq!(stored.session.started, moved.session.started);
    let summarize = |transcript: &Transcript| -> Vec<_> {
        transcript.entries.iter().map(|entry| (entry.kind, entry.content.clone())).collect()
    };
    assert_eq!(summarize(&stored), summarize(&moved));
    assert_eq!(crate::decoding::temporary_vault::check_kept_sessions(&READER, &file), 1);
}

#[test]
fn threads_of_void_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.vscdb");
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute_batch("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)").unwrap();
    let thread = json!({"t1": {"id": "t1", "createdAt": "2025-05-01T10:00:00.000Z",
        "lastModified": "2025-05-01T10:05:00.000Z", "messages": [
        {"role": "user", "content": "SELECTIONS Fix", "displayContent": "Fix"},
        {"role": "assistant", "displayContent": "Ok", "reasoning": "hm"},
        {"role": "tool", "type": "success", "id": "c", "name": "ls_dir", "params": {}, "content": "a"},
        {"role": "tool", "type": "running_now", "name": "ls_dir", "params": {}},
        {"role": "checkpoint", "type": "tool_edit"}]}, "t2": {"id": "t2", "messages": []}});
    let insert = "INSERT INTO ItemTable VALUES ('void.chatThreadStorageII', ?1)";
    connection.execute(insert, [thread.to_string()]).unwrap();
    drop(connection);
    let found = registry::find_sessions(&file).unwrap();
    assert_eq!((found.len(), found[0].reader.agent), (1, AGENT_NAME));
    let transcript = found[0].read_transcript().unwrap();
    let actual: Vec<_> = transcript.entries.iter().map(|it| (it.role.as_str(), it.kind)).collect();
    assert_eq!(
        actual,
        [
            ("user", EntryKind::Text),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::Text),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("assistant", EntryKind::ToolCall),
            ("system", EntryKind::Other),
        ]
    );
    assert_eq!(transcript.entries[0].content, "Fix");
    assert_eq!(transcript.session.started, "2025-05-01T10:00:00.000Z".parse().ok());
    assert_eq!(crate::decoding::temporary_vault::check_kept_sessions(&READER, &file), 1);
}
