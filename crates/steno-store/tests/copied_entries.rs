//! Totals of activity: what a session copied from another one counts once.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use steno_store::entry_filter::SelectedSessions;
use steno_store::index::pending_sessions::PendingSessions;
use steno_store::index::{EntryFilter, Index};
use steno_vault::{SessionFile, Vault};
use tempfile::TempDir;

/// The lines of a session: at each second a prompt, and the call of a tool a second later.
fn lines(session: &str, prompts: &[(u32, &str)]) -> Vec<String> {
    let line = |second: u32, kind: &str, content: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"{kind}{second}\",\"parentUuid\":null,\"isSidechain\":false,\
             \"cwd\":\"/p/{session}\",\"sessionId\":\"{session}\",\"version\":\"2.1.0\",\
             \"timestamp\":\"2026-01-05T09:15:{second:02}.000Z\",\"message\":{{\"role\":\"{kind}\",{content}}}}}\n"
        )
    };
    let turn = |(second, text): &(u32, &str)| {
        let call = format!(
            "\"id\":\"m{second}\",\"model\":\"m-1\",\"usage\":{{\"input_tokens\":1,\"output_tokens\":1}},\
             \"content\":[{{\"type\":\"tool_use\",\"id\":\"t{second}\",\"name\":\"Bash\",\"input\":{{\"command\":\"ls {text}\"}}}}]"
        );
        [
            line(*second, "user", &format!("\"content\":\"{text}\"")),
            line(second + 1, "assistant", &call),
        ]
    };
    prompts.iter().flat_map(turn).collect()
}

/// An index of sessions by name.
fn index_of(folder: &TempDir, sessions: &[(&str, Vec<String>)]) -> Index {
    let vault = Vault::new(folder.path().join("vault"));
    for (name, lines) in sessions {
        let dir = vault.session_dir(&"claude-code".parse().unwrap(), &name.parse().unwrap());
        let _marker = PendingSessions::new(folder.path()).mark_session(&dir).unwrap();
        let path = folder.path().join(format!("{name}.jsonl"));
        fs::write(&path, lines.concat()).unwrap();
        dir.keep_file(&SessionFile::on_disk("main.jsonl", &path), Path::new(&path)).unwrap();
    }
    let index = Index::open(folder.path()).unwrap();
    index.refresh(&vault, &mut |_, _| {}).unwrap();
    index
}

#[test]
fn entries_of_a_forked_session_count_once_in_totals() {
    let folder = tempfile::tempdir().unwrap();
    let parent = lines("parent", &[(0, "one"), (10, "two")]);
    // The fork leaves its parent after the first turn. `ok` at another time is no copy.
    let fork = [lines("fork", &[(0, "one"), (20, "ok")]), lines("fork", &[(30, "two")])].concat();
    let index = index_of(&folder, &[("parent", parent), ("fork", fork)]);

    let filter = EntryFilter::default();
    let activity = index.count_activity(&filter).unwrap();
    let entries: u64 = activity.sessions.iter().map(|session| session.entries).sum();
    let prompts: u64 = activity.sessions.iter().map(|session| session.prompts).sum();
    assert_eq!((entries, activity.copied_entries, prompts), (10, 2, 4));
    assert_eq!(activity.tools, [("Bash".to_owned(), 4)]);
    let counted: u64 = activity.quarter_hours.iter().map(|(_, entries)| entries).sum();
    assert_eq!(counted, 8);

    let shared = index.find_shared_entries().unwrap();
    assert_eq!(shared.count_copies(|_, _| true), activity.copied_entries);

    let trends = index.load_trends(&filter).unwrap();
    assert_eq!((trends.sessions, trends.entries, trends.prompts), (2, 8, 4));
    assert_eq!(trends.tools[0].calls, 4);
    assert_eq!(trends.quarter_hours, activity.quarter_hours);
}

#[test]
fn a_session_alone_has_all_its_entries() {
    let folder = tempfile::tempdir().unwrap();
    let parent = lines("parent", &[(0, "one"), (10, "two")]);
    let fork = lines("fork", &[(0, "one"), (20, "three")]);
    let index = index_of(&folder, &[("parent", parent), ("fork", fork)]);
    for session in ["parent", "fork"] {
        let filter = EntryFilter { session: session.parse().ok(), ..EntryFilter::default() };
        let activity = index.count_activity(&filter).unwrap();
        let counts = (activity.sessions[0].entries, activity.sessions[0].prompts);
        assert_eq!((counts, activity.copied_entries), ((4, 2), 0), "{session}");
        assert_eq!(index.load_trends(&filter).unwrap().entries, 4);
    }
}

#[test]
fn an_entry_that_is_repeated_within_a_session_is_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    let twice = lines("twice", &[(0, "one"), (0, "one")]);
    let index = index_of(&folder, &[("twice", twice)]);
    assert_eq!(index.count_activity(&EntryFilter::default()).unwrap().copied_entries, 0);
    assert_eq!(index.find_shared_entries().unwrap().count_copies(|_, _| true), 0);
}

#[test]
fn copies_are_counted_within_any_selection_of_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let first = lines("first", &[(0, "one"), (10, "two")]);
    // The second session continues the first one, and the third both.
    let second = [first.clone(), lines("second", &[(20, "three")])].concat();
    let third = [second.clone(), lines("third", &[(30, "four")])].concat();
    let sessions = [("first", first), ("second", second), ("third", third)];
    let index = index_of(&folder, &sessions);
    let shared = index.find_shared_entries().unwrap();
    for chosen in
        [&["first", "second", "third"][..], &["second", "third"], &["first", "third"], &["third"]]
    {
        let copies =
            shared.count_copies(|agent, id| agent == "claude-code" && chosen.contains(&id));
        let mut only = SelectedSessions::default();
        chosen.iter().for_each(|id| only.insert("claude-code", id));
        let filter = EntryFilter { only: Some(Arc::new(only)), ..EntryFilter::default() };
        assert_eq!(copies, index.count_activity(&filter).unwrap().copied_entries, "{chosen:?}");
    }
    assert_eq!(shared.count_copies(|_, id| id != "first"), 6);
}
