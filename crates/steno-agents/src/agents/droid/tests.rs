use proptest::prelude::*;

use super::*;
use crate::reader;
use steno_model::session::Transcript;

const STORE: &str = r#"{"type":"session_start","id":"d","title":"Listing","owner":"u","version":2,"cwd":"/p"}
{"type":"message","id":"1","timestamp":"2025-12-26T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"List"}]}}
{"type":"message","id":"2","parentId":"1","timestamp":"2025-12-26T00:00:01.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t","name":"Execute","input":{"command":"ls"}}]}}
{"type":"message","id":"3","parentId":"2","timestamp":"2025-12-26T00:00:02.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":"no"}]}]}}
{"type":"message","id":"4","timestamp":"2025-12-26T00:00:03.000Z","message":{"role":"user","visibility":"user_only","content":"Saved"}}
{"type":"compaction_state","id":"5","timestamp":"2025-12-26T00:00:04.000Z","summary":"short"}
{"type":"todo_state","id":"6","timestamp":"2025-12-26T00:00:05.000Z","todos":[]}
"#;

const STREAM: &str = r#"{"type":"system","subtype":"init","session_id":"x","timestamp":1767812640310,"model":"m","cwd":"/p"}
{"type":"message","session_id":"x","timestamp":1767812641000,"role":"user","text":"Do","id":"1"}
{"type":"tool_call","session_id":"x","timestamp":1767812642000,"id":"c","toolName":"Execute","parameters":{"command":"ls"}}
{"type":"tool_result","session_id":"x","timestamp":1767812643000,"id":"c","isError":true,"value":"no"}
{"type":"completion","session_id":"x","timestamp":1767812644000,"finalText":"Done","usage":{"input_tokens":10,"output_tokens":5}}
{"type":"error","session_id":"x","timestamp":1767812645000,"message":"Failed"}
"#;

fn bundle(text: &[u8]) -> SessionBundle {
    SessionBundle::new("d.jsonl", vec![SessionFile::in_memory("d.jsonl", "d.jsonl", text.to_vec())])
}

fn summarize(transcript: &Transcript) -> Vec<(&str, EntryKind)> {
    transcript.entries.iter().map(|entry| (entry.role.as_str(), entry.kind)).collect()
}

#[test]
fn reads_a_stored_session() {
    let transcript = reader::read_transcript(&READER, &bundle(STORE.as_bytes())).unwrap();
    assert_eq!(
        summarize(&transcript),
        [
            ("user", EntryKind::Notice),
            ("user", EntryKind::Text),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("user", EntryKind::Notice),
            ("system", EntryKind::Compaction),
            ("user", EntryKind::Notice),
            ("system", EntryKind::Other),
        ]
    );
    assert_eq!(transcript.session.title.as_deref(), Some("Listing"));
    assert_eq!(transcript.session.native_id.as_deref(), Some("d"));
    assert_eq!(transcript.entries[4].content, "no");
}

#[test]
fn reads_a_printed_session() {
    let transcript = reader::read_transcript(&READER, &bundle(STREAM.as_bytes())).unwrap();
    assert_eq!(
        summarize(&transcript),
        [
            ("system", EntryKind::Other),
            ("user", EntryKind::Text),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("assistant", EntryKind::Text),
            ("system", EntryKind::Error),
        ]
    );
    assert_eq!(transcript.session.models, ["m"]);
    assert_eq!(transcript.session.totals.usage.output, 5);
}

#[test]
fn reads_tokens_from_the_settings() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.jsonl");
    std::fs::write(&path, STORE).unwrap();
    let settings = r#"{"model":"opus","tokenUsage":{"inputTokens":7,"outputTokens":3}}"#;
    std::fs::write(dir.path().join("d.settings.json"), settings).unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    assert_eq!((found.len(), found[0].files.len()), (1, 2));
    let session = (READER.read)(&found[0], &mut |_| {}).unwrap();
    assert_eq!(session.models, ["opus"]);
    assert_eq!((session.totals.usage.input, session.totals.usage.output), (7, 3));
}

#[test]
fn every_cut_can_be_read() {
    for text in [STORE, STREAM] {
        for end in 0..text.len() {
            reader::read_transcript(&READER, &bundle(&text.as_bytes()[..end])).unwrap();
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes: Vec<u8>) {
        reader::read_transcript(&READER, &bundle(&bytes)).unwrap();
    }
}
