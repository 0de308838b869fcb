use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::decoding::temporary_vault;
use crate::reader;
use steno_model::entry::EntryKind;
use steno_model::session::Transcript;

fn call(id: &str, trace: &str, messages: Value, response: Value) -> Value {
    json!({"id": id, "trace_id": trace, "call_type": "acompletion", "response_cost": 0.25, "status": "success",
        "model": "gpt-5", "startTime": 1767603600.5, "endTime": 1767603601.0, "prompt_tokens": 7,
        "completion_tokens": 3, "messages": messages, "response": response})
}

fn sample() -> Vec<Value> {
    let answer = json!({"id": "r1", "object": "chat.completion", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Yes"}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1}});
    let mut failed = call("3", "t1", json!([]), json!(null));
    failed["error_str"] = json!("quota");
    vec![
        call("1", "t1", json!([{"role": "user", "content": "Go"}]), answer),
        call("2", "t2", json!({}), json!({})),
        failed,
    ]
}

fn write(calls: &str) -> (tempfile::TempDir, Vec<SessionBundle>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log.jsonl"), calls).unwrap();
    let found = READER.find_at(folder.path()).unwrap();
    (folder, found)
}

fn read_bytes(bytes: &[u8]) -> Option<Transcript> {
    let source = SessionFile::in_memory("a.jsonl", "/nowhere/a.jsonl", bytes.to_vec());
    reader::read_transcript(&READER, &SessionBundle::new("/nowhere/a.jsonl", vec![source])).ok()
}

fn text(calls: &[Value]) -> String {
    calls.iter().map(|call| call.to_string() + "\n").collect()
}

#[test]
fn a_trace_is_a_conversation() {
    let (_folder, found) = write(&text(&sample()));
    let keys: Vec<_> = found.iter().map(|bundle| bundle.key.as_deref()).collect();
    assert_eq!(keys, [Some("t1"), Some("t2")]);
    let first = reader::read_transcript(&READER, &found[0]).unwrap();
    let texts: Vec<_> = first.entries.iter().map(|e| (e.kind, e.content.as_str())).collect();
    assert_eq!(
        texts,
        [(EntryKind::Text, "Go"), (EntryKind::Text, "Yes"), (EntryKind::Error, "quota")]
    );
    assert_eq!(first.session.totals.cost, Some(0.5));
    assert_eq!(first.session.totals.usage.input, 5);
    assert_eq!(first.session.started.unwrap().to_string(), "2026-01-05T09:00:00.500Z");
    let second = reader::read_transcript(&READER, &found[1]).unwrap();
    assert_eq!((second.session.totals.usage.input, second.session.totals.usage.output), (7, 3));
    assert_eq!(second.session.models, ["gpt-5"]);
}

#[test]
fn lists_are_read_too() {
    let (_folder, found) = write(&serde_json::to_string_pretty(&sample()[..1]).unwrap());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].key, None);
    assert_eq!(reader::read_transcript(&READER, &found[0]).unwrap().entries.len(), 2);
}

#[test]
fn ignores_lines_without_a_call() {
    let (_folder, found) = write("{\"call_type\":\"x\"}\n");
    assert!(found.is_empty());
    let calls = text(&sample()[..1]) + "{torn";
    assert_eq!(read_bytes(calls.as_bytes()).unwrap().problems.len(), 1);
}

#[test]
fn a_file_cut_anywhere_is_read() {
    let whole = text(&sample());
    for end in 0..whole.len() {
        read_bytes(&whole.as_bytes()[..end]);
    }
}

#[test]
fn a_kept_file_gives_each_conversation() {
    let (folder, _) = write(&text(&sample()));
    assert_eq!(temporary_vault::check_kept_sessions(&READER, &folder.path().join("log.jsonl")), 2);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_bytes(&bytes);
    }
}
