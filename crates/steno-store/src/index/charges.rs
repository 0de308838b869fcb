//! Loads charges from the index.

use std::collections::HashMap;

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row};

use super::{EntryFilter, Index, IndexError};
use crate::cost::charge::{ChargeTable, QUARTER_HOUR_MS, SessionAccount, UsageCharge};
use crate::cost::file_charges::token_band;
use steno_model::session::Session;

const TOKEN_COLUMNS: &str =
    "input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning";

impl Index {
    /// Loads all charges per quarter of an hour. Where the filter starts or ends within a quarter, that quarter's
    /// charges are per message.
    pub fn load_charges(&self, filter: &EntryFilter) -> Result<ChargeTable, IndexError> {
        let mut table =
            format!("SELECT session, model, first, last, {TOKEN_COLUMNS}, band FROM rollup");
        let cut = filter.partial_quarters();
        if !cut.is_empty() {
            let cut = cut.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            table.push_str(&format!(
                " WHERE quarter NOT IN ({cut}) UNION ALL
                SELECT session, model, time, time, {TOKEN_COLUMNS}, NULL FROM usage
                WHERE time / {QUARTER_HOUR_MS} IN ({cut})"
            ));
        }
        self.read_charges(&table, "")
    }

    /// Loads the charges of one session; `None` unless the index has exactly this number of its entries.
    pub(super) fn load_session_charges(
        &self,
        session: &Session,
    ) -> Result<Option<ChargeTable>, IndexError> {
        let sql = "SELECT id FROM session WHERE agent = ?1 AND name = ?2 AND entries = ?3";
        let key = (&session.agent, session.id.as_str(), session.totals.entries as i64);
        let find =
            || self.connection.prepare_cached(sql)?.query_row(key, |row| row.get(0)).optional();
        let Some::<i64>(row) = self.wrap_error(find())? else { return Ok(None) };
        let charges = self.read_charges(
            &format!(
                "SELECT session, model, first, last, {TOKEN_COLUMNS}, band FROM rollup WHERE session = {row}"
            ),
            &format!("WHERE id = {row}"),
        );
        charges.map(Some)
    }

    /// Loads all charges, one per API message.
    pub fn load_message_charges(&self) -> Result<ChargeTable, IndexError> {
        let messages = format!(
            "SELECT session, model, time, time, {TOKEN_COLUMNS}, NULL FROM usage
            ORDER BY session, time, number"
        );
        self.read_charges(&messages, "")
    }

    /// Reads the charges that `sql` selects, of the sessions with this condition.
    fn read_charges(&self, sql: &str, condition: &str) -> Result<ChargeTable, IndexError> {
        let mut charges = ChargeTable::default();
        let read = || -> rusqlite::Result<ChargeTable> {
            let account_indexes = self.load_accounts(&mut charges, condition)?;
            let mut all = self.connection.prepare_cached(sql)?;
            let mut rows = all.query([])?;
            while let Some(row) = rows.next()? {
                if let Some(account) = account_indexes.get(&row.get(0)?) {
                    let charge = charge_from_row(row, &mut charges, *account)?;
                    charges.charges.push(charge);
                }
            }
            charges.add_tokenless_sessions();
            Ok(charges)
        };
        self.wrap_error(read())
    }

    /// Loads the sessions with this condition as accounts. Returns the account of each session id.
    fn load_accounts(
        &self,
        charges: &mut ChargeTable,
        condition: &str,
    ) -> rusqlite::Result<HashMap<i64, usize>> {
        let sql = format!(
            "SELECT id, agent, name, project, title, thread, coalesce(ended_at, started_at),
            cost, input + cache_read + cache_write + output FROM session {condition}"
        );
        let mut account_indexes = HashMap::new();
        let mut all = self.connection.prepare_cached(&sql)?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            account_indexes.insert(row.get(0)?, charges.accounts.len());
            charges.accounts.push(SessionAccount {
                agent: row.get(1)?,
                session: row.get(2)?,
                project: row.get(3)?,
                title: row.get(4)?,
                thread: row.get(5)?,
                person: None,
                ended_at: row.get(6)?,
                reported_cost: row.get(7)?,
                reported_tokens: integer_at(row, 8)?,
            });
        }
        Ok(account_indexes)
    }
}

fn charge_from_row(
    row: &Row<'_>,
    charges: &mut ChargeTable,
    account: usize,
) -> rusqlite::Result<UsageCharge> {
    let model = charges.model_index(row.get_ref(1)?.as_str_or_null()?.unwrap_or_default());
    let mut tokens = [0; 7];
    for (at, number) in tokens.iter_mut().enumerate() {
        *number = integer_at(row, 4 + at)?;
    }
    // A charge without a time counts at the end of its session.
    let time = |stated: Option<i64>| stated.or(charges.accounts[account].ended_at);
    let (first, last) = (time(row.get(2)?), time(row.get(3)?));
    let band =
        row.get::<_, Option<u32>>(11)?.map_or_else(|| token_band(tokens), |band| band as usize);
    Ok(UsageCharge { account, model, band, first, last, tokens })
}

/// Reads an integer. SQLite returns sums that overflow as floating-point numbers.
pub(super) fn integer_at(row: &Row<'_>, at: usize) -> rusqlite::Result<i64> {
    match row.get_ref(at)? {
        ValueRef::Real(number) => Ok(number as i64),
        _ => row.get(at),
    }
}
