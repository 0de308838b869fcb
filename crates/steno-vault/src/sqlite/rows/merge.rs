//! Merges a session's rows into a database in use: inserts missing rows and keeps all others.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params_from_iter};

use super::claim::Claim;
use super::field::Field;
use super::replay::{Replay, insert};
use super::table::{Table, plain_tables, quoted};
use crate::database_schema::Share;
use crate::sqlite::PATIENCE;

/// Receives a table, a row for it, and whether the row replaces an existing one.
type Take<'a> = &'a mut dyn FnMut(&Table, &[Field], bool) -> rusqlite::Result<()>;

/// Number of rows changed in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Rows inserted.
    pub inserted: u64,
    /// Rows replaced.
    pub replaced: u64,
}

/// Why a merge failed. The database is then unchanged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The agent's tables are others than those that were kept.
    #[error("the database has no such table or column: {0}")]
    Missing(String),
    /// The row exists with other content.
    #[error("a different row exists: {0}")]
    Differs(String),
    /// The row exists and belongs to another session.
    #[error("the row belongs to another session: {0}")]
    Foreign(String),
    /// SQLite returned an error.
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

impl Merged {
    /// Whether the database needs a change.
    pub fn is_change(&self) -> bool {
        *self != Self::default()
    }
}

impl Replay {
    /// Returns what [`Replay::merge`] would change, without changing it.
    pub fn compare(&self, target: &Path, claim: Claim<'_>) -> Result<Merged, MergeError> {
        let target = open(target, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        self.each(&target, claim, &mut |_, _, _| Ok(()))
    }

    /// Inserts the rows that `target` lacks, in one transaction. A row with other content is replaced if it is the
    /// session's own and `claim.force` is set. Otherwise it is an error.
    pub fn merge(&self, target: &Path, claim: Claim<'_>) -> Result<Merged, MergeError> {
        let mut target = open(target, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // The rows already contain the effects of triggers.
        target.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.pragma_update(None, "defer_foreign_keys", true)?;
        let merged = self.each(&transaction, claim, &mut |table, fields, is_there| {
            put(&transaction, table, fields, is_there)
        })?;
        transaction.commit()?;
        Ok(merged)
    }

    /// Passes each row to insert or replace to `take`.
    fn each(
        &self,
        target: &Connection,
        claim: Claim<'_>,
        take: Take<'_>,
    ) -> Result<Merged, MergeError> {
        let existing: Vec<String> =
            plain_tables(target)?.into_iter().map(|(name, _)| name).collect();
        let mut merged = Merged::default();
        let tables: BTreeMap<_, _> = self.tables.iter().collect();
        for (name, (kept, share)) in tables.into_iter().filter(|(_, (_, s))| *s != Share::Whole) {
            let mut statement = self.connection.prepare(&kept.select("true"))?;
            let mut rows = statement.query([])?;
            let mut table = None;
            while let Some(row) = rows.next()? {
                if table.is_none() {
                    table = Some(target_table(target, &existing, kept)?);
                }
                let Some(table) = &table else { continue };
                let fields = (1..=kept.columns.len())
                    .map(|at| row.get_ref(at).map(Field::of))
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                match find(target, table, &fields)? {
                    Some(found) if found == fields || *share == Share::Shared => continue,
                    Some(_)
                        if !claim.owns(target, table, identity(table, &fields).collect())? =>
                    {
                        return Err(MergeError::Foreign(named(name, table, &fields)));
                    }
                    Some(_) if !claim.force => {
                        return Err(MergeError::Differs(named(name, table, &fields)));
                    }
                    Some(_) => {
                        merged.replaced += 1;
                        take(table, &fields, true)?;
                    }
                    None => {
                        merged.inserted += 1;
                        take(table, &fields, false)?;
                    }
                }
            }
        }
        Ok(merged)
    }
}

fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// The layout of a target table, with the columns of the kept rows. Without an identity, rows are equal only if all
/// columns are.
fn target_table(
    target: &Connection,
    existing: &[String],
    kept: &Table,
) -> Result<Table, MergeError> {
    if !existing.contains(&kept.name) {
        return Err(MergeError::Missing(kept.name.clone()));
    }
    let mut table = Table::of(target, &kept.name)?;
    let missing = kept.columns.iter().find(|column| !table.columns.contains(column));
    if let Some(column) = missing {
        return Err(MergeError::Missing(format!("{}.{column}", kept.name)));
    }
    let kept_index = |index: &usize| kept.columns.iter().position(|c| *c == table.columns[*index]);
    table.identity =
        table.identity.iter().map(kept_index).collect::<Option<_>>().unwrap_or_default();
    if table.identity.is_empty() {
        table.identity = (0..kept.columns.len()).collect();
    }
    table.columns.clone_from(&kept.columns);
    Ok(table)
}

/// The row of the target with the identity of a kept row.
fn find(
    target: &Connection,
    table: &Table,
    fields: &[Field],
) -> rusqlite::Result<Option<Vec<Field>>> {
    let mut statement = target.prepare_cached(&table.select(&table.condition(1)))?;
    let mut rows = statement.query(params_from_iter(identity(table, fields)))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    (1..=fields.len()).map(|at| row.get_ref(at).map(Field::of)).collect::<Result<_, _>>().map(Some)
}

fn identity<'a>(table: &Table, fields: &'a [Field]) -> impl Iterator<Item = &'a Field> {
    table.identity.iter().map(|index| &fields[*index])
}

fn put(
    target: &Connection,
    table: &Table,
    fields: &[Field],
    is_there: bool,
) -> rusqlite::Result<()> {
    let columns: Vec<String> = table.columns.iter().map(|column| quoted(column)).collect();
    if !is_there {
        let mut insert = target.prepare_cached(&insert(&table.name, &columns))?;
        return insert.execute(params_from_iter(fields)).map(drop);
    }
    // An update instead of delete and insert, because other rows may reference this one.
    let set: Vec<String> =
        columns.iter().enumerate().map(|(at, name)| format!("{name} = ?{}", at + 1)).collect();
    let (name, condition) = (quoted(&table.name), table.condition(columns.len() + 1));
    let update = format!("UPDATE OR ABORT {name} SET {} WHERE {condition}", set.join(", "));
    let parameters = fields.iter().chain(identity(table, fields));
    target.prepare_cached(&update)?.execute(params_from_iter(parameters)).map(drop)
}

/// The name of a row in error messages.
fn named(table: &str, target: &Table, fields: &[Field]) -> String {
    let mut name = table.to_owned();
    for index in &target.identity {
        match &fields[*index] {
            Field::Text(bytes) => name.push_str(&format!(" {}", String::from_utf8_lossy(bytes))),
            Field::Integer(number) => name.push_str(&format!(" {number}")),
            _ => {}
        }
    }
    name
}
