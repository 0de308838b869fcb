//! Reports over all sessions: how often words were used over time, and which files were edited last.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use serde_json::{Value, json};
use steno_model::Clock;
use steno_store::StoreLocation;
use steno_store::blame::{RecentEdits, find_recent_edits};
use steno_store::index::{
    EditCallRequest, EntryFilter, Index, MatchTrend, SearchOrder, SearchQuery, SearchRequest,
};
use steno_store::sync::SessionSyncer;
use tempfile::TempDir;

/// A store, and a folder with session files.
struct ReportStore {
    dir: TempDir,
}

impl ReportStore {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("logs")).unwrap();
        Self { dir }
    }

    fn location(&self) -> StoreLocation {
        StoreLocation::new(self.dir.path().join("store"), Clock::system())
    }

    /// Syncs a session of Claude Code with these messages, each with its time.
    fn keep(&self, session: &str, messages: &[(&str, Value)]) {
        let record = |(at, (time, message)): (usize, &(&str, Value))| {
            let record = json!({
                "type": message["role"], "uuid": format!("{session}-{at}"), "sessionId": session, "version": "2.1.0",
                "timestamp": time, "cwd": "/p/shop", "message": message,
            });
            format!("{record}\n")
        };
        let lines: String = messages.iter().enumerate().map(record).collect();
        fs::write(self.dir.path().join(format!("logs/{session}.jsonl")), lines).unwrap();
        SessionSyncer::new(self.location())
            .unwrap()
            .sync_folder(&self.dir.path().join("logs"))
            .unwrap();
    }

    fn index(&self) -> Index {
        Index::open(&self.dir.path().join("store")).unwrap()
    }

    fn matches(&self, query: &str, filter: EntryFilter) -> MatchTrend {
        let query = SearchQuery::parse(query).unwrap();
        let now = "2026-02-01T00:00:00Z".parse().unwrap();
        let order = SearchOrder::Time;
        let search = SearchRequest { query: &query, filter, order, limit: 0, now };
        self.index().count_matches_over_time(&search).unwrap()
    }

    fn edits(&self, request: &EditCallRequest<'_>) -> RecentEdits {
        find_recent_edits(&self.index(), &self.location().vault(), request).unwrap()
    }
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn call(id: &str, tool: &str, input: Value) -> Value {
    json!({"role": "assistant", "id": format!("msg_{id}"), "model": "m-1",
        "content": [{"type": "tool_use", "id": id, "name": tool, "input": input}]})
}

fn result(id: &str, is_error: bool) -> Value {
    json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": id, "content": "done", "is_error": is_error}]})
}

/// The milliseconds since 1970 of a time on 5 January 2026.
fn at(time: &str) -> i64 {
    format!("2026-01-05T{time}Z")
        .parse::<steno_model::Timestamp>()
        .unwrap()
        .instant()
        .as_millisecond()
}

#[test]
fn matches_are_counted_by_quarter_of_an_hour_and_copies_once() {
    let store = ReportStore::new();
    let first = [
        ("2026-01-05T09:00:00Z", user("a lighthouse keeper")),
        ("2026-01-05T09:14:59Z", user("the keeper of the lighthouse")),
        ("2026-01-05T09:15:00Z", user("lighthouse")),
    ];
    store.keep("first", &first);
    // A session that continues another one repeats its entries with their times.
    let mut second = first.to_vec();
    second.push(("2026-01-06T10:00:00Z", user("lighthouse")));
    store.keep("second", &second);

    let all = store.matches("lighthouse", EntryFilter::default());
    let next_day = at("10:00:00") + 86_400_000;
    assert_eq!((all.entries, all.sessions), (4, 2));
    assert_eq!(all.quarter_hours, [(at("09:00:00"), 2), (at("09:15:00"), 1), (next_day, 1)]);
    let phrase = store.matches("\"lighthouse keeper\"", EntryFilter::default());
    assert_eq!((phrase.entries, phrase.sessions), (1, 2));
    let regex = store.matches("/light.*keeper/", EntryFilter::default());
    assert_eq!((regex.entries, regex.sessions), (1, 2));
    let until = "2026-01-06T00:00:00Z".parse().ok();
    let before = EntryFilter { until, ..EntryFilter::default() };
    assert_eq!(store.matches("lighthouse", before.clone()).entries, 3);
    assert_eq!(store.index().count_entries_over_time(&before).unwrap().entries, 3);
    let none = store.matches("zeppelin", EntryFilter::default());
    assert_eq!(none, MatchTrend::default());
}

#[test]
fn edited_files_have_their_sessions_entries_and_lines() {
    let store = ReportStore::new();
    let edit = |path: &str, old: &str, new: &str| json!({"file_path": path, "old_string": old, "new_string": new});
    let first = [
        ("2026-01-05T09:00:00Z", user("Edit")),
        ("2026-01-05T09:01:00Z", call("t1", "Edit", edit("/p/shop/a.rs", "one", "1\n2"))),
        ("2026-01-05T09:01:05Z", result("t1", false)),
        (
            "2026-01-05T09:02:00Z",
            call("t2", "Write", json!({"file_path": "src/b.rs", "content": "x\ny\nz\n"})),
        ),
        ("2026-01-05T09:02:05Z", result("t2", false)),
        ("2026-01-05T09:03:00Z", call("t3", "Edit", edit("/p/shop/failed.rs", "no", "yes"))),
        ("2026-01-05T09:03:05Z", result("t3", true)),
        ("2026-01-05T09:04:00Z", call("t4", "Read", json!({"file_path": "/p/shop/read.rs"}))),
        ("2026-01-05T09:04:05Z", result("t4", false)),
    ];
    store.keep("first", &first);
    let mut second = first.to_vec();
    let several = json!({"file_path": "/p/shop/a.rs", "edits": [
        {"old_string": "1", "new_string": "I"}, {"old_string": "2", "new_string": ""}]});
    second.push(("2026-01-07T10:00:00Z", call("t5", "MultiEdit", several)));
    second.push(("2026-01-07T10:00:05Z", result("t5", false)));
    let patch = "*** Begin Patch\n*** Update File: c.rs\n@@\n-old\n+new\n*** End Patch";
    second.push((
        "2026-01-06T10:00:00Z",
        call("t6", "shell", json!({"command": ["apply_patch", patch]})),
    ));
    second.push(("2026-01-06T10:00:05Z", result("t6", false)));
    store.keep("second", &second);

    let filter = EntryFilter::default();
    let all = EditCallRequest { filter: &filter, path: "", skip: 0, limit: 100 };
    let found = store.edits(&all);
    let shown: Vec<_> = found
        .files
        .iter()
        .map(|file| {
            (file.path.as_str(), file.edits.len(), file.count_lines(), file.sessions().len())
        })
        .collect();
    // Edits that the second session only repeats count once; a call with several edits is read from the record.
    let expected = [
        ("/p/shop/a.rs", 2, (3, 3), 2),
        ("/p/shop/c.rs", 1, (1, 1), 1),
        ("/p/shop/src/b.rs", 1, (3, 0), 1),
    ];
    assert_eq!(shown, expected);
    assert!(!found.has_more);
    let newest = &found.files[0].edits[0];
    assert_eq!((newest.session.as_str(), newest.number), ("second", 9));
    assert_eq!(newest.time.unwrap().instant().as_millisecond(), at("10:00:00") + 2 * 86_400_000);
    assert_eq!(found.files[0].project.as_deref(), Some("/p/shop"));

    let page = store.edits(&EditCallRequest { skip: 1, limit: 1, ..all.clone() });
    assert_eq!((page.files.len(), page.files[0].path.as_str()), (1, "/p/shop/c.rs"));
    assert!(page.has_more);
    for (path, expected) in [("shop/a.rs", 1), ("src/b", 1), ("nothing", 0), ("", 3)] {
        assert_eq!(
            store.edits(&EditCallRequest { path, ..all.clone() }).files.len(),
            expected,
            "{path}"
        );
    }
    assert!(found.files.iter().flat_map(|file| &file.edits).all(|edit| !edit.is_deletion));
    let since = "2026-01-06T00:00:00Z".parse().ok();
    let late = EntryFilter { since, ..EntryFilter::default() };
    assert_eq!(store.edits(&EditCallRequest { filter: &late, ..all }).files.len(), 2);
}

#[test]
fn a_deleted_file_is_told_from_one_without_changes() {
    let store = ReportStore::new();
    let patch =
        "*** Begin Patch\n*** Delete File: old.rs\n*** Add File: new.rs\n+one\n*** End Patch";
    let messages = [
        ("2026-01-05T09:00:00Z", user("Move it")),
        ("2026-01-05T09:01:00Z", call("t1", "apply_patch", json!({ "input": patch }))),
        ("2026-01-05T09:01:05Z", result("t1", false)),
    ];
    store.keep("moved", &messages);
    let filter = EntryFilter::default();
    let found = store.edits(&EditCallRequest { filter: &filter, path: "", skip: 0, limit: 100 });
    let shown: Vec<_> =
        found.files.iter().map(|file| (file.path.as_str(), file.edits[0].is_deletion)).collect();
    assert_eq!(shown, [("/p/shop/old.rs", true), ("/p/shop/new.rs", false)]);
}

#[test]
fn a_filter_by_model_keeps_the_results_of_its_calls() {
    let store = ReportStore::new();
    let mut other = call("t2", "Bash", json!({"command": "make"}));
    other["model"] = json!("m-2");
    let messages = [
        ("2026-01-05T09:00:00Z", user("Build it")),
        ("2026-01-05T09:01:00Z", call("t1", "Bash", json!({"command": "make all"}))),
        ("2026-01-05T09:01:02Z", result("t1", true)),
        ("2026-01-05T09:02:00Z", other),
        ("2026-01-05T09:02:05Z", result("t2", false)),
    ];
    store.keep("built", &messages);
    let trends = |model: Option<&str>| {
        let filter = EntryFilter { model: model.map(str::to_owned), ..EntryFilter::default() };
        let found = store.index().load_trends(&filter).unwrap();
        let tools = found.tools.iter().map(|tool| (tool.calls, tool.failures, tool.total_ms));
        (found.sessions, found.entries, found.failures, tools.collect::<Vec<_>>())
    };
    assert_eq!(trends(None), (1, 5, 1, vec![(2, 1, 7000)]));
    assert_eq!(trends(Some("M-1")), (1, 1, 1, vec![(1, 1, 2000)]));
    assert_eq!(trends(Some("m-2")), (1, 1, 0, vec![(1, 0, 5000)]));
    assert_eq!(trends(Some("m-3")), (0, 0, 0, vec![]));
}
