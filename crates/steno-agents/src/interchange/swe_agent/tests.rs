use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::decoding::large;
use crate::reader;
use steno_model::entry::{EntryKind, Role};
use steno_model::session::Transcript;

fn bundle(bytes: &[u8]) -> SessionBundle {
    let path = "/runs/gpt/demo-1.traj";
    SessionBundle::new(path, vec![SessionFile::in_memory("demo-1.traj", path, bytes.to_vec())])
}

fn transcript(run: &Value) -> Transcript {
    reader::read_transcript(&READER, &bundle(run.to_string().as_bytes())).unwrap()
}

fn kinds(transcript: &Transcript) -> Vec<(&str, EntryKind)> {
    transcript.entries.iter().map(|entry| (entry.role.as_str(), entry.kind)).collect()
}

fn old_run() -> Value {
    json!({
        "environment": "swe_main",
        "trajectory": [{"action": "ls\n", "observation": "a", "thought": "Look."}],
        "history": [
            {"role": "system", "content": "You are", "agent": "primary"},
            {"role": "user", "content": "Demo", "is_demo": true},
            {"role": "user", "content": "Fix it"},
            {"role": "assistant", "content": "Look.\n```\nls\n```", "thought": "Look.",
             "action": "ls\n"},
            {"role": "user", "content": "a\nbash-$"},
            {"role": "assistant", "content": "No command", "thought": "No command", "action": ""},
            {"role": "user", "content": "Your output was not formatted"}
        ],
        "info": {
            "exit_status": "submitted",
            "model_stats": {"instance_cost": 1.5, "tokens_sent": 100, "tokens_received": 7}
        }
    })
}

#[test]
fn an_old_run_has_commands_in_its_answers() {
    let transcript = transcript(&old_run());
    let expected = [
        ("system", EntryKind::Text),
        ("user", EntryKind::Notice),
        ("user", EntryKind::Text),
        ("assistant", EntryKind::Text),
        ("assistant", EntryKind::ToolCall),
        ("tool", EntryKind::ToolResult),
        ("assistant", EntryKind::Text),
        ("user", EntryKind::Notice),
    ];
    assert_eq!(kinds(&transcript), expected);
    let [text, call, result] = &transcript.entries[3..6] else { panic!("three entries") };
    assert_eq!((text.content.as_str(), &text.message_id), ("Look.", &call.message_id));
    assert_eq!(call.tool_name.as_deref(), Some("ls"));
    assert_eq!(call.tool_call_id, result.tool_call_id);
    let session = transcript.session;
    assert_eq!((session.totals.usage.input, session.totals.usage.output), (100, 7));
    assert_eq!(session.totals.cost, Some(1.5));
    assert_eq!(session.stop_reason.as_deref(), Some("submitted"));
    assert_eq!(session.native_id.as_deref(), Some("demo-1"));
}

#[test]
fn a_new_run_states_its_calls() {
    let transcript = transcript(&json!({
        "trajectory": [],
        "history": [
            {"role": "user", "content": [{"type": "text", "text": "Fix it"}]},
            {"role": "assistant", "content": "So", "thought": "So", "action": "create a.py",
             "thinking_blocks": [{"type": "thinking", "thinking": "Hm"}],
             "tool_calls": [{"id": "call_1", "function":
                {"name": "create", "arguments": "{\"filename\":\"a.py\"}"}}]},
            {"role": "tool", "content": "done", "tool_call_ids": ["call_1"]},
            7
        ],
        "info": {"exit_status": "exit_cost"},
        "replay_config": "{\"agent\":{\"model\":{\"name\":\"gpt-4o\"}}}"
    }));
    let call = &transcript.entries[3];
    assert_eq!(call.tool_input, Some(json!({"filename": "a.py"})));
    assert_eq!(transcript.entries[4].tool_call_id.as_deref(), Some("call_1"));
    assert_eq!(transcript.problems[0].reason, "message 4: not a JSON object");
    assert_eq!(transcript.session.models, ["gpt-4o"]);
    assert_eq!(transcript.session.status, SessionStatus::Failed);
}

#[test]
fn a_mini_run_is_a_chat() {
    let run = json!({
        "info": {"mini_version": "1.0", "exit_status": "Submitted"},
        "messages": [
            {"role": "system", "content": "You are"},
            {"role": "user", "content": "Fix it"},
            {"role": "assistant", "content": "Look\n```bash\nls -l\n```",
             "extra": {"timestamp": 1770000000.5, "response": {"model": "m", "usage":
                {"prompt_tokens": 10, "completion_tokens": 2,
                 "prompt_tokens_details": {"cached_tokens": 4}}}}},
            {"role": "user", "content": "<output>a</output>"},
            {"role": "exit", "content": "bye"}
        ],
        "trajectory_format": "mini-swe-agent-1"
    });
    let transcript = transcript(&run);
    assert_eq!(transcript.entries[3].tool_input, Some(json!({"command": "ls -l"})));
    assert_eq!(transcript.entries[4].role, Role::Tool);
    assert_eq!(transcript.entries[5].kind, EntryKind::Other);
    let usage = transcript.session.totals.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (6, 4, 2));
}

#[test]
fn without_messages_the_steps_are_read() {
    let mut run = old_run();
    run["history"] = json!([]);
    let transcript = transcript(&run);
    let expected = [
        ("assistant", EntryKind::Text),
        ("assistant", EntryKind::ToolCall),
        ("tool", EntryKind::ToolResult),
    ];
    assert_eq!(kinds(&transcript), expected);
}

#[test]
fn a_run_larger_than_may_be_held_is_read() {
    let mut run = old_run();
    let messages = run["history"].as_array_mut().unwrap();
    messages.extend((0..5).map(|_| json!({"role": "user", "content": "~"})));
    run["trajectory"] = (0..5).map(|_| json!({"action": "ls", "observation": "~"})).collect();
    for lists in [2, 1] {
        let (session, kinds, problems) =
            large::read_large(&READER, large::large_source("demo-1.traj", &run.to_string()));
        let small = transcript(&run);
        let expected: Vec<_> = small.entries.iter().map(|entry| entry.kind).collect();
        assert_eq!((kinds, problems, lists), (expected, 0, lists));
        assert_eq!(session.totals.usage, small.session.totals.usage);
        run.as_object_mut().unwrap().shift_remove("history");
        run["trajectory"] = (0..9).map(|_| json!({"action": "ls", "observation": "~"})).collect();
    }
}

#[test]
fn recognises_runs_by_content() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.json"), old_run().to_string()).unwrap();
    std::fs::write(dir.path().join("b.traj"), r#"{"trajectory": "x"}"#).unwrap();
    let mini = r#"{"info":{"mini_version":"2"},"messages":[]}"#;
    std::fs::write(dir.path().join("c.traj.json"), mini).unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    let names: Vec<_> = found.iter().map(|bundle| bundle.files[0].name()).collect();
    assert_eq!(names, ["a.json", "c.traj.json"]);
}

#[test]
fn a_cut_anywhere_is_no_panic() {
    let text = old_run().to_string();
    for end in 0..text.len() {
        assert!(reader::read_transcript(&READER, &bundle(&text.as_bytes()[..end])).is_err());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = reader::read_transcript(&READER, &bundle(&bytes));
    }
}
