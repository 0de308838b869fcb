//! Round trips from runs to entries, and from entries of other formats to runs.

use proptest::prelude::*;
use serde_json::json;

use super::super::*;
use super::at;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::numbering::EntryNumbering;
use steno_model::session::{Session, SessionId, SessionStatus};

fn decoded(run: &DevflowRun) -> DecodedRun {
    read_transcript(Path::new("t"), run.to_json(RunFileShape::Shipped).as_bytes()).unwrap()
}

/// A transcript of another agent with these entries.
fn foreign(entries: Vec<Entry>) -> Transcript {
    let mut session = Session::new("0196f3a1-52aa".parse::<SessionId>().unwrap(), "claude");
    session.started = Some(at("2026-01-05T09:15:32.100+08:00"));
    session.project = Some("/home/me/x".to_owned());
    session.stop_reason = Some("end_turn".to_owned());
    session.totals.cost = Some(0.5);
    let mut numbering = EntryNumbering::new("claude", "s");
    let mut transcript = Transcript::new(session);
    for mut entry in entries {
        numbering.assign_number(&mut entry);
        transcript.push(entry);
    }
    transcript
}

fn new_entry(role: Role, kind: EntryKind, content: &str) -> Entry {
    Entry::new(role, kind, content)
}

fn call(id: &str, input: Value) -> Entry {
    let mut entry = new_entry(Role::Assistant, EntryKind::ToolCall, &input.to_string());
    entry.tool_name = Some("Read".to_owned());
    entry.tool_call_id = Some(id.to_owned());
    entry.tool_input = Some(input);
    entry
}

fn result(id: &str, content: &str, error: bool) -> Entry {
    let mut entry = new_entry(Role::Tool, EntryKind::ToolResult, content);
    entry.tool_name = Some("Read".to_owned());
    entry.tool_call_id = Some(id.to_owned());
    if error {
        entry.metadata = Some(Object::from_iter([("is_error".to_owned(), true.into())]));
    }
    entry
}

fn there_and_back(transcript: &Transcript) -> Transcript {
    let read = entries::transcript_from_run(decoded(&DevflowRun::from(transcript)));
    assert_eq!(read.session.agent, AGENT_NAME);
    assert_eq!(DevflowRun::from(&read), DevflowRun::from(transcript));
    restore_original(read)
}

#[test]
fn a_round_trip_loses_no_message() {
    let mut subagent = new_entry(Role::Assistant, EntryKind::Text, "from below");
    subagent.source = "subagent:a".to_owned();
    let entries = vec![
        new_entry(Role::System, EntryKind::Text, "You are"),
        new_entry(Role::User, EntryKind::Text, "Fix <it>"),
        new_entry(Role::Assistant, EntryKind::Thinking, "hm"),
        new_entry(Role::Assistant, EntryKind::Text, "Reading."),
        call("t1", json!({"path": "x"})),
        result("t1", "content", false),
        call("t2", json!(["not", "an", "object"])),
        result("t2", "no such file", true),
        call("t3", json!({})),
        result("t3", "", false),
        result("nowhere", "orphan", true),
        new_entry(Role::User, EntryKind::Compaction, "summary"),
        new_entry(Role::System, EntryKind::Notice, "model changed"),
        new_entry(Role::System, EntryKind::Error, "overloaded"),
        new_entry(Role::Other("bash".to_owned()), EntryKind::Text, "$ ls"),
        new_entry(Role::System, EntryKind::Other, "{}"),
        subagent,
    ];
    let given = foreign(entries);
    let back = there_and_back(&given);
    assert_eq!(back, given);
    let run = DevflowRun::from(&given);
    let roles: Vec<_> = run.turns.iter().map(|turn| turn.role.as_str()).collect();
    assert_eq!(
        roles,
        [
            "system",
            "user",
            "assistant",
            "assistant",
            "tool_result",
            "tool_result",
            "system",
            "system",
            "system",
            "user",
            "system",
            "assistant"
        ]
    );
    assert_eq!(run.turns[3].tool_calls.len(), 3);
}

#[test]
fn session_fields_survive_a_round_trip() {
    let mut first = new_entry(Role::Assistant, EntryKind::Text, "Hi");
    first.model = Some("opus".to_owned());
    first.created_at = Some(at("2026-01-05T09:15:33.5+08:00"));
    first.usage = Some(Usage {
        input: 10,
        output: 20,
        cache_read: 3,
        cache_write: 2,
        cache_write_5m: 1,
        cache_write_1h: 1,
        reasoning: 1,
    });
    let mut given = foreign(vec![first]);
    given.session.status = SessionStatus::Running;
    let run = DevflowRun::from(&given);
    assert_eq!(run.run_id, "2026-01-05-claude-0196f3a152aa");
    assert_eq!((run.metadata.total_tokens_in, run.metadata.total_tokens_out), (10, 20));
    let back = there_and_back(&given);
    assert_eq!(back.entries[0].usage, given.entries[0].usage);
    assert_eq!(back.entries[0].created_at, given.entries[0].created_at);
    assert_eq!(back.session.models, ["opus"]);
    assert_eq!(back.session.project, given.session.project);
    assert_eq!(back.session.stop_reason, given.session.stop_reason);
    assert_eq!(back.session.status, SessionStatus::Running);
    assert_eq!(back.session.totals.cost, Some(0.5));
    assert_eq!(back, given);
    let strict = run.to_json(RunFileShape::Adr011);
    for ours in ["opus", "cache_read", "\"session\"", "turnCount"] {
        assert!(!strict.contains(ours), "{ours} in {strict}");
    }
}

#[test]
fn answers_that_come_late_keep_their_place() {
    let mut late = foreign(vec![
        call("t1", json!({"a": 1})),
        new_entry(Role::User, EntryKind::Text, "meanwhile"),
        result("t1", "done", false),
        new_entry(Role::Assistant, EntryKind::Text, "so"),
    ]);
    assert_eq!(there_and_back(&late), late);
    late.entries[3].sequence = 9;
    assert_eq!(there_and_back(&late).entries[3].sequence, 9);
}

#[test]
fn a_turn_that_somebody_edited_reads_as_edited() {
    let given =
        foreign(vec![new_entry(Role::Assistant, EntryKind::Thinking, "hm"), call("t1", json!({}))]);
    let mut run = DevflowRun::from(&given);
    run.turns[0].content = "ho".to_owned();
    run.turns[1].tool_calls[0].output = "new".to_owned();
    let back = entries::transcript_from_run(decoded(&run));
    let actual: Vec<_> =
        back.entries.iter().map(|entry| (entry.kind, entry.content.as_str())).collect();
    assert_eq!(
        actual,
        [(EntryKind::Thinking, "ho"), (EntryKind::ToolCall, "{}"), (EntryKind::ToolResult, "new")]
    );
}

#[test]
fn calls_of_another_message_begin_a_turn_of_their_own() {
    let mut text = new_entry(Role::Assistant, EntryKind::Text, "A");
    text.message_id = Some("m1".to_owned());
    let mut same = call("t1", json!({}));
    same.message_id = Some("m1".to_owned());
    let mut other = call("t2", json!({}));
    other.message_id = Some("m2".to_owned());
    // The first result comes late and still belongs to its call.
    let run = DevflowRun::from(&foreign(vec![text, same, other, result("t1", "late", false)]));
    let shape: Vec<_> =
        run.turns.iter().map(|turn| (turn.content.as_str(), turn.tool_calls.len())).collect();
    assert_eq!(shape, [("A", 1), ("", 1)]);
    assert_eq!(run.turns[0].tool_calls[0].output, "late");
}

#[test]
fn keeps_stated_totals_beside_those_of_turns() {
    let text = r#"{"runId":"r","metadata":{"flowId":"f","totalTokensIn":5200,"status":"odd"},"turns":[{"id":7,"role":"user","content":"x","tokensIn":9}]}"#;
    let given = read_transcript(Path::new("t"), text.as_bytes()).unwrap();
    let transcript = entries::transcript_from_run(given.clone());
    assert_eq!(transcript.session.totals.usage.input, 5200);
    assert_eq!(transcript.session.native_id.as_deref(), Some("r"));
    let run = DevflowRun::from(&transcript);
    assert_eq!(run.metadata.total_tokens_in, 5200);
    assert_eq!(run.metadata.status, "odd");
    assert_eq!(run.turns, given.run.turns);
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-zé<]{1,6}"]
}

fn some_call() -> impl Strategy<Value = TurnToolCall> {
    let input = prop_oneof![
        Just(None),
        Just(Some(Object::new())),
        name().prop_map(|text| Some(Object::from_iter([("b".to_owned(), text.into())]))),
    ];
    (name(), name(), input, "\\PC{0,5}", "\\PC{0,5}").prop_map(
        |(id, name, input, output, error)| TurnToolCall {
            id,
            name,
            input,
            output,
            error,
            extra: Object::new(),
        },
    )
}

fn some_turn() -> impl Strategy<Value = RunTurn> {
    let role = prop_oneof![
        Just("system"),
        Just("user"),
        Just("assistant"),
        Just("tool_result"),
        Just("tool"),
        Just("robot")
    ];
    let calls = proptest::collection::vec(some_call(), 0..3);
    let time = prop_oneof![
        Just(None),
        Just(Some(at("2025-01-15T10:30:45.123456789Z"))),
        Just(Some(at("2025-01-15T10:30:45.5+01:00")))
    ];
    (1..9u64, role, "\\PC{0,8}", 0..3u64, 0..3u64, time, calls, 0..2u64).prop_map(
        |(id, role, content, tokens_in, tokens_out, timestamp, tool_calls, duration_ms)| RunTurn {
            id,
            role: role.to_owned(),
            content,
            tokens_in,
            tokens_out,
            timestamp,
            tool_calls,
            duration_ms,
            extra: Object::new(),
        },
    )
}

/// A message, or a tool call with or without a result. Ids are assigned later.
fn some_entries() -> impl Strategy<Value = Vec<Entry>> {
    let roles =
        [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Other("robot".to_owned())];
    let kinds = [
        EntryKind::Text,
        EntryKind::Text,
        EntryKind::Thinking,
        EntryKind::Compaction,
        EntryKind::Error,
        EntryKind::Notice,
        EntryKind::Other,
    ];
    let inputs =
        [json!({"a": {"b": 1.50}}), json!({}), json!([1]), json!("text"), json!({"value": 1})];
    let source = proptest::sample::select(vec!["primary", "subagent:x"]);
    let said_something = (
        proptest::sample::select(roles.to_vec()),
        proptest::sample::select(kinds.to_vec()),
        "\\PC{1,8}",
        source,
    )
        .prop_map(|(role, kind, content, source)| {
            let mut entry = new_entry(role, kind, &content);
            entry.source = source.to_owned();
            vec![entry]
        });
    let message = (
        said_something,
        proptest::option::of("m[1-3]"),
        proptest::option::of(0..9u64),
        any::<bool>(),
    );
    let said_something = message.prop_map(|(mut entries, message_id, tokens, marked)| {
        let entry = &mut entries[0];
        entry.message_id = message_id;
        entry.usage =
            tokens.map(|input| Usage { input, output: 2, reasoning: 1, ..Usage::default() });
        if marked {
            entry.metadata = Some(Object::from_iter([("k".to_owned(), json!(-1.50))]));
            entry.extra.insert("odd".to_owned(), json!(true));
            entry.parent_id = Some("p".to_owned());
            entry.model = Some("m".to_owned());
            entry.created_at = Some(at("2026-01-05T09:15:32.100+08:00"));
            entry.content.clear();
        }
        entries
    });
    let answer = proptest::option::of(("\\PC{0,8}", any::<bool>()));
    let content = proptest::option::of("\\PC{0,5}");
    let called = (proptest::sample::select(inputs.to_vec()), content, answer).prop_map(
        |(input, content, answer)| {
            let answer = answer.map(|(content, error)| result("", &content, error));
            let mut call = call("", input);
            call.content = content.unwrap_or(call.content);
            std::iter::once(call).chain(answer).collect()
        },
    );
    prop_oneof![said_something, called]
}

proptest! {
    #[test]
    fn messages_of_any_agent_survive_a_round_trip(groups in proptest::collection::vec(some_entries(), 0..12)) {
        let mut given = Vec::new();
        for (number, group) in groups.into_iter().enumerate() {
            given.extend(group.into_iter().map(|mut entry| {
                entry.tool_call_id = entry.tool_call_id.map(|_| format!("t{number}"));
                entry
            }));
        }
        let given = foreign(given);
        let back = there_and_back(&given);
        prop_assert_eq!(&back, &given);
        let run = DevflowRun::from(&given);
        for turn in &run.turns {
            prop_assert!(["system", "user", "assistant", "tool_result"].contains(&turn.role.as_str()));
        }
        let sums = run.turns.iter().fold((0, 0), |sums, turn| {
            (sums.0 + turn.tokens_in, sums.1 + turn.tokens_out)
        });
        let usage = given.session.totals.usage;
        prop_assert_eq!(sums, (usage.input, usage.output));
        prop_assert_eq!(sums, (run.metadata.total_tokens_in, run.metadata.total_tokens_out));
        prop_assert_eq!(DevflowRun::from(&back).to_json(RunFileShape::Shipped), run.to_json(RunFileShape::Shipped));
    }

    #[test]
    fn a_run_comes_back_byte_for_byte(turns in proptest::collection::vec(some_turn(), 0..6), cost in 0.0..9.0f64) {
        let mut run = DevflowRun { run_id: "r".to_owned(), turns, ..DevflowRun::default() };
        run.metadata.run_id = "r".to_owned();
        run.metadata.flow_id = "f".to_owned();
        run.metadata.total_cost = cost;
        let json = run.to_json(RunFileShape::Shipped);
        let transcript = entries::transcript_from_run(decoded(&run));
        prop_assert_eq!(DevflowRun::from(&transcript).to_json(RunFileShape::Shipped), json);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_transcript(Path::new("t"), &bytes);
        let _ = read_metadata(Path::new("t"), &bytes);
        let _ = journal::replay_journal(Path::new("t"), &bytes);
    }

    #[test]
    fn no_cut_makes_the_reader_panic(cut in 0..600usize) {
        let mut run = DevflowRun { run_id: "r".to_owned(), ..DevflowRun::default() };
        run.push_turn(RunTurn::new("user", "naïve \u{2028} café", 5));
        let json = run.to_json(RunFileShape::Shipped).into_bytes();
        let _ = read_transcript(Path::new("t"), &json[..cut.min(json.len())]);
    }
}
