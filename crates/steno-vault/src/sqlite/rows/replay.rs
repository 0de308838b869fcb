//! Rebuilds a database from a row log, in memory.
//!
//! SQL statements of a log are executed only here, and only plain `CREATE` statements. A line that fails is reported
//! with its number, and the rest continues.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::path::Path;

use rusqlite::{Connection, MAIN_DB, params_from_iter};
use serde::Deserialize;

use super::row_value::RowValue;
use super::slots::RowLogSlots;
use super::table_layout::{TableLayout, quote_name};
use super::{CreateLine, DatabaseLine, ROW_LOG_VERSION};
use crate::database_schema::RowShare;
use steno_model::json::{Object, Value};
use steno_model::problem::{Problem, json_error_reason};

/// The database rebuilt from a row log.
#[derive(Debug)]
pub struct RowLogReplay {
    /// The database in memory.
    pub connection: Connection,
    /// Its tables, each with who else needs the rows.
    pub tables: HashMap<String, (TableLayout, RowShare)>,
    triggers: Vec<String>,
}

#[derive(Deserialize)]
struct RowLine {
    of: Vec<Value>,
    #[serde(default)]
    share: RowShare,
    #[serde(default)]
    rowid: Option<i64>,
    values: Object,
}

impl RowLogReplay {
    /// Replays the log that `open` opens. Problems are reported for `path`. A row with a line longer than `row_limit`
    /// bytes is skipped and reported.
    pub fn replay_log(
        path: &Path,
        open: &dyn Fn() -> io::Result<Box<dyn BufRead>>,
        row_limit: usize,
        problem: &mut dyn FnMut(Problem),
    ) -> io::Result<Self> {
        let slots = RowLogSlots::read(open()?, path, problem)?;
        let mut replay = Self::new_in_memory().map_err(io::Error::other)?;
        let mut indices = Vec::new();
        for (number, line) in slots.schema_lines() {
            match replay.apply_schema_line(line) {
                Ok(None) => {}
                Ok(Some(index)) => indices.push((number, index)),
                Err(reason) => problem(Problem::at_line(path, number, reason)),
            }
        }
        replay.insert_rows(&slots, open()?, row_limit, &mut |number, reason| {
            problem(Problem::at_line(path, number, reason));
        })?;
        for (number, index) in indices {
            if let Err(error) = replay.connection.execute(&index, []) {
                problem(Problem::at_line(path, number, error));
            }
        }
        Ok(replay)
    }

    /// The bytes of the database without triggers, for readers.
    pub fn into_bytes(mut self) -> io::Result<Vec<u8>> {
        self.connection.serialize(MAIN_DB).map(|bytes| bytes.to_vec()).map_err(io::Error::other)
    }

    /// The bytes of the database with its triggers, for the agent itself.
    pub fn into_bytes_with_triggers(self) -> io::Result<Vec<u8>> {
        for trigger in &self.triggers {
            self.connection.execute(trigger, []).map_err(io::Error::other)?;
        }
        self.into_bytes()
    }

    fn new_in_memory() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        // The rows were valid in their original table, so constraints are not checked again.
        for (name, is_on) in
            [("foreign_keys", false), ("ignore_check_constraints", true), ("trusted_schema", false)]
        {
            connection.pragma_update(None, name, is_on)?;
        }
        Ok(Self { connection, tables: HashMap::new(), triggers: Vec::new() })
    }

    /// Applies a line that is not a row. Returns the statement of an index, which is executed after all rows.
    fn apply_schema_line(&mut self, line: &[u8]) -> Result<Option<String>, String> {
        if let Ok(about) = serde_json::from_slice::<DatabaseLine>(line) {
            return self.apply_database_line(&about).map(|()| None);
        }
        let create: CreateLine =
            serde_json::from_slice(line).map_err(|error| json_error_reason(&error))?;
        let [kind, name] = create.of;
        match kind.as_str() {
            "table" if is_plain_create_table(&create.sql) => {
                self.connection.execute(&create.sql, []).map_err(|error| error.to_string())?;
                let table = TableLayout::read(&self.connection, &name)
                    .map_err(|error| error.to_string())?;
                self.tables.insert(name, (table, RowShare::Own));
                Ok(None)
            }
            "index" if starts_with_any(&create.sql, &["CREATE INDEX ", "CREATE UNIQUE INDEX "]) => {
                Ok(Some(create.sql))
            }
            "trigger" if starts_with_any(&create.sql, &["CREATE TRIGGER "]) => {
                self.triggers.push(create.sql);
                Ok(None)
            }
            _ => Err(format!("not a plain CREATE statement: {name}")),
        }
    }

    fn apply_database_line(&self, about: &DatabaseLine) -> Result<(), String> {
        if about.version != ROW_LOG_VERSION {
            let version = about.version;
            return Err(format!(
                "row log of version {version}, this steno reads version {ROW_LOG_VERSION}"
            ));
        }
        let set = |name, number| self.connection.pragma_update(None, name, number);
        set("user_version", about.user_version)
            .and_then(|()| set("application_id", about.application_id))
            .map_err(|error| error.to_string())
    }

    fn insert_rows(
        &mut self,
        slots: &RowLogSlots,
        input: Box<dyn BufRead>,
        row_limit: usize,
        problem: &mut dyn FnMut(u64, String),
    ) -> io::Result<()> {
        self.connection.execute_batch("BEGIN").map_err(io::Error::other)?;
        slots.for_each_row(input, row_limit, |number, line| match line {
            Some(line) => {
                if let Err(reason) = self.insert_row(&line) {
                    problem(number, reason);
                }
            }
            None => {
                let limit = row_limit >> 20;
                problem(number, format!("a row larger than {limit} MiB is kept but not read"));
            }
        })?;
        self.connection.execute_batch("COMMIT").map_err(io::Error::other)
    }

    fn insert_row(&mut self, line: &[u8]) -> Result<(), String> {
        let row: RowLine =
            serde_json::from_slice(line).map_err(|error| json_error_reason(&error))?;
        let name = row.of.get(1).and_then(Value::as_str).ok_or("no table name")?;
        let (table, share) =
            self.tables.get_mut(name).ok_or_else(|| format!("no such table: {name}"))?;
        *share = row.share;
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        if let (Some(column), Some(number)) = (table.rowid, row.rowid) {
            columns.push(column.to_owned());
            fields.push(RowValue::Integer(number));
        }
        for (column, value) in row.values {
            if !table.columns.contains(&column) {
                return Err(format!("no such column: {column}"));
            }
            fields.push(
                RowValue::from_json(value).ok_or_else(|| format!("invalid value: {column}"))?,
            );
            columns.push(quote_name(&column));
        }
        let insert = insert_statement(name, &columns);
        let mut statement =
            self.connection.prepare_cached(&insert).map_err(|error| error.to_string())?;
        statement.execute(params_from_iter(fields)).map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// An `INSERT` statement. The column names must be quoted.
pub(super) fn insert_statement(table: &str, columns: &[String]) -> String {
    let placeholders: Vec<String> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
    let (table, columns) = (quote_name(table), columns.join(", "));
    format!("INSERT OR ABORT INTO {table} ({columns}) VALUES ({})", placeholders.join(", "))
}

fn starts_with_any(sql: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| sql.starts_with(start))
}

/// Whether a statement creates a plain table: not from a query and not in another database.
fn is_plain_create_table(sql: &str) -> bool {
    let Some(rest) = sql.strip_prefix("CREATE TABLE ") else { return false };
    let rest = skip_comments(rest);
    let close = match rest.chars().next() {
        Some('"') => '"',
        Some('`') => '`',
        Some('\'') => '\'',
        Some('[') => ']',
        _ => {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
            return end.is_some_and(|end| end > 0 && skip_comments(&rest[end..]).starts_with('('));
        }
    };
    let mut rest = &rest[1..];
    // A doubled quote is an escaped quote.
    while let Some(at) = rest.find(close) {
        rest = &rest[at + close.len_utf8()..];
        if close == ']' || !rest.starts_with(close) {
            return skip_comments(rest).starts_with('(');
        }
        rest = &rest[close.len_utf8()..];
    }
    false
}

fn skip_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let end = if text.starts_with("--") {
            text.find('\n').map(|at| at + 1)
        } else if text.starts_with("/*") {
            text.find("*/").map(|at| at + 2)
        } else {
            return text;
        };
        text = end.map_or("", |end| &text[end..]);
    }
}
