//! Round trips of whole folders.

use std::fs;

use proptest::prelude::*;

use super::*;
use steno_model::entry::{Entry, EntryKind, Role};

fn clock() -> Clock {
    Clock::fixed("2026-03-01T12:00:00Z".parse().unwrap())
}

fn transcript(entries: Vec<Entry>) -> Transcript {
    let mut session = Session::new("chat-1".parse().unwrap(), "x");
    session.thread = Some("thread-1".to_owned());
    session.extra.insert("agent_mode".to_owned(), "review".into());
    session.stop_reason = Some("cancelled".to_owned());
    let mut transcript = Transcript::new(session);
    entries.into_iter().for_each(|entry| transcript.push(entry));
    transcript
}

fn question(text: &str, at: &str) -> Entry {
    let mut entry = Entry::new(Role::User, EntryKind::Text, text);
    entry.created_at = at.parse().ok();
    entry
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn content(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| (name.clone(), fs::read(dir.join(name)).unwrap());
    names(dir).into_iter().map(read).collect()
}

#[test]
fn equal_names_are_numbered_and_writing_twice_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let minute = "2026-02-08T14:30:10+08:00";
    let given = transcript(vec![
        question("same", minute),
        question("same", minute),
        question("same", "2026-02-08T14:30:20+08:00"),
    ]);
    let paths = write_units(&given, dir.path(), &clock()).unwrap();
    let expected = ["same", "same-2", "same-3"]
        .map(|slug| dir.path().join(format!("20260208-1430-{slug}.txt")));
    assert_eq!(paths, expected);
    let before = content(dir.path());
    assert_eq!(write_units(&given, dir.path(), &clock()).unwrap(), paths);
    assert_eq!(content(dir.path()), before);
}

#[test]
fn a_folder_keeps_fifty_files_and_always_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let many: Vec<_> = (0..60)
        .map(|at| question(&format!("q{at}"), &format!("2026-01-01T10:{at:02}:00Z")))
        .collect();
    write_units(&transcript(many.clone()), dir.path(), &clock()).unwrap();
    assert_eq!(names(dir.path()).len(), MAX_FOLDER_FILES);
    assert_eq!(names(dir.path())[0], "20260101-1010-q10.txt");
    fs::write(dir.path().join("notes.md"), "mine").unwrap();
    let old = transcript(vec![question("old", "2025-01-01T10:00:00Z")]);
    write_units(&old, dir.path(), &clock()).unwrap();
    let left = names(dir.path());
    assert_eq!(left.len(), MAX_FOLDER_FILES + 1);
    assert_eq!(left[..2], ["20250101-1000-old.txt", "20260101-1011-q11.txt"]);
    assert_eq!(left[50], "notes.md");
}

#[test]
fn separates_sessions_by_chat_thread_and_folder() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join(".leslie/threads/thread-1/.meta/transcripts");
    let mut other = transcript(vec![question("b", "2026-01-01T10:00:00Z")]);
    write_units(&other, &inner, &clock()).unwrap();
    other.session.id = "chat-2".parse().unwrap();
    write_units(&other, &inner, &clock()).unwrap();
    let first = transcript(vec![
        question("z", "2026-01-01T10:00:00Z"),
        question("a", "2026-01-01T10:01:00Z"),
    ]);
    write_units(&first, dir.path(), &clock()).unwrap();
    fs::write(dir.path().join("README.txt"), "Thread ID: no header here").unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    let counts: Vec<_> = found.iter().map(|bundle| bundle.files.len()).collect();
    assert_eq!(counts, [2, 1, 1]);
    let read = read_session(&found[0]).unwrap();
    assert_eq!(read.session.native_id.as_deref(), Some("chat-1"));
    assert_eq!(read.session.thread.as_deref(), Some("thread-1"));
    assert_eq!(read.session.status, SessionStatus::Canceled);
    let texts: Vec<_> = read.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(texts, ["z", "a"]);
    let single = READER.find_at(&inner.join("20260101-1000-b.txt")).unwrap();
    assert_eq!(single.len(), 1);
    assert!(READER.find_at(&dir.path().join("README.txt")).unwrap().is_empty());
}

#[test]
fn bad_bytes_cost_only_themselves() {
    let mut bytes = b"Thread ID: t\nChat ID: c\n---\nA:\nhi ".to_vec();
    bytes.extend(b"\xff\n\n[Tool call] ls\n{\"a\":1}\n");
    let source = SessionFile::in_memory("x.txt", "/tmp/x.txt", bytes);
    let bundle = SessionBundle::new("/tmp", vec![source]);
    let read = read_session(&bundle).unwrap();
    assert_eq!(read.problems.len(), 1);
    assert_eq!(read.entries[0].content, "hi \u{fffd}");
    assert_eq!(read.entries[1].tool_input, Some(serde_json::json!({"a": 1})));
    assert!(render_units(&read).contains("Tool Calls: 1\n---\n\nassistant:\nhi"));
}

#[test]
fn a_file_without_a_header_is_an_error() {
    let source = SessionFile::in_memory("x.txt", "/tmp/x.txt", b"hello".to_vec());
    let bundle = SessionBundle::new("/tmp", vec![source]);
    let error = read_session(&bundle).unwrap_err().to_string();
    assert_eq!(error, "/tmp/x.txt: not a transcript: no header");
}

fn entry() -> impl Strategy<Value = Entry> {
    let text = "(\n|\nassistant:\n|\n\\[Tool call\\] x\n|[a-zé語🔧 ]{1,9}){0,5}";
    let kind = prop_oneof![
        Just((Role::User, EntryKind::Text)),
        Just((Role::Assistant, EntryKind::Text)),
        Just((Role::Assistant, EntryKind::ToolCall)),
        Just((Role::Tool, EntryKind::ToolResult)),
        Just((Role::System, EntryKind::Error)),
        Just((Role::Assistant, EntryKind::Thinking)),
    ];
    (kind, text, 0i64..200, 0usize..2).prop_map(|((role, kind), text, at, long)| {
        let mut entry = Entry::new(role, kind, text + &"語x".repeat(long * 9000));
        entry.created_at = steno_model::Timestamp::from_unix(1_770_000_000 + at);
        entry.tool_name = (kind == EntryKind::ToolCall).then(|| "ls".to_owned());
        entry
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn written_folders_come_back_byte_for_byte(entries in prop::collection::vec(entry(), 1..8)) {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_units(&transcript(entries), first.path(), &clock()).unwrap();
        for bundle in READER.find_at(first.path()).unwrap() {
            write_units(&read_session(&bundle).unwrap(), second.path(), &clock()).unwrap();
        }
        prop_assert_eq!(content(second.path()), content(first.path()));
    }

    #[test]
    fn supported_fields_survive_a_round_trip(texts in prop::collection::vec("[a-z ]{1,20}", 1..6)) {
        let roles = [Role::User, Role::Assistant];
        let entries = texts.iter().enumerate().map(|(at, text)| {
            let mut entry = Entry::new(roles[at % 2].clone(), EntryKind::Text, text);
            entry.created_at = steno_model::Timestamp::from_unix(1_770_000_000 + 60 * at as i64);
            entry
        });
        let given = transcript(entries.collect());
        let dir = tempfile::tempdir().unwrap();
        write_units(&given, dir.path(), &clock()).unwrap();
        let back = read_session(&READER.find_at(dir.path()).unwrap()[0]).unwrap();
        let summarize = |transcript: &Transcript| -> Vec<_> {
            let tell = |entry: &Entry| (entry.role.clone(), entry.content.clone(), entry.created_at);
            transcript.entries.iter().map(tell).collect()
        };
        prop_assert_eq!(summarize(&back), summarize(&given));
        prop_assert_eq!(back.session.started, given.session.started);
    }
}

/// A transcript of a run with notes from the agent protocol.
fn run(entries: Vec<Entry>) -> Transcript {
    let mut given = transcript(entries);
    given.session.extra.insert("acp".to_owned(), serde_json::json!({}));
    given
}

fn answer(text: &str) -> Entry {
    Entry::new(Role::Assistant, EntryKind::Text, text)
}

#[test]
fn a_unit_of_a_run_is_brought_up_to_date_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (first, later) = ("2026-02-08T14:30:10+08:00", "2026-02-08T14:30:10.9+08:00");
    let torn = run(vec![question("same", first), answer("One")]);
    let paths = write_units(&torn, dir.path(), &clock()).unwrap();
    // Fraction and offset differ, but the second is the same.
    let whole = run(vec![question("same", later), answer("One and two")]);
    assert_eq!(write_units(&whole, dir.path(), &clock()).unwrap(), paths);
    assert!(fs::read_to_string(&paths[0]).unwrap().ends_with("assistant:\nOne and two\n"));
    // The same question twice in one second gives two units.
    let twice = run(vec![
        question("same", first),
        answer("One and two"),
        question("same", first),
        answer("Again"),
    ]);
    let both = write_units(&twice, dir.path(), &clock()).unwrap();
    assert_eq!(both[0], paths[0]);
    assert_eq!(names(dir.path()), ["20260208-1430-same-2.txt", "20260208-1430-same.txt"]);
    // Units of another chat, or not of a run, are not replaced.
    let mut other = run(vec![question("same", first), answer("Other")]);
    other.session.native_id = Some("chat-2".to_owned());
    write_units(&other, dir.path(), &clock()).unwrap();
    write_units(&transcript(vec![question("same", first)]), dir.path(), &clock()).unwrap();
    assert_eq!(names(dir.path()).len(), 4);
}

#[test]
fn a_unit_of_a_run_has_prompt_and_stop_reason() {
    let context = "<thread_context thread=\"t\">\n\n</thread_context>\n\n";
    let mut prompt = question(&format!("{context}Go"), "2026-02-08T14:30:10+08:00");
    prompt.metadata = serde_json::json!({ "mode": "plan" }).as_object().cloned();
    let mut done = answer("Done");
    done.metadata =
        serde_json::json!({ "acp": { "stop_reason": "end_turn" } }).as_object().cloned();
    let failed = Entry::new(Role::System, EntryKind::Error, "gone");
    let next = question("And?", "2026-02-08T14:31:10+08:00");
    let open = question("Now?", "2026-02-08T14:32:10+08:00");
    let text = render_units(&run(vec![prompt, done, next, failed, open]));
    let units: Vec<_> = text.split("Thread ID: ").skip(1).collect();
    assert!(units[0].contains("Agent Mode: plan\nStop Reason: end_turn\n"), "{text}");
    assert!(units[0].contains("<user_query>\nGo\n</user_query>"), "{text}");
    assert!(units[1].contains("Agent Mode: review\nStop Reason: error\n"), "{text}");
    assert!(units[1].contains("[Error]\ngone\n"), "{text}");
    assert!(!units[2].contains("Stop Reason"), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("20260208-1431-And.txt");
    fs::write(&path, format!("Thread ID: {}", units[1])).unwrap();
    assert_eq!(
        read_session(&SessionBundle::from_file(&path)).unwrap().session.status,
        SessionStatus::Failed
    );
}
