use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::inspect::inspect_session;
use crate::reader::{self, FoundSession};
use steno_model::entry::{EntryKind, Role};
use steno_vault::SessionFile;

fn bundle(bytes: &[u8]) -> SessionBundle {
    let path = "/trial/agent/trajectory.json";
    SessionBundle::new(path, vec![SessionFile::in_memory("trajectory.json", path, bytes.to_vec())])
}

fn trajectory() -> Value {
    json!({
        "schema_version": "ATIF-v1.7",
        "session_id": "s1",
        "agent": {"name": "demo", "version": "1", "model_name": "m1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Old", "is_copied_context": true},
            {"step_id": 2, "source": "system", "message": "You are"},
            {"step_id": 3, "timestamp": "2026-01-01T00:00:00Z", "source": "user",
             "message": [{"type": "text", "text": "Look"},
                {"type": "image", "source": {"media_type": "image/png", "path": "images/a.png"}}]},
            {"step_id": 4, "source": "agent", "model_name": "m2", "message": "",
             "reasoning_content": "Hm", "tool_calls": [
                {"tool_call_id": "c1", "function_name": "ls", "arguments": {"path": "."}}],
             "observation": {"results": [{"source_call_id": "c1", "content": "a",
                "subagent_trajectory_ref": [{"trajectory_id": "t2"}]}]},
             "metrics": {"prompt_tokens": 100, "completion_tokens": 9, "cached_tokens": 60,
                "cost_usd": 0.5, "extra": {"cache_creation_input_tokens": 30}}},
            {"step_id": 5, "source": "oracle", "message": "?"},
            "no step"
        ],
        "final_metrics": {"total_prompt_tokens": 100, "total_completion_tokens": 9,
            "total_cost_usd": 0.75},
        "subagent_trajectories": [{"trajectory_id": "t2", "agent": {"name": "sub", "version": "1"},
            "steps": [{"step_id": 1, "source": "user", "message": "Do"}]}]
    })
}

#[test]
fn a_trajectory_is_counted() {
    let bundle = bundle(trajectory().to_string().as_bytes());
    let counted = inspect_session(&FoundSession { reader: &READER, bundle }).unwrap();
    assert_eq!((counted.user_prompts, counted.assistant_messages), (1, 1));
    assert_eq!((counted.tool_calls, counted.tool_results, counted.bad_lines), (1, 1, 1));
    let tokens = counted.tokens;
    let got = (tokens.input, tokens.cache_read, tokens.cache_write, tokens.output);
    assert_eq!(got, (10, 60, 30, 9));
    assert_eq!(counted.models, ["m2"]);
    assert_eq!(counted.session_id.as_deref(), Some("s1"));
}

#[test]
fn steps_become_entries() {
    let transcript =
        reader::read_transcript(&READER, &bundle(trajectory().to_string().as_bytes())).unwrap();
    let entries = &transcript.entries;
    assert_eq!((&entries[0].role, entries[0].kind), (&Role::User, EntryKind::Notice));
    assert_eq!(entries[2].content, "Look\n[image/png, images/a.png]");
    assert_eq!(entries[4].tool_input, Some(json!({"path": "."})));
    assert_eq!(entries[6].kind, EntryKind::Other);
    assert_eq!(entries[7].source, "subagent:t2");
    assert_eq!(transcript.session.totals.cost, Some(0.75));
    assert_eq!(transcript.session.extra["agent"]["name"], "demo");
}

#[test]
fn without_tokens_of_steps_the_total_counts() {
    let mut trajectory = trajectory();
    trajectory["steps"] = json!([{"step_id": 1, "source": "agent", "message": "Hi"}]);
    let transcript =
        reader::read_transcript(&READER, &bundle(trajectory.to_string().as_bytes())).unwrap();
    assert_eq!(transcript.session.totals.usage.prompt_tokens(), 100);
}

#[test]
fn recognises_trajectories_by_version() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.json"), trajectory().to_string()).unwrap();
    std::fs::write(dir.path().join("y.json"), r#"{"schema_version":"1"}"#).unwrap();
    assert_eq!(READER.find_at(dir.path()).unwrap().len(), 1);
}

#[test]
fn a_cut_anywhere_is_no_panic() {
    let text = trajectory().to_string();
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
