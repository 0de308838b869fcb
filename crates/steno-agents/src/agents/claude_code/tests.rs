//! Tests the whole reader with a small sample for each rule.

mod files;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::inspect::{InspectionTotal, SessionInspection, inspect_session, inspect_with_subagents};
use crate::reader::{self, FoundSession};
use crate::registry;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::session::Transcript;

const SESSION: &str = "11111111-0000-4000-8000-000000000001";

/// The lines of a session. Fields that every record has are added to `records`.
fn lines(records: &[serde_json::Value]) -> String {
    let complete = |(index, record): (usize, &serde_json::Value)| {
        let mut record = record.clone();
        let object = record.as_object_mut().unwrap();
        let stated = [
            ("sessionId", json!(SESSION)),
            ("uuid", json!(format!("00000000-0000-4000-8000-{index:012}"))),
            ("timestamp", json!(format!("2026-01-05T09:00:{index:02}.000Z"))),
        ];
        for (name, value) in stated {
            object.entry(name).or_insert(value);
        }
        format!("{record}\n")
    };
    records.iter().enumerate().map(complete).collect()
}

fn user(content: serde_json::Value) -> serde_json::Value {
    json!({"type": "user", "message": {"role": "user", "content": content}})
}

fn answer(id: &str, block: serde_json::Value, output: u64) -> serde_json::Value {
    json!({"type": "assistant", "requestId": "req_1", "message": {"id": id, "model": "opus",
        "role": "assistant", "content": [block], "stop_reason": "end_turn",
        "usage": {"input_tokens": 2, "output_tokens": output, "cache_read_input_tokens": 7,
            "cache_creation_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}}}})
}

fn text(text: &str) -> serde_json::Value {
    json!({"type": "text", "text": text})
}

fn bundle(name: &str, text: &str) -> SessionBundle {
    SessionBundle::new(name, vec![SessionFile::in_memory(name, name, text.into())])
}

fn transcript(text: &str) -> Transcript {
    reader::read_transcript(&READER, &bundle(&format!("{SESSION}.jsonl"), text)).unwrap()
}

fn count(bundle: SessionBundle) -> SessionInspection {
    inspect_session(&FoundSession { reader: &READER, bundle }).unwrap()
}

fn counted(text: &str) -> SessionInspection {
    count(bundle(&format!("{SESSION}.jsonl"), text))
}

fn summarize(transcript: &Transcript) -> Vec<String> {
    let one = |entry: &Entry| format!("{} {}: {}", entry.role, entry.kind, entry.content);
    transcript.entries.iter().map(one).collect()
}

#[test]
fn a_message_of_several_lines_is_one_answer_with_the_last_count() {
    let call = json!({"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "x"}});
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "is_error": true,
        "content": [text("no"), {"type": "tool_reference", "tool_name": "Bash"}]}]);
    let mut result = user(result);
    result["toolUseResult"] = json!({"agentId": "a1", "originalFile": "x"});
    let session = lines(&[
        user(json!("Read it")),
        answer("m1", json!({"type": "thinking", "thinking": "Hm", "signature": "s"}), 1),
        answer("m1", call, 5),
        result,
        answer("m1", text("Done"), 9),
    ]);
    let transcript = transcript(&session);
    assert_eq!(
        summarize(&transcript),
        [
            "user text: Read it",
            "assistant thinking: Hm",
            "assistant tool_call: ",
            "tool tool_result: no\n[tool Bash]",
            "assistant text: Done",
        ]
    );
    let [prompt, thought, call, result, last] = &transcript.entries[..] else { panic!() };
    let billed = Usage {
        input: 2,
        cache_read: 7,
        cache_write: 7,
        cache_write_5m: 3,
        cache_write_1h: 4,
        output: 9,
        reasoning: 0,
    };
    assert_eq!((thought.usage, call.usage, last.usage), (None, None, Some(billed)));
    assert_eq!(transcript.session.totals.usage, billed);
    assert_eq!(prompt.entry_id.to_string(), "00000000-0000-4000-8000-000000000000");
    assert_eq!(call.tool_input, Some(json!({"path": "x"})));
    assert_eq!(result.tool_name.as_deref(), Some("Read"));
    assert_eq!(
        serde_json::Value::from(result.metadata.clone().unwrap()),
        json!({"is_error": true, "agentId": "a1"})
    );
    assert_eq!(last.extra["requestId"], "req_1");
    let counted = counted(&session);
    assert_eq!((counted.assistant_messages, counted.tool_calls, counted.tool_results), (1, 1, 1));
    assert_eq!((counted.user_prompts, counted.models), (1, vec!["opus".to_owned()]));
}

#[test]
fn an_answer_in_which_only_a_servers_tool_is_called_counts() {
    let call = json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}});
    let lines = lines(&[user(json!("Search")), answer("m1", call, 3)]);
    let counted = counted(&lines);
    assert_eq!((counted.assistant_messages, counted.tool_calls), (1, 0));
}

#[test]
fn only_texts_of_the_user_are_prompts() {
    let with = |mut record: serde_json::Value, name: &str, value: serde_json::Value| {
        record[name] = value;
        record
    };
    let reminder = text("<system-reminder>be nice</system-reminder>");
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png",
        "data": "AAEC"}});
    let prompts = [
        user(json!("plain")),
        user(json!([reminder, text("two blocks"), text("are one prompt")])),
        user(json!([image])),
        with(user(json!("typed")), "origin", json!({"kind": "human"})),
    ];
    let others = [
        user(json!("<command-message>x</command-message><command-name>/x</command-name>")),
        user(json!("<bash-input>ls</bash-input>")),
        user(json!("<local-command-stdout>ok</local-command-stdout>")),
        user(json!("[Request interrupted by user for tool use]")),
        user(json!("<teammate-message teammate_id=\"a\">hi</teammate-message>")),
        user(json!([reminder])),
        user(json!(["odd"])),
        user(json!("")),
        json!({"type": "user", "message": "error"}),
        with(user(json!("meta")), "isMeta", json!(true)),
        with(user(json!("The story so far")), "isCompactSummary", json!(true)),
        with(user(json!("done")), "origin", json!({"kind": "task-notification"})),
        with(user(json!("wake up")), "promptSource", json!("system")),
        with(user(json!("inner")), "isSidechain", json!(true)),
    ];
    for record in &prompts {
        assert_eq!(counted(&lines(std::slice::from_ref(record))).user_prompts, 1, "{record}");
    }
    for record in &others {
        assert_eq!(counted(&lines(std::slice::from_ref(record))).user_prompts, 0, "{record}");
    }
    let shown = summarize(&transcript(&lines(&prompts[2..3])));
    let hash = blake3::hash(&[0, 1, 2]).to_hex();
    assert_eq!(shown, [format!("user text: [image/png, 3 bytes, blake3 {hash}]")]);
}

#[test]
fn queued_prompts_count_where_they_are_the_only_trace() {
    let queued = |mode: &str, kind: &str| {
        json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "and this",
            "commandMode": mode, "origin": {"kind": kind}}})
    };
    let session = lines(&[
        queued("prompt", "human"),
        queued("task-notification", "task-notification"),
        json!({"type": "queue-operation", "operation": "enqueue", "content": "lost"}),
        json!({"type": "queue-operation", "operation": "dequeue"}),
        json!({"type": "attachment", "attachment": {"type": "task_reminder", "content": "todo"}}),
    ]);
    assert_eq!(
        summarize(&transcript(&session)),
        [
            "user text: and this",
            "user notice: and this",
            "user notice: lost",
            "system notice: todo"
        ]
    );
}

#[test]
fn a_queued_prompt_without_an_origin_counts_once() {
    let queued = |prompt: serde_json::Value| {
        json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt,
            "commandMode": "prompt"}})
    };
    let enqueued = json!({"type": "queue-operation", "operation": "enqueue", "content": "and"});
    let prompts = |records: &[serde_json::Value]| counted(&lines(records)).user_prompts;
    assert_eq!(prompts(&[enqueued.clone(), queued(json!("and"))]), 1);
    let sent = user(json!([text("and")]));
    assert_eq!(prompts(&[enqueued, queued(json!("and")), sent.clone()]), 1);
    assert_eq!(prompts(&[queued(json!("and")), user(json!("more")), sent]), 3);
    assert_eq!(prompts(&[queued(json!([text("and")])), queued(json!("more"))]), 2);
    assert_eq!(prompts(&[queued(json!("<task-notification>done</task-notification>"))]), 0);
}

#[test]
fn a_repeated_prompt_counts_twice_whatever_its_blocks() {
    let twice = |content: serde_json::Value| {
        let mut record = user(content);
        record["uuid"] = json!("00000000-0000-4000-8000-00000000cafe");
        lines(&[record.clone(), record])
    };
    let blocks = json!([text("look at this"), text("and that")]);
    for content in [json!("look"), json!([text("look")]), blocks] {
        assert_eq!(counted(&twice(content.clone())).user_prompts, 2, "{content}");
    }
    let queued = json!({"type": "attachment", "uuid": "x", "attachment": {"type": "queued_command",
        "prompt": [text("a"), text("b")], "commandMode": "prompt", "origin": {"kind": "human"}}});
    assert_eq!(counted(&lines(&[queued.clone(), queued])).user_prompts, 2);
}

#[test]
fn notices_of_claude_code_are_not_the_models() {
    let mut error = answer("x", text("API Error: 529"), 5);
    error["message"]["model"] = json!("<synthetic>");
    error["isApiErrorMessage"] = json!(true);
    let session = lines(&[
        error,
        json!({"type": "system", "subtype": "compact_boundary", "content": "Compacted",
            "parentUuid": null, "logicalParentUuid": "p", "compactMetadata": {"preTokens": 9}}),
        json!({"type": "system", "subtype": "microcompact_boundary"}),
        json!({"type": "system", "subtype": "api_error", "content": "overloaded"}),
        json!({"type": "pr-link", "prUrl": "https://example.org/pull/1"}),
        json!({"type": "hologram", "depth": 3}),
        json!({"type": "mode", "mode": "plan"}),
        json!({"type": "file-history-delta", "messageId": "m", "trackingPath": "a.md"}),
    ]);
    let transcript = transcript(&session);
    assert_eq!(
        summarize(&transcript),
        [
            "assistant error: API Error: 529",
            "system compaction: Compacted",
            "system notice: ",
            "system error: overloaded",
            "system notice: https://example.org/pull/1",
            "system other: ",
        ]
    );
    let compaction = &transcript.entries[1];
    assert_eq!(compaction.parent_id.as_deref(), Some("p"));
    assert_eq!(compaction.metadata.as_ref().unwrap()["compactMetadata"], json!({"preTokens": 9}));
    assert_eq!(transcript.entries[5].metadata.as_ref().unwrap()["depth"], json!(3));
    let counted = counted(&session);
    assert_eq!((counted.assistant_messages, counted.compactions), (0, 1));
    assert!(counted.models.is_empty() && counted.tokens.is_empty());
}

#[test]
fn titles_have_an_order_and_foreign_summaries_are_ignored() {
    let own = "00000000-0000-4000-8000-000000000000";
    let summary =
        |leaf: &str, text: &str| json!({"type": "summary", "summary": text, "leafUuid": leaf});
    let ai = json!({"type": "ai-title", "aiTitle": "by the model"});
    let custom = json!({"type": "custom-title", "customTitle": "by hand"});
    let title = |records: &[serde_json::Value]| counted(&lines(records)).title;
    let prompt = user(json!("Hello"));
    assert_eq!(title(&[prompt.clone(), summary("elsewhere", "other")]), None);
    let records = [prompt, summary(own, "mine"), custom, ai];
    assert_eq!(title(&records[..2]).as_deref(), Some("mine"));
    assert_eq!(title(&records).as_deref(), Some("by hand"));
}

#[test]
fn a_session_states_times_place_and_cost() {
    let session = lines(&[
        json!({"type": "mode", "mode": "normal", "timestamp": null}),
        json!({"type": "user", "cwd": "/home/ada", "gitBranch": "main", "version": "2.1.312",
            "message": {"role": "user", "content": "Hi"}}),
        json!({"type": "cost-state", "totalCostUSD": 0.5}),
        json!({"type": "cost-state", "totalCostUSD": 1.25}),
    ]);
    let session = transcript(&session).session;
    assert_eq!(session.native_id.as_deref(), Some(SESSION));
    assert_eq!(session.project.as_deref(), Some("/home/ada"));
    assert_eq!(session.branch.as_deref(), Some("main"));
    assert_eq!(session.totals.cost, Some(1.25));
    assert_eq!(session.started.unwrap().to_string(), "2026-01-05T09:00:01.000Z");
    assert_eq!(session.ended.unwrap().to_string(), "2026-01-05T09:00:03.000Z");
    assert_eq!(session.extra["version"], "2.1.312");
}

#[test]
fn sidechains_and_skipped_records_keep_the_chain() {
    let side = |uuid: &str, parent: Option<&str>| {
        let mut record = user(json!("inner"));
        record["isSidechain"] = json!(true);
        record["uuid"] = json!(uuid);
        record["parentUuid"] = json!(parent);
        record
    };
    let session = lines(&[
        json!({"type": "progress", "uuid": "p1", "parentUuid": "u0"}),
        json!({"type": "progress", "uuid": "p2", "parentUuid": "p1"}),
        json!({"type": "progress", "uuid": "loop", "parentUuid": "loop"}),
        json!({"type": "user", "parentUuid": "p2", "message": {"content": "Hi"}}),
        side("s1", None),
        side("s2", Some("s1")),
        json!({"type": "user", "isSidechain": true, "agentId": "a9", "message": {"content": "x"}}),
    ]);
    let entries = transcript(&session).entries;
    assert_eq!(entries[0].parent_id.as_deref(), Some("u0"));
    let sources: Vec<_> = entries.iter().map(|entry| entry.source.as_str()).collect();
    assert_eq!(sources, ["primary", "subagent:s1", "subagent:s1", "subagent:a9"]);
}

#[test]
fn bad_lines_cost_only_themselves() {
    let good = lines(&[user(json!("one"))]);
    let glued = good.trim_end().repeat(2);
    let surrogate =
        r#"{"type":"user","message":{"content":"\ud83d half"},"message":{"content":"\ud83d"}}"#;
    let deep = format!("{{\"type\":\"user\",\"message\":{{\"content\":{}}}}}", "[".repeat(5000));
    let session = format!("{good}\n[1]\n42\n{glued}\n{surrogate}\n{deep}\n\0\0\n{{\"type\":\"us");
    let transcript = transcript(&session);
    assert_eq!(
        summarize(&transcript),
        ["user text: one", "user text: one", "user text: one", "user text: \u{fffd}"]
    );
    let bad: Vec<_> = transcript.problems.iter().map(|problem| problem.line.unwrap()).collect();
    assert_eq!(bad, [3, 4, 7, 8, 9]);
    assert_eq!(transcript.problems[0].reason, "not a JSON object");
    assert_ne!(transcript.entries[0].entry_id, transcript.entries[1].entry_id);
}

/// A session with records of many types.
fn sample() -> String {
    let call = json!({"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "ü"}});
    lines(&[
        json!({"type": "summary", "summary": "x", "leafUuid": "y"}),
        user(json!([text("Hi"), {"type": "image", "source": {"data": "AAEC"}}])),
        answer("m1", call, 3),
        user(json!([{"type": "tool_result", "tool_use_id": "t1", "content": "\u{2028}ok"}])),
        json!({"type": "attachment",
            "attachment": {"type": "queued_command", "prompt": [text("q")]}}),
        json!({"type": "system", "subtype": "compact_boundary", "content": "Compacted"}),
    ])
}

#[test]
fn a_sidechain_in_a_file_has_a_row_of_its_own() {
    let mut asked = user(json!("Warm up"));
    let mut answered = answer("m1", text("ok"), 5);
    asked["isSidechain"] = json!(true);
    answered["isSidechain"] = json!(true);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{SESSION}.jsonl"));
    std::fs::write(&file, lines(&[asked.clone(), answered.clone()])).unwrap();
    let found = registry::find_sessions(&file).unwrap();
    let rows = inspect_with_subagents(&found[0]).unwrap();
    let actual: Vec<_> = rows
        .iter()
        .map(|row| {
            (row.key.as_deref(), row.user_prompts, row.assistant_messages, row.tokens.output)
        })
        .collect();
    assert_eq!(actual, [(None, 0, 0, 0), (Some("subagents"), 1, 1, 5)]);
    let listed = found[0].read_transcript().unwrap().session.totals.usage;
    let mut counted = rows[0].tokens;
    counted.add(&rows[1].tokens);
    assert_eq!(counted, listed);
    let own = user(json!("Go"));
    std::fs::write(&file, lines(&[own, answer("m2", text("yes"), 7), asked, answered])).unwrap();
    let found = registry::find_sessions(&file).unwrap();
    let mut total = InspectionTotal::default();
    let mut rows = inspect_with_subagents(&found[0]).unwrap();
    rows.iter_mut().for_each(|row| total.add_inspection(row));
    let output: Vec<_> = rows.iter().map(|row| row.tokens.output).collect();
    assert_eq!((output.as_slice(), total.tokens.output), ([7, 5].as_slice(), 12));
    assert_eq!(found[0].read_transcript().unwrap().session.totals.usage, total.tokens);
}

#[test]
fn a_session_may_be_cut_anywhere() {
    let sample = sample();
    let whole = counted(&sample);
    for end in 0..sample.len() {
        let name = format!("{SESSION}.jsonl");
        let source = SessionFile::in_memory(&name, &name, sample.as_bytes()[..end].to_vec());
        let cut = count(SessionBundle::new(&name, vec![source]));
        assert!(cut.bad_lines <= 1, "{end}");
        assert!(cut.tokens.output <= whole.tokens.output);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let source = SessionFile::in_memory("x.jsonl", "x.jsonl", bytes);
        count(SessionBundle::new("x.jsonl", vec![source]));
    }

    #[test]
    fn damaged_sessions_never_panic(at in any::<prop::sample::Index>(), with in any::<[u8; 3]>()) {
        let mut bytes = sample().into_bytes();
        let at = at.index(bytes.len() - with.len());
        bytes[at..at + with.len()].copy_from_slice(&with);
        let source = SessionFile::in_memory("x.jsonl", "x.jsonl", bytes);
        count(SessionBundle::new("x.jsonl", vec![source]));
    }
}

#[test]
fn notices_have_the_role_of_their_record() {
    let entries = transcript(&sample()).entries;
    let roles: Vec<_> = entries.iter().map(|entry| entry.role.clone()).collect();
    assert_eq!(
        roles,
        [Role::User, Role::User, Role::Assistant, Role::Tool, Role::User, Role::System]
    );
    assert_eq!(entries[4].kind, EntryKind::Notice);
}
