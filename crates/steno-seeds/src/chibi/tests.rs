//! Reading contexts of all releases.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use steno_model::entry::{EntryKind, Role};
use steno_model::session::Transcript;
use steno_vault::{SessionBundle, SessionFile};

fn line(id: u32, second: i64, content: &str) -> String {
    let line = ContextLine {
        id: format!("00000000-0000-4000-8000-{id:012}"),
        timestamp: second.into(),
        from: "alice".to_owned(),
        to: "work".to_owned(),
        content: content.to_owned(),
        entry_type: "message".to_owned(),
        ..ContextLine::default()
    };
    line.to_line()
}

fn context(files: &[(&str, String)]) -> Transcript {
    let root = PathBuf::from("/home/x/.chibi/contexts/work");
    let sources = files.iter().map(|(name, text)| {
        SessionFile::in_memory(*name, root.join(name), text.clone().into_bytes())
    });
    let sources = sources.collect();
    read_context(&SessionBundle::new(root, sources)).unwrap()
}

fn texts(transcript: &Transcript) -> Vec<&str> {
    transcript.entries.iter().map(|entry| entry.content.as_str()).collect()
}

#[test]
fn partitions_that_no_manifest_lists_are_read_too() {
    let read = context(&[
        ("transcript/active.jsonl", line(5, 50, "e")),
        ("transcript/manifest.json", r#"{"partitions":[{"file":"30-39.jsonl"}]}"#.to_owned()),
        ("transcript/partitions/30-39.jsonl", line(3, 30, "c") + &line(4, 39, "d")),
        ("transcript/partitions/10-29.jsonl", line(1, 10, "a") + &line(2, 29, "b")),
        ("context.jsonl", line(9, 5, "only here") + &line(4, 39, "d") + &line(5, 50, "e")),
    ]);
    assert_eq!(texts(&read), ["a", "b", "c", "only here", "d", "e"]);
    assert_eq!(read.session.native_id.as_deref(), Some("work"));
}

#[test]
fn the_first_releases_kept_one_object() {
    let old = json!({"name": "work", "created_at": 100, "updated_at": 200, "messages": [
        {"id": "550e8400-e29b-41d4-a716-446655440000", "role": "user", "content": "hi"},
        {"id": "m2", "role": "assistant", "content": "hello"}]});
    let read = context(&[("context.json", old.to_string())]);
    assert_eq!(texts(&read), ["hi", "hello"]);
    assert_eq!(read.entries[1].role, Role::Assistant);
    assert_eq!(read.session.started.unwrap().unix_seconds(), 100);
}

#[test]
fn reads_the_readable_archive_if_there_is_no_other() {
    let markdown = "[USER]: old\n\n[ASSISTANT]: answer\n\n[USER]: one\n\n".to_owned();
    let read = context(&[
        ("context.jsonl", line(1, 10, "one") + &line(2, 11, "two")),
        ("transcript.md", markdown.clone()),
    ]);
    assert_eq!(texts(&read), ["old", "answer", "one", "two"]);
    let read = context(&[
        ("context.jsonl", line(2, 11, "two")),
        ("transcript_archive.jsonl", line(1, 10, "one")),
        ("transcript.md", markdown),
    ]);
    assert_eq!(texts(&read), ["one", "two"]);
}

#[test]
fn bad_lines_are_reported_and_the_rest_is_read() {
    let deep = format!("{{\"x\":{}}}", "[".repeat(200));
    let text =
        format!("{}\n\n[1]\n{deep}\n{{\"id\":\"a\"}}\n\u{0}\n{}", "{torn", line(1, 10, "good"));
    let mut bytes = text.into_bytes();
    bytes.extend(b"{\"id\":\"\xff\"}\n");
    let source = SessionFile::in_memory("context.jsonl", "/c/context.jsonl", bytes);
    let read = read_context(&SessionBundle::new("/c", vec![source])).unwrap();
    assert_eq!(texts(&read), ["good"]);
    let lines: Vec<_> = read.problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [1, 3, 4, 5, 6, 8].map(Some));
    assert_eq!(read.problems[3].to_string(), "/c/context.jsonl:5: missing field: from");
}

#[test]
fn ids_are_unique_even_where_chibi_repeated_them() {
    let read = context(&[("context.jsonl", line(1, 10, "a") + &line(1, 11, "b"))]);
    assert_ne!(read.entries[0].entry_id, read.entries[1].entry_id);
    assert_eq!(line_from_entry(&read.entries[1], "work", 0).to_line(), line(1, 11, "b"));
}

#[test]
fn the_debug_files_have_models_tokens_and_cost() {
    let answer = line(2, 12, "answer").replace("\"to\":\"work\"", "\"to\":\"user\"");
    let response = r#"{"response":{"id":"r1","model":"m","usage":{"prompt_tokens":3,"completion_tokens":4,"cost":0.5}},"timestamp":12}"#;
    let read = context(&[
        ("context.jsonl", line(1, 10, "ask") + &answer),
        ("response_meta.jsonl", format!("{response}\n{{\"timestamp\":1}}\n")),
        (
            "inbox.jsonl",
            r#"{"id":"i","timestamp":20,"from":"b","to":"work","content":"psst"}"#.to_owned(),
        ),
    ]);
    assert_eq!(texts(&read), ["ask", "answer", "psst"]);
    assert_eq!((read.session.totals.usage.output, read.session.totals.cost), (4, Some(0.5)));
    assert_eq!(read.session.models, ["m"]);
    assert_eq!(read.entries[2].kind, EntryKind::Notice);
    assert_eq!(read.problems.len(), 1);
}

#[test]
fn single_records_are_recognised() {
    let object = |value: Value| value.as_object().unwrap().clone();
    let entry = object(serde_json::from_str(&line(1, 10, "a")).unwrap());
    let inbox = object(json!({"id": "i", "timestamp": 1, "from": "a", "to": "b", "content": "c"}));
    let request = object(json!({"timestamp": 1, "request": {"model": "m"}}));
    let response = object(json!({"timestamp": 1, "response": {"usage": {"completion_tokens": 2}}}));
    for (object, kind) in [
        (entry, EntryKind::Text),
        (inbox, EntryKind::Notice),
        (request, EntryKind::Notice),
        (response, EntryKind::Notice),
    ] {
        assert!(is_chibi_record(&object), "{object:?}");
        assert_eq!(decode_record(object).unwrap()[0].kind, kind);
    }
    for other in
        [json!({"role": "user", "content": "x"}), json!({"timestamp": 1, "request": 5}), json!({})]
    {
        assert!(!is_chibi_record(&object(other.clone())), "{other}");
        assert!(decode_record(object(other)).is_err());
    }
}

#[test]
fn contexts_are_found_by_their_content() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("contexts/a/context.jsonl", &line(1, 10, "x"));
    put("contexts/b/transcript/partitions/1-2.jsonl", &line(1, 10, "x"));
    put("contexts/c/transcript.md", "[USER]: hi\n\n");
    put("contexts/d/context.jsonl", "{\"role\":\"user\"}\n");
    put("contexts/e/transcript.md", "# Notes\n");
    put("state.json", "{}");
    put("loose.jsonl", &line(1, 10, "x"));
    let names = |path: &std::path::Path| -> Vec<_> {
        let found = READER.find_at(path).unwrap();
        found
            .iter()
            .map(|bundle| read_context(bundle).unwrap().session.native_id.unwrap())
            .collect()
    };
    assert_eq!(names(dir.path()), ["a", "b", "c"]);
    assert_eq!(names(&dir.path().join("contexts/a/context.jsonl")), ["a"]);
    assert_eq!(names(&dir.path().join("loose.jsonl")), ["loose"]);
    assert!(names(&dir.path().join("state.json")).is_empty());
    assert!(READER.find_at(&dir.path().join("gone")).is_err());
}

#[test]
fn half_of_a_surrogate_pair_costs_one_character_and_stays_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("default");
    let context = ChibiContext::open(
        &folder,
        steno_model::timestamp::Clock::fixed("2026-01-05T09:15:32Z".parse().unwrap()),
    )
    .unwrap();
    let line = concat!(
        r#"{"id":"a","timestamp":-5,"from":"u","to":"default","content":"x\ud83d y","entry_type":"message"}"#,
        "\n"
    );
    std::fs::write(folder.join("context.jsonl"), line).unwrap();
    let (lines, problems) = context.read_lines().unwrap();
    assert_eq!((lines[0].content.as_str(), problems.len()), ("x\u{fffd} y", 0));
    assert_eq!(context.archive_all().unwrap(), 1);
    assert_eq!(std::fs::read_to_string(folder.join("transcript_archive.jsonl")).unwrap(), line);
}
