use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::decoding::large;
use crate::inspect::{SessionInspection, inspect_session};
use crate::reader::{self, FoundSession};
use steno_model::entry::EntryKind;
use steno_model::session::Transcript;
use steno_vault::SessionFile;

/// A span with `fields` as attributes.
fn span(id: &str, parent: &str, start: u64, fields: &Value) -> Value {
    let attribute = |(key, value): (&String, &Value)| match value {
        Value::Number(number) => json!({"key": key, "value": {"intValue": number.to_string()}}),
        Value::String(text) => json!({"key": key, "value": {"stringValue": text}}),
        other => json!({"key": key, "value": {"stringValue": other.to_string()}}),
    };
    let attributes: Vec<_> = fields.as_object().unwrap().iter().map(attribute).collect();
    let nanos = |seconds: u64| format!("{}000000000", 1_770_000_000 + seconds);
    json!({"traceId": "t1", "spanId": id, "parentSpanId": parent, "attributes": attributes,
           "startTimeUnixNano": nanos(start), "endTimeUnixNano": nanos(start + 1)})
}

fn document(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
}

fn new_message(role: &str, text: &str) -> Value {
    json!({"role": role, "parts": [{"type": "text", "content": text}]})
}

fn spans() -> Vec<Value> {
    let call = json!({"role": "assistant", "parts": [
        {"type": "reasoning", "content": "Hm"},
        {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Paris"}}]});
    let response = json!({"role": "tool", "parts": [
        {"type": "tool_call_response", "id": "c1", "response": "rain"}]});
    vec![
        span(
            "4",
            "1",
            4,
            &json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
            "gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 3,
            "gen_ai.input.messages": [new_message("user", "Weather?"), call, response],
            "gen_ai.output.messages": [new_message("assistant", "Rain.")]}),
        ),
        span(
            "1",
            "",
            0,
            &json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a",
            "gen_ai.conversation.id": "conv"}),
        ),
        span(
            "2",
            "1",
            1,
            &json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
            "gen_ai.response.id": "r1", "gen_ai.usage.input_tokens": 10,
            "gen_ai.usage.cache_read.input_tokens": 4, "gen_ai.usage.output_tokens": 2,
            "gen_ai.input.messages": [new_message("user", "Weather?")], "gen_ai.output.messages": [call]}),
        ),
        span(
            "3",
            "1",
            2,
            &json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather",
            "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "rain"}),
        ),
    ]
}

fn bundle(bytes: &[u8]) -> SessionBundle {
    SessionBundle::new(
        "/spans.json",
        vec![SessionFile::in_memory("spans.json", "/spans.json", bytes.to_vec())],
    )
}

fn transcript(spans: &[Value]) -> Transcript {
    reader::read_transcript(&READER, &bundle(document(spans).to_string().as_bytes())).unwrap()
}

fn counted(spans: &[Value]) -> SessionInspection {
    let bundle = bundle(document(spans).to_string().as_bytes());
    inspect_session(&FoundSession { reader: &READER, bundle }).unwrap()
}

#[test]
fn emits_a_conversation_once() {
    let counted = counted(&spans());
    assert_eq!((counted.user_prompts, counted.assistant_messages), (1, 2));
    assert_eq!((counted.tool_calls, counted.tool_results), (1, 1));
    let tokens = counted.tokens;
    assert_eq!((tokens.input, tokens.cache_read, tokens.output), (36, 4, 5));
    assert_eq!(counted.session_id.as_deref(), Some("conv"));
    let kinds: Vec<_> = transcript(&spans()).entries.iter().map(|entry| entry.kind).collect();
    let expected = [
        EntryKind::Notice,
        EntryKind::Text,
        EntryKind::Thinking,
        EntryKind::ToolCall,
        EntryKind::ToolResult,
        EntryKind::Text,
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn spans_larger_than_may_be_held_are_read_in_their_order() {
    let mut all = spans();
    // Later spans come first, as if they had ended in reverse order.
    let tool = |n: u64| {
        let result = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": n,
            "gen_ai.tool.call.result": "~"});
        span(&format!("tool {n}"), "1", 100 - n, &result)
    };
    all.splice(0..0, (0..9).map(tool));
    let expected: Vec<_> = transcript(&all).entries.iter().map(|entry| entry.kind).collect();
    let lines = all.iter().map(|span| document(std::slice::from_ref(span)).to_string() + "\n");
    let pretty = format!("{:#}", document(&all));
    for text in [document(&all).to_string(), pretty, lines.collect()] {
        let (_, kinds, problems) =
            large::read_large(&READER, large::large_source("spans.json", &text));
        assert_eq!((&kinds, problems), (&expected, 0));
    }
}

#[test]
fn repeated_messages_are_new_entries() {
    let chat = |id: &str, start: u64, input: Vec<Value>| {
        span(
            id,
            "",
            start,
            &json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": input,
            "gen_ai.output.messages": [new_message("assistant", "ok")]}),
        )
    };
    let (yes, ok) = (new_message("user", "yes"), new_message("assistant", "ok"));
    let two = [
        chat("1", 0, vec![yes.clone()]),
        chat("2", 1, vec![yes.clone(), ok.clone(), yes.clone()]),
        // Shortened: only the question is new.
        chat("3", 2, vec![ok, new_message("user", "more")]),
    ];
    assert_eq!(counted(&two).user_prompts, 3);
}

#[test]
fn tools_are_no_answers_and_an_agent_names_its_model() {
    let agent = json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Copilot",
        "gen_ai.request.model": "gpt-5.5"});
    let tool = |call: &str| {
        json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": call,
            "gen_ai.tool.name": "run_build", "gen_ai.tool.call.result": "ok"})
    };
    let all = [
        span("1", "", 0, &agent),
        span("2", "1", 1, &tool("call 1")),
        span("3", "1", 2, &tool("call 2")),
    ];
    let counted = counted(&all);
    assert_eq!((counted.assistant_messages, counted.tool_calls, counted.tool_results), (0, 2, 2));
    assert_eq!(counted.models, ["gpt-5.5"]);
}

#[test]
fn gemini_cli_names_operations_in_its_own_way() {
    let call = json!({"gen_ai.operation.name": "llm_call", "gen_ai.request.model": "m"});
    let tool = json!({"gen_ai.operation.name": "tool_call", "gen_ai.tool.name": "ls",
        "gen_ai.tool.call_id": "c"});
    let counted = counted(&[span("1", "", 0, &call), span("2", "", 1, &tool)]);
    assert_eq!((counted.assistant_messages, counted.tool_calls), (1, 1));
    assert_eq!(counted.models, ["m"]);
}

#[test]
fn older_events_are_read() {
    let mut chat =
        span("1", "", 0, &json!({"gen_ai.system": "openai", "gen_ai.request.model": "m"}));
    let attribute = |key: &str, text: &str| json!({"key": key, "value": {"stringValue": text}});
    let call = r#"{"id":"c","function":{"name":"f","arguments":"{\"x\":1}"}}"#;
    let choice = format!(r#"{{"content":"Ho","tool_calls":[{call}]}}"#);
    chat["events"] = json!([
        {"name": "gen_ai.user.message", "attributes": [attribute("content", "Hi")]},
        {"name": "gen_ai.choice", "attributes": [attribute("message", &choice)]}
    ]);
    let transcript = transcript(&[chat]);
    let texts: Vec<_> = transcript.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(texts, ["Hi", "Ho", ""]);
    assert_eq!(transcript.entries[2].tool_input, Some(json!({"x": 1})));
}

#[test]
fn an_invoked_agents_agent_is_a_subagent() {
    let agent = |id: &str, parent: &str, start: u64| {
        let fields = json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": id});
        span(id, parent, start, &fields)
    };
    let chat = span("x", "inner", 2, &json!({"gen_ai.operation.name": "chat"}));
    let got = transcript(&[agent("outer", "inner", 0), agent("inner", "outer", 1), chat.clone()]);
    assert_eq!(got.entries.last().unwrap().source, "subagent:inner");
    let got = transcript(&[agent("inner", "gone", 1), chat]);
    assert_eq!(got.entries.last().unwrap().source, "primary");
}

#[test]
fn emits_failures() {
    let mut chat = span("1", "", 0, &json!({"gen_ai.operation.name": "chat"}));
    chat["status"] = json!({"code": 2, "message": "overloaded"});
    let transcript = transcript(&[chat]);
    assert_eq!(transcript.entries[1].kind, EntryKind::Error);
    assert_eq!(transcript.entries[1].content, "overloaded");
}

#[test]
fn lines_are_read_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spans.jsonl");
    let mut other = spans().remove(1);
    other["traceId"] = json!("t2");
    other["attributes"][2]["value"]["stringValue"] = json!("conv 2");
    let lines =
        [document(&spans()).to_string(), "{torn".to_owned(), document(&[other]).to_string()];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    let keys: Vec<_> = found.iter().map(|bundle| bundle.key.as_deref()).collect();
    assert_eq!(keys, [Some("conv"), Some("conv 2")]);
    let transcript = reader::read_transcript(&READER, &found[1]).unwrap();
    assert_eq!((transcript.entries.len(), transcript.problems[0].line), (1, Some(2)));
}

#[test]
fn ignores_records_that_are_no_spans() {
    let mut all = spans();
    all.extend([json!(1), json!("x"), json!({})]);
    let bundle = bundle(document(&all).to_string().as_bytes());
    let outline = SpanOutline::read([&bundle.files[0]], &mut |_| {}).unwrap();
    assert_eq!(outline.marks.len(), spans().len());
}

#[test]
fn a_cut_anywhere_is_no_panic() {
    let text = document(&spans()).to_string();
    for end in 0..text.len() {
        let _ = reader::read_transcript(&READER, &bundle(&text.as_bytes()[..end]));
    }
}

#[test]
fn a_file_that_was_rotated_goes_on() {
    let (all, whole) = (spans(), transcript(&spans()));
    let text = |spans: &[Value]| document(spans).to_string().into_bytes();
    let mut rotated = bundle(&text(&all[..2]));
    // Both files have one of the spans.
    let earlier = SessionFile::in_memory("spans.json", "/spans.json", text(&all[1..]));
    rotated.earlier_files.push(earlier);
    let rotated = reader::read_transcript(&READER, &rotated).unwrap();
    assert_eq!(rotated.entries, whole.entries);
    assert_eq!(rotated.session.totals, whole.session.totals);
}

/// A document of log records, each with a name, a second and attributes.
fn log(records: &[(&str, u64, Value)]) -> String {
    let record = |(name, second, attributes): &(&str, u64, Value)| {
        let mut fields = attributes.as_object().unwrap().clone();
        fields.insert("event.name".to_owned(), json!(name));
        fields.insert("session.id".to_owned(), json!("s1"));
        let fields = fields.iter().map(|(key, value)| match value.as_str() {
            Some(text) => json!({"key": key, "value": {"stringValue": text}}),
            None => json!({"key": key, "value": {"intValue": value}}),
        });
        json!({"timeUnixNano": (1_767_603_600 + second) * 1_000_000_000,
            "body": {"stringValue": name}, "attributes": fields.collect::<Vec<_>>()})
    };
    let records: Vec<_> = records.iter().map(record).collect();
    json!({"resourceLogs": [{"resource": {}, "scopeLogs": [{"logRecords": records}]}]}).to_string()
}

fn counted_log(text: &str) -> SessionInspection {
    inspect_session(&FoundSession { reader: &READER, bundle: bundle(text.as_bytes()) }).unwrap()
}

#[test]
fn logs_of_gemini_cli_are_read() {
    let response = json!([{"candidates": [{"content": {"parts": [{"text": "I will "}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "look."},
            {"functionCall": {"name": "ls", "args": {"path": "."}}}]}}]}]);
    let tokens = |role: &str, text: String| {
        json!({"model": "gemini-3", "input_token_count": 100, "output_token_count": 17, "role": role,
            "cached_content_token_count": 20, "thoughts_token_count": 3, "response_text": text})
    };
    let details = json!({"gen_ai.usage.output_tokens": 17, "gen_ai.response.id": "r"});
    let text = log(&[
        ("gemini_cli.config", 0, json!({})),
        ("gemini_cli.user_prompt", 1, json!({"prompt": "run it"})),
        ("gemini_cli.api_request", 2, json!({"request_text": "[]"})),
        ("gen_ai.client.inference.operation.details", 2, json!({"gen_ai.request.model": "m"})),
        ("gemini_cli.api_response", 3, tokens("utility_router", "{}".to_owned())),
        ("gen_ai.client.inference.operation.details", 3, details),
        ("gemini_cli.api_response", 4, tokens("main", response.to_string())),
        ("gemini_cli.tool_call", 5, json!({"function_name": "ls", "success": "true"})),
        ("gemini_cli.tool_call", 6, json!({"function_name": "cat", "function_args": "{}"})),
    ]);
    let counted = counted_log(&text);
    assert_eq!((counted.user_prompts, counted.assistant_messages), (1, 2));
    assert_eq!((counted.tool_calls, counted.tool_results), (2, 2));
    let tokens = counted.tokens;
    assert_eq!(
        (tokens.input, tokens.cache_read, tokens.output, tokens.reasoning),
        (160, 40, 40, 6)
    );
    assert_eq!(counted.models, ["gemini-3"]);
    assert_eq!(counted.session_id.as_deref(), Some("s1"));
    let transcript = reader::read_transcript(&READER, &bundle(text.as_bytes())).unwrap();
    let texts: Vec<_> =
        transcript.entries.iter().map(|it| (it.kind, it.content.as_str())).collect();
    assert_eq!(texts[1], (EntryKind::Text, "run it"));
    assert!(texts.contains(&(EntryKind::Text, "I will look.")));
}

#[test]
fn logs_of_claude_code_and_codex_are_read() {
    let claude = log(&[
        ("claude_code.user_prompt", 0, json!({"prompt": "hi"})),
        (
            "claude_code.api_request",
            1,
            json!({"model": "claude-opus-4-8", "input_tokens": "10",
            "output_tokens": "5", "cache_read_tokens": "7", "cache_creation_tokens": "2"}),
        ),
        (
            "claude_code.tool_result",
            2,
            json!({"tool_name": "Bash", "success": "false", "error": "no"}),
        ),
    ]);
    let counted = counted_log(&claude);
    assert_eq!((counted.user_prompts, counted.assistant_messages, counted.tool_calls), (1, 1, 1));
    let tokens = counted.tokens;
    assert_eq!((tokens.input, tokens.cache_read, tokens.cache_write, tokens.output), (10, 7, 2, 5));
    let codex = log(&[
        ("codex.user_prompt", 0, json!({"prompt": "hi"})),
        ("codex.sse_event", 1, json!({"event.kind": "response.output_item.done"})),
        (
            "codex.sse_event",
            2,
            json!({"event.kind": "response.completed", "input_token_count": 10,
            "cached_token_count": 4, "output_token_count": 5, "reasoning_token_count": 1}),
        ),
        ("codex.tool_result", 3, json!({"tool_name": "shell", "call_id": "c", "output": "ok"})),
    ]);
    let counted = counted_log(&codex);
    assert_eq!((counted.user_prompts, counted.assistant_messages, counted.tool_calls), (1, 1, 1));
    let tokens = counted.tokens;
    assert_eq!((tokens.input, tokens.cache_read, tokens.output, tokens.reasoning), (6, 4, 5, 1));
}

#[test]
fn a_cut_log_is_no_panic() {
    let text = log(&[("gemini_cli.user_prompt", 1, json!({"prompt": "run it"}))]);
    for end in 0..text.len() {
        let _ = reader::read_transcript(&READER, &bundle(&text.as_bytes()[..end]));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = reader::read_transcript(&READER, &bundle(&bytes));
    }
}
