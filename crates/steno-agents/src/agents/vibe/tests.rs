use proptest::prelude::*;

use super::*;
use crate::decoding::temporary_vault::{TemporaryVault, read_kept};
use crate::reader::{self, FoundSession};
use crate::registry;

const LOG: &str = r##"{"role": "user", "content": "Read the README", "message_id": "m1"}
{"role": "assistant", "content": "", "reasoning_content": "hm", "message_id": "m2", "tool_calls": [{"id": "c1", "index": 0, "function": {"name": "read_file", "arguments": "{\"path\":\"README.md\"}"}}, {"id": "c2", "function": {"name": "ls", "arguments": {"path": "."}}}]}
{"role": "tool", "content": "# Project", "name": "read_file", "tool_call_id": "c1"}
{"role": "user", "content": "<context>", "injected": true, "message_id": "m3"}
{"role": "assistant", "content": "Done", "message_id": "m4"}
"##;

const META_JSON: &str = r#"{"session_id":"0199-a","start_time":"2026-01-05T09:00:00+00:00","end_time":"2026-01-05T09:01:00+00:00","git_branch":"main","environment":{"working_directory":"/p"},"title":"Read","stats":{"session_prompt_tokens":120,"session_completion_tokens":30,"session_cost":0.5},"config":{"active_model":"devstral-2"}}"#;

fn session(folder: &Path, log: &str) -> FoundSession {
    std::fs::write(folder.join("messages.jsonl"), log).unwrap();
    std::fs::write(folder.join("meta.json"), META_JSON).unwrap();
    let found = registry::find_sessions(folder).unwrap();
    assert_eq!((found.len(), found[0].reader.agent), (1, AGENT_NAME));
    found[0].clone()
}

#[test]
fn messages_and_calls_become_entries() {
    let folder = tempfile::tempdir().unwrap();
    let transcript = session(folder.path(), LOG).read_transcript().unwrap();
    let actual: Vec<_> = transcript.entries.iter().map(|it| (it.role.as_str(), it.kind)).collect();
    assert_eq!(
        actual,
        [
            ("user", EntryKind::Text),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("user", EntryKind::Notice),
            ("assistant", EntryKind::Text),
        ]
    );
    for call in &transcript.entries[2..4] {
        assert!(call.tool_input.as_ref().unwrap()["path"].is_string());
    }
    assert_eq!(transcript.entries[4].tool_call_id.as_deref(), Some("c1"));
    let session = &transcript.session;
    assert_eq!(session.native_id.as_deref(), Some("0199-a"));
    assert_eq!(session.project.as_deref(), Some("/p"));
    assert_eq!(session.models, ["devstral-2"]);
    assert_eq!((session.totals.usage.input, session.totals.usage.output), (120, 30));
    assert_eq!(session.totals.cost, Some(0.5));
}

#[test]
fn a_log_alone_is_named_by_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("session_20260105_090000_0199");
    std::fs::create_dir(&alone).unwrap();
    std::fs::write(alone.join("messages.jsonl"), LOG).unwrap();
    let found = registry::find_sessions(folder.path()).unwrap();
    let transcript = found[0].read_transcript().unwrap();
    assert_eq!(transcript.session.native_id.as_deref(), Some("session_20260105_090000_0199"));
    let other = LOG.replace("message_id", "id");
    std::fs::write(alone.join("messages.jsonl"), other).unwrap();
    assert!(READER.find_at(folder.path()).unwrap().is_empty(), "of another program");
}

#[test]
fn older_sessions_are_one_document() {
    let messages: Vec<Value> =
        LOG.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let meta: Value = serde_json::from_str(META_JSON).unwrap();
    let document = serde_json::json!({"metadata": meta, "messages": messages}).to_string();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("session_1.json"), document).unwrap();
    let found = registry::find_sessions(folder.path()).unwrap();
    assert_eq!((found.len(), found[0].reader.agent), (1, AGENT_NAME));
    let transcript = found[0].read_transcript().unwrap();
    assert_eq!((transcript.entries.len(), transcript.session.totals.usage.input), (7, 120));
}

#[test]
fn a_kept_session_reads_as_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let found = session(folder.path(), LOG);
    let before = found.read_transcript().unwrap();
    let kept = TemporaryVault::new();
    let (dir, _) = kept.keep_session(&found);
    std::fs::remove_dir_all(folder.path()).unwrap();
    let after = read_kept(&READER, &dir);
    assert_eq!((after.entries, after.session), (before.entries, before.session));
}

#[test]
fn every_cut_can_be_read() {
    for end in 0..LOG.len() {
        let bytes = LOG.as_bytes()[..end].to_vec();
        let source = SessionFile::in_memory(MESSAGES_FILE, "/s/messages.jsonl", bytes);
        let bundle = SessionBundle::new("/s/messages.jsonl", vec![source]);
        assert!(reader::read_transcript(&READER, &bundle).unwrap().problems.len() <= 1);
    }
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes: Vec<u8>) {
        for name in [MESSAGES_FILE, "session_1.json"] {
            let source = SessionFile::in_memory(name, format!("/s/{name}"), bytes.clone());
            let _ = reader::read_transcript(&READER, &SessionBundle::new("/s", vec![source]));
        }
    }
}
