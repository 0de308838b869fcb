//! Tests of `steno record`.

use steno_model::SessionStatus;
use steno_store::transcript::ReadTranscript;

use crate::harness::Home;

const TWO: &[u8] =
    b"{\"role\":\"user\",\"content\":\"hello\"}\n{\"role\":\"assistant\",\"content\":\"hi\"}\n";

#[test]
fn without_ack_the_session_id_is_all_of_stdout() {
    let home = Home::new();
    let output = home.steno_with(&["record"], TWO);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let id = output.stdout.strip_suffix('\n').unwrap();
    assert_eq!(id.len(), 36);
    assert_eq!(home.steno(&["show", id, "--json"]).ok().lines().count(), 2);
}

#[test]
fn with_ack_stdout_has_the_numbers() {
    let home = Home::new();
    let output = home.steno_with(&["record", "--ack", "--session", "s"], TWO);
    insta::assert_snapshot!(output, @r"
    0
    1
    --- stderr
    s
    --- exit 0
    ");
    let output = home.steno_with(&["record", "--ack", "--session", "s"], TWO);
    assert_eq!(output.stdout, "2\n3\n", "the session is continued");
}

#[test]
fn sources_are_numbered_apart() {
    let home = Home::new();
    let lines = b"{\"role\":\"user\",\"content\":\"a\"}\n\
        {\"role\":\"user\",\"content\":\"b\",\"source\":\"subagent:x\"}\n\
        {\"role\":\"user\",\"content\":\"c\"}\n";
    assert_eq!(home.steno_with(&["record", "--ack"], lines).stdout, "0\n0\n1\n");
}

#[test]
fn agent_and_project_are_recorded() {
    let home = Home::new();
    home.steno_with(&["record", "--agent", "mine", "--session", "s", "--project", "work"], TWO)
        .ok();
    let dir = home.vault().session_dir(&"mine".parse().unwrap(), &"s".parse().unwrap());
    let session = dir.read_transcript().unwrap().session;
    assert_eq!(session.agent, "mine");
    assert_eq!(session.project, Some(home.path().join("work").to_string_lossy().into_owned()));
    assert_eq!(session.status, SessionStatus::Completed);
    let other = home.steno_with(&["record", "--agent", "other", "--session", "s"], TWO);
    insta::assert_snapshot!(other, @r"
    --- stderr
    error: session s belongs to agent mine, not other
    hint: leave out --agent to continue it
    --- exit 1
    ");
}

#[test]
fn unknown_shapes_and_fields_are_recorded() {
    let home = Home::new();
    let lines = "{\"strange\":{\"deep\":[1.50]}}\n{\"role\":\"user\",\"content\":\"x\",\"mood\":\"good\"}\n";
    home.steno_with(&["record", "--session", "s"], lines.as_bytes()).ok();
    let shown = home.steno(&["show", "s", "--json"]).ok();
    assert!(shown.contains("\"metadata\":{\"strange\":{\"deep\":[1.50]}}"), "{shown}");
    assert!(shown.contains("\"mood\":\"good\""), "{shown}");
}

#[test]
fn an_empty_input_makes_no_session() {
    let home = Home::new();
    let recorded = home.steno_with(&["record", "--session", "s"], b"");
    assert_eq!((recorded.code, recorded.stdout.as_str()), (0, ""), "{recorded}");
    assert!(recorded.stderr.contains("nothing was recorded"), "{recorded}");
    assert_eq!(home.vault().list_sessions().unwrap().len(), 0);
    // An existing session stays unchanged.
    home.steno_with(&["record", "--session", "s"], b"{\"role\":\"user\",\"content\":\"hi\"}\n")
        .ok();
    home.steno_with(&["record", "--session", "s"], b"");
    assert_eq!(home.steno(&["show", "s", "--json"]).ok().lines().count(), 1);
}

#[test]
fn streamed_messages_are_billed_once() {
    let home = Home::new();
    let line = |output: u32| {
        format!(
            "{{\"type\":\"assistant\",\"uuid\":\"u{output}\",\"sessionId\":\"s\",\"message\":{{\"id\":\"m1\",\
             \"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"x\"}}],\
             \"usage\":{{\"input_tokens\":10,\"output_tokens\":{output}}}}}}}\n"
        )
    };
    home.steno_with(&["record", "--session", "s"], (line(1) + &line(20)).as_bytes()).ok();
    let listed = home.steno(&["list", "--json"]).ok();
    let row: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        (row["tokens"]["input"].as_u64(), row["tokens"]["output"].as_u64()),
        (Some(10), Some(20))
    );
}

#[test]
fn recording_continues_without_a_reader_of_acknowledgements() {
    let home = Home::new();
    let steno = env!("CARGO_BIN_EXE_steno");
    let entry = "{\"role\":\"user\",\"content\":\"x\"}";
    let script = format!(
        "for n in 1 2 3 4 5; do echo '{entry}'; sleep 0.05; done | {steno} record --ack --session s | head -1"
    );
    let output = home.finish(home.program("sh", &["-c", &script]), b"");
    assert_eq!(output.stdout, "0\n");
    assert!(output.stderr.contains("recording continues"), "{output}");
    assert_eq!(home.steno(&["show", "s", "--json"]).ok().lines().count(), 5);
}

#[test]
fn latest_is_the_session_that_began_last() {
    let home = Home::new();
    insta::assert_snapshot!(home.steno_with(&["record", "--session", "latest"], TWO), @"
    --- stderr
    error: no sessions yet
    hint: run `steno sync`, `steno import PATH` or `steno record`
    --- exit 1
    ");
    home.steno_with(&["record", "--session", "a"], TWO).ok();
    assert_eq!(home.steno_with(&["record", "--session", "latest", "--ack"], TWO).ok(), "2\n3\n");
}

#[test]
fn messages_of_openai_are_recorded_with_calls_results_and_pictures() {
    let message = r#"{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}
{"role":"assistant","content":null,"mood":"glad","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"c1","content":"a b","mood":"calm"}
"#;
    let pretty = r#"[
  {"role": "user", "content": "list"},
  {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
  {"type": "function_call_output", "call_id": "c1", "output": "x"}
]
"#;
    let home = Home::new();
    let record = |input: &str| {
        let output = home.steno_with(&["record", "--agent", "test"], input.as_bytes());
        assert_eq!(output.code, 0, "{output}");
        (output.stdout.trim().to_owned(), output.stderr)
    };
    let show = |id: &str| home.steno(&["show", id]).ok();
    let (id, warned) = record(message);
    assert_eq!(
        warned,
        "warning: <stdin>:2: field mood is not understood; it is kept and shown as it is\n"
    );
    let shown = show(&id);
    for part in
        ["[image/png, 8 bytes", "tool call ls", "a b", "{\"mood\":\"glad\"}", "{\"mood\":\"calm\"}"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let (id, warned) = record(pretty);
    assert_eq!(warned, "");
    assert!(show(&id).contains("tool call ls") && show(&id).contains("tool result"));
}

#[test]
fn a_half_of_a_surrogate_pair_costs_one_character() {
    let home = Home::new();
    let line = "{\"role\":\"user\",\"content\":\"x\\ud83d y\"}\n";
    let id = home.steno_with(&["record", "--agent", "test"], line.as_bytes()).ok();
    let shown = home.steno(&["show", id.trim(), "--json"]).ok();
    assert!(shown.contains("\"content\":\"x\u{fffd} y\""), "{shown}");
    home.steno(&["verify"]).ok();
}

#[test]
fn lines_of_an_agents_own_file_are_read_as_that_agent_writes_them() {
    let rollout = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"0199aaaa-0000-7000-8000-000000000001","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.140.0"}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"turn_context","payload":{"cwd":"/w","model":"gpt-5-codex"}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"event_msg","payload":{"type":"user_message","message":"Count the herons"}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c"}}
{"timestamp":"2026-01-01T00:00:04.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"two"}}
{"timestamp":"2026-01-01T00:00:05.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9,"cached_input_tokens":4,"output_tokens":3,"reasoning_output_tokens":1,"total_tokens":12}}}}
"#;
    let home = Home::new();
    let path = home.file("rollout.jsonl", rollout);
    let converted = home.steno(&["convert", path.to_str().unwrap(), "--to", "jsonl"]).ok();
    let mut numbers = String::new();
    for line in rollout.lines() {
        let args = ["record", "--agent", "test", "--session", "s", "--ack"];
        let output = home.steno_with(&args, format!("{line}\n").as_bytes());
        assert_eq!(output.code, 0, "{output}");
        numbers.push_str(&output.stdout);
        home.steno(&["list"]).ok();
    }
    assert_eq!(numbers, "0\n1\n2\n3\n4\n5\n", "each line is acknowledged by its own number");
    let essence = |lines: &str| -> Vec<(String, String)> {
        let entries = lines.lines().map(serde_json::from_str::<serde_json::Value>);
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        entries.flatten().map(|entry| (text(&entry["kind"]), text(&entry["content"]))).collect()
    };
    let shown = home.steno(&["show", "s", "--json"]).ok();
    assert_eq!(essence(&shown), essence(&converted));
    assert_eq!(essence(&shown)[0].1, "Count the herons");
    assert!(home.steno(&["search", "herons"]).ok().contains("Count the herons"));
    let listed = home.steno(&["list"]).ok();
    assert!(listed.contains("completed  3        s   Count the herons"), "{listed}");
}
