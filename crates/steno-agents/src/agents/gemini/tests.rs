use proptest::prelude::*;

use super::*;
use crate::reader;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::session::Transcript;

const HEADER: &str = r#"{"sessionId":"s1","projectHash":"00","startTime":"2026-01-01T00:00:00Z"}"#;

const LOG: &str = r#"{"sessionId":"s1","projectHash":"00","startTime":"2026-01-01T00:00:00Z"}
{"$set":{"messages":[{"id":"c","type":"user","content":[{"text":"<session_context>today"}]}]}}
{"id":"u","timestamp":"2026-01-01T00:00:01Z","type":"user","content":"Fix \ud83d it"}
{"id":"g","timestamp":"2026-01-01T00:00:02Z","type":"gemini","content":"","model":"gemini-3"}
{"id":"x","timestamp":"2026-01-01T00:00:03Z","type":"gemini","content":"Done","model":"gemini-3"}
{"id":"g","timestamp":"2026-01-01T00:00:02Z","type":"gemini","content":"","model":"gemini-3","thoughts":[{"subject":"S","description":"D"}],"tokens":{"input":10,"cached":4,"output":2,"thoughts":3,"tool":1},"toolCalls":[{"id":"t","name":"ls","args":{"a":1},"status":"error","result":[{"functionResponse":{"id":"t","name":"ls","response":{"error":"no"}}}]}]}
{"id":"r","timestamp":"2026-01-01T00:00:04Z","type":"user","content":[{"functionResponse":{"id":"t","response":{"output":"no"}}}]}
{"id":"w","timestamp":"2026-01-01T00:00:05Z","type":"user","content":"rewound"}
{"$rewindTo":"w"}
{"id":"n","timestamp":"2026-01-01T00:00:06Z","type":"dream","content":"?"}
{"$set":{"summary":"Fixing"}}
"#;

fn bundle(name: &str, text: &[u8]) -> SessionBundle {
    SessionBundle::new(name, vec![SessionFile::in_memory(name, name, text.to_vec())])
}

fn read(name: &str, text: &str) -> Transcript {
    reader::read_transcript(&READER, &bundle(name, text.as_bytes())).unwrap()
}

fn kinds(transcript: &Transcript) -> Vec<(Role, EntryKind)> {
    transcript.entries.iter().map(|entry| (entry.role.clone(), entry.kind)).collect()
}

/// A document on many lines, with one prompt and one answer.
const DOCUMENT: &str = r#"{
  "sessionId": "s1",
  "projectHash": "00",
  "messages": [
    {"id": "u", "timestamp": "2026-01-01T00:00:01Z", "type": "user", "content": "Fix it"},
    {"id": "g", "timestamp": "2026-01-01T00:00:02Z", "type": "gemini", "content": "Done"}
  ]
}"#;

#[test]
fn content_decides_between_log_and_document_not_the_name() {
    for name in ["full.jsonl", "chat.txt", "chat.json"] {
        let document = read(name, DOCUMENT);
        assert_eq!(
            kinds(&document),
            [(Role::User, EntryKind::Text), (Role::Assistant, EntryKind::Text)]
        );
        assert_eq!(kinds(&read(name, LOG)), kinds(&read("chat.jsonl", LOG)), "{name}");
        assert!(document.problems.is_empty(), "{name}");
    }
}

#[test]
fn a_log_is_replayed() {
    let transcript = read("chat.jsonl", LOG);
    assert_eq!(
        kinds(&transcript),
        [
            (Role::User, EntryKind::Notice),
            (Role::User, EntryKind::Text),
            (Role::Assistant, EntryKind::Thinking),
            (Role::Assistant, EntryKind::ToolCall),
            (Role::Tool, EntryKind::ToolResult),
            (Role::Assistant, EntryKind::Text),
            (Role::System, EntryKind::Other),
        ]
    );
    let session = &transcript.session;
    assert_eq!(session.title.as_deref(), Some("Fixing"));
    assert_eq!(session.ended.unwrap().to_string(), "2026-01-01T00:00:06Z");
    assert_eq!(session.totals.usage.input, 7);
    assert_eq!(session.totals.usage.output, 5);
    assert_eq!(transcript.entries[1].content, "Fix \u{fffd} it");
    assert_eq!(transcript.entries[4].content, "no");
    assert!(transcript.entries[4].metadata.is_some());
    assert!(transcript.problems.is_empty());
}

#[test]
fn a_document_reads_like_its_log() {
    let messages =
        LOG.lines().filter(|line| line.starts_with("{\"id\"") && !line.contains("\"w\""));
    let messages: Vec<_> = messages
        .filter(|line| !line.contains("\"content\":\"\",\"model\":\"gemini-3\"}"))
        .collect();
    let document =
        format!("{},\"messages\":[{}]}}", HEADER.trim_end_matches('}'), messages.join(","));
    let texts = |entries: &[Entry]| entries.iter().map(|e| e.content.clone()).collect::<Vec<_>>();
    let mut log = texts(&read("chat.jsonl", LOG).entries);
    let mut same = texts(&read("chat.json", &document).entries);
    log.remove(0);
    log.sort();
    same.sort();
    assert_eq!(same, log);
}

#[test]
fn replacing_messages_is_a_compaction_when_some_are_lost() {
    let log = format!(
        "{HEADER}\n{}\n{}\n{}\n",
        r#"{"id":"a","type":"user","content":"one"}"#,
        r#"{"$set":{"messages":[{"id":"b","type":"user","content":"summary"},5]}}"#,
        r#"{"$set":{"messages":[{"id":"b","type":"user","content":"again"}]}}"#,
    );
    let transcript = read("chat.jsonl", &log);
    assert_eq!(
        kinds(&transcript),
        [(Role::System, EntryKind::Compaction), (Role::User, EntryKind::Text)]
    );
    assert_eq!(transcript.entries[1].content, "again");
    assert_eq!(transcript.problems.len(), 1);
}

#[test]
fn a_resumed_chat_keeps_its_counts() {
    let log = format!(
        "{HEADER}\n{}\n{}\n{}\n{HEADER}\n{}\n{}\n{}\n",
        r#"{"$set":{"messages":[{"id":"c","type":"user","content":"<session_context>one"}]}}"#,
        r#"{"id":"a","type":"user","content":"Fix it"}"#,
        r#"{"id":"b","type":"gemini","content":"Done","model":"gemini-3","tokens":{"input":30,"output":5}}"#,
        r#"{"$set":{"messages":[{"id":"c","type":"user","content":"<session_context>two"}]}}"#,
        r#"{"$set":{"messages":[{"id":"c","type":"user","content":"<session_context>two"},{"id":"a","type":"user","content":[{"text":"Fix it"}]},{"id":"b","type":"gemini","content":[{"text":"Done"}]}]}}"#,
        r#"{"id":"d","type":"gemini","content":"More","tokens":{"input":40,"output":6}}"#,
    );
    let transcript = read("chat.jsonl", &log);
    let texts: Vec<_> = transcript.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(texts, ["<session_context>two", "Fix it", "Done", "More"]);
    let usage = transcript.session.totals.usage;
    assert_eq!((usage.input, usage.output), (70, 11));
    assert_eq!(transcript.session.models, ["gemini-3"]);
}

#[test]
fn rewinding_to_an_unknown_message_clears_all() {
    let log = format!(
        "{HEADER}\n{}\n{}\n",
        r#"{"id":"a","type":"user","content":"one"}"#, r#"{"$rewindTo":"?"}"#
    );
    assert!(read("chat.jsonl", &log).entries.is_empty());
}

#[test]
fn a_message_that_was_rewound_may_come_again() {
    let actual_texts =
        |id: &str, text: &str| format!(r#"{{"id":"{id}","type":"user","content":"{text}"}}"#);
    let rewind = r#"{"$rewindTo":"b"}"#.to_owned();
    let lines = [
        actual_texts("a", "one"),
        actual_texts("b", "two"),
        actual_texts("c", "three"),
        rewind,
        actual_texts("c", "four"),
    ];
    let transcript = read("chat.jsonl", &format!("{HEADER}\n{}", lines.join("\n")));
    let texts: Vec<_> = transcript.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(texts, ["one", "four"]);
}

#[test]
fn files_of_one_session_are_one_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let agents = dir.path().join("chats/s1");
    std::fs::create_dir_all(&agents).unwrap();
    let chat = dir.path().join("chats/session-1.jsonl");
    std::fs::write(&chat, LOG).unwrap();
    std::fs::write(dir.path().join("chats/session-1.json"), HEADER).unwrap();
    std::fs::write(agents.join("s2.jsonl"), LOG.replace("s1", "s2")).unwrap();
    std::fs::write(dir.path().join("logs.json"), "[]").unwrap();
    for (path, files) in [(dir.path(), 3), (&chat, 2)] {
        let found = READER.find_at(path).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].files.len(), files);
        let transcript = reader::read_transcript(&READER, &found[0]).unwrap();
        assert_eq!(transcript.session.subagent_files, 1);
        let spoken = transcript.entries.iter().filter(|entry| entry.source == "subagent:s2");
        assert_eq!(spoken.count(), 7);
    }
    assert_eq!(READER.find_at(&agents.join("s2.jsonl")).unwrap().len(), 1);
}

#[test]
fn a_chat_that_began_a_second_log_has_all_of_both() {
    let dir = tempfile::tempdir().unwrap();
    let second = format!(
        "{HEADER}\n{}\n{}\n",
        r#"{"$set":{"messages":[{"id":"c","type":"user","content":[{"text":"<session_context>later"}]}]}}"#,
        r#"{"id":"late","timestamp":"2026-01-01T00:01:00Z","type":"user","content":"Go on"}"#,
    );
    std::fs::write(dir.path().join("session-2026-01-01T00-00-s1.jsonl"), LOG).unwrap();
    std::fs::write(dir.path().join("session-2026-01-01T00-01-s1.jsonl"), second).unwrap();
    let mut found = READER.find_at(dir.path()).unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].root.ends_with("session-2026-01-01T00-00-s1.jsonl"));
    let transcript = reader::read_transcript(&READER, &found[0]).unwrap();
    assert_eq!(transcript.entries.len(), 8);
    assert_eq!(transcript.entries[7].content, "Go on");
    // The result does not depend on the order of the files in the vault.
    found[0].files.reverse();
    assert_eq!(reader::read_transcript(&READER, &found[0]).unwrap().entries, transcript.entries);
}

#[test]
fn the_file_beside_the_chats_names_their_folder() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("chats")).unwrap();
    std::fs::write(dir.path().join("chats/session-1.jsonl"), LOG).unwrap();
    std::fs::write(dir.path().join(".project_root"), "/w\n").unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    assert_eq!(found[0].files.len(), 2);
    let transcript = reader::read_transcript(&READER, &found[0]).unwrap();
    assert_eq!(transcript.session.project.as_deref(), Some("/w"));
    assert_eq!(transcript.session.subagent_files, 0);
}

#[test]
fn every_cut_can_be_read() {
    for end in 0..LOG.len() {
        let bytes = &LOG.as_bytes()[..end];
        reader::read_transcript(&READER, &bundle("chat.jsonl", bytes)).unwrap();
        reader::read_transcript(&READER, &bundle("chat.json", bytes)).unwrap();
    }
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes: Vec<u8>) {
        reader::read_transcript(&READER, &bundle("chat.jsonl", &bytes)).unwrap();
    }
}
