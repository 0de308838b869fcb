use std::fs;
use std::path::Path;

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::*;
use crate::decoding::temporary_vault;
use crate::inspect::inspect_session;
use crate::reader::{self, FoundSession};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::session::Transcript;
use steno_vault::SessionFile;

fn session() -> Value {
    json!({"id": "ses_1", "projectID": "p", "directory": "/home/u/p", "title": "Fix it",
        "version": "1.2.0", "parentID": "ses_0", "time": {"created": 1000, "updated": 2000}})
}

/// Two messages, each with its parts.
fn messages() -> [(Value, Vec<Value>); 2] {
    let user = json!({"id": "msg_1", "role": "user", "time": {"created": 1000}});
    let assistant = json!({"id": "msg_2", "role": "assistant", "parentID": "msg_1",
        "time": {"created": 1500, "completed": 3000}, "providerID": "acme", "modelID": "m1",
        "cost": 0.25, "finish": "stop", "error": {"name": "Aborted", "data": {"message": "no"}},
        "tokens": {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 7, "write": 1}}});
    let asked = vec![
        json!({"id": "prt_1", "type": "text", "text": "hello"}),
        json!({"id": "prt_2", "type": "text", "text": "context", "synthetic": true}),
        json!({"id": "prt_3", "type": "file", "mime": "image/png", "filename": "a.png",
            "url": "data:image/png;base64,aGVsbG8="}),
        json!({"id": "prt_4", "type": "compaction", "auto": true}),
    ];
    let answered = vec![
        json!({"id": "prt_5", "type": "step-start"}),
        json!({"id": "prt_6", "type": "reasoning", "text": "hm"}),
        json!({"id": "prt_7", "type": "tool", "callID": "c1", "tool": "bash", "state": {
            "status": "error", "input": {"command": "ls"}, "error": "denied"}}),
        json!({"id": "prt_8", "type": "tool", "callID": "c2", "tool": "bash", "state": {
            "status": "running", "input": {}}}),
        json!({"id": "prt_9", "type": "novelty", "x": 1}),
    ];
    [(user, asked), (assistant, answered)]
}

fn export() -> String {
    let messages = messages().map(|(info, parts)| json!({"info": info, "parts": parts}));
    json!({"info": session(), "messages": messages}).to_string()
}

fn from_bytes(bytes: &[u8]) -> Result<Transcript, FormatError> {
    let source = SessionFile::in_memory("e.json", "e.json", bytes.to_vec());
    reader::read_transcript(&READER, &SessionBundle::new("e.json", vec![source]))
}

fn database(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT,
                directory TEXT, title TEXT, version TEXT, time_created INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
                data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
             INSERT INTO session VALUES
                ('ses_1', 'p', 'ses_0', '/home/u/p', 'Fix it', '1.2.0', 1000);",
        )
        .unwrap();
    for (mut info, parts) in messages() {
        let id = info.as_object_mut().unwrap().shift_remove("id").unwrap();
        let id = id.as_str().unwrap();
        let insert = "INSERT INTO message VALUES (?1, 'ses_1', ?2, ?3)";
        let time = info["time"]["created"].as_i64();
        connection.execute(insert, (id, time, info.to_string())).unwrap();
        for part in parts {
            let insert = "INSERT INTO part VALUES (?1, ?2, 'ses_1', ?3)";
            connection.execute(insert, (part["id"].as_str(), id, part.to_string())).unwrap();
        }
    }
}

fn storage(root: &Path) {
    let put = |name: String, value: &Value| {
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, value.to_string()).unwrap();
    };
    put("session/p/ses_1.json".to_owned(), &session());
    for (info, parts) in messages() {
        let id = info["id"].as_str().unwrap();
        put(format!("message/ses_1/{id}.json"), &info);
        for part in parts {
            put(format!("part/{id}/{}.json", part["id"].as_str().unwrap()), &part);
        }
    }
}

fn only(path: &Path) -> Transcript {
    let bundles = READER.find_at(path).unwrap();
    assert_eq!(bundles.len(), 1);
    reader::read_transcript(&READER, &bundles[0]).unwrap()
}

fn kinds(entries: &[Entry]) -> Vec<(&str, EntryKind)> {
    entries.iter().map(|entry| (entry.role.as_str(), entry.kind)).collect()
}

#[test]
fn parts_become_entries() {
    let transcript = from_bytes(export().as_bytes()).unwrap();
    let entries = &transcript.entries;
    assert_eq!(
        kinds(entries),
        [
            ("user", EntryKind::Text),
            ("user", EntryKind::Notice),
            ("user", EntryKind::Notice),
            ("system", EntryKind::Compaction),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("assistant", EntryKind::ToolCall),
            ("system", EntryKind::Other),
            ("assistant", EntryKind::Error),
        ]
    );
    assert!(entries[2].content.starts_with("a.png [image/png, 5 bytes, blake3 "));
    assert_eq!(entries[4].model.as_deref(), Some("acme/m1"));
    let usage = entries[4].usage.unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.reasoning), (10, 7, 7, 2));
    assert_eq!(entries[6].content, "denied");
    assert_eq!(entries[6].metadata.as_ref().unwrap()["is_error"], true);
    assert_eq!(entries[9].content, "Aborted: no");
}

#[test]
fn an_export_of_a_version_without_projects_is_known() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("full.jsonl");
    let mut document: Value = serde_json::from_str(&export()).unwrap();
    let info = document["info"].as_object_mut().unwrap();
    info.shift_remove("projectID");
    info.shift_remove("directory");
    fs::write(&file, serde_json::to_string_pretty(&document).unwrap()).unwrap();
    assert_eq!(only(&file).session.native_id.as_deref(), Some("ses_1"));
    fs::write(&file, r#"{"info":{"id":"x","time":1},"messages":[]}"#).unwrap();
    assert!(READER.find_at(&file).unwrap().is_empty());
}

#[test]
fn messages_count_each_although_their_ids_were_blotted_out() {
    let text = ["msg_1", "msg_2", "c1", "c2"]
        .iter()
        .fold(export(), |text, id| text.replace(&format!("\"{id}\""), "\"REDACTED\""));
    let mut document: Value = serde_json::from_str(&text).unwrap();
    let once = document["messages"].as_array().unwrap().clone();
    document["messages"].as_array_mut().unwrap().extend(once);
    let source = SessionFile::in_memory("e.json", "e.json", document.to_string().into_bytes());
    let bundle = SessionBundle::new("e.json", vec![source]);
    let counted = inspect_session(&FoundSession { reader: &READER, bundle }).unwrap();
    assert_eq!((counted.user_prompts, counted.assistant_messages), (2, 2));
    assert_eq!((counted.tokens.input, counted.tokens.output), (20, 14));
    assert_eq!((counted.tool_calls, counted.tool_results), (4, 2));
}

#[test]
fn the_session_has_the_fields_of_its_records() {
    let session = from_bytes(export().as_bytes()).unwrap().session;
    assert_eq!(session.native_id.as_deref(), Some("ses_1"));
    assert_eq!(session.parent.as_deref(), Some("ses_0"));
    assert_eq!(session.title.as_deref(), Some("Fix it"));
    assert_eq!(session.started.unwrap().instant().as_millisecond(), 1000);
    assert_eq!(session.ended.unwrap().instant().as_millisecond(), 3000);
    assert_eq!(session.totals.cost, Some(0.25));
}

#[test]
fn database_and_tree_read_like_the_export() {
    let folder = tempfile::tempdir().unwrap();
    let exported = from_bytes(export().as_bytes()).unwrap();
    database(&folder.path().join("opencode.db"));
    assert_eq!(only(&folder.path().join("opencode.db")).entries, exported.entries);
    storage(&folder.path().join("storage"));
    assert_eq!(only(&folder.path().join("storage")).entries, exported.entries);
    assert_eq!(only(folder.path()).entries, exported.entries);
    let bundle = &READER.find_at(folder.path()).unwrap()[0];
    assert_eq!(bundle.key.as_deref(), Some("ses_1"));
}

#[test]
fn parts_in_one_folder_are_those_of_the_message_that_they_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    storage(root);
    let nested = only(root);
    for message in fs::read_dir(root.join("part")).unwrap().map(|item| item.unwrap().path()) {
        for part in fs::read_dir(&message).unwrap().map(|item| item.unwrap().path()) {
            let mut record: Value = serde_json::from_slice(&fs::read(&part).unwrap()).unwrap();
            record["sessionID"] = "ses_1".into();
            record["messageID"] = message.file_name().unwrap().to_str().unwrap().into();
            let flat = root.join("part").join(part.file_name().unwrap());
            fs::write(flat, record.to_string()).unwrap();
        }
        fs::remove_dir_all(message).unwrap();
    }
    fs::write(root.join("part/prt_other.json"), r#"{"sessionID":"ses_9"}"#).unwrap();
    let summarize = |transcript: &Transcript| -> Vec<_> {
        let entries = transcript.entries.iter();
        entries.map(|entry| (entry.kind, entry.content.clone(), entry.message_id.clone())).collect()
    };
    assert_eq!(summarize(&only(root)), summarize(&nested));
}

/// OpenCode deletes the files of an undone message, but not the session file.
#[test]
fn skips_a_reverted_message() {
    let folder = tempfile::tempdir().unwrap();
    let (root, kept) = (folder.path(), temporary_vault::TemporaryVault::new());
    storage(root);
    let keep = || {
        let bundle = READER.find_at(root).unwrap().remove(0);
        kept.keep_session(&reader::FoundSession { reader: &READER, bundle }).0
    };
    let whole = temporary_vault::read_kept(&READER, &keep()).entries;
    let id = messages().last().unwrap().0["id"].as_str().unwrap().to_owned();
    fs::remove_file(root.join(format!("message/ses_1/{id}.json"))).unwrap();
    fs::remove_dir_all(root.join(format!("part/{id}"))).unwrap();
    let rest = temporary_vault::read_kept(&READER, &keep()).entries;
    assert!(!rest.is_empty() && rest.len() < whole.len());
    assert!(rest.iter().all(|entry| entry.message_id.as_deref() != Some(id.as_str())));
}

#[test]
fn shared_rows_belong_to_the_first_session() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    storage(root);
    for (name, text) in [
        ("session/p/ses_2.json", session().to_string().replace("ses_1", "ses_2")),
        ("session_diff/ses_1.json", "[]".to_owned()),
        ("todo/ses_2.json", "[]".to_owned()),
        ("project/p.json", r#"{"id":"p","worktree":"/p"}"#.to_owned()),
        ("migration", "2".to_owned()),
    ] {
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let others = |bundle: &SessionBundle| -> Vec<String> {
        let names = bundle.files.iter().map(|source| source.name().to_owned());
        names.filter(|name| !name.starts_with("message/") && !name.starts_with("part/")).collect()
    };
    let bundles = READER.find_at(root).unwrap();
    let found: Vec<_> = bundles.iter().map(others).collect();
    assert_eq!(found[0], ["session/p/ses_1.json", "session_diff/ses_1.json"]);
    let shared = ["session/p/ses_2.json", "todo/ses_2.json", "project/p.json", "migration"];
    assert_eq!(found[1], shared);
    let alone = READER.find_at(&root.join("session/p/ses_2.json")).unwrap();
    assert_eq!(others(&alone[0]), shared, "however it is found");
    assert_eq!(reader::read_transcript(&READER, &bundles[1]).unwrap().problems, []);
}

#[test]
fn one_bad_row_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("opencode.db");
    database(&file);
    let connection = Connection::open(&file).unwrap();
    connection.execute("UPDATE part SET data = '{\"type' WHERE id = 'prt_2'", []).unwrap();
    connection.execute("INSERT INTO message VALUES ('z', 'ses_1', 9, NULL)", []).unwrap();
    let transcript = only(&file);
    let reasons: Vec<_> = transcript.problems.iter().map(|p| p.reason.as_str()).collect();
    assert!(reasons[0].starts_with("message z: no data"), "{reasons:?}");
    assert!(reasons[1].starts_with("part prt_2: not JSON"), "{reasons:?}");
    assert_eq!(transcript.entries.len(), 9);
}

#[test]
fn reads_a_truncated_export_up_to_its_end() {
    let whole = export();
    for length in 0..whole.len() {
        if let Ok(transcript) = from_bytes(&whole.as_bytes()[..length]) {
            assert_eq!(transcript.problems.len(), 1, "{length}");
        }
    }
    let transcript = from_bytes(&whole.as_bytes()[..whole.len() - 1]).unwrap();
    assert_eq!(transcript.entries.len(), 10);
}

#[test]
fn a_summary_alone_is_a_compaction() {
    let message = json!({"info": {"id": "m", "role": "assistant", "summary": true}, "parts": []});
    let export = json!({"info": session(), "messages": [message]}).to_string();
    let entries = from_bytes(export.as_bytes()).unwrap().entries;
    assert_eq!(
        kinds(&entries),
        [("assistant", EntryKind::Text), ("system", EntryKind::Compaction)]
    );
    assert_eq!(entries[0].role, Role::Assistant);
}

#[test]
fn messages_without_their_sessions_file_are_a_session() {
    let folder = tempfile::tempdir().unwrap();
    storage(folder.path());
    let session = folder.path().join("session/p/ses_1.json");
    fs::rename(&session, session.with_file_name("of-another-name.json")).unwrap();
    let whole = only(folder.path());
    fs::remove_dir_all(folder.path().join("session")).unwrap();
    let left = only(folder.path());
    assert_eq!(left.entries, whole.entries);
    assert_eq!(left.session.native_id, whole.session.native_id);
    assert_eq!(left.session.totals, whole.session.totals);
    fs::write(folder.path().join("message/ses_1/a.json"), "{}").unwrap();
    assert_eq!(READER.find_at(folder.path()).unwrap().len(), 1);
}

#[test]
fn ids_cannot_leave_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session/p/x.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut info = session();
    info["id"] = "../../secret".into();
    fs::write(&file, info.to_string()).unwrap();
    assert!(READER.find_at(&file).unwrap().is_empty());
}

#[test]
fn kept_rows_read_as_the_database_did() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("opencode.db");
    database(&file);
    assert_eq!(temporary_vault::check_kept_sessions(&READER, &file), 1);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = from_bytes(&bytes);
        let _ = from_bytes(&[b"{\"info\":{},\"messages\":[", bytes.as_slice()].concat());
    }
}
