//! Merges a session's rows into a database in use: inserts missing rows and keeps all others.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params_from_iter};

use super::claim::RowClaim;
use super::replay::{RowLogReplay, insert_statement};
use super::row_value::RowValue;
use super::table_layout::{TableLayout, plain_tables, quote_name};
use crate::database_schema::RowShare;
use crate::sqlite::BUSY_TIMEOUT;

/// Receives a table, a row for it, and whether the row replaces an existing one.
type TakeRow<'a> = &'a mut dyn FnMut(&TableLayout, &[RowValue], bool) -> rusqlite::Result<()>;

/// Number of rows changed in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounts {
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

impl MergeCounts {
    /// Whether the database needs a change.
    pub fn has_changes(&self) -> bool {
        *self != Self::default()
    }
}

impl RowLogReplay {
    /// Returns what [`RowLogReplay::merge`] would change, without changing it.
    pub fn compare(&self, target: &Path, claim: RowClaim<'_>) -> Result<MergeCounts, MergeError> {
        let target = open_target(target, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        self.for_each_change(&target, claim, &mut |_, _, _| Ok(()))
    }

    /// Inserts the rows that `target` lacks, in one transaction. A row with other content is replaced if it is the
    /// session's own and `claim.force` is set. Otherwise it is an error.
    pub fn merge(&self, target: &Path, claim: RowClaim<'_>) -> Result<MergeCounts, MergeError> {
        let mut target = open_target(target, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // The rows already contain the effects of triggers.
        target.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.pragma_update(None, "defer_foreign_keys", true)?;
        let merged =
            self.for_each_change(&transaction, claim, &mut |table, fields, is_there| {
                put_row(&transaction, table, fields, is_there)
            })?;
        transaction.commit()?;
        Ok(merged)
    }

    /// Passes each row to insert or replace to `take`.
    fn for_each_change(
        &self,
        target: &Connection,
        claim: RowClaim<'_>,
        take: TakeRow<'_>,
    ) -> Result<MergeCounts, MergeError> {
        let existing: Vec<String> =
            plain_tables(target)?.into_iter().map(|(name, _)| name).collect();
        let mut merged = MergeCounts::default();
        let tables: BTreeMap<_, _> = self.tables.iter().collect();
        for (name, (kept, share)) in tables.into_iter().filter(|(_, (_, s))| *s != RowShare::Whole)
        {
            let mut statement = self.connection.prepare(&kept.select_query("true"))?;
            let mut rows = statement.query([])?;
            let mut table = None;
            while let Some(row) = rows.next()? {
                if table.is_none() {
                    table = Some(target_table(target, &existing, kept)?);
                }
                let Some(table) = &table else { continue };
                let fields = (1..=kept.columns.len())
                    .map(|at| row.get_ref(at).map(RowValue::from_value_ref))
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                match find_row(target, table, &fields)? {
                    Some(found) if found == fields || *share == RowShare::Shared => continue,
                    Some(_)
                        if !claim.owns_row(
                            target,
                            table,
                            identity_values(table, &fields).collect(),
                        )? =>
                    {
                        return Err(MergeError::Foreign(row_name(name, table, &fields)));
                    }
                    Some(_) if !claim.force => {
                        return Err(MergeError::Differs(row_name(name, table, &fields)));
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

fn open_target(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// The layout of a target table, with the columns of the kept rows. Without an identity, rows are equal only if all
/// columns are.
fn target_table(
    target: &Connection,
    existing: &[String],
    kept: &TableLayout,
) -> Result<TableLayout, MergeError> {
    if !existing.contains(&kept.name) {
        return Err(MergeError::Missing(kept.name.clone()));
    }
    let mut table = TableLayout::read(target, &kept.name)?;
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
fn find_row(
    target: &Connection,
    table: &TableLayout,
    fields: &[RowValue],
) -> rusqlite::Result<Option<Vec<RowValue>>> {
    let mut statement = target.prepare_cached(&table.select_query(&table.identity_condition(1)))?;
    let mut rows = statement.query(params_from_iter(identity_values(table, fields)))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    (1..=fields.len())
        .map(|at| row.get_ref(at).map(RowValue::from_value_ref))
        .collect::<Result<_, _>>()
        .map(Some)
}

fn identity_values<'a>(
    table: &TableLayout,
    fields: &'a [RowValue],
) -> impl Iterator<Item = &'a RowValue> {
    table.identity.iter().map(|index| &fields[*index])
}

fn put_row(
    target: &Connection,
    table: &TableLayout,
    fields: &[RowValue],
    is_there: bool,
) -> rusqlite::Result<()> {
    let columns: Vec<String> = table.columns.iter().map(|column| quote_name(column)).collect();
    if !is_there {
        let mut insert = target.prepare_cached(&insert_statement(&table.name, &columns))?;
        return insert.execute(params_from_iter(fields)).map(drop);
    }
    // An update instead of delete and insert, because other rows may reference this one.
    let set: Vec<String> =
        columns.iter().enumerate().map(|(at, name)| format!("{name} = ?{}", at + 1)).collect();
    let (name, condition) = (quote_name(&table.name), table.identity_condition(columns.len() + 1));
    let update = format!("UPDATE OR ABORT {name} SET {} WHERE {condition}", set.join(", "));
    let parameters = fields.iter().chain(identity_values(table, fields));
    target.prepare_cached(&update)?.execute(params_from_iter(parameters)).map(drop)
}

/// The name of a row in error messages.
fn row_name(table: &str, target: &TableLayout, fields: &[RowValue]) -> String {
    let mut name = table.to_owned();
    for index in &target.identity {
        match &fields[*index] {
            RowValue::Text(bytes) => name.push_str(&format!(" {}", String::from_utf8_lossy(bytes))),
            RowValue::Integer(number) => name.push_str(&format!(" {number}")),
            _ => {}
        }
    }
    name
}
