use std::fs;
use std::io::{BufRead, Cursor, Read};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::{Value as Cell, ValueRef};

use super::*;
use crate::sqlite::{AgentDatabase, sessions_in_file};
use crate::{DatabaseSchema, RowSelection, SessionBundle, SessionDir, Vault};
use steno_model::json::Value;
use steno_model::problem::Problem;

/// Sessions with notes of any value type, a shared list, and unrelated tables.
const SCHEMA: DatabaseSchema = DatabaseSchema {
    tables: &[("session", &["id"])],
    session_query: "SELECT id FROM session ORDER BY id",
    row_selections: &[
        RowSelection::own("session", "id = ?1"),
        RowSelection::shared("project", "id IN (SELECT project FROM session WHERE id = ?1)"),
        RowSelection::whole("migration"),
    ],
    owner_column: Some("session_id"),
};

const TABLES: &str = "
    PRAGMA user_version = 7;
    CREATE TABLE project (id TEXT PRIMARY KEY, name TEXT);
    CREATE TABLE session (id TEXT PRIMARY KEY, project TEXT REFERENCES project(id), notes INTEGER);
    CREATE TABLE \"odd \"\"name\" -- why not
        (session_id TEXT REFERENCES session(id) ON DELETE CASCADE, \"x y\", other UNIQUE);
    CREATE TABLE keyed (a, b, session_id, PRIMARY KEY (a, b)) WITHOUT ROWID;
    CREATE TABLE migration (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE secret (token TEXT);
    CREATE VIEW peek AS SELECT * FROM secret;
    CREATE INDEX by_session ON \"odd \"\"name\" (session_id);
    CREATE TRIGGER counted AFTER INSERT ON \"odd \"\"name\"
        BEGIN UPDATE session SET notes = notes + 1 WHERE id = new.session_id; END;
    INSERT INTO project VALUES ('p', 'one');
    INSERT INTO session VALUES ('a', 'p', 0), ('b', 'p', 0);
    INSERT INTO migration VALUES (1, 'first');
    INSERT INTO secret VALUES ('hush');
    INSERT INTO \"odd \"\"name\" VALUES ('a', 1, 'a1'), ('b', 2, 'b1'), ('a', x'ff00', 'a2');
    INSERT INTO keyed VALUES (1, 2, 'a'), (1, 3, 'b');";

/// Longest row line for these tests.
const ROW_LIMIT: usize = 16 << 20;

fn made(folder: &Path) -> (PathBuf, Connection) {
    let file = folder.join("notes.db");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch(TABLES).unwrap();
    (file, connection)
}

fn lines(bundle: &SessionBundle) -> Vec<String> {
    let mut lines = Vec::new();
    AgentDatabase::open(bundle)
        .unwrap()
        .for_each_line(&SCHEMA, bundle.key.as_deref(), &mut |line| {
            let mut bytes = Vec::new();
            line.for_each_piece(&mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            })
            .unwrap();
            assert_eq!(line.hash().unwrap(), blake3::hash(&bytes));
            assert!(bytes.starts_with(&[b"{\"of\":", line.slot].concat()));
            lines.push(String::from_utf8(bytes).unwrap());
            Ok(())
        })
        .unwrap();
    lines
}

fn replayed(log: &str) -> (RowLogReplay, Vec<Problem>) {
    let mut problems = Vec::new();
    let bytes = log.as_bytes().to_vec();
    let open =
        move || -> std::io::Result<Box<dyn BufRead>> { Ok(Box::new(Cursor::new(bytes.clone()))) };
    let replay = RowLogReplay::replay_log(Path::new("log"), &open, ROW_LIMIT, &mut |problem| {
        problems.push(problem)
    });
    (replay.unwrap(), problems)
}

fn texts(connection: &Connection, query: &str) -> Vec<String> {
    let mut statement = connection.prepare(query).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn count(connection: &Connection, table: &str) -> i64 {
    let query = format!("SELECT count(*) FROM {}", table_layout::quote_name(table));
    connection.query_row(&query, [], |row| row.get(0)).unwrap()
}

const ODD: &str = "odd \"name";

#[test]
fn a_session_has_its_rows_and_those_they_refer_to() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _connection) = made(folder.path());
    let bundles = sessions_in_file(&file, &SCHEMA);
    let log = lines(&bundles[0]).join("\n") + "\n";
    assert!(!log.contains("hush") && !log.contains("peek") && !log.contains("b1"));
    let (replay, problems) = replayed(&log);
    assert_eq!(problems, []);
    let counts = ["session", "project", ODD, "keyed", "migration", "secret"]
        .map(|table| count(&replay.connection, table));
    assert_eq!(counts, [1, 1, 2, 1, 1, 0]);
    let bytes = replay.into_bytes_with_triggers().unwrap();
    let copy = folder.path().join("copy.db");
    fs::write(&copy, bytes).unwrap();
    let copy = Connection::open(copy).unwrap();
    let version: i64 = copy.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 7);
    assert_eq!(texts(&copy, "SELECT name FROM sqlite_master WHERE type = 'trigger'"), ["counted"]);
    let blob: Cell = copy
        .query_row("SELECT \"x y\" FROM \"odd \"\"name\" WHERE other = 'a2'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(blob, Cell::Blob(vec![0xff, 0]));
    // The trigger did not run again.
    let notes: i64 = copy.query_row("SELECT notes FROM session", [], |row| row.get(0)).unwrap();
    assert_eq!(notes, 2);
}

#[test]
fn a_log_grows_by_new_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (file, connection) = made(folder.path());
    let vault = Vault::new(folder.path().join("vault"));
    let keep = || -> (SessionDir, Vec<String>, u64) {
        let bundle = sessions_in_file(&file, &SCHEMA).remove(0);
        let dir = vault.session_dir(&"notes".parse().unwrap(), &"a".parse().unwrap());
        let added = dir.keep_session(&bundle).unwrap();
        let log = fs::File::open(dir.path().join("notes.db.rows.jsonl.zst")).unwrap();
        let mut text = String::new();
        zstd::Decoder::new(log).unwrap().read_to_string(&mut text).unwrap();
        (dir, text.lines().map(str::to_owned).collect(), added)
    };
    let (_, first, _) = keep();
    assert_eq!(keep().2, 0);
    connection
        .execute_batch(
            "INSERT INTO \"odd \"\"name\" VALUES ('a', 1.5, 'a3'), ('b', 3, 'b2');
             UPDATE keyed SET session_id = 'b' WHERE b = 2;
             UPDATE \"odd \"\"name\" SET \"x y\" = 'new' WHERE other = 'a1';",
        )
        .unwrap();
    let (dir, second, _) = keep();
    assert_eq!(second[..first.len()], first, "what was kept stays");
    let news: Vec<&str> = second[first.len()..].iter().map(String::as_str).collect();
    assert_eq!(
        news,
        [
            r#"{"of":["row","odd \"name","a1"],"rowid":1,"values":{"session_id":"a","x y":"new","other":"a1"}}"#,
            r#"{"of":["row","odd \"name","a3"],"rowid":4,"values":{"session_id":"a","x y":1.5,"other":"a3"}}"#,
            r#"{"of":["row","session","a"],"rowid":1,"values":{"id":"a","project":"p","notes":3}}"#,
            r#"{"of":["row","keyed",1,2],"gone":true}"#,
        ]
    );
    let bundle = dir.kept_bundle().unwrap();
    assert_eq!(bundle.key.as_deref(), Some("a"));
    let database = AgentDatabase::open(&bundle).unwrap();
    assert_eq!(count(database.connection(), ODD), 3);
    assert_eq!(count(database.connection(), "keyed"), 0);
    // A row that reappears after it was removed, and a changed table.
    connection
        .execute_batch(
            "INSERT INTO keyed VALUES (1, 9, 'a'); ALTER TABLE session ADD COLUMN more TEXT;",
        )
        .unwrap();
    let database = AgentDatabase::open(&keep().0.kept_bundle().unwrap()).unwrap();
    assert_eq!(count(database.connection(), "keyed"), 1);
    assert!(database.columns("session").contains(&"more".to_owned()));
    assert!(dir.verify().unwrap().damage.is_empty());
}

#[test]
fn a_fingerprint_knows_only_the_sessions_own_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (file, connection) = made(folder.path());
    let prints = || -> Vec<_> {
        let bundles = sessions_in_file(&file, &SCHEMA);
        bundles.iter().map(|bundle| bundle.fingerprint().unwrap().unwrap()).collect()
    };
    let before = prints();
    assert_ne!(before[0].hash, before[1].hash);
    connection.execute_batch("UPDATE project SET name = 'two'; DELETE FROM secret").unwrap();
    assert_eq!(prints(), before);
    connection.execute_batch("UPDATE keyed SET b = '2' WHERE b = 2").unwrap();
    let after = prints();
    assert_ne!(after[0].hash, before[0].hash);
    assert_eq!(after[1], before[1]);
}

#[test]
fn a_hostile_log_is_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let stolen = folder.path().join("stolen");
    let attach = format!("ATTACH '{}' AS x; CREATE TABLE x.t(a)", stolen.display());
    let statements = [
        "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "CREATE TABLE t(a); CREATE TABLE u(b)",
        "CREATE TABLE temp.t(a)",
        "CREATE VIRTUAL TABLE t USING fts5(a)",
        "CREATE TABLE \"t",
        "CREATE TABLE t",
        "PRAGMA writable_schema = 1",
        "CREATE VIEW t AS SELECT 1",
        attach.as_str(),
    ];
    for sql in statements {
        let create = serde_json::json!({"of": ["table", "t"], "sql": sql}).to_string();
        let row = r#"{"of":["row","t",1],"values":{"a":1}}"#;
        let (replay, problems) = replayed(&format!("{create}\n{row}\n"));
        let places: Vec<_> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(places, [Some(1), Some(2)], "{sql}");
        assert_eq!(count(&replay.connection, "sqlite_master"), 0, "{sql}");
    }
    assert!(!stolen.exists());
}

#[test]
fn bad_lines_cost_only_themselves() {
    let log = r#"{"of":["database"],"version":2,"user_version":0,"application_id":0}
{"of":["table","t"],"sql":"CREATE TABLE t(a, b CHECK (b > 0))"}
{"of":["row","t",1],"rowid":1,"values":{"a":1,"b":-1}}
not JSON
{"of":["row","t",2],"rowid":1,"values":{"a":2}}
{"of":["row","t",3],"rowid":3,"values":{"a) VALUES (1); DROP TABLE t; --":3}}
{"of":["row","t",4],"rowid":4,"values":{"a":{"blob":"?"}}}
{"of":["row","sqlite_master",5],"values":{"sql":"x"}}
{"of":["row","t",6],"rowid":6,"values":{"a":6}}
{"of":["row","t",7],"rowid":7,"values":{"a":"#;
    let (replay, problems) = replayed(log);
    let places: Vec<_> = problems.iter().map(|problem| problem.line.unwrap()).collect();
    assert_eq!(places, [4, 1, 5, 6, 7, 8]);
    assert_eq!(problems[0].to_string(), "log:4: not JSON: expected ident (column 2)");
    assert_eq!(count(&replay.connection, "t"), 2);
}

/// The claim of session `a`.
fn claim(force: bool) -> RowClaim<'static> {
    RowClaim { schemas: &[&SCHEMA], key: Some("a"), force }
}

/// A replay of session `a`, and the database after the session was deleted from it.
fn purged(folder: &Path) -> (RowLogReplay, PathBuf, Connection) {
    let (file, connection) = made(folder);
    let (replay, _) = replayed(&(lines(&sessions_in_file(&file, &SCHEMA)[0]).join("\n") + "\n"));
    connection.execute_batch("DELETE FROM keyed WHERE session_id = 'a'").unwrap();
    connection.execute_batch("DELETE FROM session WHERE id = 'a'").unwrap();
    assert_eq!(count(&connection, ODD), 1);
    (replay, file, connection)
}

/// Values read in chunks: quotes, control characters and multi-byte characters are on every chunk boundary.
fn long_values() -> [Cell; 3] {
    let text = "\"\\\n\u{1}\u{7f}\u{e9}\u{20ac}\u{1f600}x".repeat(1 << 17);
    let bytes: Vec<u8> = (0..(3_u32 << 20) + 1).map(|at| (at % 251) as u8).collect();
    [Cell::Text(text), Cell::Blob(bytes), Cell::Integer(1)]
}

#[test]
fn long_values_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (file, connection) = made(folder.path());
    let odd = crate::sqlite::rows::table_layout::quote_name(ODD);
    connection
        .execute_batch("CREATE TABLE numbered (id INTEGER PRIMARY KEY, session_id, x)")
        .unwrap();
    for value in long_values() {
        let insert = format!("INSERT INTO {odd} VALUES ('a', ?1, NULL)");
        connection.execute(&insert, [&value]).unwrap();
        connection.execute("INSERT INTO numbered VALUES (NULL, 'a', ?1)", [&value]).unwrap();
    }
    // Invalid UTF-8, and a long value in a row's identity.
    let text = "INSERT INTO numbered VALUES (7, 'a', CAST(zeroblob(2000001) || x'ff' AS TEXT))";
    connection.execute_batch(text).unwrap();
    let other = format!("UPDATE {odd} SET other = ?1 WHERE other = 'a1'");
    connection.execute(&other, [&long_values()[0]]).unwrap();
    let bundle = sessions_in_file(&file, &SCHEMA).remove(0);
    let lines = lines(&bundle);
    assert!(lines.iter().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let (replay, problems) = replayed(&(lines.join("\n") + "\n"));
    assert_eq!(problems, []);
    for query in [
        format!("SELECT \"x y\" FROM {odd} WHERE session_id = 'a' ORDER BY rowid"),
        format!("SELECT other FROM {odd} WHERE session_id = 'a' ORDER BY rowid"),
        "SELECT x FROM numbered ORDER BY id".to_owned(),
        "SELECT typeof(x) FROM numbered ORDER BY id".to_owned(),
    ] {
        assert!(
            raw_values(&replay.connection, &query) == raw_values(&connection, &query),
            "{query}"
        );
    }
}

fn raw_values(connection: &Connection, query: &str) -> Vec<Vec<u8>> {
    let mut statement = connection.prepare(query).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut values = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        values.push(match row.get_ref(0).unwrap() {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
            other => format!("{other:?}").into_bytes(),
        });
    }
    values
}

#[test]
fn long_values_are_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    let (file, connection) = made(folder.path());
    let odd = crate::sqlite::rows::table_layout::quote_name(ODD);
    let insert = format!("INSERT INTO {odd} VALUES ('a', ?1, 'long')");
    connection.execute(&insert, [&long_values()[0]]).unwrap();
    let id = "s".parse().unwrap();
    let dir = crate::vault::Vault::new(folder.path().join("vault"))
        .session_dir(&"x".parse().unwrap(), &id);
    let keep = || {
        let bundle = sessions_in_file(&file, &SCHEMA).remove(0);
        dir.keep_session(&bundle).unwrap()
    };
    assert!(keep() > 1 << 20);
    assert_eq!(keep(), 0);
    let before = sessions_in_file(&file, &SCHEMA)[0].fingerprint().unwrap();
    connection.execute_batch(&format!("UPDATE {odd} SET \"x y\" = \"x y\" || '.'")).unwrap();
    assert_ne!(sessions_in_file(&file, &SCHEMA)[0].fingerprint().unwrap(), before);
    assert!(keep() > 1 << 20);
    assert_eq!(keep(), 0);
}

#[test]
fn a_row_that_is_too_long_is_reported_and_the_others_are_read() {
    let long = "x".repeat(ROW_LIMIT);
    let log = format!(
        r#"{{"of":["table","t"],"sql":"CREATE TABLE t(a)"}}
{{"of":["row","t",1],"rowid":1,"values":{{"a":1}}}}
{{"of":["row","t",2],"rowid":2,"values":{{"a":"{long}"}}}}
{{"of":["row","t",3],"rowid":3,"values":{{"a":3}}}}
"#
    );
    let (replay, problems) = replayed(&log);
    assert_eq!(count(&replay.connection, "t"), 2);
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["log:3: a row larger than 16 MiB is kept but not read"]);
}

#[test]
fn missing_rows_are_inserted_and_nothing_else_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (replay, file, connection) = purged(folder.path());
    let changes = "UPDATE project SET name = 'renamed'; DELETE FROM migration";
    connection.execute_batch(changes).unwrap();
    assert!(replay.compare(&file, claim(false)).unwrap().has_changes());
    assert_eq!(count(&connection, "session"), 1);
    let merged = replay.merge(&file, claim(false)).unwrap();
    assert_eq!((merged.inserted, merged.replaced), (4, 0));
    let counts = ["session", "project", ODD, "keyed", "migration", "secret"]
        .map(|table| count(&connection, table));
    assert_eq!(counts, [2, 1, 3, 2, 0, 1]);
    assert_eq!(texts(&connection, "SELECT name FROM project"), ["renamed"]);
    let notes: i64 = connection
        .query_row("SELECT notes FROM session WHERE id = 'a'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(notes, 2, "no trigger counted again");
    assert!(!replay.merge(&file, claim(false)).unwrap().has_changes());
}

#[test]
fn other_rows_are_replaced_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let (replay, file, connection) = purged(folder.path());
    replay.merge(&file, claim(false)).unwrap();
    connection
        .execute_batch("UPDATE session SET notes = 99 WHERE id = 'a'; DELETE FROM keyed")
        .unwrap();
    let error = replay.merge(&file, claim(false)).unwrap_err();
    assert_eq!(error.to_string(), "a different row exists: session a");
    assert_eq!(count(&connection, "keyed"), 0, "nothing was inserted");
    let merged = replay.merge(&file, claim(true)).unwrap();
    assert_eq!((merged.inserted, merged.replaced), (1, 1));
    assert_eq!(count(&connection, ODD), 3, "what hangs on the row is still there");
}

#[test]
fn rows_of_another_session_are_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (replay, file, connection) = purged(folder.path());
    connection.execute_batch("INSERT INTO keyed VALUES (1, 2, 'b')").unwrap();
    for force in [false, true] {
        let error = replay.merge(&file, claim(force)).unwrap_err();
        assert_eq!(error.to_string(), "the row belongs to another session: keyed 1 2");
    }
    assert_eq!(count(&connection, "session"), 1, "nothing was inserted");
    assert_eq!(texts(&connection, "SELECT session_id FROM keyed WHERE b = 2"), ["b"]);
}

#[test]
fn a_row_that_holds_several_sessions_is_no_ones_own() {
    const TABS: DatabaseSchema = DatabaseSchema {
        tables: &[("item", &["key"])],
        session_query: "SELECT value FROM json_each((SELECT value FROM item))",
        row_selections: &[RowSelection::own("item", "key = 'tabs'")],
        owner_column: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tabs.db");
    let connection = Connection::open(&file).unwrap();
    let tables = "CREATE TABLE item (key TEXT PRIMARY KEY, value TEXT)";
    connection.execute_batch(tables).unwrap();
    let create =
        r#"{"of":["table","item"],"sql":"CREATE TABLE item (key TEXT PRIMARY KEY, value TEXT)"}"#;
    let row = r#"{"of":["row","item","tabs"],"values":{"key":"tabs","value":"[\"a\"]"}}"#;
    let (replay, problems) = replayed(&format!("{create}\n{row}\n"));
    assert_eq!(problems, []);
    let claim = RowClaim { schemas: &[&TABS], key: Some("a"), force: true };
    connection.execute_batch(r#"INSERT INTO item VALUES ('tabs', '["a", "b"]')"#).unwrap();
    let error = replay.merge(&file, claim).unwrap_err();
    assert_eq!(error.to_string(), "the row belongs to another session: item tabs");
    connection.execute_batch(r#"UPDATE item SET value = '["a",  "a"]'"#).unwrap();
    assert_eq!(replay.merge(&file, claim).unwrap().replaced, 1);
}

#[test]
fn a_table_may_hold_rows_of_two_schemas() {
    const TABS: DatabaseSchema = DatabaseSchema {
        tables: &[("item", &["key"])],
        session_query: "SELECT 'another'",
        row_selections: &[RowSelection::own("item", "key = 'tabs'")],
        owner_column: None,
    };
    const COMPOSERS: DatabaseSchema = DatabaseSchema {
        session_query: "SELECT 'a'",
        row_selections: &[RowSelection::own("item", "key = 'composers'")],
        ..TABS
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("item.db");
    let connection = Connection::open(&file).unwrap();
    let table = "CREATE TABLE item (key TEXT PRIMARY KEY, value TEXT)";
    connection.execute_batch(table).unwrap();
    connection.execute_batch("INSERT INTO item VALUES ('composers', 'new')").unwrap();
    let create = format!(r#"{{"of":["table","item"],"sql":"{table}"}}"#);
    let row = r#"{"of":["row","item","composers"],"values":{"key":"composers","value":"old"}}"#;
    let (replay, _) = replayed(&format!("{create}\n{row}\n"));
    let claim = RowClaim { schemas: &[&TABS, &COMPOSERS], key: Some("a"), force: true };
    assert_eq!(replay.merge(&file, claim).unwrap().replaced, 1);
}

#[test]
fn tables_that_are_missing_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (replay, file, connection) = purged(folder.path());
    connection.execute_batch("ALTER TABLE keyed RENAME COLUMN a TO z").unwrap();
    let error = replay.merge(&file, claim(true)).unwrap_err();
    assert_eq!(error.to_string(), "the database has no such table or column: keyed.a");
    connection.execute_batch("DROP TABLE keyed").unwrap();
    let error = replay.merge(&file, claim(true)).unwrap_err();
    assert_eq!(error.to_string(), "the database has no such table or column: keyed");
    assert_eq!(count(&connection, "session"), 1);
}

#[test]
fn one_copy_serves_all_sessions_however_the_database_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (file, connection) = made(folder.path());
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.execute_batch("INSERT INTO keyed VALUES (5, 5, 'a')").unwrap();
    let bundles = sessions_in_file(&file, &SCHEMA);
    let before = bundles[1].fingerprint().unwrap();
    connection.execute_batch("UPDATE keyed SET b = b + 77").unwrap();
    assert_eq!(bundles[1].fingerprint().unwrap(), before);
    assert_ne!(sessions_in_file(&file, &SCHEMA)[1].fingerprint().unwrap(), before);
}

fn cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        Just(Cell::Null),
        any::<i64>().prop_map(Cell::Integer),
        proptest::num::f64::NORMAL.prop_map(Cell::Real),
        any::<String>().prop_map(Cell::Text),
        any::<Vec<u8>>().prop_map(Cell::Blob),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn rows_come_back_as_they_were(cells in proptest::collection::vec((cell(), cell()), 0..6)) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("any.db");
        let connection = Connection::open(&file).unwrap();
        connection.execute_batch("CREATE TABLE session (id TEXT);
            CREATE TABLE any (session_id, a, b INTEGER); INSERT INTO session VALUES ('s')").unwrap();
        for (a, b) in &cells {
            connection.execute("INSERT INTO any VALUES ('s', ?1, ?2)", (a, b)).unwrap();
        }
        let rows = |connection: &Connection| -> Vec<(i64, Cell, Cell)> {
            let mut statement = connection.prepare("SELECT rowid, a, b FROM any ORDER BY rowid").unwrap();
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            rows.unwrap().map(Result::unwrap).collect()
        };
        let (replay, problems) = replayed(&(lines(&sessions_in_file(&file, &SCHEMA)[0]).join("\n") + "\n"));
        prop_assert_eq!(problems, []);
        prop_assert_eq!(rows(&replay.connection), rows(&connection));
    }
}
