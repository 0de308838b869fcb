//! The index is what the vault says: filled step by step or at once, after growth, rewriting and removal.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use steno_model::Usage;
use steno_model::usage_tally::{UsageLedger, UsageTally};
use steno_store::format;
use steno_store::index::pending_sessions::PendingSessions;
use steno_store::index::{
    EntryFilter, Index, IndexError, RebuildReason, SearchHit, SearchOrder, SearchQuery,
    SearchRequest,
};
use steno_store::transcript::ReadTranscript;
use steno_vault::{SessionDir, SessionFile, Vault};
use tempfile::TempDir;

/// A store with a vault, and a folder for sources.
struct Store {
    dir: TempDir,
}

impl Store {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn vault(&self) -> Vault {
        Vault::new(self.path().join("vault"))
    }

    /// Keeps the lines of a session of ours as a process does that then dies.
    fn keep(&self, name: &str, lines: &[String]) -> SessionDir {
        self.keep_for("claude-code", name, lines)
    }

    /// The same for another agent, which writes as Claude Code does.
    fn keep_for(&self, agent: &str, name: &str, lines: &[String]) -> SessionDir {
        let dir = self.vault().session_dir(&agent.parse().unwrap(), &name.parse().unwrap());
        let _marker = PendingSessions::new(self.path()).mark_session(&dir).unwrap();
        let path = self.path().join(format!("{name}.jsonl"));
        fs::write(&path, lines.concat()).unwrap();
        dir.keep_file(&SessionFile::on_disk("main.jsonl", &path), &path).unwrap();
        dir
    }

    /// The index with all that is kept.
    fn index(&self) -> Index {
        self.index_in(usize::MAX)
    }

    /// The same, built with so little room that sessions go in part by part.
    fn index_in(&self, room: usize) -> Index {
        let index = Index::open(self.path()).unwrap().with_batch_bytes(room);
        index.refresh(&self.vault(), &mut |_, _| {}).unwrap();
        index
    }
}

fn search(index: &Index, query: &str) -> Vec<SearchHit> {
    let query = SearchQuery::parse(query).unwrap();
    let now = "2026-02-01T00:00:00Z".parse().unwrap();
    let filter = EntryFilter::default();
    index
        .search(&SearchRequest {
            query: &query,
            filter,
            order: SearchOrder::Relevance,
            limit: 1000,
            now,
        })
        .unwrap()
}

fn found(index: &Index, query: &str) -> Vec<String> {
    let mut names: Vec<_> =
        search(index, query).iter().map(|hit| format!("{}:{}", hit.session, hit.number)).collect();
    names.sort();
    names
}

fn prompt(session: &str, text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!(
        "{{\"type\":\"user\",\"uuid\":\"u\",\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/p\",\
         \"sessionId\":\"{session}\",\"version\":\"2.1.0\",\"timestamp\":\"2026-01-05T09:15:30.000Z\",\
         \"message\":{{\"role\":\"user\",\"content\":{text}}}}}\n"
    )
}

fn answer(session: &str, message: &str, output: u64) -> String {
    format!(
        "{{\"type\":\"assistant\",\"uuid\":\"a\",\"parentUuid\":\"u\",\"isSidechain\":false,\"cwd\":\"/p\",\
         \"sessionId\":\"{session}\",\"version\":\"2.1.0\",\"timestamp\":\"2026-01-05T09:15:31.000Z\",\
         \"message\":{{\"id\":\"{message}\",\"role\":\"assistant\",\"model\":\"m-1\",\
         \"content\":[{{\"type\":\"text\",\"text\":\"answer {message}\"}}],\
         \"usage\":{{\"input_tokens\":10,\"output_tokens\":{output}}}}}}}\n"
    )
}

fn number(index: &Index, sql: &str) -> i64 {
    index.connection().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The tokens of all messages, which the sums must have too.
fn output(index: &Index) -> i64 {
    let sum = number(index, "SELECT coalesce(sum(output), 0) FROM usage");
    assert_eq!(number(index, "SELECT coalesce(sum(output), 0) FROM rollup"), sum);
    sum
}

#[test]
fn a_session_that_grows_is_extended_and_one_that_is_rewritten_replaced() {
    let store = Store::new();
    let mut lines = vec![prompt("s1", "first words"), answer("s1", "msg_0000000000000001", 5)];
    store.keep("s1", &lines);
    let index = store.index();
    assert_eq!(found(&index, "first"), ["s1:0"]);
    assert_eq!(output(&index), 5);
    lines.push(answer("s1", "msg_0000000000000001", 9));
    lines.push(prompt("s1", "second words"));
    store.keep("s1", &lines);
    let index = store.index();
    assert_eq!(found(&index, "words"), ["s1:0", "s1:3"]);
    assert_eq!((output(&index), number(&index, "SELECT messages FROM rollup")), (9, 1));
    assert_eq!(number(&index, "SELECT count(*) FROM session WHERE kept > 0 AND taken = 4"), 1);
    let lines = [prompt("s1", "other words"), answer("s1", "msg_0000000000000002", 2)];
    store.keep("s1", &lines);
    let index = store.index();
    let dir = store.vault().list_sessions().unwrap().remove(0);
    assert_eq!(
        number(&index, "SELECT count(*) FROM entry"),
        dir.read_transcript().unwrap().entries.len() as i64
    );
    assert_eq!(found(&index, "other"), ["s1:0"]);
    assert_eq!(
        i64::try_from(dir.read_transcript().unwrap().session.totals.usage.output).unwrap(),
        output(&index)
    );
}

/// All that the index says of sessions, but not where it holds texts.
fn content(index: &Index) -> Vec<String> {
    let queries = [
        "SELECT json_array(name, title, models, entries, output, taken, hex(digest), kept > 0) FROM session",
        "SELECT json_array(session, number, role, kind, hash) FROM (SELECT entry.*,
            hex(text_hash.hash) AS hash FROM entry LEFT JOIN text_hash ON text_hash.text = entry.text)",
        "SELECT json_array(hex(key), session, number, output) FROM usage ORDER BY key",
        "SELECT json_array(session, quarter, model, messages, output) FROM rollup",
    ];
    let mut all = Vec::new();
    for query in queries {
        let mut rows = index.connection().prepare(query).unwrap();
        all.extend(rows.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap));
    }
    all
}

#[test]
fn words_of_a_search_without_hits_are_counted_as_far_as_they_are_examined() {
    let store = Store::new();
    let lines: Vec<_> = (0..600).map(|at| prompt("s1", &format!("common words {at}"))).collect();
    store.keep("s1", &lines);
    let index = store.index();
    let count = |role: Option<&str>| {
        let filter = EntryFilter { role: role.map(str::to_owned), ..EntryFilter::default() };
        let counts = index.count_words("common 17 absent", &filter).unwrap();
        counts.into_iter().map(|count| (count.entries, count.is_exact)).collect::<Vec<_>>()
    };
    assert_eq!(count(None), [(500, false), (1, true), (0, true)]);
    assert_eq!(count(Some("tool")), [(0, false), (0, true), (0, true)]);
}

/// Each entry is a part of its own here: built so, grown so and rewritten so, the index is what it always is.
#[test]
fn a_session_that_is_too_large_to_be_held_goes_in_by_parts() {
    let (parted, whole) = (Store::new(), Store::new());
    let words = |at| prompt("s1", &format!("words {at}"));
    let mut lines: Vec<_> = (0..40).map(words).collect();
    lines.insert(7, answer("s1", "msg_0000000000000001", 5));
    // A later part has another record of the message.
    lines.insert(30, answer("s1", "msg_0000000000000001", 9));
    let mut states = vec![lines.clone()];
    lines.extend([words(40), answer("s1", "msg_0000000000000002", 3)]);
    states.push(lines.clone());
    lines[3] = words(99);
    states.push(lines[..20].to_vec());
    for lines in states {
        parted.keep("s1", &lines);
        whole.keep("s1", &lines);
        let index = parted.index_in(1);
        assert_eq!(content(&index), content(&whole.index()));
        assert_eq!(found(&index, "\"words 12\"").len(), 1);
        output(&index);
    }
}

#[test]
fn a_part_that_another_process_took_back_is_put_in_again() {
    let store = Store::new();
    let lines: Vec<_> = (0..10).map(|at| prompt("s1", &format!("words {at}"))).collect();
    store.keep("s1", &lines);
    let index = store.index_in(1);
    // As after a crash: only a part is indexed, with other words.
    let sql = "UPDATE session SET taken = 6, digest = zeroblob(16), kept = -1";
    index.connection().execute_batch(sql).unwrap();
    index.connection().execute_batch("DELETE FROM entry WHERE number >= 6").unwrap();
    store.keep("s1", &lines);
    let index = store.index_in(1);
    assert_eq!(number(&index, "SELECT count(*) FROM entry"), 10);
    assert_eq!(number(&index, "SELECT count(*) FROM session WHERE kept > 0 AND taken = 10"), 1);
}

#[test]
fn sessions_removed_from_the_vault_leave_the_index() {
    let store = Store::new();
    let shared = answer("s1", "msg_0000000000000001", 5);
    store.keep("s1", &[prompt("s1", "only here"), shared.clone()]);
    let grown = answer("s1", "msg_0000000000000001", 8);
    let dir = store.keep("s2", &[prompt("s2", "only there"), shared, grown]);
    let index = store.index();
    assert_eq!((output(&index), number(&index, "SELECT count(*) FROM usage")), (8, 1));
    fs::remove_dir_all(dir.path()).unwrap();
    let index = store.index();
    assert_eq!(found(&index, "only"), ["s1:0", "s2:0"], "what the journal lists is not forgotten");
    let troubled = index.damaged_sessions(9).unwrap();
    assert_eq!((troubled.len(), troubled[0].id.as_str()), (1, "s2"));
    fs::remove_dir_all(store.path().join("vault")).unwrap();
    let index = store.index();
    assert_eq!((found(&index, "only").len(), output(&index)), (0, 0));
    assert_eq!(number(&index, "SELECT count(*) FROM session"), 0);
    assert_eq!(number(&index, "SELECT count(*) FROM rollup"), 0);
}

#[test]
fn the_same_text_is_indexed_once_and_found_in_its_newest_entry() {
    let store = Store::new();
    store.keep("s1", &[prompt("s1", "the very same"), prompt("s1", "the very same")]);
    store.keep("s2", &[prompt("s2", "the very same").replace("2026-01-05", "2026-01-06")]);
    let index = store.index();
    assert_eq!(number(&index, "SELECT count(*) FROM text"), 1);
    let hits = search(&index, "\"very same\"");
    assert_eq!((hits.len(), hits[0].session.as_str(), hits[0].copies), (1, "s2", 2));
    // Counts are of entries, before texts are folded; also for a pattern.
    for words in ["\"very same\"", "/v[e]ry same/"] {
        let query = SearchQuery::parse(words).unwrap();
        let request = SearchRequest {
            query: &query,
            filter: EntryFilter::default(),
            order: SearchOrder::Time,
            limit: 9,
            now: "2026-02-01T00:00:00Z".parse().unwrap(),
        };
        let found = index.search_and_count(&request).unwrap();
        let counts: Vec<_> =
            found.groups.iter().map(|one| (one.session.as_str(), one.entries)).collect();
        let hits: Vec<_> =
            found.hits.iter().map(|hit| (hit.session.as_str(), hit.number, hit.copies)).collect();
        assert_eq!(hits, [("s2", 0, 0), ("s1", 1, 1)], "{words}");
        assert!(!found.has_more_tools, "{words}");
        assert_eq!(counts, [("s1", 2), ("s2", 1)], "{words}");
    }
}

#[test]
fn sessions_of_a_common_word_are_counted_exactly() {
    let store = Store::new();
    let many: Vec<_> = (0..5200).map(|number| prompt("s1", &format!("lamp {number}"))).collect();
    store.keep("s1", &many);
    store.keep("s2", &[prompt("s2", "one more lamp"), prompt("s2", "a pier")]);
    let query = SearchQuery::parse("lamp").unwrap();
    let request = SearchRequest {
        query: &query,
        filter: EntryFilter::default(),
        order: SearchOrder::Relevance,
        limit: 9,
        now: "2026-02-01T00:00:00Z".parse().unwrap(),
    };
    let found = store.index().search_and_count(&request).unwrap();
    let counts: Vec<_> =
        found.groups.iter().map(|one| (one.session.as_str(), one.entries)).collect();
    assert_eq!(counts, [("s1", 5200), ("s2", 1)]);
    assert!(found.has_more_tools);
    assert_eq!(found.tool_groups.iter().map(|one| one.entries).sum::<u64>(), 5000);
}

#[test]
fn more_sessions_of_a_search_follow_the_first_ones() {
    let store = Store::new();
    for number in 0..7 {
        let id = format!("s{number}");
        let lines: Vec<_> =
            (0..5).map(|at| prompt(&id, &format!("lamp {at} of {}", number * 5))).collect();
        let same = prompt(&id, "the same lamp");
        store.keep(&id, &[lines, vec![same]].concat());
    }
    let query = SearchQuery::parse("lamp").unwrap();
    let sessions = |limit| {
        let request = SearchRequest {
            query: &query,
            filter: EntryFilter::default(),
            order: SearchOrder::Relevance,
            limit,
            now: "2026-02-01T00:00:00Z".parse().unwrap(),
        };
        let found = store.index().search_and_count(&request).unwrap();
        assert_eq!(found.groups.len(), 7, "all are counted");
        let mut names: Vec<(String, usize)> = Vec::new();
        for hit in &found.hits {
            match names.iter_mut().find(|(name, _)| name == hit.session.as_str()) {
                Some((_, hits)) => *hits += 1,
                None => names.push((hit.session.to_string(), 1)),
            }
        }
        names
    };
    let all = sessions(100);
    assert_eq!(all.len(), 7);
    assert!(all.iter().all(|(_, hits)| *hits == 3), "{all:?}");
    let names = |found: &[(String, usize)]| -> Vec<String> {
        found.iter().map(|(name, _)| name.clone()).collect()
    };
    for limit in [1, 2, 5] {
        assert_eq!(names(&sessions(limit)), names(&all)[..limit]);
    }
}

#[test]
fn a_long_session_does_not_hide_the_others_of_a_search() {
    let store = Store::new();
    let names = ["s1", "s2", "s3"];
    for (day, name) in names.iter().enumerate() {
        let line = prompt(name, &format!("a lamp of {name}"));
        store.keep(name, &[line.replace("2026-01-05", &format!("2026-01-0{}", day + 1))]);
    }
    let many: Vec<_> = (0..900)
        .map(|at| prompt("long", &format!("lamp {at}")).replace("2026-01-05", "2026-01-09"))
        .collect();
    store.keep("long", &many);
    let query = SearchQuery::parse("lamp").unwrap();
    for order in [SearchOrder::Relevance, SearchOrder::Time] {
        let sessions = |limit| {
            let request = SearchRequest {
                query: &query,
                filter: EntryFilter::default(),
                order,
                limit,
                now: "2026-02-01T00:00:00Z".parse().unwrap(),
            };
            let found = store.index().search_and_count(&request).unwrap();
            let mut names: Vec<_> = found.hits.iter().map(|hit| hit.session.to_string()).collect();
            names.dedup();
            names
        };
        // The newest 400 matches are all of one session.
        assert_eq!(sessions(9), ["long", "s3", "s2", "s1"], "{order:?}");
        assert_eq!(sessions(3), ["long", "s3", "s2"], "{order:?}");
        assert_eq!(sessions(1), ["long"], "{order:?}");
    }
}

#[test]
fn a_text_that_another_session_has_is_not_packed_again() {
    let store = Store::new();
    let long: Vec<_> = (0..3000).map(|number| format!("long {number}")).collect();
    store.keep("s1", &[prompt("s1", &long.join(" "))]);
    store.index();
    let blocks = "SELECT count(*) FROM block";
    assert_eq!(number(&store.index(), blocks), 1);
    store.keep("s2", &[prompt("s2", &long.join(" "))]);
    assert_eq!(number(&store.index(), blocks), 1);
    store.keep("s3", &[prompt("s3", "short"), prompt("s3", &long.join(" "))]);
    let index = store.index();
    assert_eq!(number(&index, blocks), 2);
    assert_eq!(
        number(&index, "SELECT count(*) FROM text WHERE block NOT IN (SELECT id FROM block)"),
        0
    );
    assert!(search(&index, "short")[0].text.contains("short"));
}

#[test]
fn as_many_are_found_as_are_wanted() {
    let store = Store::new();
    let lines: Vec<_> = (0..900).map(|at| prompt("s1", &format!("wanted number {at}"))).collect();
    store.keep("s1", &lines);
    let index = store.index();
    assert_eq!(search(&index, "wanted").len(), 900);
    assert_eq!(search(&index, "want*").len(), 900);
}

#[test]
fn among_many_texts_only_rare_words_are_weighed() {
    let store = Store::new();
    let mut lines = vec![
        prompt("s1", "common rare rare"),
        prompt("s1", "common and some other words that are not asked for, and one rare"),
    ];
    lines.extend((0..10_200).map(|number| prompt("s1", &format!("common n{number}"))));
    store.keep("s1", &lines);
    let index = store.index();
    let numbers = |query| -> Vec<u64> {
        search(&index, query).iter().map(|hit| hit.number).take(3).collect()
    };
    // The best before the newer one.
    assert_eq!(numbers("common rare"), [0, 1]);
    assert_eq!(numbers("rare"), [0, 1]);
    assert_eq!(numbers("common ra*"), [1, 0]);
    // The newest.
    assert_eq!(numbers("common"), [10_201, 10_200, 10_199]);
}

#[test]
fn a_damaged_or_older_index_is_built_anew() {
    let store = Store::new();
    store.keep("s1", &[prompt("s1", "hello world")]);
    drop(store.index());
    let path = store.path().join("index.db");
    fs::remove_file(store.path().join("index.db-wal")).unwrap();
    fs::write(&path, "not a database at all, but longer than a header is: ".repeat(50)).unwrap();
    let index = store.index();
    assert_eq!(index.rebuild_reason(), Some(RebuildReason::Damaged));
    assert_eq!(found(&index, "hello"), ["s1:0"]);
    index.connection().execute_batch("UPDATE meta SET value = 0 WHERE name = 'rules'").unwrap();
    drop(index);
    let index = store.index();
    assert_eq!(index.rebuild_reason(), Some(RebuildReason::Older));
    assert_eq!(found(&index, "hello"), ["s1:0"]);
    index.connection().execute_batch("DROP TABLE text").unwrap();
    assert!(
        index
            .search(&SearchRequest {
                query: &SearchQuery::parse("hello").unwrap(),
                filter: EntryFilter::default(),
                order: SearchOrder::Time,
                limit: 1,
                now: "2026-02-01T00:00:00Z".parse().unwrap(),
            })
            .unwrap_err()
            .is_corruption()
    );
    index.connection().execute_batch("PRAGMA user_version = 1000").unwrap();
    drop(index);
    assert!(matches!(Index::open(store.path()), Err(IndexError::Newer(_))));
}

#[test]
fn indexes_sessions_with_a_lost_marker_after_a_restart() {
    let store = Store::new();
    let index = store.index();
    index.verify_after_boot(&store.vault(), "boot 1").unwrap();
    store.keep("s1", &[prompt("s1", "first")]);
    drop(store.index());
    store.keep("s1", &[prompt("s1", "first"), prompt("s1", "second")]);
    fs::remove_dir_all(store.path().join("pending")).unwrap();
    let index = store.index();
    index.verify_after_boot(&store.vault(), "boot 1").unwrap();
    assert_eq!(found(&store.index(), "second").len(), 0);
    index.verify_after_boot(&store.vault(), "boot 2").unwrap();
    assert_eq!(found(&store.index(), "second"), ["s1:1"]);
}

#[test]
fn an_index_that_names_no_start_is_compared_unless_it_began_empty() {
    let grow_unmarked = |is_noted: bool| {
        let store = Store::new();
        let index = Index::open(store.path()).unwrap();
        if is_noted {
            index.note_first_boot("boot 1").unwrap();
        }
        store.keep("s1", &[prompt("s1", "first")]);
        drop(store.index());
        store.keep("s1", &[prompt("s1", "first"), prompt("s1", "second")]);
        fs::remove_dir_all(store.path().join("pending")).unwrap();
        index.note_first_boot("boot 1").unwrap();
        index.verify_after_boot(&store.vault(), "boot 1").unwrap();
        found(&store.index(), "second").len()
    };
    assert_eq!(grow_unmarked(false), 1, "nobody knows when the index was written");
    assert_eq!(grow_unmarked(true), 0, "all of it was written since this start");
}

#[test]
fn two_processes_take_in_the_same_sessions_once() {
    let store = Store::new();
    let names: Vec<String> = (0..20).map(|number| format!("s{number}")).collect();
    for name in &names {
        store.keep(
            name,
            &[prompt(name, &format!("words of {name}")), answer(name, "msg_0000000000000001", 7)],
        );
    }
    std::thread::scope(|scope| {
        (0..4).for_each(|_| _ = scope.spawn(|| store.index()));
    });
    let index = store.index();
    assert_eq!(found(&index, "words").len(), names.len());
    assert_eq!(number(&index, "SELECT count(*) FROM entry"), 2 * names.len() as i64);
    assert_eq!(output(&index), 7);
}

/// Every agent's files: the index must say of each session what the vault says, and count each message once.
#[test]
fn sessions_and_tokens_are_those_of_the_vault() {
    let Some(fixtures) = std::env::var_os("STENO_FIXTURES") else {
        eprintln!("STENO_FIXTURES is not set: nothing is compared");
        return;
    };
    for folder in fs::read_dir(PathBuf::from(fixtures)).unwrap().flatten().map(|entry| entry.path())
    {
        if folder.is_dir() {
            compare(&folder);
        }
    }
}

fn compare(folder: &Path) {
    let store = Store::new();
    let mut kept = Vec::new();
    for found in format::find_sessions(folder).unwrap() {
        let Ok(session) = found.read_transcript() else { continue };
        let (agent, id) = (session.session.agent.parse().unwrap(), session.session.id.clone());
        let dir = store.vault().session_dir(&agent, &id);
        if kept.contains(&dir) || dir.keep_session(&found.bundle).is_err() {
            continue;
        }
        kept.push(dir);
    }
    let index = store.index_in(64 << 10);
    let (mut total, mut repeated, mut ledger) =
        (Usage::default(), Usage::default(), UsageLedger::default());
    for dir in &kept {
        let transcript = dir.read_transcript().unwrap();
        let mut tally = UsageTally::default();
        transcript.entries.iter().for_each(|entry| tally.count_entry(entry));
        repeated.add(&ledger.add_tally(dir.agent(), tally));
        total.add(&transcript.session.totals.usage);
    }
    for listed in index.list_sessions(None, None).unwrap() {
        let dir = kept
            .iter()
            .find(|dir| *dir.id() == listed.session.id && dir.agent() == listed.session.agent);
        let mut read = dir.unwrap().read_transcript().unwrap().session;
        read.extra.clear();
        assert_eq!(listed.session, read);
    }
    let columns =
        "input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning";
    for table in ["usage", "rollup"] {
        let sums = columns.split(", ").map(|name| format!("coalesce(sum({name}), 0)"));
        let sql = format!("SELECT {} FROM {table}", sums.collect::<Vec<_>>().join(", "));
        let read = |row: &rusqlite::Row<'_>| {
            let at = |at| row.get::<_, i64>(at).map(|number| u64::try_from(number).unwrap());
            Ok(Usage {
                input: at(0)?,
                cache_read: at(1)?,
                cache_write: at(2)?,
                cache_write_5m: at(3)?,
                cache_write_1h: at(4)?,
                output: at(5)?,
                reasoning: at(6)?,
            })
        };
        let mut sum = index.connection().query_row(&sql, [], read).unwrap();
        sum.add(&repeated);
        assert_eq!(sum, total, "{table} of {}", folder.display());
    }
}

/// Words as in transcripts: plain, snake_case, camelCase, paths, other scripts.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{2,8}",
        "[a-z]{2,5}_[a-z]{2,5}",
        "[a-z]{2,5}[A-Z][a-z]{1,4}[A-Z][a-z]{1,4}",
        "[A-Z]{2,4}[A-Z][a-z]{2,4}",
        "/[a-z]{2,5}/[a-z]{2,5}\\.rs",
        "[\u{4e00}-\u{4e20}]{1,5}",
        "[äöüßéñ]{2,6}[a-z]{0,3}",
        "[0-9]{1,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A word of a text is found by itself, in any case, by prefix and by its parts.
    #[test]
    fn words_are_found(texts in proptest::collection::vec(proptest::collection::vec(word(), 1..8), 1..6)) {
        let store = Store::new();
        let lines: Vec<_> = texts.iter().map(|words| prompt("s", &words.join(" "))).collect();
        store.keep("s", &lines);
        let index = store.index();
        let has = |query: &str, at: usize, text: &str| {
            search(&index, query).iter().any(|hit| hit.number == at as u64 || hit.text == text)
        };
        for (at, words) in texts.iter().enumerate() {
            let text = words.join(" ");
            for word in words {
                prop_assert!(has(word, at, &text), "{word} in {text}");
                prop_assert!(has(&word.to_lowercase(), at, &text), "lower {word} in {text}");
                let quoted = format!("\"{word}\"");
                prop_assert!(has(&quoted, at, &text), "quoted {word} in {text}");
                let beginning: String = word.chars().take(3).collect();
                prop_assert!(has(&format!("{beginning}*"), at, &text), "{beginning}* in {text}");
                for part in parts(word) {
                    prop_assert!(has(&part, at, &text), "{part} of {word} in {text}");
                }
            }
            prop_assert!(has(&format!("\"{text}\""), at, &text), "all of {text}");
            let pattern = format!("/{}/", text.replace('/', "\\/").replace('.', "\\."));
            prop_assert!(has(&pattern, at, &text), "{pattern}");
        }
    }
}

/// What people would call the parts of a word.
fn parts(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for c in word.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase()) {
            parts.push(String::new());
        }
        if c.is_alphanumeric() {
            parts.last_mut().unwrap().push(c);
        }
        before = c;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[test]
fn finds_sessions_by_id_prefix() {
    let store = Store::new();
    for (agent, name) in
        [("claude-code", "abcd"), ("claude-code", "abcx"), ("codex", "abcd-2"), ("codex", "b")]
    {
        store.keep_for(agent, name, &[prompt(name, &format!("words of {name}"))]);
    }
    let index = store.index();
    let like = |beginning: &str| -> Vec<String> {
        let found = index.find_by_prefix(beginning).unwrap();
        found.iter().map(|(agent, id)| format!("{agent}/{id}")).collect()
    };
    assert_eq!(like("abcd"), ["claude-code/abcd", "codex/abcd-2"]);
    assert_eq!(like("abcx"), ["claude-code/abcx"]);
    assert_eq!(like("").len(), 4);
    assert!(like("c").is_empty() && like("abcd-2-").is_empty());
    let length = |id: &str| index.distinct_length(&id.parse().unwrap()).unwrap();
    assert_eq!([length("abcd"), length("abcx"), length("abcd-2"), length("b")], [4, 4, 5, 1]);
    store.keep_for("claude-code", "b", &[prompt("b", "more words")]);
    let index = store.index();
    assert_eq!(index.distinct_length(&"b".parse().unwrap()).unwrap(), 1);
    assert_eq!(index.distinct_length(&"abcd-2".parse().unwrap()).unwrap(), 5);
}
