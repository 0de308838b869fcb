//! A search index in ClickHouse 26.2 or newer: entries and usage of a remote, for organisations that one PostgreSQL
//! cannot serve.
//!
//! # What is visible
//! Rows of one key never differ, so a row that is written twice is one row. Which rows count is stated by the session's
//! row, which is written last: `parts` names the groups of entries, `revision` the usage. Rows of another part or
//! revision, which a killed or overtaken loader left, are never read, and are removed by a later load.

mod charges;
mod http_client;
mod loader_rows;
mod search;
mod session_loader;
mod session_scan;

use serde_json::Value;

use self::http_client::HttpClient;
pub use self::session_loader::{LoadSummary, SessionLoader};
use crate::clickhouse_url::ClickHouseUrl;
use crate::postgres_remote::PostgresPassword;
use crate::team_error::TeamError;

/// The version of the tables.
const INDEX_VERSION: i64 = 1;

/// The first ClickHouse with text indexes that are ready for use.
const MIN_SERVER_VERSION: (u32, u32) = (26, 2);

/// How many sessions a statement names.
const MAX_NAMED_SESSIONS: usize = 1_000;

const SCHEMA: &str = include_str!("clickhouse/schema.sql");

/// A row of an answer.
type AnswerRow = Vec<Value>;

/// A search index.
#[derive(Debug)]
pub struct ClickHouseIndex {
    client: HttpClient,
    url: ClickHouseUrl,
}

impl ClickHouseIndex {
    /// An index at this address. Nothing is sent yet.
    pub fn new(
        url: &ClickHouseUrl,
        password: Option<&PostgresPassword>,
    ) -> Result<Self, TeamError> {
        Ok(Self { client: HttpClient::new(url, password)?, url: url.clone() })
    }

    /// Creates the tables. Returns whether they are new.
    pub fn initialise(&self) -> Result<bool, TeamError> {
        self.check_server()?;
        match self.check_version() {
            Err(TeamError::NotInitialised(_)) => {}
            other => return other.map(|()| false),
        }
        for statement in SCHEMA.split(";\n").map(str::trim).filter(|text| !text.is_empty()) {
            self.client.run("create the tables", statement)?;
        }
        let version = format!("{{\"name\":\"version\",\"value\":{INDEX_VERSION}}}");
        self.insert("steno_meta", "name, value", version.into_bytes())?;
        Ok(true)
    }

    /// Checks that this version can use the tables.
    pub fn check_version(&self) -> Result<(), TeamError> {
        let remote = self.url.to_string();
        let found = self.rows(
            "read the version of the tables",
            "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'steno_meta'",
        )?;
        if found.first().and_then(|row| integer(row.first()?)) != Some(1) {
            return Err(TeamError::NotInitialised(remote));
        }
        let sql = "SELECT max(value) FROM steno_meta WHERE name = 'version'";
        let rows = self.rows("read the version of the tables", sql)?;
        match rows.first().and_then(|row| integer(row.first()?)) {
            // Whoever creates the tables was interrupted.
            None | Some(0) => Err(TeamError::NotInitialised(remote)),
            Some(found) if found > INDEX_VERSION => {
                Err(TeamError::NewerSchema { remote, found, known: INDEX_VERSION })
            }
            Some(found) if found < INDEX_VERSION => {
                Err(TeamError::OlderSchema { remote, found, needed: INDEX_VERSION })
            }
            Some(_) => Ok(()),
        }
    }

    fn check_server(&self) -> Result<(), TeamError> {
        let rows = self.rows("read the version of the server", "SELECT version()")?;
        let version = rows.first().and_then(|row| row.first()?.as_str()).unwrap_or_default();
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
        let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if found >= MIN_SERVER_VERSION {
            return Ok(());
        }
        let (major, minor) = MIN_SERVER_VERSION;
        Err(TeamError::Database {
            remote: self.url.to_string(),
            action: "use the server",
            reason: format!("it is ClickHouse {version}; {major}.{minor} or newer is required"),
        })
    }

    /// The rows of a query, without a format of its own.
    fn rows(&self, action: &'static str, sql: &str) -> Result<Vec<AnswerRow>, TeamError> {
        let answer = self.client.run(action, &format!("{sql} FORMAT JSONCompactEachRow"))?;
        let lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let rows = lines.map(serde_json::from_slice).collect::<Result<_, _>>();
        rows.map_err(|_| TeamError::Database {
            remote: self.url.to_string(),
            action,
            reason: "the answer is not what ClickHouse writes".to_owned(),
        })
    }

    /// Inserts lines of JSON. A block that was inserted before is inserted again: it may have been deleted since.
    fn insert(&self, table: &str, columns: &str, lines: Vec<u8>) -> Result<(), TeamError> {
        let sql = format!(
            "INSERT INTO {table} ({columns}) SETTINGS insert_deduplicate = 0 FORMAT JSONEachRow"
        );
        self.client.send("write rows", &sql, lines).map(drop)
    }

    /// The condition for the rows of the organisation.
    fn own_rows(&self) -> String {
        format!("org = {}", quote(&self.url.org))
    }
}

/// A text as a literal of SQL.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\0' => out.push_str("\\0"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A list of texts between parentheses.
fn quote_list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(quote).collect();
    format!("({})", quoted.join(", "))
}

/// An integer, which ClickHouse writes as a number or, if it has 64 bits, as a text.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// A text; `None` for an empty one.
fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_end_their_literal() {
        assert_eq!(quote("a'b\\c\0"), r"'a\'b\\c\0'");
        assert_eq!(quote_list(["x", "'); DROP"]), r"('x', '\'); DROP')");
    }
}
