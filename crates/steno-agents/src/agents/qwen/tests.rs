use proptest::prelude::*;

use super::*;
use crate::decoding::trial;
use crate::inspect::inspect_with_subagents;
use crate::{reader, registry};

const LOG: &str = r#"{"uuid":"1","parentUuid":null,"sessionId":"s","timestamp":"2026-08-17T12:00:00Z","type":"user","cwd":"/p","gitBranch":"main","systemPayload":{"displayText":"Look"},"message":{"role":"user","parts":[{"text":"Look"},{"text":"<hook>context</hook>"}]}}
{"uuid":"2","parentUuid":"1","sessionId":"s","timestamp":"2026-08-17T12:00:01Z","type":"assistant","model":"coder","message":{"role":"model","parts":[{"text":"Hm","thought":true}]}}
{"uuid":"2","parentUuid":"1","sessionId":"s","timestamp":"2026-08-17T12:00:02Z","type":"assistant","model":"coder","usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":2,"totalTokenCount":17},"message":{"role":"model","parts":[{"functionCall":{"id":"c","name":"ls","args":{}}}]}}
{"uuid":"3","parentUuid":"2","sessionId":"s","timestamp":"2026-08-17T12:00:03Z","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"x"}}}]},"toolCallResult":{"callId":"c","status":"error"}}
{"uuid":"4","parentUuid":"3","sessionId":"s","timestamp":"2026-08-17T12:00:04Z","type":"user","subtype":"notification","message":{"role":"user","parts":[{"text":"Ready"}]}}
{"uuid":"5","parentUuid":"4","sessionId":"s","timestamp":"2026-08-17T12:00:05Z","type":"system","subtype":"custom_title","systemPayload":{"customTitle":"Looking"}}
{"uuid":"6","parentUuid":"5","sessionId":"s","timestamp":"2026-08-17T12:00:06Z","type":"system","subtype":"chat_compression","systemPayload":{"info":{}}}
"#;

#[test]
fn decodes_each_kind_of_record() {
    let transcript = trial::read_one_file(&READER, LOG.as_bytes());
    let actual: Vec<_> = transcript.entries.iter().map(|it| (it.role.as_str(), it.kind)).collect();
    assert_eq!(
        actual,
        [
            ("user", EntryKind::Text),
            ("user", EntryKind::Notice),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("user", EntryKind::Notice),
            ("system", EntryKind::Other),
            ("system", EntryKind::Compaction),
        ]
    );
    let session = &transcript.session;
    assert_eq!(session.title.as_deref(), Some("Looking"));
    assert_eq!((session.project.as_deref(), session.branch.as_deref()), (Some("/p"), Some("main")));
    let usage = session.totals.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.reasoning), (6, 4, 7, 2));
    assert!(transcript.entries[4].metadata.is_some());
    assert_ne!(transcript.entries[2].message_id, transcript.entries[3].message_id);
    assert_eq!(session.ended.unwrap().to_string(), "2026-08-17T12:00:06Z");
}

#[test]
fn subagents_belong_to_the_session_that_began_them() {
    let dir = tempfile::tempdir().unwrap();
    let (chats, agents) = (dir.path().join("chats"), dir.path().join("subagents/s"));
    std::fs::create_dir_all(&chats).unwrap();
    std::fs::create_dir_all(&agents).unwrap();
    let inside = r#""sessionId":"s","agentId":"looker-1","isSidechain":true"#;
    std::fs::write(chats.join("s.jsonl"), LOG).unwrap();
    let agent = agents.join("agent-looker-1.jsonl");
    std::fs::write(&agent, LOG.replace(r#""sessionId":"s""#, inside)).unwrap();
    std::fs::write(agents.join("agent-looker-1.meta.json"), "{}").unwrap();
    let found = registry::find_sessions(dir.path()).unwrap();
    assert_eq!((found.len(), found[0].bundle.files.len()), (1, 3));
    let counted = inspect_with_subagents(&found[0]).unwrap();
    let prompts: Vec<_> = counted.iter().map(|it| (it.user_prompts, it.subagent_files)).collect();
    assert_eq!(prompts, [(1, 1), (1, 0)]);
    let whole = found[0].read_transcript().unwrap();
    assert_eq!(whole.entries.last().unwrap().source, "subagent:looker-1");
    assert_eq!(whole.session.title.as_deref(), Some("Looking"));
    let alone = registry::find_sessions(&agent).unwrap()[0].read_transcript().unwrap().session;
    assert_eq!(alone.native_id.as_deref(), Some("agent-looker-1"));
    assert_eq!(alone.parent.as_deref(), Some("s"));
}

#[test]
fn messages_of_the_program_in_the_users_role_are_no_prompts() {
    let record = r#"{"uuid":"1","sessionId":"s","type":"user","provenance":"system","message":{"parts":[{"text":"x"}]}}"#;
    assert_eq!(trial::read_one_file(&READER, record.as_bytes()).entries[0].kind, EntryKind::Notice);
    let real = record.replace("\"system\"", "\"real_user\"");
    assert_eq!(trial::read_one_file(&READER, real.as_bytes()).entries[0].kind, EntryKind::Text);
}

#[test]
fn glued_records_are_a_bad_line_of_a_known_file() {
    let glued = LOG.lines().take(2).collect::<Vec<_>>().concat();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, &glued).unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    let transcript = reader::read_transcript(&READER, &found[0]).unwrap();
    assert_eq!((transcript.entries.len(), transcript.problems.len()), (0, 1));
}

#[test]
fn recognises_a_first_record_longer_than_the_head() {
    let long =
        LOG.replacen("\"text\":\"Look\"", &format!("\"text\":\"{}\"", "x".repeat(100_000)), 1);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.jsonl"), long).unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    assert_eq!(
        reader::read_transcript(&READER, &found[0]).unwrap().session.native_id.as_deref(),
        Some("s")
    );
}

#[test]
fn old_chats_are_those_of_gemini_with_another_name() {
    let chat = r#"{"sessionId":"s","projectHash":"0","messages":[{"id":"q","type":"qwen","content":"Hi"}]}"#;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("session-1.json"), chat).unwrap();
    assert!(gemini::READER.find_at(dir.path()).unwrap().is_empty());
    let transcript =
        reader::read_transcript(&READER, &READER.find_at(dir.path()).unwrap()[0]).unwrap();
    assert_eq!(transcript.session.agent, AGENT_NAME);
    assert_eq!(transcript.entries[0].role, Role::Assistant);
}

#[test]
fn every_cut_can_be_read() {
    trial::read_every_cut(&READER, LOG);
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes: Vec<u8>) {
        trial::read_one_file(&READER, &bytes);
    }
}
