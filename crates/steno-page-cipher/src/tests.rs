//! Databases that SQLite reads and writes through the cipher.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, params};

use super::*;

const NEEDLE: &str = "the quick brown fox jumps over the lazy dog";

fn key(byte: u8) -> PageKey {
    PageKey::new([byte; 32])
}

fn open(path: &Path, key: &PageKey) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    open_encrypted(path, flags, key, BaseFileSystem::Default)
}

fn create(path: &Path) -> Connection {
    let connection = open(path, &key(1)).unwrap();
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
             CREATE INDEX t_text ON t (text);
             CREATE VIRTUAL TABLE words USING fts5 (text);",
        )
        .unwrap();
    connection
}

fn insert(connection: &Connection, rows: std::ops::Range<i64>) {
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    for row in rows {
        let text = format!("{row} {NEEDLE} {}", "x".repeat((row % 900) as usize));
        connection.execute("INSERT INTO t VALUES (?1, ?2)", params![row, text]).unwrap();
        connection.execute("INSERT INTO words VALUES (?1)", [text]).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
}

fn count(connection: &Connection) -> i64 {
    let found = "SELECT count(*) FROM words WHERE words MATCH 'lazy'";
    let words: i64 = connection.query_row(found, [], |row| row.get(0)).unwrap();
    let rows = connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(words, rows);
    rows
}

fn check(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(dir).unwrap().map(|item| item.unwrap().path()).collect();
    all.sort();
    all
}

fn assert_no_plain_text(dir: &Path) {
    for path in files(dir) {
        let bytes = fs::read(&path).unwrap();
        for needle in ["quick brown", "lazy", "CREATE TABLE", "SQLite format"] {
            let is_there = bytes.windows(needle.len()).any(|part| part == needle.as_bytes());
            assert!(!is_there, "{needle} in {}", path.display());
        }
    }
}

#[test]
fn rows_come_back_and_no_file_has_plain_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let connection = create(&path);
    for round in 0..5 {
        insert(&connection, round * 500..(round + 1) * 500);
        assert_no_plain_text(dir.path());
    }
    assert_eq!(count(&connection), 2500);
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    insert(&connection, 2500..2600);
    connection
        .execute_batch("DELETE FROM t WHERE id < 100; DELETE FROM words WHERE rowid <= 100;")
        .unwrap();
    connection.execute_batch("VACUUM").unwrap();
    assert_no_plain_text(dir.path());
    assert_eq!(check(&connection).unwrap(), "ok");
    drop(connection);
    let connection = open(&path, &key(1)).unwrap();
    assert_eq!((count(&connection), check(&connection).unwrap().as_str()), (2500, "ok"));
    assert_no_plain_text(dir.path());
}

#[test]
fn a_killed_writer_leaves_a_log_that_is_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let connection = create(&path);
    insert(&connection, 0..700);
    // As after a power failure: no shared memory, and a torn frame at the end of the log.
    let copy = tempfile::tempdir().unwrap();
    let copied = copy.path().join("a.db");
    fs::copy(&path, &copied).unwrap();
    let log = fs::read(dir.path().join("a.db-wal")).unwrap();
    let frame = FRAME_HEADER + PAGE_BYTES;
    assert_eq!((log.len() - 32) % frame, 0);
    insert(&connection, 700..900);
    let longer = fs::read(dir.path().join("a.db-wal")).unwrap();
    for cut in [log.len(), log.len() + 10, log.len() + 24, log.len() + 3000, log.len() + frame] {
        fs::write(copy.path().join("a.db-wal"), &longer[..cut.min(longer.len() - 1)]).unwrap();
        let _ = fs::remove_file(copy.path().join("a.db-shm"));
        let connection = open(&copied, &key(1)).unwrap();
        assert_eq!((count(&connection), check(&connection).unwrap().as_str()), (700, "ok"));
    }
}

const FRAME_HEADER: usize = 24;

#[test]
fn large_transactions_replace_pages_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let connection = create(&path);
    connection.execute_batch("PRAGMA cache_size = 10; PRAGMA cache_spill = 10;").unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    for round in 0..20 {
        for row in 0..200 {
            let text = format!("{round} {}", "y".repeat(300));
            connection
                .execute("INSERT OR REPLACE INTO t VALUES (?1, ?2)", params![row * 7 % 200, text])
                .unwrap();
        }
    }
    connection.execute_batch("COMMIT").unwrap();
    let copy = tempfile::tempdir().unwrap();
    for name in ["a.db", "a.db-wal"] {
        fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    let copied = open(&copy.path().join("a.db"), &key(1)).unwrap();
    let rows: i64 = copied.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!((rows, check(&copied).unwrap().as_str()), (200, "ok"));
}

#[test]
fn another_key_and_no_key_read_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let connection = create(&path);
    insert(&connection, 0..10);
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    let ask = |connection: Connection| {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))
    };
    assert!(open(&path, &key(2)).and_then(ask).is_err());
    assert!(Connection::open(&path).and_then(ask).is_err());
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(count(&open(&path, &key(1)).unwrap()), 10);
}

#[test]
fn every_flipped_bit_of_a_page_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let connection = create(&path);
    insert(&connection, 0..40);
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let whole = fs::read(&path).unwrap();
    for step in 0..400 {
        let bit = (step * 7919 * 131) % (whole.len() * 8);
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &changed).unwrap();
        let found = match open(&path, &key(1)).and_then(|connection| check(&connection)) {
            Ok(result) => result != "ok",
            Err(_) => true,
        };
        // An unused page is only read when it is used.
        let number = bit / 8 / PAGE_BYTES + 1;
        let mut page = changed[(number - 1) * PAGE_BYTES..number * PAGE_BYTES].to_vec();
        let number = u32::try_from(number).unwrap();
        let is_refused =
            key(1).decrypt_page(&mut page, number, page_key::PageFile::Database).is_err();
        assert!(is_refused, "bit {bit}");
        assert!(found || number > 1, "bit {bit}");
    }
}

#[test]
fn swapped_pages_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let connection = create(&path);
    insert(&connection, 0..100);
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = fs::read(&path).unwrap();
    let (first, second) = bytes.split_at_mut(2 * PAGE_BYTES);
    first[PAGE_BYTES..].swap_with_slice(&mut second[..PAGE_BYTES]);
    fs::write(&path, &bytes).unwrap();
    let connection = open(&path, &key(1)).unwrap();
    assert!(check(&connection).is_err() || check(&connection).unwrap() != "ok");
}

#[test]
fn readers_and_writers_share_a_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    insert(&create(&path), 0..10);
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let path = &path;
            scope.spawn(move || {
                let connection = open(path, &key(1)).unwrap();
                connection.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
                for round in 0..10 {
                    let first = 1000 + thread * 1000 + round * 20;
                    insert(&connection, first..first + 20);
                    assert!(count(&connection) >= 10);
                }
            });
        }
    });
    let connection = open(&path, &key(1)).unwrap();
    assert_eq!((count(&connection), check(&connection).unwrap().as_str()), (810, "ok"));
}

#[test]
fn a_database_is_read_without_writing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let connection = create(&path);
    insert(&connection, 0..30);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let uri = |options: &str| PathBuf::from(format!("file:{}?{options}", path.display()));
    let shared =
        open_encrypted(&uri("mode=ro&readonly_shm=1"), flags, &key(1), BaseFileSystem::Default);
    assert_eq!(count(&shared.unwrap()), 30);
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let fixed =
        open_encrypted(&uri("mode=ro&immutable=1"), flags, &key(1), BaseFileSystem::Lockless);
    assert_eq!(count(&fixed.unwrap()), 30);
}
