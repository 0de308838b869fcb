use proptest::prelude::*;

use super::*;
use crate::decoding::trial;

const LOG: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-09T10:00:00.000Z","cwd":"/p","parentSession":"/old.jsonl"}
{"type":"model_change","id":"m","parentId":null,"timestamp":"2026-07-09T10:00:00.100Z","provider":"x","modelId":"glm"}
{"type":"session_info","id":"i","parentId":"m","timestamp":"2026-07-09T10:00:00.200Z","name":"Named"}
{"type":"message","id":"u","parentId":"i","timestamp":"2026-07-09T10:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}}
{"type":"message","id":"a","parentId":"u","timestamp":"2026-07-09T10:00:02.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"yes"},{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"ls"}}],"model":"glm","stopReason":"toolUse","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"cost":{"total":0.5}}}}
{"type":"message","id":"r","parentId":"a","timestamp":"2026-07-09T10:00:03.000Z","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"text","text":"x"}],"isError":true}}
{"type":"message","id":"e","parentId":"a","timestamp":"2026-07-09T10:00:04.000Z","message":{"role":"assistant","content":[],"model":"glm","stopReason":"error","errorMessage":"400","usage":{"input":1,"output":0,"cost":{"total":0.25}}}}
{"type":"compaction","id":"k","parentId":"e","timestamp":"2026-07-09T10:00:05.000Z","summary":"short","firstKeptEntryId":"a","tokensBefore":9}
{"type":"message","id":"b","parentId":"k","timestamp":"2026-07-09T10:00:06.000Z","message":{"role":"bashExecution","command":"echo hi","output":"hi","exitCode":0}}
{"type":"dream","id":"d","parentId":"b","timestamp":"2026-07-09T10:00:07.000Z"}
"#;

#[test]
fn decodes_each_kind_of_entry() {
    let transcript = trial::read_one_file(&READER, LOG.as_bytes());
    let actual: Vec<_> = transcript.entries.iter().map(|it| (it.role.as_str(), it.kind)).collect();
    assert_eq!(
        actual,
        [
            ("system", EntryKind::Notice),
            ("system", EntryKind::Notice),
            ("user", EntryKind::Text),
            ("user", EntryKind::Text),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::Text),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("assistant", EntryKind::Text),
            ("system", EntryKind::Error),
            ("system", EntryKind::Compaction),
            ("user", EntryKind::Notice),
            ("user", EntryKind::Notice),
            ("system", EntryKind::Other),
        ]
    );
    assert!(transcript.entries[3].content.starts_with("[image/png, 3 bytes, "));
    assert_eq!(transcript.entries[12].content, "$ echo hi\nhi");
}

#[test]
fn the_session_is_described() {
    let session = trial::read_one_file(&READER, LOG.as_bytes()).session;
    assert_eq!(session.title.as_deref(), Some("Named"));
    assert_eq!(session.project.as_deref(), Some("/p"));
    assert_eq!(session.parent.as_deref(), Some("/old.jsonl"));
    assert_eq!(session.started.unwrap().to_string(), "2026-07-09T10:00:00.000Z");
    assert_eq!(session.models, ["glm"]);
    assert_eq!(session.totals.cost, Some(0.75));
    assert_eq!(session.totals.usage.prompt_tokens(), 9);
}

#[test]
fn entries_of_the_first_version_have_no_ids() {
    let prompt = r#"{"type":"message","timestamp":"2026-07-09T10:00:01Z","message":{"role":"user","content":"hi"}}"#;
    let header = LOG.lines().next().unwrap();
    let transcript =
        trial::read_one_file(&READER, format!("{header}\n{prompt}\n{prompt}\n").as_bytes());
    assert_ne!(transcript.entries[0].message_id, transcript.entries[1].message_id);
}

#[test]
fn only_files_with_a_header_are_found() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.jsonl"), LOG).unwrap();
    std::fs::write(dir.path().join("b.jsonl"), "{\"type\":\"session\"}\n").unwrap();
    std::fs::write(dir.path().join("c.jsonl"), "").unwrap();
    assert_eq!(READER.find_at(dir.path()).unwrap().len(), 1);
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
