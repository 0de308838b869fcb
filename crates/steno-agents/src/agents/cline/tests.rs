use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::inspect::inspect_session;
use crate::reader::{self, FoundSession};
use steno_model::entry::{EntryKind, Role};
use steno_model::session::Transcript;

fn bundle(files: &[(&str, Vec<u8>)]) -> SessionBundle {
    let sources = files.iter().map(|(name, bytes)| {
        SessionFile::in_memory(*name, Path::new("/tasks/1770000000000").join(name), bytes.clone())
    });
    SessionBundle::new("/tasks/1770000000000", sources.collect())
}

fn transcript(name: &str, value: &Value) -> Transcript {
    reader::read_transcript(&READER, &bundle(&[(name, value.to_string().into_bytes())])).unwrap()
}

fn request(tokens_in: u64, tokens_out: u64, cost: f64) -> String {
    json!({"request": "…", "tokensIn": tokens_in, "tokensOut": tokens_out, "cacheWrites": 3,
           "cacheReads": 5, "cost": cost})
    .to_string()
}

fn screen() -> Value {
    json!([
        {"ts": 1770000000000_i64, "type": "say", "say": "text", "text": "Fix it",
         "images": ["data:image/png;base64,aGk="]},
        {"ts": 1770000001000_i64, "type": "say", "say": "api_req_started",
         "text": request(10, 2, 0.5)},
        {"ts": 1770000002000_i64, "type": "say", "say": "reasoning", "text": "Hm"},
        {"ts": 1770000003000_i64, "type": "say", "say": "text", "text": "I look.",
         "modelInfo": {"providerId": "anthropic", "modelId": "claude", "mode": "act"}},
        {"ts": 1770000004000_i64, "type": "ask", "ask": "command", "text": "ls"},
        {"ts": 1770000005000_i64, "type": "say", "say": "command_output", "text": "a"},
        {"ts": 1770000006000_i64, "type": "say", "say": "command_output", "text": "b"},
        {"ts": 1770000007000_i64, "type": "say", "say": "api_req_started",
         "text": request(1, 0, 0.25)},
        {"ts": 1770000008000_i64, "type": "say", "say": "api_req_started",
         "text": request(4, 1, 0.25)},
        {"ts": 1770000009000_i64, "type": "say", "say": "tool", "partial": true,
         "text": "{\"tool\":\"readFile\",\"path\":\"a\"}"},
        {"ts": 1770000010000_i64, "type": "say", "say": "condense_context"},
        {"ts": 1770000011000_i64, "type": "ask", "ask": "followup",
         "text": "{\"question\":\"Sure?\",\"options\":[]}"},
        {"ts": 1770000012000_i64, "type": "say", "say": "user_feedback", "text": "yes"},
        {"ts": 1770000013000_i64, "type": "say", "say": "from_the_future", "text": "?"},
        3
    ])
}

#[test]
fn a_task_is_counted() {
    let bundle = bundle(&[(UI_MESSAGES_FILE, screen().to_string().into_bytes())]);
    let counted = inspect_session(&FoundSession { reader: &READER, bundle }).unwrap();
    assert_eq!((counted.user_prompts, counted.assistant_messages), (2, 2));
    assert_eq!((counted.tool_calls, counted.tool_results), (2, 1));
    assert_eq!((counted.compactions, counted.bad_lines), (1, 1));
    let tokens = counted.tokens;
    assert_eq!((tokens.input, tokens.output), (15, 3));
    assert_eq!((tokens.cache_read, tokens.cache_write), (15, 9));
    assert_eq!(counted.models, ["claude"]);
    assert_eq!(counted.session_id.as_deref(), Some("1770000000000"));
}

#[test]
fn messages_become_entries() {
    let transcript = transcript(UI_MESSAGES_FILE, &screen());
    assert_eq!(transcript.session.totals.cost, Some(1.0));
    let texts: Vec<_> = transcript.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert!(texts[1].starts_with("[image/png, 2 bytes"));
    assert_eq!(texts[2..4], ["Hm", "I look."]);
    let tool =
        transcript.entries.iter().find(|entry| entry.tool_name.as_deref() == Some("readFile"));
    let metadata = tool.unwrap().metadata.as_ref().unwrap();
    assert_eq!(metadata["partial"], true);
    let unknown = transcript.entries.last().unwrap();
    assert_eq!(unknown.metadata.as_ref().unwrap()["say"], "from_the_future");
}

#[test]
fn without_a_screen_the_conversation_is_read() {
    let transcript = transcript(
        API_HISTORY_FILE,
        &json!([
            {"role": "user", "content": [{"type": "text", "text": "<task>\nFix it\n</task>"},
                {"type": "text", "text": "<environment_details>…"}], "ts": 1770000000000_i64},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"},
                {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
                "is_error": true, "content": [{"type": "text", "text": "gone"}]}, {"type": "new"}]},
            {"role": "assistant", "content": "What was said", "isSummary": true}
        ]),
    );
    let kinds: Vec<_> = transcript.entries.iter().map(|entry| entry.kind).collect();
    let expected = [
        EntryKind::Text,
        EntryKind::Notice,
        EntryKind::Thinking,
        EntryKind::ToolCall,
        EntryKind::ToolResult,
        EntryKind::Other,
        EntryKind::Compaction,
        EntryKind::Notice,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(transcript.entries[4].metadata.as_ref().unwrap()["is_error"], true);
    assert_eq!(transcript.entries[0].role, Role::User);
}

#[test]
fn a_task_is_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("tasks/17");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(UI_MESSAGES_FILE), screen().to_string()).unwrap();
    fs::write(folder.join(API_HISTORY_FILE), r#"[{"role":"user","content":"x"}]"#).unwrap();
    fs::write(folder.join(HISTORY_ITEM_FILE), r#"{"workspace":"/w","parentTaskId":"p"}"#).unwrap();
    fs::write(folder.join(TASK_METADATA_FILE), r#"{"model_usage":[{"model_id":"m"}]}"#).unwrap();
    for path in [dir.path().to_owned(), folder.join(UI_MESSAGES_FILE)] {
        let found = READER.find_at(&path).unwrap();
        assert_eq!((found.len(), found[0].files.len()), (1, 4));
        let session = reader::read_transcript(&READER, &found[0]).unwrap().session;
        assert_eq!(session.native_id.as_deref(), Some("17"));
        assert_eq!(session.project.as_deref(), Some("/w"));
        assert_eq!(session.parent.as_deref(), Some("p"));
        assert_eq!(session.models, ["m", "claude"]);
    }
    fs::write(folder.join(UI_MESSAGES_FILE), r#"[{"else":1}]"#).unwrap();
    fs::write(folder.join(API_HISTORY_FILE), "no JSON").unwrap();
    assert!(READER.find_at(dir.path()).unwrap().is_empty());
}

#[test]
fn a_cut_anywhere_is_no_panic() {
    let text = screen().to_string();
    for end in 0..text.len() {
        let _ = reader::read_transcript(
            &READER,
            &bundle(&[(UI_MESSAGES_FILE, text.as_bytes()[..end].to_vec())]),
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = reader::read_transcript(&READER, &bundle(&[(API_HISTORY_FILE, bytes.clone())]));
        let _ = reader::read_transcript(&READER, &bundle(&[(UI_MESSAGES_FILE, bytes)]));
    }
}

/// A session of the newer runtime, with one subagent.
#[test]
fn a_session_of_the_newer_runtime_is_read() {
    let own = json!({"version": 1, "updated_at": "2026-05-01T10:00:09.000Z", "agent": "lead", "sessionId": "1_ab",
    "messages": [
        {"id": "u1", "role": "user", "ts": 1777629600000_i64,
         "content": "<user_input mode=\"act\">Fix it</user_input>"},
        {"id": "a1", "role": "assistant", "ts": 1777629601000_i64,
         "modelInfo": {"id": "claude", "provider": "anthropic"},
         "metrics": {"inputTokens": 100, "outputTokens": 5, "cacheReadTokens": 60,
                     "cacheWriteTokens": 30, "cost": 0.25},
         "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "I look."},
                     {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}]},
        {"id": "u2", "role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "name": "read", "content": "text"},
            {"type": "text", "text": "a reminder"}]},
        {"id": "u3", "role": "user", "content": "a notice that nobody typed"},
        {"id": "u4", "role": "user",
         "content": [{"type": "text", "text": "<user_command slash=\"x\">go on</user_command>"}]},
        7
    ]});
    let inner = json!({"version": 1, "agent": "subagent", "sessionId": "1_ab", "messages": [
        {"id": "s1", "role": "user", "content": "look there"},
        {"id": "s2", "role": "assistant", "content": "there", "metrics": {"inputTokens": 3}}]});
    let manifest = json!({"version": 1, "session_id": "1_ab", "started_at": "2026-05-01T10:00:00.000Z",
        "ended_at": "2026-05-01T10:00:09.000Z", "cwd": "/w", "metadata": {"title": "Fixing"}});
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("1_ab");
    std::fs::create_dir(&session).unwrap();
    for (name, document) in
        [("1_ab.messages.json", &own), ("agent_1.messages.json", &inner), ("1_ab.json", &manifest)]
    {
        std::fs::write(session.join(name), document.to_string()).unwrap();
    }
    let mut found = READER.find_at(folder.path()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(READER.find_at(&session.join("1_ab.messages.json")).unwrap().len(), 1);
    let counted =
        inspect_session(&FoundSession { reader: &READER, bundle: found.remove(0) }).unwrap();
    assert_eq!((counted.user_prompts, counted.assistant_messages), (2, 1));
    assert_eq!((counted.tool_calls, counted.tool_results), (1, 1));
    assert_eq!((counted.bad_lines, counted.subagent_files), (1, 1));
    let tokens = counted.tokens;
    assert_eq!((tokens.input, tokens.cache_read, tokens.cache_write), (10, 60, 30));
    assert_eq!((tokens.output, counted.models), (5, vec!["claude".to_owned()]));
    assert_eq!(counted.title.as_deref(), Some("Fixing"));
    assert_eq!(counted.last_timestamp.unwrap().to_string(), "2026-05-01T10:00:09.000Z");
}
