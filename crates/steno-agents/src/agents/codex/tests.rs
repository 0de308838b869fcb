use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::inspect::{SessionInspection, inspect_session};
use crate::{reader, registry};
use steno_model::entry::{EntryKind, Role};
use steno_model::session::Transcript;
use steno_vault::SessionFile;

const META: &str = r#"{"timestamp":"2026-01-05T09:00:00.000Z","type":"session_meta","payload":{"id":"019f05f8-7f53-7492-a941-83098e16765c","cwd":"/w","cli_version":"0.142.2","git":{"branch":"main"}}}"#;
const CONTEXT: &str = r#"{"timestamp":"2026-01-05T09:00:01.000Z","type":"turn_context","payload":{"model":"gpt-5.5"}}"#;

fn item(second: u32, payload: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-01-05T09:00:{second:02}.000Z","type":"response_item","payload":{payload}}}"#
    )
}

fn event(second: u32, payload: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-01-05T09:00:{second:02}.000Z","type":"event_msg","payload":{payload}}}"#
    )
}

fn user(text: &str) -> String {
    item(
        2,
        &format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#
        ),
    )
}

fn answer(text: &str) -> String {
    item(
        3,
        &format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}}"#
        ),
    )
}

fn prompt(text: &str) -> String {
    event(2, &format!(r#"{{"type":"user_message","message":"{text}"}}"#))
}

fn count(second: u32, input: u64, output: u64) -> String {
    event(
        second,
        &format!(
            r#"{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input},"cached_input_tokens":10,"output_tokens":{output},"reasoning_output_tokens":1}}}}}}"#
        ),
    )
}

fn read_bytes(bytes: &[u8]) -> Transcript {
    let source = SessionFile::in_memory("a.jsonl", "/nowhere/a.jsonl", bytes.to_vec());
    reader::read_transcript(&READER, &SessionBundle::new("/nowhere/a.jsonl", vec![source])).unwrap()
}

fn read_lines(lines: &[String]) -> Transcript {
    read_bytes(lines.join("\n").as_bytes())
}

fn summarize(transcript: &Transcript) -> Vec<(&str, EntryKind, &str)> {
    let entries = transcript.entries.iter();
    entries.map(|entry| (entry.role.as_str(), entry.kind, entry.content.as_str())).collect()
}

fn inspect_file(path: &Path) -> SessionInspection {
    inspect_session(&registry::find_sessions(path).unwrap()[0]).unwrap()
}

fn sample() -> Vec<String> {
    vec![
        META.to_owned(),
        user("<environment_context>x"),
        CONTEXT.to_owned(),
        user("List"),
        prompt("List"),
        item(3, r#"{"type":"function_call","name":"ls","arguments":"{}","call_id":"c1"}"#),
        item(4, r#"{"type":"function_call_output","call_id":"c1","output":"Exit code: 1\nno"}"#),
        count(4, 100, 5),
        count(5, 100, 5),
        answer("Two files"),
        event(5, r#"{"type":"agent_message","message":"Two files"}"#),
        count(6, 200, 9),
    ]
}

#[test]
fn a_prompt_and_its_twin_are_one() {
    let transcript = read_lines(&sample());
    assert_eq!(
        summarize(&transcript),
        [
            ("user", EntryKind::Notice, "<environment_context>x"),
            ("user", EntryKind::Text, "List"),
            ("assistant", EntryKind::ToolCall, ""),
            ("tool", EntryKind::ToolResult, "Exit code: 1\nno"),
            ("assistant", EntryKind::Text, "Two files"),
        ]
    );
    let session = &transcript.session;
    assert_eq!(session.project.as_deref(), Some("/w"));
    assert_eq!(session.branch.as_deref(), Some("main"));
    assert_eq!(session.models, ["gpt-5.5"]);
    assert_eq!(transcript.entries[4].model.as_deref(), Some("gpt-5.5"));
    let usage = session.totals.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.reasoning), (190, 10, 9, 1));
}

#[test]
fn every_message_item_is_separate_despite_equal_ids() {
    let message = |role: &str, text: &str| {
        let payload = serde_json::json!({"type": "message", "id": "REDACTED", "role": role,
            "content": [{"type": "output_text", "text": text}]});
        item(3, &payload.to_string())
    };
    let lines = [
        META.to_owned(),
        message("user", "One"),
        prompt("One"),
        message("assistant", "1"),
        message("user", "Two"),
        prompt("Two"),
        message("assistant", "2"),
    ];
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("rollout.jsonl");
    fs::write(&file, lines.join("\n")).unwrap();
    let counted = inspect_file(&file);
    assert_eq!((counted.user_prompts, counted.assistant_messages), (2, 2));
}

#[test]
fn the_event_may_come_before_its_twin() {
    let transcript =
        read_lines(&[META.to_owned(), prompt("Go"), CONTEXT.to_owned(), user("Go"), user("Step")]);
    assert_eq!(
        summarize(&transcript),
        [("user", EntryKind::Text, "Go"), ("user", EntryKind::Notice, "Step")]
    );
}

#[test]
fn paginated_history_has_prompts_as_items() {
    let completed = event(
        2,
        r#"{"type":"item_completed","item":{"type":"UserMessage","id":"i","content":[{"type":"text","text":"Go"}]}}"#,
    );
    let transcript =
        read_lines(&[META.to_owned(), user("# AGENTS.md instructions"), user("Go"), completed]);
    assert_eq!(
        summarize(&transcript),
        [("user", EntryKind::Notice, "# AGENTS.md instructions"), ("user", EntryKind::Text, "Go")]
    );
}

#[test]
fn without_events_messages_are_prompts() {
    let bare = concat!(
        r#"{"id":"s","timestamp":"2025-08-01T00:00:00Z","instructions":null,"git":{}}"#,
        "\n",
        r#"{"record_type":"state"}"#,
        "\n",
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>"}]}"#,
        "\n",
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Go"}]}"#,
        "\n",
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done"}]}"#,
        "\n",
    );
    let transcript = read_bytes(bare.as_bytes());
    assert_eq!(transcript.session.native_id.as_deref(), Some("s"));
    assert_eq!(
        summarize(&transcript),
        [
            ("user", EntryKind::Notice, "<environment_context>"),
            ("user", EntryKind::Text, "Go"),
            ("assistant", EntryKind::Text, "Done")
        ]
    );
    assert_eq!(transcript.session.started, "2025-08-01T00:00:00Z".parse().ok());
}

#[test]
fn skips_entries_copied_by_a_fork() {
    let meta = META
        .replace(r#""cwd""#, r#""forked_from_id":"019f0000-0000-7000-8000-000000000000","cwd""#);
    let other = META.replace("019f05f8-7f53", "019f0000-0000");
    let turn = |id: &str| event(0, &format!(r#"{{"type":"task_started","turn_id":"{id}"}}"#));
    let mut lines = vec![meta, other, turn("019f0000-0001-7000-8000-000000000000")];
    lines.extend([user("Old"), prompt("Old"), answer("Old answer"), count(9, 1010, 50)]);
    lines.extend([
        turn("019f05f8-7f60-7000-8000-000000000000"),
        user("New"),
        prompt("New"),
        count(12, 1210, 60),
    ]);
    let transcript = read_lines(&lines);
    assert_eq!(summarize(&transcript), [("user", EntryKind::Text, "New")]);
    assert_eq!(
        transcript.session.native_id.as_deref(),
        Some("019f05f8-7f53-7492-a941-83098e16765c")
    );
    assert_eq!(transcript.session.parent.as_deref(), Some("019f0000-0000-7000-8000-000000000000"));
    let usage = transcript.session.totals.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (200, 0, 10));
}

#[test]
fn a_fork_without_turn_ids_copies_within_a_second() {
    let meta = META.replace(r#""cwd""#, r#""source":{"subagent":{"thread_spawn":{}}},"cwd""#);
    let other = META.replace("019f05f8", "019f0000");
    let old = answer("Old").replace("09:00:03", "09:00:00");
    let transcript = read_lines(&[meta.clone(), other, old.clone(), answer("New")]);
    assert_eq!(summarize(&transcript), [("assistant", EntryKind::Text, "New")]);
    let alone = read_lines(&[meta, old, answer("New")]);
    assert_eq!(alone.entries.len(), 2);
}

#[test]
fn an_old_fork_does_not_name_its_origin() {
    let meta = META.replace("0.142.2", "0.45.0").replace("09:00:00.000", "09:00:00.900");
    let other = meta.replace("019f05f8", "019f0000").replace("00.900", "00.950");
    let at_fork = |line: String| line.replace("09:00:02.000", "09:00:01.100");
    let copied = [at_fork(user("Old")), at_fork(prompt("Old")), at_fork(prompt("Older"))];
    let mut lines = vec![meta.clone(), other];
    lines.extend(copied.clone());
    lines.extend([user("New"), prompt("New")]);
    let transcript = read_lines(&lines);
    assert_eq!(summarize(&transcript), [("user", EntryKind::Text, "New")]);
    let parent = "019f0000-7f53-7492-a941-83098e16765c";
    assert_eq!(transcript.session.parent.as_deref(), Some(parent));
    lines[1] = meta;
    assert_eq!(read_lines(&lines).entries.len(), 3, "a repeated meta is no fork");
}

#[test]
fn tokens_belong_to_their_own_response_in_every_version() {
    let call = |second| {
        item(second, r#"{"type":"function_call","name":"ls","arguments":"{}","call_id":"c"}"#)
    };
    let lines = |version: &str, lines: Vec<String>| {
        let meta = META.replace("0.142.2", version);
        let transcript = read_lines(&[vec![meta], lines].concat());
        assert_eq!(transcript.session.totals.usage.output, 12);
        let answers = transcript.entries.iter().filter(|entry| entry.role == Role::Assistant);
        answers.map(|entry| entry.usage.map(|usage| usage.output)).collect::<Vec<_>>()
    };
    let first = vec![
        prompt("Go"),
        count(3, 100, 5),
        call(4),
        count(5, 100, 5),
        count(9, 200, 12),
        call(10),
        count(11, 200, 12),
    ];
    let after = vec![prompt("Go"), call(4), count(5, 100, 5), call(10), count(11, 200, 12)];
    for version in ["0.34.0", "0.55.0", "0.46.0-alpha.1"] {
        assert_eq!(lines(version, first.clone()), [Some(5), Some(7)], "{version}");
    }
    for version in ["0.33.0", "0.56.0", "0.142.2"] {
        assert_eq!(lines(version, after.clone()), [Some(5), Some(7)], "{version}");
    }
    let unanswered = vec![count(3, 100, 5), call(4), count(9, 200, 12)];
    assert_eq!(lines("0.55.0", unanswered), [Some(12)], "nothing is left out");
}

#[test]
fn the_first_meta_wins_and_replacements_do_not_count() {
    let compacted = r#"{"timestamp":"2026-01-05T09:00:07Z","type":"compacted","payload":{"message":"So far","replacement_history":[{"type":"message","role":"user","content":[]}]}}"#;
    let again = META.replace(r#""/w""#, r#""/elsewhere""#);
    let transcript = read_lines(&[
        META.to_owned(),
        again,
        compacted.to_owned(),
        event(7, r#"{"type":"context_compacted"}"#),
    ]);
    assert_eq!(transcript.session.project.as_deref(), Some("/w"));
    assert_eq!(
        summarize(&transcript),
        [("system", EntryKind::Compaction, ""), ("user", EntryKind::Notice, "So far")]
    );
}

#[test]
fn bad_lines_are_reported_and_unknown_kinds_survive() {
    let transcript = read_lines(&[
        META.to_owned(),
        "{torn".to_owned(),
        r#"{"timestamp":"2026-01-05T09:00:07Z","type":"novelty","payload":{"a":1}}"#.to_owned(),
        event(7, r#"{"type":"error","message":"quota"}"#),
        event(7, r#"{"type":"brand_new","n":1.50}"#),
        answer("still here"),
    ]);
    assert_eq!(transcript.problems.len(), 1);
    assert_eq!(transcript.problems[0].line, Some(2));
    let kinds: Vec<_> = transcript.entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Other, EntryKind::Error, EntryKind::Other, EntryKind::Text]);
    assert_eq!(transcript.entries[1].role, Role::System);
}

#[test]
fn half_a_surrogate_pair_is_replaced() {
    let prompt = r#"{"type":"event_msg","payload":{"type":"user_message","message":"Go \ud83d"}}"#;
    let transcript = read_lines(&[META.to_owned(), prompt.to_owned(), answer("\\ud800")]);
    assert_eq!(transcript.problems, []);
    let expected =
        [("user", EntryKind::Text, "Go \u{fffd}"), ("assistant", EntryKind::Text, "\u{fffd}")];
    assert_eq!(summarize(&transcript), expected);
}

#[test]
fn responses_are_summed_where_nothing_is_counted() {
    let record = |id: &str| {
        format!(
            r#"{{"timestamp":"2026-01-05T09:00:07Z","type":"token_usage_record","payload":{{"response_id":"{id}","usage":{{"input_tokens":5,"output_tokens":2}}}}}}"#
        )
    };
    let transcript = read_lines(&[META.to_owned(), record("a"), record("a"), record("b")]);
    assert_eq!(
        (transcript.session.totals.usage.input, transcript.session.totals.usage.output),
        (10, 4)
    );
}

#[test]
fn the_plain_and_active_file_is_taken_and_titled() {
    let home = tempfile::tempdir().unwrap();
    let day = home.path().join("sessions/2026/01/05");
    let archive = home.path().join("archived_sessions");
    fs::create_dir_all(&day).unwrap();
    fs::create_dir_all(&archive).unwrap();
    let plain = sample().join("\n");
    let packed = zstd::encode_all(plain.as_bytes(), 1).unwrap();
    fs::write(archive.join("rollout-a.jsonl.zst"), &packed).unwrap();
    fs::write(archive.join("rollout-b.jsonl.zst"), &packed).unwrap();
    fs::write(day.join("rollout-a.jsonl"), &plain).unwrap();
    let index = "{\"id\":\"019f05f8-7f53-7492-a941-83098e16765c\",\"thread_name\":\"Old\"}\n{\"id\":\"019f05f8-7f53-7492-a941-83098e16765c\",\"thread_name\":\"New\"}\n";
    fs::write(home.path().join("session_index.jsonl"), index).unwrap();
    let found = READER.find_at(home.path()).unwrap();
    let roots: Vec<_> = found.iter().map(|bundle| bundle.root.clone()).collect();
    assert_eq!(roots, [day.join("rollout-a.jsonl"), archive.join("rollout-b.jsonl.zst")]);
    for root in roots {
        let counted = inspect_file(&root);
        assert_eq!((counted.user_prompts, counted.assistant_messages), (1, 1));
        assert_eq!((counted.tool_calls, counted.tool_results), (1, 1));
        assert_eq!(counted.title.as_deref(), Some("New"));
    }
}

#[test]
fn reads_a_torn_archive_up_to_the_tear() {
    let packed = zstd::encode_all(sample().join("\n").as_bytes(), 1).unwrap();
    let transcript = read_bytes(&packed[..packed.len() - 4]);
    assert!(!transcript.problems.is_empty());
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
        let mut behind = META.as_bytes().to_vec();
        behind.push(b'\n');
        behind.extend(&bytes);
        read_bytes(&behind);
    }
}

#[test]
fn each_answer_has_the_tokens_that_were_counted_after_it() {
    let lines = [
        user("hello"),
        prompt("hello"),
        answer("one"),
        count(4, 100, 5),
        count(4, 100, 5),
        answer("two"),
        event(5, r#"{"type":"turn_aborted","reason":"interrupted"}"#),
        count(6, 250, 9),
    ];
    let transcript = read_lines(&lines);
    let tokens = transcript.entries.iter().filter_map(|entry| {
        entry.usage.map(|usage| (entry.content.as_str(), usage.input, usage.output))
    });
    assert_eq!(tokens.collect::<Vec<_>>(), [("one", 90, 5), ("two", 150, 4)]);
    assert_eq!(transcript.session.totals.usage.output, 9);
    let kinds: Vec<_> = transcript.entries.iter().map(|entry| entry.sequence).collect();
    assert_eq!(kinds, [0, 1, 2, 3]);
}

#[test]
fn reads_sessions_without_rollouts_from_the_history() {
    let home = tempfile::tempdir().unwrap();
    let there = "019f05f8-7f53-7492-a941-83098e16765c";
    let folder = home.path().join("sessions/2026/01/05");
    fs::create_dir_all(&folder).unwrap();
    let rollout = folder.join(format!("rollout-2026-01-05T09-00-00-{there}.jsonl"));
    fs::write(&rollout, sample().join("\n")).unwrap();
    let line = |id: &str, ts: u64, text: &str| {
        format!("{{\"session_id\":\"{id}\",\"ts\":{ts},\"text\":\"{text}\"}}\n")
    };
    let history = home.path().join("history.jsonl");
    let lines = [
        line(there, 1_767_603_600, "List"),
        line("gone-1", 1_767_603_601, "First"),
        line("gone-2", 1_767_603_602, "Other"),
        line("gone-1", 1_767_603_603, "/status"),
        line("gone-1", 1_767_603_604, "Second"),
    ];
    fs::write(&history, lines.concat() + "{\"session_id\":").unwrap();
    let found = registry::find_sessions(home.path()).unwrap();
    let keys: Vec<_> = found.iter().map(|found| found.bundle.key.as_deref()).collect();
    assert_eq!(keys, [None, Some("gone-1"), Some("gone-2")]);
    assert!(found.iter().all(|found| found.reader.agent == AGENT_NAME));
    let gone = found[1].read_transcript().unwrap();
    assert_eq!(
        summarize(&gone),
        [
            ("user", EntryKind::Text, "First"),
            ("user", EntryKind::Notice, "/status"),
            ("user", EntryKind::Text, "Second")
        ]
    );
    assert_eq!(gone.session.native_id.as_deref(), Some("gone-1"));
    assert_eq!(gone.session.started, "2026-01-05T09:00:01Z".parse().ok());
    assert!(found[1].bundle.has_only_excerpts());
}

#[test]
fn a_result_has_the_tool_of_its_call() {
    let call = r#"{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c1"}"#;
    let result = r#"{"type":"function_call_output","call_id":"c1","output":"done"}"#;
    let other = r#"{"type":"function_call_output","call_id":"c2","output":"done"}"#;
    let lines = [META.to_owned(), item(3, call), item(4, result), item(5, other)].join("\n");
    let entries = read_bytes(lines.as_bytes()).entries;
    let tools: Vec<_> = entries.iter().map(|entry| entry.tool_name.as_deref()).collect();
    assert_eq!(tools, [Some("exec_command"), Some("exec_command"), None]);
}
