use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::decoding::large;
use crate::reader;
use steno_model::entry::EntryKind;
use steno_model::session::Transcript;

fn sample() -> Value {
    json!([
        {"id": "u1", "role": "user", "parts": [
            {"type": "text", "text": "Weather?"},
            {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,Zm9v"}]},
        {"id": "a1", "role": "assistant",
            "metadata": {"model": "gpt-5", "createdAt": 1767603600500_i64,
                "usage": {"inputTokens": 10, "cachedInputTokens": 4, "outputTokens": 3}},
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm"},
                {"type": "tool-getWeather", "toolCallId": "c1", "state": "output-available",
                    "input": {"city": "Paris"}, "output": {"temp": 21}},
                {"type": "dynamic-tool", "toolName": "look", "toolCallId": "c2", "state": "output-error",
                    "input": {}, "errorText": "timeout"},
                {"type": "tool-wait", "toolCallId": "c3", "state": "input-available", "input": {}},
                {"type": "data-note", "data": {"k": 1}},
                {"type": "text", "text": "21C"}]},
    ])
}

fn read_bytes(bytes: &[u8]) -> Option<Transcript> {
    let source = SessionFile::in_memory("a.json", "/nowhere/a.json", bytes.to_vec());
    reader::read_transcript(&READER, &SessionBundle::new("/nowhere/a.json", vec![source])).ok()
}

#[test]
fn a_chat_larger_than_may_be_held_is_read() {
    let mut messages = sample();
    let message = |n| json!({"id": format!("m{n}"), "role": "user", "content": "~"});
    messages.as_array_mut().unwrap().extend((0..9).map(message));
    let document = json!({"title": "t", "messages": messages, "id": "c"});
    for (text, id) in [(messages.to_string(), None), (document.to_string(), Some("c"))] {
        let source = large::large_source("a.json", &text);
        assert!(recognises(&source));
        let (session, kinds, problems) = large::read_large(&READER, source);
        assert_eq!((kinds.len(), problems), (19, 0));
        let small = read_bytes(text.as_bytes()).unwrap().session;
        assert_eq!((session.id, session.native_id.as_deref()), (small.id, id));
    }
    messages.as_array_mut().unwrap().push(json!({"role": "user"}));
    assert!(!recognises(&large::large_source("a.json", &messages.to_string())));
}

#[test]
fn parts_become_entries() {
    let transcript = read_bytes(sample().to_string().as_bytes()).unwrap();
    let kinds: Vec<_> = transcript.entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(
        kinds,
        [
            EntryKind::Text,
            EntryKind::Text,
            EntryKind::Thinking,
            EntryKind::ToolCall,
            EntryKind::ToolResult,
            EntryKind::ToolCall,
            EntryKind::ToolResult,
            EntryKind::ToolCall,
            EntryKind::Other,
            EntryKind::Text,
        ]
    );
    let entries = &transcript.entries;
    assert!(entries[1].content.starts_with("[image/png, 3 bytes, blake3 "));
    assert_eq!(entries[4].content, r#"{"temp":21}"#);
    assert_eq!(entries[6].metadata.as_ref().unwrap()["is_error"], true);
    assert_eq!(entries[9].model.as_deref(), Some("gpt-5"));
    let usage = transcript.session.totals.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (6, 4, 3));
}

#[test]
fn older_messages_have_invocations() {
    let chat = json!({"id": "chat", "title": "Sums", "messages": [
        {"id": "u", "role": "user", "content": "1+1"},
        {"id": "a", "role": "assistant", "content": "2", "toolInvocations": [
            {"state": "result", "toolCallId": "c", "toolName": "add", "args": {"a": 1}, "result": 2}]}]});
    let transcript = read_bytes(chat.to_string().as_bytes()).unwrap();
    let kinds: Vec<_> = transcript.entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(
        kinds,
        [EntryKind::Text, EntryKind::ToolCall, EntryKind::ToolResult, EntryKind::Text]
    );
    assert_eq!(transcript.session.native_id.as_deref(), Some("chat"));
    assert_eq!(transcript.session.title.as_deref(), Some("Sums"));
}

#[test]
fn recognises_chats_by_their_messages() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, value: Value| {
        std::fs::write(folder.path().join(name), value.to_string()).unwrap();
    };
    write("chat.json", sample());
    write("other.json", json!([{"info": {"role": "user"}, "parts": [{"type": "text"}]}]));
    write("more.json", json!([{"role": "user", "parts": [{"text": "x"}]}]));
    let found = READER.find_at(folder.path()).unwrap();
    let names: Vec<_> = found.iter().map(|bundle| bundle.files[0].name()).collect();
    assert_eq!(names, ["chat.json"]);
}

#[test]
fn a_file_cut_anywhere_is_read() {
    let whole = sample().to_string();
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
