use proptest::prelude::*;

use super::*;
use crate::reader;
use steno_model::session::Transcript;
use steno_vault::SessionFile;

const THREAD: &str = r#"{"v":3,"id":"T-1","created":1768822920000,"title":"Fix","messages":[
{"role":"user","messageId":0,"content":[{"type":"text","text":"Fix"},{"type":"image","source":{"type":"base64","mediaType":"image/png","data":"AAAA"}}],"meta":{"sentAt":1768822925000}},
{"role":"assistant","messageId":1,"content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t","name":"Read","input":{"path":"/a"}}],"usage":{"model":"opus","inputTokens":1,"outputTokens":2,"cacheCreationInputTokens":3,"cacheReadInputTokens":4,"timestamp":"2026-01-19T11:42:10.652Z"}},
{"role":"user","messageId":2,"content":[{"type":"tool_result","toolUseID":"t","run":{"status":"error","result":{"content":"no"}}}]},
{"role":"assistant","messageId":3,"content":[{"type":"text","text":"Done"}]},7],
"env":{"initial":{"trees":[{"uri":"file:///p","repository":{"ref":"refs/heads/main"}}]}},
"usageLedger":{"events":[{"operationType":"title-generation","model":"haiku","toMessageId":1,"tokens":{"input":9,"output":9}},
{"operationType":"inference","model":"opus","timestamp":"2026-01-19T11:43:00Z","toMessageId":3,"tokens":{"input":10,"output":20}}]}}"#;

fn bundle(text: &[u8]) -> SessionBundle {
    SessionBundle::new(
        "T-1.json",
        vec![SessionFile::in_memory("T-1.json", "T-1.json", text.to_vec())],
    )
}

fn transcript() -> Transcript {
    reader::read_transcript(&READER, &bundle(THREAD.as_bytes())).unwrap()
}

#[test]
fn blocks_become_entries() {
    let transcript = transcript();
    let actual: Vec<_> = transcript.entries.iter().map(|it| (it.role.as_str(), it.kind)).collect();
    assert_eq!(
        actual,
        [
            ("user", EntryKind::Text),
            ("user", EntryKind::Text),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("assistant", EntryKind::Text),
        ]
    );
    assert_eq!(transcript.entries[4].content, "no");
    assert!(transcript.entries[4].metadata.is_some());
    assert!(transcript.entries[1].content.starts_with("[image/png, 3 bytes"));
    assert_eq!(transcript.problems.len(), 1);
}

#[test]
fn the_ledger_completes_answers() {
    let transcript = transcript();
    let last = transcript.entries.last().unwrap();
    assert_eq!(last.usage.unwrap().output, 20);
    assert_eq!(last.created_at.unwrap().to_string(), "2026-01-19T11:43:00Z");
    let usage = transcript.session.totals.usage;
    assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.output), (11, 4, 3, 22));
    assert_eq!(transcript.session.models, ["opus"]);
}

#[test]
fn the_session_ends_with_the_last_call_in_its_ledger() {
    let session = (READER.read)(&bundle(THREAD.as_bytes()), &mut |_| {}).unwrap();
    assert_eq!(session.ended.unwrap().to_string(), "2026-01-19T11:43:00Z");
    let later = THREAD.replace(r#""model":"haiku","#, r#""timestamp":"2026-01-19T11:50:00Z","#);
    let session = (READER.read)(&bundle(later.as_bytes()), &mut |_| {}).unwrap();
    assert_eq!(session.ended.unwrap().to_string(), "2026-01-19T11:50:00Z");
}

#[test]
fn an_answer_takes_its_time_from_the_ledger_where_its_usage_has_none() {
    let untimed = THREAD.replace(r#","timestamp":"2026-01-19T11:42:10.652Z"}}"#, "}}").replace(
        r#""operationType":"title-generation","#,
        r#""operationType":"inference","timestamp":"2026-01-19T11:42:11Z","#,
    );
    let transcript = reader::read_transcript(&READER, &bundle(untimed.as_bytes())).unwrap();
    assert_eq!(transcript.entries[2].created_at.unwrap().to_string(), "2026-01-19T11:42:11Z");
}

#[test]
fn the_session_is_described() {
    let session = (READER.read)(&bundle(THREAD.as_bytes()), &mut |_| {}).unwrap();
    assert_eq!(session.project.as_deref(), Some("/p"));
    assert_eq!(session.branch.as_deref(), Some("main"));
    assert_eq!(session.title.as_deref(), Some("Fix"));
    assert_eq!(session.ended.unwrap().to_string(), "2026-01-19T11:43:00Z");
}

#[test]
fn threads_are_found_by_their_start() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("T-1.json"), THREAD).unwrap();
    std::fs::write(dir.path().join("session.json"), "{\"id\":\"T-1\"}").unwrap();
    assert_eq!(READER.find_at(dir.path()).unwrap().len(), 1);
}

#[test]
fn every_cut_can_be_read() {
    for end in 0..THREAD.len() {
        let transcript =
            reader::read_transcript(&READER, &bundle(&THREAD.as_bytes()[..end])).unwrap();
        assert_eq!(transcript.problems.len(), 1);
    }
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes: Vec<u8>) {
        reader::read_transcript(&READER, &bundle(&bytes)).unwrap();
    }
}
