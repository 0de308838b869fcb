//! The index of a store that must not be written: it answers, says what it lacks, and no byte changes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use steno_store::index::pending_sessions::PendingSessions;
use steno_store::index::{
    EntryFilter, Index, IndexCondition, IndexError, SearchOrder, SearchQuery, SearchRequest,
    StoreIndex, WriteObstacle,
};
use steno_vault::{SessionFile, Vault};
use tempfile::TempDir;

/// A store with characters in its path that have a meaning in a URI.
struct TestStore {
    dir: TempDir,
}

impl TestStore {
    fn new() -> Self {
        let store = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(store.path()).unwrap();
        store
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("a store?mode=rw#1%41")
    }

    fn vault(&self) -> Vault {
        Vault::new(self.path().join("vault"))
    }

    /// Keeps a session with one prompt for each text, and marks it as pending.
    fn keep(&self, name: &str, texts: &[&str]) {
        let dir = self.vault().session_dir(&"claude-code".parse().unwrap(), &name.parse().unwrap());
        let _marker = PendingSessions::new(&self.path()).mark_session(&dir).unwrap();
        let path = self.dir.path().join(format!("{name}.jsonl"));
        let line = |text: &&str| {
            format!(
                "{{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"{name}\",\"version\":\"2.1.0\",\
                 \"timestamp\":\"2026-01-05T09:15:30.000Z\",\
                 \"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
            )
        };
        fs::write(&path, texts.iter().map(line).collect::<String>()).unwrap();
        dir.keep_file(&SessionFile::on_disk("main.jsonl", &path), &path).unwrap();
    }

    fn refresh(&self) -> Index {
        let index = Index::open(&self.path()).unwrap();
        index.catch_up(&self.vault(), Some("boot 1"), &mut |_, _| {}).unwrap();
        index
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).unwrap();
    }

    fn source(&self, boot: &str) -> StoreIndex {
        StoreIndex::new(&self.path(), &self.vault(), Some(boot.to_owned()))
    }

    /// What the index answers without writing, and in which condition it is; no file may change.
    fn ask_as_is(&self, boot: &str, query: &str) -> (usize, IndexCondition) {
        let before = contents(&self.path());
        let source = self.source(boot);
        let mut refresh = |index: &Index| source.catch_up(index, &mut |_, _| {}).map(drop);
        let ask = |index: &Index| count_hits(index, query);
        let answer = source.query_read_only(WriteObstacle::ReadOnly, &mut refresh, &ask).unwrap();
        assert!(contents(&self.path()) == before, "a file of the store has changed");
        (answer.value, answer.condition)
    }
}

/// Every file below a folder, with its bytes.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            all.insert(path, bytes);
        }
    }
    all
}

fn count_hits(index: &Index, query: &str) -> Result<usize, IndexError> {
    let query = SearchQuery::parse(query)?;
    let now = "2026-02-01T00:00:00Z".parse().unwrap();
    let search = SearchRequest {
        query: &query,
        filter: EntryFilter::default(),
        order: SearchOrder::Time,
        limit: 10,
        now,
    };
    Ok(index.search(&search)?.len())
}

fn behind(missing: usize) -> IndexCondition {
    IndexCondition::Behind { obstacle: WriteObstacle::ReadOnly, missing: Some(missing) }
}

#[test]
fn an_index_is_read_whichever_of_its_files_are_there() {
    let store = TestStore::new();
    store.keep("s1", &["hello world"]);
    drop(store.refresh());
    // Without a process that has it open, the shared memory cannot be trusted.
    for query in ["hello", "/h.llo/"] {
        assert_eq!(store.ask_as_is("boot 1", query), (1, IndexCondition::Current));
    }
    store.remove("index.db-shm");
    for query in ["hello", "/h.llo/"] {
        assert_eq!(store.ask_as_is("boot 1", query), (1, IndexCondition::Current));
    }
    let index = Index::open(&store.path()).unwrap();
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    index.connection().query_row(checkpoint, [], |_| Ok(())).unwrap();
    drop(index);
    store.remove("index.db-shm");
    store.remove("index.db-wal");
    for query in ["hello", "/h.llo/"] {
        assert_eq!(store.ask_as_is("boot 1", query), (1, IndexCondition::Current));
    }
}

#[test]
fn a_reader_sees_concurrent_commits() {
    let store = TestStore::new();
    store.keep("s1", &["hello world"]);
    let writer = store.refresh();
    let reader = Index::open_read_only(&store.path()).unwrap();
    assert_eq!(count_hits(&reader, "hello").unwrap(), 1);
    store.keep("s2", &["hello again"]);
    writer.refresh(&store.vault(), &mut |_, _| {}).unwrap();
    assert_eq!(count_hits(&reader, "hello").unwrap(), 2);
    assert!(reader.is_read_only() && !writer.is_read_only());
}

#[test]
fn counts_sessions_missing_in_the_index() {
    let store = TestStore::new();
    store.keep("s1", &["first one"]);
    store.keep("s2", &["first two"]);
    drop(store.refresh());
    // A marker alone proves nothing: its process may have ended before it kept anything.
    let dir = store.vault().session_dir(&"claude-code".parse().unwrap(), &"s1".parse().unwrap());
    drop(PendingSessions::new(&store.path()).mark_session(&dir).unwrap());
    assert_eq!(store.ask_as_is("boot 1", "first"), (2, IndexCondition::Current));
    store.keep("s2", &["first two", "second"]);
    assert_eq!(store.ask_as_is("boot 1", "second"), (0, behind(1)));
    store.keep("s3", &["first three"]);
    assert_eq!(store.ask_as_is("boot 1", "first"), (2, behind(2)));
    // A copy of the vault alone has no markers. Folder times and sizes show the change.
    fs::remove_dir_all(store.path().join("pending")).unwrap();
    assert_eq!(store.ask_as_is("boot 1", "first"), (2, behind(1)));
    assert_eq!(store.ask_as_is("boot 2", "first"), (2, behind(2)));
}

#[test]
fn a_store_without_a_usable_index_is_answered_from_memory() {
    let in_memory = IndexCondition::InMemory { obstacle: WriteObstacle::ReadOnly };
    let store = TestStore::new();
    store.keep("s1", &["hello world"]);
    for query in ["hello", "/h.llo/"] {
        assert_eq!(store.ask_as_is("boot 1", query), (1, in_memory));
    }
    let index = store.refresh();
    index.connection().execute_batch("UPDATE meta SET value = 0 WHERE name = 'rules'").unwrap();
    drop(index);
    assert_eq!(store.ask_as_is("boot 1", "hello"), (1, in_memory));
    fs::write(store.path().join("index.db"), "not a database at all").unwrap();
    assert_eq!(store.ask_as_is("boot 1", "hello"), (1, in_memory));
}

#[test]
fn an_index_in_memory_follows_the_vault() {
    let store = TestStore::new();
    store.keep("s1", &["hello world"]);
    let source = store.source("boot 1");
    let mut refresh = |index: &Index| source.catch_up(index, &mut |_, _| {}).map(drop);
    let ask = |index: &Index| count_hits(index, "hello");
    let first = source.query_read_only(WriteObstacle::DiskFull, &mut refresh, &ask).unwrap();
    assert_eq!(first.value, 1);
    drop(first);
    store.keep("s2", &["hello again"]);
    let next = source.query(&mut refresh, &ask).unwrap();
    let obstacle = WriteObstacle::DiskFull;
    assert_eq!((next.value, next.condition), (2, IndexCondition::InMemory { obstacle }));
    // The markers are left to the index of the store.
    assert!(store.path().join("pending/claude-code/s2").exists());
    assert!(!store.path().join("index.db").exists());
}
