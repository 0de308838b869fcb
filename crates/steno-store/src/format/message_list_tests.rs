//! Messages in lines, lists and documents.

use std::path::Path;

use serde_json::json;

use super::record_shape;
use steno_agents::interchange::openai::*;
use steno_model::entry::Entry;
use steno_model::json::{JsonStyle, Value};
use steno_model::session::Transcript;

const PICTURE: &str = "data:image/png;base64,iVBORw0KGgo=";

/// A conversation with a picture, calls of both kinds, their results and an unknown field.
fn messages() -> Vec<Value> {
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{\"n\": 1.50}"}});
    vec![
        json!({"role": "developer", "content": "be brief"}),
        json!({"role": "user", "content": [{"type": "text", "text": "what is this"},
            {"type": "image_url", "image_url": {"url": PICTURE}}, {"type": "map", "at": [1, 2]}]}),
        json!({"role": "assistant", "content": null, "tool_calls": [call("c1", "ls"), call("c2", "cat")]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "a b"}),
        json!({"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "c"}]}),
        json!({"role": "assistant", "content": null, "function_call": {"name": "old", "arguments": "{}"}}),
        json!({"role": "function", "name": "old", "content": "res"}),
        json!({"role": "assistant", "content": "done", "refusal": null, "mood": {"x": 1}}),
    ]
}

fn items() -> Vec<Value> {
    vec![
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"},
            {"type": "input_image", "image_url": PICTURE}]}),
        json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}),
        json!({"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}", "mood": 1}),
        json!({"type": "function_call_output", "call_id": "c1", "output": "x"}),
        json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}),
    ]
}

fn summarize(entries: &[Entry]) -> Vec<String> {
    let words = entries.iter().map(|entry| {
        let input = entry.tool_input.as_ref().map(|input| JsonStyle::COMPACT.print(input));
        format!("{}: {}{}", entry.heading(), entry.content, input.unwrap_or_default())
    });
    words.collect()
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| JsonStyle::COMPACT.print(value) + "\n").collect()
}

fn read(name: &str, text: &str) -> Transcript {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let found = super::find_sessions(Path::new(&path)).unwrap();
    assert_eq!(found.len(), 1, "{name}");
    found[0].read_transcript().unwrap()
}

fn picture() -> String {
    steno_agents::decoding::attachment::describe_url("image", PICTURE)
}

#[test]
fn finds_messages_at_any_depth() {
    let expected = [
        "system: be brief".to_owned(),
        format!("user: what is this\n{}\n{{\"type\":\"map\",\"at\":[1,2]}}", picture()),
        "tool call ls: {\"n\":1.50}".to_owned(),
        "tool call cat: {\"n\":1.50}".to_owned(),
        "tool result: a b".to_owned(),
        "tool result: c".to_owned(),
        "tool call old: {}".to_owned(),
        "tool result old: res".to_owned(),
        "assistant: done".to_owned(),
        "system other: {\"mood\":{\"x\":1}}".to_owned(),
    ];
    let messages = messages();
    let list = Value::Array(messages.clone());
    let object = json!({"messages": messages, "tools": [], "parallel_tool_calls": false});
    let files = [
        ("lines.jsonl", lines(&messages)),
        ("list.json", list.to_string()),
        ("pretty.json", JsonStyle::PRETTY.print(&list)),
        ("object.json", object.to_string()),
        ("line.jsonl", lines(&[list])),
        ("training.jsonl", lines(&[object])),
    ];
    for (name, text) in files {
        let transcript = read(name, &text);
        assert_eq!(summarize(&transcript.entries), expected, "{name}");
        let reports: Vec<_> = transcript.problems.iter().map(|it| &it.reason).collect();
        assert_eq!(reports, [&unknown_field_reason("mood")], "{name}");
        assert!(transcript.problems[0].is_notice());
    }
}

#[test]
fn finds_items_at_any_depth() {
    let expected = [
        format!("user: hi\n{}", picture()),
        "assistant thinking: hm".to_owned(),
        "tool call ls: {}".to_owned(),
        "system other: {\"mood\":1}".to_owned(),
        "tool result: x".to_owned(),
        "assistant: ok".to_owned(),
    ];
    let items = items();
    let list = Value::Array(items.clone());
    let object = json!({"input": items});
    for (name, text) in [
        ("lines.jsonl", lines(&items)),
        ("list.json", list.to_string()),
        ("object.json", object.to_string()),
    ] {
        assert_eq!(summarize(&read(name, &text).entries), expected, "{name}");
    }
}

#[test]
fn each_line_of_training_data_is_a_conversation_of_its_own() {
    let line = json!({"messages": messages(), "reference": 5});
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("training.jsonl");
    std::fs::write(&path, lines(&[line.clone(), line.clone(), line])).unwrap();
    let found = super::find_sessions(&path).unwrap().remove(0);
    let counted = steno_agents::inspect::inspect_session(&found).unwrap();
    assert_eq!((counted.user_prompts, counted.assistant_messages), (3, 9));
    assert_eq!((counted.tool_calls, counted.tool_results), (9, 9));
    assert_eq!(counted.bad_lines, 0);
    let reports: Vec<_> = counted.problems.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(reports, [unknown_field_reason("mood"), unknown_field_reason("reference")]);
    let transcript = found.read_transcript().unwrap();
    let ids: Vec<_> =
        transcript.entries.iter().filter_map(|entry| entry.tool_call_id.as_deref()).collect();
    assert_eq!(ids[..8], ["c1", "c2", "c1", "c2", "2:c1", "2:c2", "2:c1", "2:c2"]);
}

#[test]
fn an_answer_with_nothing_in_it_is_one() {
    let record = json!({"role": "assistant", "content": null, "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let entries = record_shape::decode_record(record, &1).unwrap();
    assert_eq!(summarize(&entries), ["assistant: "]);
    let usage = entries[0].usage.unwrap();
    assert_eq!((usage.input, usage.output), (3, 2));
}

#[test]
fn our_own_entries_are_no_messages() {
    for ours in [
        json!({"role": "user", "content": "x"}),
        json!({"role": "tool", "content": "x", "tool_call_id": "c"}),
        json!({"role": "assistant", "tool_name": "ls", "tool_input": {}, "odd": 1}),
        json!({"role": "assistant", "content": "x", "usage": {"input": 1}}),
        json!({"role": "assistant", "content": "x", "kind": "text", "odd": 1}),
    ] {
        assert!(!is_chat_message(ours.as_object().unwrap()), "{ours}");
    }
    let odd =
        json!({"role": "assistant", "content": "", "tool_name": "ls", "tool_input": {}, "odd": 1});
    let entries = record_shape::decode_record(odd, &1).unwrap();
    assert_eq!(summarize(&entries), ["tool call ls: {}", "system other: {\"odd\":1}"]);
    assert_eq!(unknown_fields(&entries).collect::<Vec<_>>(), ["odd"]);
}
