//! Round trips of whole folders.

use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use steno_model::entry::Role;
use steno_model::session::Session;
use steno_model::timestamp::Timestamp;

fn transcript(entries: Vec<Entry>) -> Transcript {
    let mut session = Session::new("work".parse().unwrap(), "x");
    session.native_id = Some("work".to_owned());
    let mut transcript = Transcript::new(session);
    let mut numbering = EntryNumbering::new("x", "work");
    for mut entry in entries {
        numbering.assign_number(&mut entry);
        transcript.push(entry);
    }
    transcript
}

fn new_entry(role: Role, kind: EntryKind, text: &str, second: i64) -> Entry {
    let mut entry = Entry::new(role, kind, text);
    entry.created_at = Timestamp::from_unix(second);
    entry
}

fn content(dir: &Path) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|item| item.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

fn read_back(base: &Path) -> Transcript {
    read_context(&READER.find_at(base).unwrap()[0]).unwrap()
}

#[test]
fn the_last_compaction_divides_archive_and_window() {
    let base = tempfile::tempdir().unwrap();
    let given = transcript(vec![
        new_entry(Role::User, EntryKind::Text, "one", 10),
        new_entry(Role::System, EntryKind::Compaction, "first", 11),
        new_entry(Role::Assistant, EntryKind::Text, "two", 12),
        new_entry(Role::System, EntryKind::Compaction, "second", 13),
        new_entry(Role::Assistant, EntryKind::Thinking, "hm", 14),
    ]);
    let dir = write_context(&given, base.path()).unwrap();
    let files = content(&dir);
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [CONTEXT_FILE, META_FILE, MARKDOWN_FILE, ARCHIVE_FILE]);
    assert_eq!((files[0].1.lines().count(), files[3].1.lines().count()), (2, 3));
    assert_eq!(files[2].1, "[USER]: one\n\n[ASSISTANT]: two\n\n");
    let kinds = |transcript: &Transcript| -> Vec<_> {
        transcript.entries.iter().map(|entry| (entry.kind, entry.content.clone())).collect()
    };
    assert_eq!(kinds(&read_back(base.path())), kinds(&given));
}

#[test]
fn a_context_that_holds_something_else_is_left_alone() {
    let base = tempfile::tempdir().unwrap();
    let given = transcript(vec![new_entry(Role::User, EntryKind::Text, "one", 10)]);
    let dir = write_context(&given, base.path()).unwrap();
    assert_eq!(write_context(&given, base.path()).unwrap(), dir);
    let mut grown = given.clone();
    grown.push({
        let mut entry = new_entry(Role::Assistant, EntryKind::Text, "two", 11);
        entry.entry_id = Uuid::from_u128(2);
        entry
    });
    assert_eq!(write_context(&grown, base.path()).unwrap(), dir);
    let before = content(&dir);
    let mut other = given.clone();
    other.entries[0].entry_id = Uuid::from_u128(3);
    assert_eq!(write_context(&other, base.path()).unwrap(), base.path().join("contexts/work_2"));
    assert_eq!(write_context(&given, base.path()).unwrap(), base.path().join("contexts/work_3"));
    assert_eq!(content(&dir), before);
}

#[test]
fn a_waiting_message_that_we_do_not_know_is_something_else() {
    let base = tempfile::tempdir().unwrap();
    let line =
        |id: &str| json!({"id": id, "timestamp": 5, "from": "a", "to": "work", "content": id});
    let message =
        |id: &str| super::super::decode_record(line(id).as_object().unwrap().clone()).unwrap();
    let given = transcript(message("ours"));
    let dir = write_context(&given, base.path()).unwrap();
    assert_eq!(write_context(&given, base.path()).unwrap(), dir);
    let inbox = fs::read_to_string(dir.join(INBOX_FILE)).unwrap();
    fs::write(dir.join(INBOX_FILE), format!("{inbox}{}\n", line("theirs"))).unwrap();
    assert_ne!(write_context(&given, base.path()).unwrap(), dir);
    assert!(fs::read_to_string(dir.join(INBOX_FILE)).unwrap().contains("theirs"));
}

fn entry() -> impl Strategy<Value = Entry> {
    let kinds = prop::sample::select(vec![
        (Role::User, EntryKind::Text),
        (Role::Assistant, EntryKind::Text),
        (Role::Assistant, EntryKind::ToolCall),
        (Role::Tool, EntryKind::ToolResult),
        (Role::System, EntryKind::Compaction),
        (Role::Assistant, EntryKind::Thinking),
        (Role::System, EntryKind::Notice),
    ]);
    let second = prop::option::of(1_700_000_000i64..1_700_000_009);
    (kinds, "\\PC{0,6}", second, 0u8..6).prop_map(|((role, kind), text, second, beside)| {
        let mut entry = Entry::new(role, kind, text);
        entry.created_at = second.and_then(Timestamp::from_unix);
        let second = second.unwrap_or(1_700_000_000);
        let debug = match beside {
            0 => json!({"timestamp": second, "request": {"model": "m", "b": [1.50]}}),
            1 => json!({"response": {"model": "r", "usage": {"prompt_tokens": 2}}, "timestamp": second}),
            _ => return entry,
        };
        super::super::decode_record(debug.as_object().unwrap().clone()).unwrap().remove(0)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn written_contexts_come_back_byte_for_byte(entries in prop::collection::vec(entry(), 1..12)) {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let given = transcript(entries);
        let written = write_context(&given, first.path()).unwrap();
        let back = read_back(first.path());
        prop_assert!(back.problems.is_empty());
        let again = write_context(&back, second.path()).unwrap();
        prop_assert_eq!(content(&again), content(&written));
        prop_assert_eq!(back.session.totals.usage, given.session.totals.usage);
    }
}
