//! Appending, compacting and archiving, with crashes in between.

use std::collections::HashSet;

use super::*;
use crate::chibi::context_files::{ARCHIVE_FILE, MARKDOWN_FILE};
use crate::chibi::{READER, read_context};
use steno_model::entry::{EntryKind, Role};
use steno_model::timestamp::Timestamp;

struct Scratch {
    _base: tempfile::TempDir,
    context: ChibiContext,
}

fn scratch() -> Scratch {
    let base = tempfile::tempdir().unwrap();
    let clock = Clock::fixed(Timestamp::from_unix(1_705_123_500).unwrap());
    let context = ChibiContext::open(&base.path().join("contexts/work"), clock).unwrap();
    Scratch { _base: base, context }
}

fn new_entry(role: Role, text: &str) -> Entry {
    Entry::new(role, EntryKind::Text, text)
}

fn tool(kind: EntryKind, text: &str) -> Entry {
    let mut entry = Entry::new(Role::Assistant, kind, text);
    entry.tool_name = Some("ls".to_owned());
    entry
}

impl Scratch {
    fn with(entries: impl IntoIterator<Item = Entry>) -> Self {
        let scratch = scratch();
        entries.into_iter().for_each(|entry| {
            scratch.context.append(entry).unwrap();
        });
        scratch
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.context.file_path(name)).unwrap_or_default()
    }

    fn active(&self) -> Vec<String> {
        let (lines, _) = self.context.read_lines().unwrap();
        lines.into_iter().map(|line| line.content).collect()
    }

    /// The whole session as the reader returns it.
    fn session(&self) -> Vec<String> {
        let bundle = READER.find_at(&self.context.dir).unwrap().remove(0);
        read_context(&bundle).unwrap().entries.into_iter().map(|entry| entry.content).collect()
    }
}

#[test]
fn a_torn_line_costs_only_itself() {
    let scratch = Scratch::with([new_entry(Role::User, "one")]);
    let mut torn = scratch.text(CONTEXT_FILE);
    torn.push_str("{\"id\":\"tor");
    fs::write(scratch.context.file_path(CONTEXT_FILE), torn).unwrap();
    scratch.context.append(new_entry(Role::Assistant, "two")).unwrap();
    let (lines, problems) = scratch.context.read_lines().unwrap();
    assert_eq!((lines.len(), problems.len(), problems[0].line), (2, 1, Some(2)));
    assert_eq!((lines[1].from.as_str(), lines[1].to.as_str()), ("work", "user"));
    assert_eq!(lines[1].metadata, None);
    scratch.context.compact_entries("s", 0).unwrap();
    assert!(scratch.text(ARCHIVE_FILE).contains("\n{\"id\":\"tor\n"));
}

#[test]
fn compaction_archives_and_keeps_tools_together() {
    let scratch = Scratch::with([
        new_entry(Role::User, "one"),
        new_entry(Role::Assistant, "two"),
        tool(EntryKind::ToolCall, "a"),
        tool(EntryKind::ToolCall, "b"),
        tool(EntryKind::ToolResult, "A"),
        tool(EntryKind::ToolResult, "B"),
    ]);
    let before = scratch.text(CONTEXT_FILE);
    assert_eq!(scratch.context.compact_entries("so far", 1).unwrap(), 2);
    assert_eq!(scratch.active(), ["", "a", "b", "A", "B"]);
    let archive = scratch.text(ARCHIVE_FILE);
    assert!(before.starts_with(&archive) && archive.lines().count() == 2);
    assert_eq!(scratch.text(MARKDOWN_FILE), "[USER]: one\n\n[ASSISTANT]: two\n\n");
    assert_eq!(scratch.session(), ["one", "two", "so far", "a", "b", "A", "B"]);
    assert_eq!(scratch.context.compact_entries("again", 9).unwrap(), 0);
    assert_eq!(scratch.active().len(), 5);
    scratch.context.compact_entries("all", 0).unwrap();
    assert_eq!(scratch.session(), ["one", "two", "so far", "a", "b", "A", "B", "all"]);
    assert!(!scratch.context.file_path(".lock").exists());
}

#[test]
fn an_interrupted_compaction_neither_loses_nor_doubles() {
    // At a power failure each file may or may not be written.
    for markdown_done in [false, true] {
        let scratch =
            Scratch::with([new_entry(Role::User, "one"), new_entry(Role::Assistant, "two")]);
        fs::copy(scratch.context.file_path(CONTEXT_FILE), scratch.context.file_path(ARCHIVE_FILE))
            .unwrap();
        if markdown_done {
            fs::write(
                scratch.context.file_path(MARKDOWN_FILE),
                "[USER]: one\n\n[ASSISTANT]: two\n\n",
            )
            .unwrap();
        }
        assert_eq!(scratch.session(), ["one", "two"]);
        scratch.context.append(new_entry(Role::User, "three")).unwrap();
        assert_eq!(scratch.session(), ["one", "two", "three"]);
        scratch.context.compact_entries("sum", 0).unwrap();
        assert_eq!(scratch.session(), ["one", "two", "three", "sum"]);
        assert_eq!(scratch.text(ARCHIVE_FILE).lines().count(), 3);
        let markdown = "[USER]: one\n\n[ASSISTANT]: two\n\n[USER]: three\n\n";
        assert_eq!(scratch.text(MARKDOWN_FILE), markdown);
    }
}

#[test]
fn an_interrupted_compaction_is_finished_first() {
    let scratch = Scratch::with([new_entry(Role::User, "one"), new_entry(Role::Assistant, "two")]);
    fs::copy(scratch.context.file_path(CONTEXT_FILE), scratch.context.file_path(ARCHIVE_FILE))
        .unwrap();
    let markdown = "[USER]: one\n\n[ASSISTANT]: two\n\n";
    fs::write(scratch.context.file_path(MARKDOWN_FILE), markdown).unwrap();
    scratch.context.append(new_entry(Role::User, "three")).unwrap();
    assert_eq!(scratch.context.compact_entries("sum", 2).unwrap(), 2);
    assert_eq!(scratch.active(), ["", "three"]);
    assert_eq!(scratch.text(MARKDOWN_FILE), markdown);
    assert_eq!(scratch.session(), ["one", "two", "sum", "three"]);
}

#[test]
fn archiving_empties_the_window_only() {
    let scratch = Scratch::with([new_entry(Role::User, "one")]);
    assert_eq!(scratch.context.archive_all().unwrap(), 1);
    assert_eq!(scratch.text(CONTEXT_FILE), "");
    assert_eq!(scratch.context.archive_all().unwrap(), 0);
    assert_eq!(scratch.session(), ["one"]);
    assert_eq!(scratch.text(MARKDOWN_FILE), "[USER]: one\n\n");
}

#[test]
fn the_inbox_is_cleared_only_after_the_prompt_is_kept() {
    let scratch = scratch();
    let context = &scratch.context;
    context.push_message("main", "look").unwrap();
    append_lines(&context.file_path(INBOX_FILE), b"not a message\n").unwrap();
    let failed: Result<(), _> = context.take_inbox(|messages| {
        assert_eq!(messages.len(), 1);
        Err(ContextError::Locked("x".into()))
    });
    assert!(failed.is_err());
    assert_eq!(scratch.text(INBOX_FILE).lines().count(), 2);
    context
        .take_inbox(|_| {
            context.push_message("late", "wait").unwrap();
            context.append(new_entry(Role::User, "Go"))
        })
        .unwrap();
    let left = scratch.text(INBOX_FILE);
    assert!(left.starts_with("not a message\n{") && left.contains("\"from\":\"late\""));
    context.append_prompt(new_entry(Role::User, "On")).unwrap();
    assert_eq!(scratch.text(INBOX_FILE), "not a message\n");
    let taken = "--- INBOX MESSAGES ---\n[From: late] wait\n--- END INBOX ---\n\nOn";
    assert_eq!(scratch.active(), ["Go", taken]);
}

#[test]
fn a_foreign_lock_is_an_error() {
    let scratch = scratch();
    fs::write(scratch.context.file_path(".lock"), "1705123490").unwrap();
    let error = scratch.context.append(new_entry(Role::User, "x")).unwrap_err().to_string();
    assert!(error.starts_with("context is locked by another process: "), "{error}");
    assert!(!scratch.context.file_path(CONTEXT_FILE).exists());
}

#[test]
fn writers_in_parallel_wait_for_each_other() {
    let scratch = scratch();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let context = &scratch.context;
            scope.spawn(move || {
                for count in 0..10 {
                    context.append(new_entry(Role::User, &format!("{writer}-{count}"))).unwrap();
                }
                context.compact_entries("sum", 2).unwrap();
            });
        }
    });
    let texts = scratch.session();
    let actual_texts: HashSet<_> = texts.iter().filter(|text| text.contains('-')).collect();
    assert_eq!(
        (actual_texts.len(), texts.iter().filter(|text| text.contains('-')).count()),
        (40, 40)
    );
}

#[test]
fn names_are_checked() {
    let base = tempfile::tempdir().unwrap();
    for name in ["system", "-x", "a b"] {
        let opened = ChibiContext::open(&base.path().join(name), Clock::system());
        assert!(matches!(opened, Err(ContextError::Name(_))), "{name}");
    }
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}
