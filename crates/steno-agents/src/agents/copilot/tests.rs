use proptest::prelude::*;

use super::*;
use crate::inspect::inspect_session;
use crate::reader::{self, FoundSession};
use steno_model::entry::EntryKind;
use steno_model::session::Transcript;
use steno_vault::SessionFile;

fn event(kind: &str, data: &str) -> String {
    format!(
        r#"{{"type":"{kind}","data":{data},"id":"e","timestamp":"2026-01-05T09:00:00Z","parentId":null}}"#
    )
}

fn read_bytes(bytes: &[u8]) -> Transcript {
    let source = SessionFile::in_memory("events.jsonl", "/nowhere/s/events.jsonl", bytes.to_vec());
    reader::read_transcript(&READER, &SessionBundle::new("/nowhere/s/events.jsonl", vec![source]))
        .unwrap()
}

fn read_lines(lines: &[String]) -> Transcript {
    read_bytes(lines.join("\n").as_bytes())
}

fn sample() -> Vec<String> {
    vec![
        event("session.start", r#"{"sessionId":"s","context":{"cwd":"/w","branch":"main"}}"#),
        event("user.message", r#"{"content":"List","transformedContent":"<now/> List"}"#),
        event("user.message", r#"{"content":"skill text","source":"skill-pdf"}"#),
        event("assistant.reasoning", r#"{"content":"hm"}"#),
        event(
            "assistant.message",
            r#"{"messageId":"m1","content":"I look","reasoningText":"hm","model":"gpt-5","outputTokens":7,"toolRequests":[{"toolCallId":"c1","name":"bash","arguments":"{\"a\":1}"}]}"#,
        ),
        event("assistant.message", r#"{"messageId":"m1","content":"closely","outputTokens":7}"#),
        event("tool.execution_start", r#"{"toolCallId":"c1","toolName":"bash","arguments":{}}"#),
        event(
            "tool.execution_complete",
            r#"{"toolCallId":"c1","success":false,"result":{"content":"no"}}"#,
        ),
        event(
            "assistant.message",
            r#"{"messageId":"m2","content":"inside","parentToolCallId":"c1"}"#,
        ),
    ]
}

#[test]
fn entries_of_subagents_count_like_their_tokens() {
    let mut lines = sample();
    let inside = r#"{"toolCallId":"c2","toolName":"ls","success":true,"parentToolCallId":"c1"}"#;
    lines.push(event("tool.execution_start", inside));
    lines.push(event("tool.execution_complete", inside));
    lines.push(event("user.message", r#"{"content":"task","parentToolCallId":"c1"}"#));
    let source = SessionFile::in_memory("e.jsonl", "/nowhere/e.jsonl", lines.join("\n").into());
    let bundle = SessionBundle::new("/nowhere/e.jsonl", vec![source]);
    let counted = inspect_session(&FoundSession { reader: &READER, bundle }).unwrap();
    assert_eq!((counted.user_prompts, counted.assistant_messages), (1, 2));
    assert_eq!((counted.tool_calls, counted.tool_results), (2, 2));
}

#[test]
fn a_session_of_the_first_versions_is_read() {
    let document = r#"{"sessionId":"old","startTime":"2025-10-08T21:10:16.398Z","chatMessages":[
        {"role":"system","content":"be kind"},
        {"role":"user","content":"Add it"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",
            "function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"a"},
        {"role":"assistant","content":"Done"},3],
        "timeline":[{"type":"tool_call_completed","timestamp":"2025-10-08T21:12:00.000Z"}]}"#;
    let source =
        SessionFile::in_memory("session_old.json", "/nowhere/session_old.json", document.into());
    let bundle = SessionBundle::new("/nowhere/session_old.json", vec![source]);
    let transcript = reader::read_transcript(&READER, &bundle).unwrap();
    let kinds: Vec<_> = transcript.entries.iter().map(|entry| entry.kind).collect();
    use EntryKind::{Text, ToolCall, ToolResult};
    assert_eq!(kinds, [Text, Text, ToolCall, ToolResult, Text]);
    assert_eq!(transcript.session.native_id.as_deref(), Some("old"));
    assert_eq!(transcript.session.ended.unwrap().to_string(), "2025-10-08T21:12:00.000Z");
    assert_eq!(transcript.problems[0].reason, "message 6: not a JSON object");
}

/// All content may be encrypted, or was emitted before.
#[test]
fn a_message_that_shows_nothing_is_a_message() {
    let lines = [
        event("assistant.message", r#"{"messageId":"m1","content":"","encryptedContent":"x"}"#),
        event("assistant.message", r#"{"messageId":"m1","content":""}"#),
        event("assistant.reasoning", r#"{"content":"hm"}"#),
        event("assistant.message", r#"{"messageId":"m2","content":"","reasoningText":"hm"}"#),
    ];
    let entries = read_lines(&lines).entries;
    let ids: Vec<_> = entries.iter().map(|entry| entry.message_id.as_deref()).collect();
    assert_eq!(ids, [Some("m1"), None, Some("m2")]);
}

#[test]
fn emits_messages_calls_and_results_once() {
    let transcript = read_lines(&sample());
    let texts: Vec<_> = transcript.entries.iter().map(|e| (e.kind, e.content.as_str())).collect();
    assert_eq!(
        texts,
        [
            (EntryKind::Text, "List"),
            (EntryKind::Notice, "skill text"),
            (EntryKind::Thinking, "hm"),
            (EntryKind::Text, "I look"),
            (EntryKind::ToolCall, ""),
            (EntryKind::Text, "closely"),
            (EntryKind::ToolResult, "no"),
            (EntryKind::Text, "inside"),
        ]
    );
    assert_eq!(transcript.entries[6].tool_name.as_deref(), Some("bash"));
    assert_eq!(transcript.entries[6].metadata.as_ref().unwrap()["is_error"], true);
    assert_eq!(transcript.entries[7].source, "subagent:c1");
    assert_eq!(transcript.session.project.as_deref(), Some("/w"));
    assert_eq!(transcript.session.models, ["gpt-5"]);
    assert_eq!(transcript.session.totals.usage.output, 7);
}

#[test]
fn each_process_states_its_tokens() {
    let metrics = r#"{"m":{"usage":{"inputTokens":100,"outputTokens":9,"cacheReadTokens":80}}}"#;
    let shutdown = event("session.shutdown", &format!(r#"{{"modelMetrics":{metrics}}}"#));
    let nested = format!(r#"{{"accountingSnapshot":{{"modelMetrics":{metrics}}}}}"#);
    let mut lines = sample();
    let more = r#"{"messageId":"m3","content":"more","outputTokens":9}"#;
    lines.extend([shutdown, event("assistant.message", more)]);
    lines.push(event("session.shutdown", &nested));
    let record = r#"{"usage":{"inputTokens":5,"outputTokens":1,"apiCallId":"a"}}"#;
    lines.extend([event("session.usage_record", record), event("session.usage_record", record)]);
    let usage = read_lines(&lines).session.totals.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (45, 160, 19));
}

#[test]
fn a_compaction_is_a_seam_and_a_summary() {
    let lines = [
        event("session.compaction_start", "{}"),
        event("session.compaction_complete", r#"{"summaryContent":"So far"}"#),
        event("session.error", r#"{"message":"quota"}"#),
        event("novel.thing", r#"{"n":1}"#),
        "{torn".to_owned(),
    ];
    let transcript = read_lines(&lines);
    let kinds: Vec<_> = transcript.entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(
        kinds,
        [EntryKind::Compaction, EntryKind::Notice, EntryKind::Error, EntryKind::Other]
    );
    assert_eq!(transcript.entries[3].metadata.as_ref().unwrap()["data"]["n"], 1);
    assert_eq!(transcript.problems[0].line, Some(5));
}

#[test]
fn recognises_logs_by_their_events() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("events.jsonl"), sample().join("\n")).unwrap();
    std::fs::write(folder.path().join("other.jsonl"), "{\"type\":\"user\",\"data\":{}}\n").unwrap();
    let found = READER.find_at(folder.path()).unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].root.ends_with("events.jsonl"));
}

#[test]
fn a_file_cut_anywhere_is_read() {
    let whole = sample().join("\n");
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
