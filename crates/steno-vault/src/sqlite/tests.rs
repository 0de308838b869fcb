use std::fs;

use proptest::prelude::*;

use super::*;
use crate::database_schema::RowSelection;

const NOTES: DatabaseSchema = DatabaseSchema {
    tables: &[("notes", &["id", "body"])],
    session_query: "SELECT id FROM notes ORDER BY id",
    row_selections: &[RowSelection::own("notes", "id = ?1")],
    owner_column: None,
};

/// A database in `folder` with its rows still in the write-ahead log.
fn logged(folder: &Path) -> PathBuf {
    let live = folder.join("live.db");
    let connection = Connection::open(&live).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection
        .execute_batch(
            "CREATE TABLE notes (id TEXT, body TEXT);
             INSERT INTO notes VALUES ('a', 'one'), ('b', 'two');",
        )
        .unwrap();
    let left = folder.join("left.db");
    fs::copy(&live, &left).unwrap();
    fs::copy(wal_path(&live), wal_path(&left)).unwrap();
    drop(connection);
    fs::remove_file(&live).unwrap();
    left
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|item| item.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_name_that_is_no_text_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.db");
    let tables = "CREATE TABLE notes (id TEXT, body TEXT, extra TEXT);
                  INSERT INTO notes VALUES ('a', 'one', 'more');";
    Connection::open(&file).unwrap().execute_batch(tables).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let at = memchr::memmem::find(&bytes, b"extra").unwrap();
    bytes[at] = 0xff;
    fs::write(&file, bytes).unwrap();
    let database = AgentDatabase::open(&SessionBundle::from_file(&file)).unwrap();
    let row = database
        .query_row("SELECT * FROM notes", &[], |row| (row.text("body"), row.other_columns(&[])));
    assert_eq!(row.unwrap(), Some((Some("one".to_owned()), steno_model::json::Object::new())));
}

#[test]
fn rows_in_the_log_are_read_and_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = logged(folder.path());
    let before =
        (names(folder.path()), fs::read(&file).unwrap(), fs::read(wal_path(&file)).unwrap());
    let files = names(folder.path()).into_iter();
    let bundles: Vec<_> =
        files.flat_map(|name| sessions_in_file(&folder.path().join(name), &NOTES)).collect();
    let keys: Vec<_> = bundles.iter().map(|bundle| bundle.key.clone().unwrap()).collect();
    assert_eq!(keys, ["a", "b"]);
    assert_eq!(bundles[0].files.len(), 2);
    let database = AgentDatabase::open(&bundles[0]).unwrap();
    assert_eq!(database.query_texts("SELECT body FROM notes", &[]).unwrap(), ["one", "two"]);
    let after =
        (names(folder.path()), fs::read(&file).unwrap(), fs::read(wal_path(&file)).unwrap());
    assert_eq!(before, after);
}

#[test]
fn a_database_without_its_log_is_read_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odd %?#.db");
    let connection = Connection::open(&file).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.execute_batch("CREATE TABLE notes (id TEXT, body TEXT)").unwrap();
    drop(connection);
    assert_eq!(names(folder.path()).len(), 1);
    let database = AgentDatabase::open(&bundle_database(&file)).unwrap();
    assert!(database.matches_schema(&NOTES));
    assert_eq!(names(folder.path()).len(), 1);
}

#[test]
fn bytes_from_elsewhere_are_read_like_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = logged(folder.path());
    let sources = [("n.db", file.clone()), ("n.db-wal", wal_path(&file))]
        .map(|(name, path)| SessionFile::in_memory(name, "/gone", fs::read(path).unwrap()));
    let database = AgentDatabase::open(&SessionBundle::new("/gone", sources.into())).unwrap();
    assert_eq!(database.query_texts("SELECT id FROM notes", &[]).unwrap(), ["a", "b"]);
}

#[test]
fn views_are_no_tables() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("v.db");
    let view = "CREATE TABLE t (x); CREATE VIEW notes AS SELECT 1 AS id, 2 AS body";
    Connection::open(&file).unwrap().execute_batch(view).unwrap();
    assert!(sessions_in_file(&file, &NOTES).is_empty());
}

#[test]
fn a_newer_log_makes_a_newer_copy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("n.db");
    let connection = Connection::open(&file).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.execute_batch("CREATE TABLE notes (id TEXT, body TEXT)").unwrap();
    for count in 0..3 {
        assert_eq!(sessions_in_file(&file, &NOTES).len(), count);
        connection.execute("INSERT INTO notes VALUES (?1, '')", [count.to_string()]).unwrap();
    }
}

#[test]
fn a_value_that_is_too_long_reads_as_null() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("n.db");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("CREATE TABLE notes (id TEXT, body TEXT, more)").unwrap();
    for (id, length) in [("a", 1), ("b", MAX_VALUE_BYTES + 1), ("c", 2), ("d", MAX_VALUE_BYTES + 1)]
    {
        let insert = "INSERT INTO notes VALUES (?1, zeroblob(?2), 'more')";
        connection.execute(insert, (id, length as i64)).unwrap();
    }
    drop(connection);
    let database = AgentDatabase::open(&SessionBundle::from_file(&file)).unwrap();
    let mut read = Vec::new();
    let query = "SELECT * FROM notes ORDER BY rowid";
    database
        .for_each_row(query, &[], |row| {
            read.push((row.text("id").unwrap(), row.bytes("body").map(<[u8]>::len)));
            assert_eq!(row.other_columns(&["id", "body"]).keys().collect::<Vec<_>>(), ["more"]);
            Ok(())
        })
        .unwrap();
    let read: Vec<_> = read.iter().map(|(id, length)| (id.as_str(), *length)).collect();
    assert_eq!(read, [("a", Some(1)), ("b", None), ("c", Some(2)), ("d", None)]);
    let problem = database.row_problem("note b", "no body").to_string();
    assert!(problem.ends_with("(values larger than 64 MiB are kept but not read)"), "{problem}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_databases_are_errors(at in 16usize..8192, byte: u8, length in 0usize..8192) {
        let folder = tempfile::tempdir().unwrap();
        let file = logged(folder.path());
        let mut bytes = fs::read(&file).unwrap();
        bytes.truncate(length.max(16));
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        fs::write(&file, bytes).unwrap();
        for bundle in sessions_in_file(&file, &NOTES) {
            let database = AgentDatabase::open(&bundle);
            let _ = database.and_then(|database| database.query_texts("SELECT body FROM notes", &[]));
        }
    }
}
