use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::reader;
use steno_model::entry::EntryKind;
use steno_model::session::Transcript;

fn read_bytes(bytes: &[u8]) -> Transcript {
    let source = SessionFile::in_memory("a.json", "/nowhere/a.json", bytes.to_vec());
    reader::read_transcript(&READER, &SessionBundle::new("/nowhere/a.json", vec![source])).unwrap()
}

fn summarize(transcript: &Transcript) -> Vec<(&str, EntryKind, &str)> {
    let entries = transcript.entries.iter();
    entries.map(|entry| (entry.role.as_str(), entry.kind, entry.content.as_str())).collect()
}

fn lines(records: &[Value]) -> Transcript {
    let text: Vec<_> = records.iter().map(Value::to_string).collect();
    read_bytes(text.join("\n").as_bytes())
}

fn start(id: &str) -> Value {
    json!({"type": "message_start", "message": {"id": id, "type": "message", "role": "assistant",
        "content": [], "model": "claude", "usage": {"input_tokens": 17, "output_tokens": 1}}})
}

fn block(index: u32, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn anthropic_stream() -> Vec<Value> {
    vec![
        start("m"),
        start("m"),
        block(0, json!({"type": "text", "text": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "text_delta", "text": "Hel"})),
        delta(0, json!({"type": "text_delta", "text": "lo"})),
        json!({"type": "content_block_stop", "index": 0}),
        block(1, json!({"type": "tool_use", "id": "t", "name": "ls", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"a\":"})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "1}"})),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn a_stream_becomes_one_message() {
    let transcript = lines(&anthropic_stream());
    assert_eq!(
        summarize(&transcript),
        [("assistant", EntryKind::Text, "Hello"), ("assistant", EntryKind::ToolCall, "")]
    );
    assert_eq!(transcript.entries[1].tool_input, Some(json!({"a": 1})));
    assert_eq!(transcript.entries[0].message_id, transcript.entries[1].message_id);
    let usage = transcript.session.totals.usage;
    assert_eq!((usage.input, usage.output), (17, 30));
    assert_eq!(transcript.session.stop_reason.as_deref(), Some("tool_use"));
}

#[test]
fn fields_of_a_stream_are_taken_off() {
    let events: Vec<_> = anthropic_stream()
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect();
    let transcript = read_bytes((events.concat() + "data: [DONE]\n").as_bytes());
    assert_eq!(transcript.entries.len(), 2);
    assert!(transcript.problems.is_empty());
}

#[test]
fn a_message_spliced_into_another_ends_it() {
    let mut events = anthropic_stream()[..9].to_vec();
    events.push(start("n"));
    events.push(block(0, json!({"type": "text", "text": "Again"})));
    let transcript = lines(&events);
    assert_eq!(
        summarize(&transcript),
        [
            ("assistant", EntryKind::Text, "Hello"),
            ("assistant", EntryKind::Error, "call of ls broke off"),
            ("assistant", EntryKind::Text, "Again"),
        ]
    );
}

#[test]
fn chunks_become_a_completion() {
    let chunk = |delta: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1770933892,
        "model": "gpt", "choices": [{"index": 0, "delta": delta}], "usage": null})
    };
    let transcript = lines(&[
        chunk(json!({"role": "assistant", "content": "He"})),
        chunk(json!({"content": "llo"})),
        chunk(
            json!({"tool_calls": [{"index": 0, "id": "t", "function": {"name": "ls", "arguments": "{\"a"}}]}),
        ),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "\":1}"}}]})),
        json!({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 16,
            "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 6},
            "completion_tokens_details": {"reasoning_tokens": 2}}}),
    ]);
    assert_eq!(
        summarize(&transcript),
        [("assistant", EntryKind::Text, "Hello"), ("assistant", EntryKind::ToolCall, "")]
    );
    assert_eq!(transcript.entries[1].tool_input, Some(json!({"a": 1})));
    let usage = transcript.session.totals.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.reasoning), (10, 6, 9, 2));
    assert_eq!(transcript.session.started.unwrap().unix_seconds(), 1770933892);
}

#[test]
fn the_last_event_of_a_response_is_complete() {
    let item = json!({"type": "message", "id": "i", "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi"}]});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let completed = json!({"type": "response.completed", "response": {"id": "r", "object": "response",
        "created_at": 1764180467, "model": "gpt", "output": [item], "usage": {"input_tokens": 5, "output_tokens": 2}}});
    let whole = lines(&[done.clone(), completed]);
    assert_eq!(summarize(&whole), [("assistant", EntryKind::Text, "Hi")]);
    assert_eq!(whole.session.totals.usage.input, 5);
    assert_eq!(summarize(&lines(&[done])), [("assistant", EntryKind::Text, "Hi")]);
}

#[test]
fn skips_messages_that_requests_repeat() {
    let message = |role: &str, content: Value| json!({"role": role, "content": content});
    let answer = json!({"id": "m1", "type": "message", "role": "assistant", "model": "claude",
        "content": [{"type": "text", "text": "Yes"}], "usage": {"input_tokens": 3, "output_tokens": 1}});
    let first = json!({"model": "claude", "system": "Be brief", "messages": [message("user", json!("Go"))]});
    let second = json!({"model": "claude", "system": "Be brief", "messages": [
        message("user", json!("Go")),
        message("assistant", json!([{"type": "text", "text": "Yes"}])),
        message("user", json!([{"type": "tool_result", "tool_use_id": "t", "content": "ok", "is_error": true}])),
        message("user", json!("Go")),
    ]});
    let transcript = lines(&[
        json!({"timestamp": "2026-01-05T09:00:00Z", "request": first, "response": answer}),
        second.clone(),
        second,
    ]);
    assert_eq!(
        summarize(&transcript),
        [
            ("system", EntryKind::Text, "Be brief"),
            ("user", EntryKind::Text, "Go"),
            ("assistant", EntryKind::Text, "Yes"),
            ("tool", EntryKind::ToolResult, "ok"),
            ("user", EntryKind::Text, "Go"),
        ]
    );
    assert!(transcript.entries[0].created_at.is_some());
}

#[test]
fn compactions_are_seams_and_are_billed() {
    let response = json!({"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [
        {"type": "compaction", "content": "So far"}, {"type": "text", "text": "On"}],
        "usage": {"input_tokens": 10, "output_tokens": 2, "iterations": [
            {"type": "compaction", "input_tokens": 100, "output_tokens": 20},
            {"type": "message", "input_tokens": 10, "output_tokens": 2}]}});
    let transcript = read_bytes(serde_json::to_string_pretty(&response).unwrap().as_bytes());
    let kinds: Vec<_> = transcript.entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Compaction, EntryKind::Notice, EntryKind::Text]);
    let usage = transcript.session.totals.usage;
    assert_eq!((usage.input, usage.output), (110, 22));
}

#[test]
fn recognises_logs_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, value: &Value, pretty: bool| {
        let text =
            if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
        std::fs::write(folder.path().join(name), text.unwrap()).unwrap();
    };
    let request = json!({"model": "gpt", "messages": [{"role": "user", "content": "x"}]});
    write("request.json", &request, true);
    write("chunk.txt", &start("m"), false);
    write("list.json", &json!([request]), true);
    write("other.json", &json!({"model": "gpt", "messages": [], "threadId": 1}), true);
    write("another.json", &json!({"type": "message", "role": "assistant", "content": "x"}), false);
    let found = READER.find_at(folder.path()).unwrap();
    let names: Vec<_> = found.iter().map(|bundle| bundle.files[0].name()).collect();
    assert_eq!(names, ["chunk.txt", "list.json", "request.json"]);
}

#[test]
fn a_file_cut_anywhere_is_read() {
    let whole: Vec<_> = anthropic_stream().iter().map(Value::to_string).collect();
    let whole = whole.join("\n");
    for end in 0..whole.len() {
        read_bytes(&whole.as_bytes()[..end]);
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_bytes(&bytes);
    }
}
