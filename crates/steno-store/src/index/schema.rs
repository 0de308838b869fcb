//! The schema of the index and its migrations.
//!
//! `session` and `entry` hold sessions and entries. `text`, `text_hash` and `block` store each text once. `words` is the full-text
//! index; its row id is the text's. `usage` has one row per API message, even if several sessions repeat it.
//! `statement` holds what each session reports about a shared message. `rollup` sums `usage`.
//!
//! Times are milliseconds since 1970. A released migration never changes; new ones are appended.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::format;

/// Page size. Larger pages make the first sync faster and searches no slower.
const PAGE_BYTES: i64 = 16 << 10;

/// All migrations, in order. `user_version` counts the applied ones.
const MIGRATIONS: [&str; 9] = [
    FIRST_MIGRATION,
    SECOND_MIGRATION,
    THIRD_MIGRATION,
    FOURTH_MIGRATION,
    FIFTH_MIGRATION,
    SIXTH_MIGRATION,
    SEVENTH_MIGRATION,
    EIGHTH_MIGRATION,
    NINTH_MIGRATION,
];

/// Version of the rules that derive rows from decoded records. A new version rebuilds every index.
fn rules_version() -> i64 {
    10 + i64::from(format::reader_version())
}

const FIRST_MIGRATION: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- One kept session. `agent` and `name` are its folder in the vault.
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    name TEXT NOT NULL,
    native_id TEXT,
    project TEXT,
    branch TEXT,
    title TEXT,
    started TEXT,                        -- as the source wrote it
    ended TEXT,
    started_at INTEGER,
    ended_at INTEGER,
    status TEXT NOT NULL DEFAULT 'completed',
    stop_reason TEXT,
    models TEXT NOT NULL DEFAULT '[]',   -- a JSON list
    thread TEXT,
    parent TEXT,
    subagent_files INTEGER NOT NULL DEFAULT 0,
    entries INTEGER NOT NULL DEFAULT 0,
    input INTEGER NOT NULL DEFAULT 0,    -- tokens as the session alone adds up
    cache_read INTEGER NOT NULL DEFAULT 0,
    cache_write INTEGER NOT NULL DEFAULT 0,
    cache_write_5m INTEGER NOT NULL DEFAULT 0,
    cache_write_1h INTEGER NOT NULL DEFAULT 0,
    output INTEGER NOT NULL DEFAULT 0,
    reasoning INTEGER NOT NULL DEFAULT 0,
    cost REAL,                           -- dollars, where the source states them
    trouble TEXT,                        -- why it could not be read in whole
    taken INTEGER NOT NULL DEFAULT 0,    -- how many of its entries are in
    digest BLOB,                         -- the sum over them
    kept INTEGER NOT NULL DEFAULT -1,    -- its size in the vault when all was in; -1 before
    UNIQUE (agent, name)
);
CREATE INDEX session_started ON session (started_at);
CREATE INDEX session_trouble ON session (agent) WHERE trouble IS NOT NULL;
CREATE INDEX session_unfinished ON session (agent, name) WHERE kept < 0;

-- One entry, in the order of its session.
CREATE TABLE entry (
    session INTEGER NOT NULL,
    number INTEGER NOT NULL,             -- from 0, over all sources
    time INTEGER,
    role TEXT NOT NULL,
    kind TEXT NOT NULL,
    tool TEXT,
    model TEXT,
    source TEXT NOT NULL,
    message TEXT,                        -- the API message's id
    parent TEXT,
    failed INTEGER NOT NULL,             -- an error, or a tool that failed
    text INTEGER,
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
-- With all that a search asks of the entries of a text, so that it need not look each of them up.
CREATE INDEX entry_text ON entry (text, time, role, kind, failed) WHERE text IS NOT NULL;

-- One text, however often it was said.
CREATE TABLE text (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    block INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL
);
CREATE TABLE block (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (
    text, parts, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'
);

-- What one API message was billed: the largest number of each kind that any of its records states.
-- It belongs to the session that was seen with it first. What a session states beyond its messages
-- is a row without a number, and may be negative.
CREATE TABLE usage (
    key BLOB PRIMARY KEY,
    session INTEGER NOT NULL,
    number INTEGER,                      -- the first entry that states it
    time INTEGER,
    model TEXT,
    input INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_write_5m INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX usage_session ON usage (session);

-- What each of several sessions states of one message.
CREATE TABLE statement (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL,
    session INTEGER NOT NULL,
    number INTEGER,
    time INTEGER,
    model TEXT,
    input INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_write_5m INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    UNIQUE (key, session)
);
CREATE INDEX statement_session ON statement (session);

-- `usage` by session, quarter of an hour, model and length of the prompt. A quarter of an hour is part of
-- one day in every time zone; agent, project and thread are the session's.
CREATE TABLE rollup (
    session INTEGER NOT NULL,
    quarter INTEGER NOT NULL,            -- the time / 900000; -1 without a time
    model TEXT NOT NULL,                 -- '' where none is told
    band INTEGER NOT NULL,               -- between which lengths the prompt is, for its price
    first INTEGER,                       -- the time of the first message
    last INTEGER,
    messages INTEGER NOT NULL,
    input INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_write_5m INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    PRIMARY KEY (session, quarter, model, band)
) WITHOUT ROWID;

-- When the folder of an agent in the vault was last changed, as far as that was looked at.
CREATE TABLE folder (agent TEXT PRIMARY KEY, changed INTEGER NOT NULL) WITHOUT ROWID;
";

/// A covering index for the session list, so that thousands are listed without reading the session rows; and a larger
/// buffer for new words, so that they are merged less often.
const SECOND_MIGRATION: &str = "
CREATE INDEX session_heading ON session (
    started_at DESC, agent, name, status, entries, title, trouble
);
INSERT INTO words (words, rank) VALUES ('hashsize', 8388608);
";

/// Merges word segments only when there are sixteen, not four. Searches are no slower, and a first sync takes 5 % less.
const THIRD_MIGRATION: &str = "INSERT INTO words (words, rank) VALUES ('automerge', 16);";

/// A word buffer for a whole transaction, so that words are merged once per transaction.
const FOURTH_MIGRATION: &str = "INSERT INTO words (words, rank) VALUES ('hashsize', 16777216);";

/// Recordings without a native session id. They are few, and are looked up after each sync.
const FIFTH_MIGRATION: &str =
    "CREATE INDEX session_unnamed ON session (ended_at) WHERE native_id IS NULL;";

/// The stamp of a damaged session's files. Changed files may have been repaired.
const SIXTH_MIGRATION: &str = "ALTER TABLE session ADD COLUMN damage_stamp INTEGER;";

/// Ids that no query reads took a third of the entries' space.
const SEVENTH_MIGRATION: &str = "
ALTER TABLE entry DROP COLUMN message;
ALTER TABLE entry DROP COLUMN parent;
";

/// Roles, kinds and the main source as numbers (`stored_name.rs`), in columns that hold numbers and texts; and each hash of
/// a text once. The tables are empty here: the rules that fill them changed too.
const EIGHTH_MIGRATION: &str = "
DROP TABLE entry;
CREATE TABLE entry (
    session INTEGER NOT NULL,
    number INTEGER NOT NULL,             -- from 0, over all sources
    time INTEGER,
    role NOT NULL,
    kind NOT NULL,
    tool TEXT,
    model TEXT,
    source NOT NULL,
    failed INTEGER NOT NULL,             -- an error, or a tool that failed
    text INTEGER,
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE INDEX entry_text ON entry (text, time, role, kind, failed) WHERE text IS NOT NULL;
DROP TABLE text;
CREATE TABLE text (
    id INTEGER PRIMARY KEY,
    block INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL
);
CREATE TABLE text_hash (hash BLOB PRIMARY KEY, text INTEGER NOT NULL) WITHOUT ROWID;
";

/// The list shows sessions with a recent last entry as running.
const NINTH_MIGRATION: &str = "
DROP INDEX session_heading;
CREATE INDEX session_heading ON session (
    started_at DESC, agent, name, status, entries, title, trouble, ended_at, stop_reason
);
";

/// Whether this version can use an index.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SchemaState {
    /// The index is up to date.
    Current,
    /// Migrations are missing. In an empty file, all are.
    NeedsMigration,
    /// Older rules built the index.
    Older,
    /// A newer version built the index.
    Newer,
}

/// Checks the schema and the rules of an index.
pub(super) fn schema_state(connection: &Connection) -> rusqlite::Result<SchemaState> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let steps = MIGRATIONS.len() as i64;
    if version > steps {
        return Ok(SchemaState::Newer);
    }
    if version == 0 {
        return Ok(SchemaState::NeedsMigration);
    }
    let rules: i64 = connection.query_row(
        "SELECT coalesce((SELECT value FROM meta WHERE name = 'rules'), 0)",
        [],
        |row| row.get(0),
    )?;
    Ok(match rules {
        rules if rules > rules_version() => SchemaState::Newer,
        rules if rules < rules_version() => SchemaState::Older,
        _ if version < steps => SchemaState::NeedsMigration,
        _ => SchemaState::Current,
    })
}

/// Configures a connection.
pub(super) fn configure_connection(connection: &Connection) -> rusqlite::Result<()> {
    // Keeps the write-ahead log when the last connection closes, so that a search need not create and remove it each
    // time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // The index can be rebuilt, so a commit need not wait for the disk.
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;")
}

/// Configures a connection for bulk writes.
pub(super) fn configure_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA cache_size = -16000; PRAGMA wal_autocheckpoint = 4000;")
}

/// Applies the missing migrations. The caller holds the lock.
pub(super) fn run_migrations(connection: &Connection) -> rusqlite::Result<()> {
    // Has no effect on an existing file.
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let done = apply_missing_migrations(connection);
    connection.execute_batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    done
}

fn apply_missing_migrations(connection: &Connection) -> rusqlite::Result<()> {
    let version: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    for step in MIGRATIONS.iter().skip(version as usize) {
        connection.execute_batch(step)?;
    }
    if version == 0 {
        let fill = "INSERT INTO meta VALUES ('rules', ?1), ('made', lower(hex(randomblob(16))))";
        connection.execute(fill, [rules_version()])?;
    }
    connection.pragma_update(None, "user_version", MIGRATIONS.len() as i64)
}
