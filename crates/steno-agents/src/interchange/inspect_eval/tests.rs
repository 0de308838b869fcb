use std::fs;
use std::io::Write;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::decoding::{large, temporary_vault};
use crate::inspect::inspect_session;
use crate::reader::{self, FoundSession, ReaderItem};
use steno_model::entry::Entry;
use steno_vault::SessionFile;

fn sample() -> Value {
    json!({
        "id": 1, "epoch": 1, "uuid": "u1", "target": "4", "started_at": "2026-01-01T00:00:00+00:00",
        "messages": [
            {"id": "a", "role": "system", "content": "You are"},
            {"id": "b", "role": "user", "content": "attachment://h1", "source": "input"},
            {"id": "c", "role": "assistant", "model": "m", "content": [
                {"type": "reasoning", "reasoning": "Hm"}, {"type": "text", "text": ""}],
             "tool_calls": [{"id": "t1", "function": "bash", "arguments": {"cmd": "ls"}}]},
            {"id": "d", "role": "tool", "tool_call_id": "t1", "function": "bash", "content": "",
             "error": {"type": "timeout", "message": "too slow"}},
            {"id": "e", "role": "user", "content": "Go on"},
            {"id": "f", "role": "assistant", "content": "4"},
            {"id": "g", "role": "judge", "content": "?"},
            null
        ],
        "attachments": {"h1": "What is 2+2?"},
        "events": [{"event": "model", "timestamp": "2026-01-01T00:00:05+00:00",
            "output": {"choices": [{"message": {"id": "c"}}]}}],
        "scores": {"match": {"value": "C"}},
        "output": {"choices": [{"stop_reason": "stop"}]},
        "model_usage": {"openai/m": {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14,
            "input_tokens_cache_read": 6, "reasoning_tokens": 2}}
    })
}

fn log() -> Value {
    json!({"version": 2, "status": "success", "eval": {"task": "sums", "model": "openai/m"},
           "samples": [sample(), {"id": "x/y", "epoch": 2, "messages": []}]})
}

fn archive(path: &Path, method: CompressionMethod) {
    let mut writer = ZipWriter::new(fs::File::create(path).unwrap());
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, value) in [
        ("_journal/start.json", json!({"eval": {"task": "sums"}})),
        ("samples/1_epoch_1.json", sample()),
        ("header.json", json!({"version": 2, "eval": {"task": "sums"}})),
    ] {
        writer.start_file(name, options).unwrap();
        writer.write_all(value.to_string().as_bytes()).unwrap();
    }
    writer.finish().unwrap();
}

fn bundle(bytes: &[u8]) -> SessionBundle {
    let path = "/logs/a.eval/samples/1_epoch_1.json";
    SessionBundle::new(
        path,
        vec![SessionFile::in_memory("samples/1_epoch_1.json", path, bytes.to_vec())],
    )
}

#[test]
fn a_sample_is_counted() {
    let bundle = bundle(sample().to_string().as_bytes());
    let counted = inspect_session(&FoundSession { reader: &READER, bundle }).unwrap();
    assert_eq!((counted.user_prompts, counted.assistant_messages), (1, 2));
    assert_eq!((counted.tool_calls, counted.tool_results, counted.bad_lines), (1, 1, 1));
    let tokens = counted.tokens;
    assert_eq!((tokens.input, tokens.cache_read, tokens.output, tokens.reasoning), (4, 6, 4, 2));
    assert_eq!(counted.models, ["m", "openai/m"]);
    assert_eq!(counted.session_id.as_deref(), Some("u1"));
}

#[test]
fn messages_become_entries() {
    let transcript =
        reader::read_transcript(&READER, &bundle(sample().to_string().as_bytes())).unwrap();
    let entries = &transcript.entries;
    assert_eq!(entries[1].content, "What is 2+2?");
    assert_eq!(entries[3].created_at.unwrap().to_string(), "2026-01-01T00:00:05+00:00");
    assert_eq!(entries[4].content, "too slow");
    assert_eq!(entries[4].metadata.as_ref().unwrap()["is_error"], true);
    assert_eq!(transcript.session.stop_reason.as_deref(), Some("stop"));
    assert_eq!(transcript.session.extra["scores"]["match"]["value"], "C");
}

#[test]
fn a_sample_larger_than_may_be_held_is_read() {
    let mut sample = sample();
    let messages = sample["messages"].as_array_mut().unwrap();
    messages
        .extend((0..4).map(|n| json!({"role": "tool", "content": format!("attachment://{n}")})));
    messages.push(json!({"role": "tool", "content": "~"}));
    sample["attachments"] = (0..6).map(|n| (n.to_string(), json!("~"))).collect();
    sample["events"] = json!([{"event": "model", "input": "~"}, {"event": "tool", "id": "~"}]);
    let expected =
        reader::read_transcript(&READER, &bundle(sample.to_string().as_bytes())).unwrap();
    let lengths = |entries: &[Entry]| -> Vec<_> {
        entries.iter().map(|entry| (entry.kind, entry.content.len())).collect()
    };
    let log = json!({"version": 2, "eval": {"task": "sums"}, "samples": [{"id": 7}, sample]});
    let log = large::large_source("a.json", &log.to_string());
    assert!(log.read_bytes().is_err());
    let kept = SessionBundle {
        key: Some("1_epoch_1".to_owned()),
        ..SessionBundle::new("a.json", vec![log])
    };
    let mut actual = Vec::new();
    let session = (READER.read)(&kept, &mut |item| match item {
        ReaderItem::Entry(entry) => actual.push((entry.kind, entry.content.len().min(1000))),
        ReaderItem::Problem(_) => {}
    });
    assert_eq!(session.unwrap().thread.as_deref(), Some("sums"));
    let mut expected = lengths(&expected.entries);
    expected
        .iter_mut()
        .filter(|(_, length)| *length == 1)
        .skip(2)
        .for_each(|(_, length)| *length = 1000);
    assert_eq!(actual, expected);
}

#[test]
fn archives_of_any_method_are_read() {
    for method in [CompressionMethod::Deflated, CompressionMethod::Zstd, CompressionMethod::Stored]
    {
        let dir = tempfile::tempdir().unwrap();
        archive(&dir.path().join("a.eval"), method);
        let found = READER.find_at(dir.path()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].key.as_deref(), Some("1_epoch_1"));
        let transcript = reader::read_transcript(&READER, &found[0]).unwrap();
        assert_eq!(transcript.entries.len(), 8);
        assert_eq!(transcript.session.thread.as_deref(), Some("sums"));
    }
}

#[test]
fn documents_are_read_sample_by_sample() {
    let dir = tempfile::tempdir().unwrap();
    let text = log().to_string().replace("\"C\"", "NaN");
    fs::write(dir.path().join("a.json"), text).unwrap();
    fs::write(dir.path().join("b.json"), r#"{"version":1,"status":"x","eval":{}}"#).unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    let keys: Vec<_> = found.iter().map(|bundle| bundle.key.as_deref()).collect();
    assert_eq!(keys, [Some("1_epoch_1"), Some("x/y_epoch_2")]);
    let transcript = reader::read_transcript(&READER, &found[0]).unwrap();
    assert_eq!(transcript.entries.len(), 8);
    assert_eq!(transcript.session.thread.as_deref(), Some("sums"));
    assert!(reader::read_transcript(&READER, &found[1]).unwrap().entries.is_empty());
}

#[test]
fn other_archives_are_not_ours() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.eval");
    archive(&path, CompressionMethod::Deflated);
    let bytes = fs::read(&path).unwrap();
    for end in 0..bytes.len() {
        fs::write(&path, &bytes[..end]).unwrap();
        assert!(READER.find_at(&path).unwrap().is_empty());
    }
}

#[test]
fn a_damaged_archive_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.eval");
    archive(&path, CompressionMethod::Zstd);
    let bytes = fs::read(&path).unwrap();
    for at in (0..bytes.len()).step_by(3) {
        let mut changed = bytes.clone();
        changed[at] ^= 0xff;
        fs::write(&path, &changed).unwrap();
        for bundle in READER.find_at(&path).unwrap() {
            let _ = reader::read_transcript(&READER, &bundle);
        }
    }
}

#[test]
fn a_cut_anywhere_is_no_panic() {
    let text = sample().to_string();
    for end in 0..text.len() {
        assert!(reader::read_transcript(&READER, &bundle(&text.as_bytes()[..end])).is_err());
    }
}

#[test]
fn a_kept_log_gives_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.eval");
    archive(&file, CompressionMethod::Deflated);
    assert_eq!(temporary_vault::check_kept_sessions(&READER, &file), 1);
    fs::write(&file, log().to_string()).unwrap();
    assert_eq!(temporary_vault::check_kept_sessions(&READER, &file), 2);
}

proptest! {
    #[test]
    fn any_bytes_are_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = reader::read_transcript(&READER, &bundle(&bytes));
    }
}
