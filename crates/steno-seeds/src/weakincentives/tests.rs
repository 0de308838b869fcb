//! Round trips of arbitrary entries and files, and problems of invalid files.

use std::fs;
use std::path::Path;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use steno_agents::decoding::large;
use steno_model::entry::{EntryKind, Role, Usage};
use steno_model::json::Value;
use steno_model::problem::Problem;
use steno_model::timestamp::TimestampZone;
use steno_vault::SessionFile;

fn bundle(text: &str) -> SessionBundle {
    let bytes = text.as_bytes().to_vec();
    SessionBundle::new("t.jsonl", vec![SessionFile::in_memory("t.jsonl", "t.jsonl", bytes)])
}

fn read_text(text: &str) -> Transcript {
    read_session(&bundle(text)).unwrap()
}

fn reasons(transcript: &Transcript) -> Vec<String> {
    transcript.problems.iter().map(Problem::to_string).collect()
}

const LINE: &str = r#"{"role":"user","content":"hi","created_at":"2026-01-05T09:15:32+00:00","tool_name":null,"tool_call_id":null,"tool_input":null,"metadata":null,"entry_id":"00000000-0000-4000-8000-000000000001","source":"primary","sequence":3}"#;

#[test]
fn a_bad_line_costs_only_itself() {
    let bad_role = LINE.replace("user", "narrator");
    let untimed = LINE.replace("\"2026-01-05T09:15:32+00:00\"", "null");
    let deep = "[".repeat(100_000);
    let torn = &LINE[..40];
    let text = format!("{LINE}\n\n  \n{bad_role}\n{untimed}\n{deep}\n7\n\0\0\n{LINE}\n{torn}");
    let transcript = read_text(&text);
    assert_eq!(transcript.entries.len(), 2);
    assert_eq!(
        reasons(&transcript),
        [
            "t.jsonl:4: role: expected one of ['system', 'user', 'assistant', 'tool']",
            "t.jsonl:5: missing field: created_at",
            "t.jsonl:6: not JSON: recursion limit exceeded (column 128)",
            "t.jsonl:7: not a JSON object",
            "t.jsonl:8: not JSON: expected value (column 1)",
            "t.jsonl:10: not JSON: EOF while parsing a string (column 40)",
        ]
    );
}

#[test]
fn bytes_that_are_no_text_are_a_bad_line() {
    let mut bytes = b"{\"role\":\"\xff\"}\n".to_vec();
    bytes.extend(LINE.as_bytes());
    let sources = vec![SessionFile::in_memory("t", "t", bytes)];
    let root = "t";
    let transcript = read_session(&SessionBundle::new(root, sources)).unwrap();
    assert_eq!(transcript.entries.len(), 1);
    assert_eq!(transcript.problems.len(), 1);
}

#[test]
fn a_line_without_end_is_one_problem() {
    let endless = "x".repeat(steno_model::lines::MAX_LINE_LENGTH + 10);
    let transcript = read_text(&format!("{endless}\n{LINE}\n"));
    assert_eq!(transcript.entries.len(), 1);
    assert_eq!(reasons(&transcript), ["t.jsonl:1: line longer than 67108864 bytes"]);
}

#[test]
fn the_session_is_named_by_its_first_entry_and_keeps_the_numbers() {
    let transcript = read_text(LINE);
    let session = &transcript.session;
    assert_eq!(session.id.as_str(), "00000000-0000-4000-8000-000000000001");
    assert_eq!(session.title.as_deref(), Some("hi"));
    assert_eq!(transcript.entries[0].sequence, 3);
}

#[test]
fn entries_without_an_id_get_different_ones() {
    let line = r#"{"role":"user","content":"hi","created_at":"2026-01-05T09:15:32Z"}"#;
    let text = format!("{line}\n{line}\n");
    let entries = read_text(&text).entries;
    assert_ne!(entries[0].entry_id, entries[1].entry_id);
    assert_eq!(entries, read_text(&text).entries);
}

#[test]
fn unknown_keys_and_types_stay_in_their_line() {
    let typed = LINE.replacen('{', r#"{"__type__":"other.module:TranscriptEntry","#, 1);
    let more = LINE.replace(r#""sequence":3"#, r#""sequence":3,"mood":{"a":1.50}"#);
    let text = format!("{typed}\n{more}\n{LINE}\n");
    assert_eq!(render_lines(&read_text(&text), false), text);
}

#[test]
fn the_start_of_a_session_without_times_survives() {
    let mut transcript = Transcript::new(Session::new("s".parse().unwrap(), "x"));
    transcript.session.started = Some("2026-01-05T09:15:32Z".parse().unwrap());
    transcript.push(Entry::new(Role::User, EntryKind::Text, "hi"));
    let text = render_lines(&transcript, false);
    assert!(text.contains(r#""created_at":"2026-01-05T09:15:32+00:00""#));
    let again = read_text(&text);
    assert_eq!(again.entries[0].created_at, None);
    assert_eq!(again.session.started.unwrap().to_string(), "2026-01-05T09:15:32+00:00");
}

#[test]
fn sessions_are_found_by_name_or_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    };
    put("a/weakincentives.transcript:TranscriptEntry.jsonl", "torn");
    put("b/weakincentives.runtime.transcript.TranscriptEntry.jsonl", LINE);
    put("c/other.jsonl", &format!("torn\n{LINE}\n"));
    put("d/empty.jsonl", "");
    put(&format!("d/{TRANSCRIPT_FILE}"), "");
    put("e/foreign.jsonl", r#"{"role":"user","content":"hi"}"#);
    put("f/notes.txt", LINE);
    let found = READER.find_at(folder.path()).unwrap();
    let names: Vec<_> =
        found.iter().map(|bundle| bundle.root.strip_prefix(folder.path()).unwrap()).collect();
    assert_eq!(
        names,
        [
            Path::new("a/weakincentives.transcript:TranscriptEntry.jsonl"),
            Path::new("b/weakincentives.runtime.transcript.TranscriptEntry.jsonl"),
            Path::new("c/other.jsonl"),
        ]
    );
    assert!(READER.find_at(&folder.path().join("nowhere")).is_err());
}

#[test]
fn a_folder_gets_the_file_that_upstream_looks_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = write_transcript(&read_text(LINE), folder.path()).unwrap();
    assert_eq!(file, folder.path().join(TRANSCRIPT_FILE));
    assert_eq!(fs::read_to_string(file).unwrap(), format!("{LINE}\n"));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(any_key(), inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,3}",
        proptest::sample::select(vec![
            "role",
            "kind",
            "model",
            "steno",
            "weakincentives",
            "__type__",
            "extra",
            "event",
            "context",
            "metadata",
        ])
        .prop_map(str::to_owned),
    ]
}

fn any_object() -> impl Strategy<Value = Object> {
    btree_map(any_key(), any_value(), 0..4).prop_map(|map| map.into_iter().collect())
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    let fraction = prop_oneof![Just(""), Just(".5"), Just(".000001"), Just(".123456789")];
    let zone = prop_oneof![Just("Z"), Just(""), Just("+08:00"), Just("-03:30")];
    (0i64..4_000_000_000, fraction, zone).prop_map(|(seconds, fraction, zone)| {
        let time = Timestamp::from_unix(seconds).unwrap().wall();
        format!("{time}{fraction}{zone}").parse().unwrap()
    })
}

fn any_text() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(any::<String>())
}

fn any_role_and_kind() -> impl Strategy<Value = (Role, EntryKind)> {
    let roles = ["system", "user", "assistant", "tool", "developer", "moderator"];
    let kinds = vec![
        EntryKind::Text,
        EntryKind::Thinking,
        EntryKind::ToolCall,
        EntryKind::ToolResult,
        EntryKind::Compaction,
        EntryKind::Error,
        EntryKind::Notice,
        EntryKind::Other,
    ];
    let roles = proptest::sample::select(roles.map(Role::from).to_vec());
    (roles, proptest::sample::select(kinds))
}

prop_compose! {
    fn any_entry()(
        (role, kind) in any_role_and_kind(),
        content in any::<String>(),
        created_at in proptest::option::of(any_time()),
        (tool_name, tool_call_id, model) in (any_text(), any_text(), any_text()),
        tool_input in proptest::option::of(any_value()),
        metadata in proptest::option::of(any_object()),
        (id, sequence) in (1u128.., any::<u64>()),
        source in "primary|subagent:[a-z]{3}",
        (message_id, parent_id) in (any_text(), any_text()),
        usage in proptest::option::of(any::<[u32; 5]>()),
        extra in any_object(),
    ) -> Entry {
        let usage = usage.map(|[a, b, c, d, e]| Usage {
            input: a.into(), cache_read: b.into(), cache_write: c.into(),
            output: d.into(), reasoning: e.into(), ..Usage::default() });
        let mut entry = Entry {
            role, content, created_at, tool_name, tool_call_id, tool_input, metadata,
            entry_id: uuid::Uuid::from_u128(id), source, sequence, kind, model, message_id,
            parent_id, usage, extra,
        };
        entry.normalize();
        entry
    }
}

/// The entry with its time in Python's format, the only change that the format makes.
fn spelt(mut entry: Entry) -> Entry {
    entry.created_at = entry.created_at.map(|time| {
        if time.wall().subsec_nanosecond() % 1000 != 0 {
            return time;
        }
        let spelt: Timestamp = time.to_isoformat().parse().unwrap();
        assert_eq!(spelt.instant(), time.instant());
        assert_eq!(spelt.zone() == TimestampZone::Unstated, time.zone() == TimestampZone::Unstated);
        spelt
    });
    entry
}

proptest! {
    #[test]
    fn nothing_is_lost_and_bytes_are_stable(entries in vec(any_entry(), 0..6), with_type: bool) {
        let mut transcript = Transcript::new(Session::new("s".parse().unwrap(), "x"));
        entries.iter().cloned().for_each(|entry| transcript.push(entry));
        let text = render_lines(&transcript, with_type);
        prop_assert!(text.is_ascii());
        let again = read_text(&text);
        prop_assert_eq!(&again.problems, &vec![]);
        prop_assert_eq!(render_lines(&again, with_type), text.clone());
        // A foreign field with the name of the line key leaves no room for the type.
        if !entries.iter().any(|entry| entry.extra.contains_key(AGENT_NAME)) {
            prop_assert_eq!(render_lines(&again, false), text);
        }
        if !with_type {
            let expected: Vec<_> = entries.into_iter().map(spelt).collect();
            prop_assert_eq!(again.entries, expected);
        }
    }

    #[test]
    fn writes_ten_fields_as_upstream_does(mut entry in any_entry()) {
        entry.role = Role::Assistant;
        entry.created_at = Some("2026-01-05T09:15:32+00:00".parse().unwrap());
        entry.tool_input = entry.tool_input.filter(Value::is_object);
        entry.metadata = Some(Object::from_iter([("adapter".to_owned(), json!("openai"))]));
        entry.kind = entry.implied_kind();
        entry.extra = Object::new();
        (entry.model, entry.message_id, entry.parent_id, entry.usage) = (None, None, None, None);
        let line = line::object_from_entry(&entry, false, unknown_time());
        let keys: Vec<_> = line.keys().map(String::as_str).collect();
        prop_assert_eq!(keys, ["role", "content", "created_at", "tool_name", "tool_call_id",
            "tool_input", "metadata", "entry_id", "source", "sequence"]);
        prop_assert_eq!(&line["metadata"], &json!({"adapter": "openai"}));
    }

    #[test]
    fn any_line_is_read_or_reported(text in "\\PC{0,80}", object in any_object()) {
        let transcript = read_text(&format!("{text}\n{}\n", Value::Object(object.clone())));
        prop_assert!(transcript.entries.len() + transcript.problems.len() <= 2);
        let _ = decode_record(object.clone());
        let _ = claude::decode_line(object);
    }
}

#[test]
fn a_file_larger_than_may_be_held_is_read() {
    let mut transcript = Transcript::new(Session::new("s".parse().unwrap(), AGENT_NAME));
    (0..10).for_each(|_| transcript.push(Entry::new(Role::User, EntryKind::Text, "~")));
    let text = render_lines(&transcript, false);
    let (_, kinds, problems) = large::read_large(&READER, large::large_source("a.jsonl", &text));
    assert_eq!((kinds.len(), problems), (10, 0));
}

#[test]
fn half_of_a_surrogate_pair_costs_one_character() {
    let line = r#"{"role":"user","content":"x\ud83d y","created_at":"2026-01-05T09:15:32","tool_input":null,"entry_id":"6f1c3a52-0a5f-4f0e-9d0b-2f8c1f0f5a11","source":"primary","sequence":0,"metadata":{"n":NaN}}"#;
    let source = SessionFile::in_memory("t.jsonl", "t.jsonl", line.into());
    let transcript = read_session(&SessionBundle::new("t.jsonl", vec![source])).unwrap();
    assert_eq!(transcript.problems, []);
    assert_eq!(transcript.entries[0].content, "x\u{fffd} y");
}

/// A debug bundle with these members.
fn debug_bundle(path: &Path, members: &[(&str, &str)]) {
    use std::io::Write;
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for (name, content) in members {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(format!("debug_bundle/{name}"), options).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
}

#[test]
fn debug_bundles_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b1_20260210_100000.zip");
    let manifest = r#"{"format_version": "1.0.0", "bundle_id": "b1", "request": {"request_id": "r", "session_id": "3b1c", "status": "error",
        "started_at": "2026-02-10T09:59:00+00:00", "ended_at": "2026-02-10T10:01:00+00:00"}}"#;
    let records =
        include_str!("../../tests/fixtures/weakincentives/weakincentives-0.27-log-records.jsonl");
    let error = r#"{"type": "ValueError", "message": "no luck", "traceback": []}"#;
    let members =
        [("manifest.json", manifest), ("transcript.jsonl", records), ("error.json", error)];
    debug_bundle(&path, &members);
    let found = reader::find_sessions(dir.path(), [&READER]).unwrap().sessions;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].reader.agent, AGENT_NAME);
    let transcript = found[0].read_transcript().unwrap();
    let lines = SessionFile::in_memory("transcript.jsonl", "transcript.jsonl", records.into());
    let alone = read_session(&SessionBundle::new("transcript.jsonl", vec![lines])).unwrap();
    let summarize = |transcript: &Transcript| -> Vec<_> {
        transcript.entries.iter().map(|entry| (entry.kind, entry.content.clone())).collect()
    };
    assert_eq!(summarize(&transcript), summarize(&alone));
    let session = &transcript.session;
    assert_eq!((session.id.as_str(), session.stop_reason.as_deref()), ("3b1c", Some("no luck")));
    assert_eq!(session.ended.unwrap().to_string(), "2026-02-10T10:01:00+00:00");
}

#[test]
fn a_debug_bundle_without_a_transcript_gives_the_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b.zip");
    let snapshot = r#"{"children_ids": [], "created_at": "2026-01-05T09:16:00+00:00", "parent_id": null, "slices": [{"item_type": "weakincentives.runtime.transcript:TranscriptEntry", "items": [{"content": "hi", "created_at": "2026-01-05T09:15:32+00:00", "role": "user"}], "slice_type": "x:TranscriptEntry"}], "tags": {}, "version": "1"}"#;
    debug_bundle(&path, &[("manifest.json", "{"), ("session/after.jsonl", snapshot)]);
    let found = reader::find_sessions(&path, [&READER]).unwrap().sessions;
    let transcript = found[0].read_transcript().unwrap();
    assert_eq!(transcript.entries[0].content, "hi");
    assert!(transcript.problems[0].to_string().contains("manifest.json: not JSON"));
    debug_bundle(&path, &[("other.json", "{}")]);
    assert_eq!(reader::find_sessions(&path, [&READER]).unwrap().sessions.len(), 0);
}
