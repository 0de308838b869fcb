use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::json;

use super::*;
use crate::decoding::temporary_vault;
use crate::{reader, registry};
use steno_model::entry::{Entry, EntryKind};
use steno_model::session::Transcript;

const TRANSCRIPT: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"<user_info>\nOS\n</user_info>\n<user_query>\nrun ls\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"ok"},{"type":"tool_use","name":"Shell","input":{"command":"ls"}},{"type":"novelty"}]}}
{"role":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a"}]}]}}
{"type":"turn_ended","status":"success"}
"#;

fn kinds(entries: &[Entry]) -> Vec<(&str, EntryKind)> {
    entries.iter().map(|entry| (entry.role.as_str(), entry.kind)).collect()
}

fn from_bytes(bytes: &[u8]) -> Result<Transcript, FormatError> {
    let source = SessionFile::in_memory("a.jsonl", "a.jsonl", bytes.to_vec());
    reader::read_transcript(&READER, &SessionBundle::new("a.jsonl", vec![source]))
}

fn only(path: &Path) -> Transcript {
    let bundles = READER.find_at(path).unwrap();
    assert_eq!(bundles.len(), 1);
    reader::read_transcript(&READER, &bundles[0]).unwrap()
}

#[test]
fn lines_become_entries() {
    let transcript = from_bytes(TRANSCRIPT.as_bytes()).unwrap();
    assert_eq!(
        kinds(&transcript.entries),
        [
            ("user", EntryKind::Notice),
            ("user", EntryKind::Text),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::Text),
            ("assistant", EntryKind::ToolCall),
            ("system", EntryKind::Other),
            ("tool", EntryKind::ToolResult),
            ("system", EntryKind::Notice),
        ]
    );
    assert_eq!(transcript.entries[1].content, "run ls");
    assert_eq!(transcript.entries[6].content, "a");
    assert_eq!(transcript.session.title.as_deref(), Some("run ls"));
}

#[test]
fn subagents_belong_to_their_session() {
    let folder = tempfile::tempdir().unwrap();
    let subagents = folder.path().join("s1/subagents");
    fs::create_dir_all(&subagents).unwrap();
    fs::write(folder.path().join("s1/s1.jsonl"), TRANSCRIPT).unwrap();
    fs::write(subagents.join("child.jsonl"), TRANSCRIPT).unwrap();
    let transcript = only(folder.path());
    assert_eq!(transcript.session.native_id.as_deref(), Some("s1"));
    assert_eq!(transcript.session.subagent_files, 1);
    assert_eq!(transcript.entries[8].source, "subagent:child");
    assert_eq!(transcript.entries[8].sequence, 0);
    let child = only(&subagents.join("child.jsonl"));
    assert_eq!(child.entries[0].source, "primary");
}

#[test]
fn other_lines_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let claude = r#"{"type":"user","role":"user","message":{"content":"x"}}"#;
    fs::write(folder.path().join("a.jsonl"), claude).unwrap();
    fs::write(folder.path().join("b.jsonl"), r#"{"role":"user","content":"x"}"#).unwrap();
    assert!(READER.find_at(folder.path()).unwrap().is_empty());
}

#[test]
fn a_torn_line_costs_only_itself() {
    for length in 0..TRANSCRIPT.len() {
        let transcript = from_bytes(&TRANSCRIPT.as_bytes()[..length]).unwrap();
        assert!(transcript.problems.len() <= 1);
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A store with a root that lists two messages, itself and a missing blob.
fn store(folder: &Path) -> PathBuf {
    let file = folder.join("store.db");
    let connection = Connection::open(&file).unwrap();
    let tables =
        "CREATE TABLE meta (key TEXT, value TEXT); CREATE TABLE blobs (id TEXT, data BLOB)";
    connection.execute_batch(tables).unwrap();
    let meta = json!({"agentId": "a1", "name": "Title", "createdAt": 1000,
        "lastUsedModel": "m1", "latestRootBlobId": hexadecimal(&[9; 32])});
    let meta = hexadecimal(meta.to_string().as_bytes());
    connection.execute("INSERT INTO meta VALUES ('0', ?1)", [meta]).unwrap();
    let node: Vec<u8> =
        [2u8, 1, 9, 5].iter().flat_map(|n| [&[0x0a, 32][..], &[*n; 32]].concat()).collect();
    let asked = json!({"role": "user", "content": "<user_query>hi</user_query>"}).to_string();
    let answered = json!({"role": "assistant", "content": [
        {"type": "reasoning", "text": "hm"},
        {"type": "tool-call", "toolCallId": "t", "toolName": "ls", "args": {}},
        {"type": "tool-result", "toolCallId": "t", "toolName": "ls", "result": "a"}]});
    for (id, data) in [
        ([9; 32], node),
        ([2; 32], asked.into_bytes()),
        ([1; 32], answered.to_string().into_bytes()),
        ([3; 32], b"{\"role\":\"user\",\"content\":\"stale\"}".to_vec()),
    ] {
        let insert = "INSERT INTO blobs VALUES (?1, ?2)";
        connection.execute(insert, (hexadecimal(&id), data)).unwrap();
    }
    file
}

#[test]
fn a_store_is_walked_from_its_root() {
    let folder = tempfile::tempdir().unwrap();
    let transcript = only(&store(folder.path()));
    assert_eq!(
        kinds(&transcript.entries),
        [
            ("user", EntryKind::Text),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
        ]
    );
    assert_eq!(transcript.problems.len(), 1);
    assert_eq!(transcript.session.native_id.as_deref(), Some("a1"));
    assert_eq!(transcript.session.title.as_deref(), Some("Title"));
}

fn editor(folder: &Path) -> PathBuf {
    let file = folder.join("state.vscdb");
    let connection = Connection::open(&file).unwrap();
    let tables = "CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB);
        CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)";
    connection.execute_batch(tables).unwrap();
    let user =
        json!({"bubbleId": "b1", "type": 1, "text": "hi", "createdAt": "2026-01-01T00:00:00Z"});
    let tool = json!({"bubbleId": "b2", "type": 2, "text": "", "thinking": {"text": "hm"},
        "tokenCount": {"inputTokens": 5, "outputTokens": 2},
        "toolFormerData": {"toolCallId": "t", "name": "ls", "rawArgs": "{\"path\":\"/\"}",
            "status": "completed", "result": "{}"}});
    let rows = [
        (
            "composerData:new",
            json!({"name": "New", "modelConfig": {"modelName": "m1"},
            "fullConversationHeadersOnly": [{"bubbleId": "b1"}, {"bubbleId": "b2"},
                {"bubbleId": "gone"}]}),
        ),
        ("bubbleId:new:b1", user.clone()),
        ("bubbleId:new:b2", tool.clone()),
        ("composerData:old", json!({"name": "Old", "conversation": [user, tool]})),
    ];
    for (key, value) in rows {
        let insert = "INSERT INTO cursorDiskKV VALUES (?1, ?2)";
        connection.execute(insert, (key, value.to_string())).unwrap();
    }
    connection.execute("INSERT INTO cursorDiskKV VALUES ('composerData:null', NULL)", []).unwrap();
    let chats = json!({"tabs": [{"tabId": "tab", "chatTitle": "Chat", "bubbles": [
        {"type": "user", "text": "hi"}, {"type": "ai", "text": "ho"}]}]});
    let insert = "INSERT INTO ItemTable VALUES (?1, ?2)";
    let key = "workbench.panel.aichat.view.aichat.chatdata";
    connection.execute(insert, (key, chats.to_string().into_bytes())).unwrap();
    fs::write(folder.join("workspace.json"), r#"{"folder":"file:///home/u/p"}"#).unwrap();
    file
}

#[test]
fn all_generations_of_the_editor_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let found = registry::find_sessions(&editor(folder.path())).unwrap();
    let keys: Vec<_> = found.iter().map(|found| found.bundle.key.as_deref().unwrap()).collect();
    assert_eq!(keys, ["new", "old", "tab"]);
    let [new, old, tab] = [0, 1, 2].map(|index| found[index].read_transcript().unwrap());
    assert_eq!(kinds(&new.entries), kinds(&old.entries));
    assert_eq!(
        kinds(&new.entries),
        [
            ("user", EntryKind::Text),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
        ]
    );
    assert_eq!(new.entries[1].usage.unwrap().input, 5);
    assert_eq!(new.entries[2].tool_input.as_ref().unwrap()["path"], "/");
    assert_eq!(new.session.project.as_deref(), Some("/home/u/p"));
    assert_eq!(kinds(&tab.entries), [("user", EntryKind::Text), ("assistant", EntryKind::Text)]);
    assert_eq!(tab.session.title.as_deref(), Some("Chat"));
}

/// A workspace database of November 2024: composers with conversations, a moved composer, a tab, and a Copilot chat.
fn workspace_of_2024(folder: &Path) -> PathBuf {
    let file = folder.join("state.vscdb");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)").unwrap();
    let composer = |id: &str| {
        json!({"composerId": id, "createdAt": 1_731_784_818_255_u64, "conversation": [
            {"type": 1, "bubbleId": format!("{id}-1"), "text": format!("ask {id}")},
            {"type": 2, "bubbleId": format!("{id}-2"), "text": "answer"}]})
    };
    let moved = json!({"type": "head", "composerId": "moved", "name": "Moved"});
    let composers = json!({"allComposers": [composer("one"), moved, composer("two")]});
    let tabs = json!({"tabs": [{"tabId": "tab", "bubbles": [{"type": "user", "text": "hi"}]}]});
    let chats = json!([{"sessionId": "copilot", "requests": [{"requestId": "r", "message": "hi",
        "response": ["ho"]}]}, {"sessionId": "empty", "requests": []}]);
    for (key, value) in [
        ("composer.composerData", composers),
        ("workbench.panel.aichat.view.aichat.chatdata", tabs),
        ("interactive.sessions", chats),
    ] {
        let insert = "INSERT INTO ItemTable VALUES (?1, ?2)";
        connection.execute(insert, (key, value.to_string())).unwrap();
    }
    file
}

#[test]
fn composers_of_a_workspace_are_read_with_its_chats() {
    let folder = tempfile::tempdir().unwrap();
    let found = registry::find_sessions(&workspace_of_2024(folder.path())).unwrap();
    let all: Vec<_> = found
        .iter()
        .map(|found| (found.reader.agent, found.bundle.key.as_deref().unwrap()))
        .collect();
    assert_eq!(
        all,
        [("cursor", "one"), ("cursor", "two"), ("cursor", "tab"), ("vscode-chat", "copilot")]
    );
    let two = found[1].read_transcript().unwrap();
    assert_eq!(kinds(&two.entries), [("user", EntryKind::Text), ("assistant", EntryKind::Text)]);
    assert_eq!(two.entries[0].content, "ask two");
    let started = two.session.started.unwrap().to_string();
    assert_eq!(started, "2024-11-16T19:20:18.255Z");
    let copilot = found[3].read_transcript().unwrap();
    assert_eq!(copilot.entries[1].content, "ho");
}

#[test]
fn headers_of_2026_name_a_composer_and_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = editor(folder.path());
    let connection = Connection::open(&file).unwrap();
    let table = "CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, value TEXT)";
    connection.execute_batch(table).unwrap();
    let header = json!({"name": "Header", "workspaceIdentifier": {"uri": {"fsPath": "/h/p"}}});
    let insert = "INSERT INTO composerHeaders VALUES ('unlisted', ?1)";
    connection.execute(insert, [header.to_string()]).unwrap();
    for (key, value) in [
        ("composerData:unlisted", json!({"modelConfig": {"modelName": "default"}})),
        ("bubbleId:unlisted:z", json!({"type": 1, "text": "first"})),
        ("bubbleId:unlisted:a", json!({"type": 2, "text": "second"})),
    ] {
        let insert = "INSERT INTO cursorDiskKV VALUES (?1, ?2)";
        connection.execute(insert, (key, value.to_string())).unwrap();
    }
    drop(connection);
    let bundles = READER.find_at(&file).unwrap();
    let bundle = bundles.iter().find(|bundle| bundle.key.as_deref() == Some("unlisted"));
    let transcript = reader::read_transcript(&READER, bundle.unwrap()).unwrap();
    assert_eq!(transcript.session.title.as_deref(), Some("Header"));
    assert_eq!(transcript.session.project.as_deref(), Some("/h/p"));
    assert!(transcript.session.models.is_empty());
    let texts: Vec<_> = transcript.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(texts, ["first", "second"]);
    assert_eq!(temporary_vault::check_kept_sessions(&READER, &file), 4);
}

#[test]
fn kept_rows_read_as_the_databases_did() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(temporary_vault::check_kept_sessions(&READER, &store(folder.path())), 1);
    assert_eq!(temporary_vault::check_kept_sessions(&READER, &editor(folder.path())), 3);
    let workspace = tempfile::tempdir().unwrap();
    assert_eq!(
        temporary_vault::check_kept_sessions(&READER, &workspace_of_2024(workspace.path())),
        3
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = from_bytes(&bytes);
        let _ = from_bytes(&[TRANSCRIPT.as_bytes(), bytes.as_slice()].concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_values_are_read(value: Vec<u8>, number: i64) {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(editor(folder.path())).unwrap();
        let update = "UPDATE cursorDiskKV SET value = ?1 WHERE key = ?2";
        connection.execute(update, (value, "bubbleId:new:b1")).unwrap();
        connection.execute(update, (number, "bubbleId:new:b2")).unwrap();
        connection.execute("UPDATE ItemTable SET value = ?1", [number.to_string()]).unwrap();
        for bundle in READER.find_at(folder.path()).unwrap() {
            let _ = reader::read_transcript(&READER, &bundle);
        }
    }
}
