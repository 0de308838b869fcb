//! Loads charges from the index.

use std::collections::HashMap;

use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::{Filter, Index, IndexError};
use crate::cost::charge::{Account, Charge, Charges, QUARTER};
use crate::cost::files::band_of;

const TOKENS: &str =
    "input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning";

impl Index {
    /// Loads all charges per quarter of an hour. Where the filter starts or ends within a quarter, that quarter's
    /// charges are per message.
    pub fn charges(&self, filter: &Filter) -> Result<Charges, IndexError> {
        let mut table = format!("SELECT session, model, first, last, {TOKENS}, band FROM rollup");
        let cut = filter.cut_quarters();
        if !cut.is_empty() {
            let cut = cut.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            table.push_str(&format!(
                " WHERE quarter NOT IN ({cut}) UNION ALL
                SELECT session, model, time, time, {TOKENS}, NULL FROM usage
                WHERE time / {QUARTER} IN ({cut})"
            ));
        }
        let mut charges = Charges::default();
        let read = || -> rusqlite::Result<Charges> {
            let account_indexes = self.accounts(&mut charges)?;
            let mut all = self.connection.prepare_cached(&table)?;
            let mut rows = all.query([])?;
            while let Some(row) = rows.next()? {
                if let Some(account) = account_indexes.get(&row.get(0)?) {
                    let charge = charge(row, &mut charges, *account)?;
                    charges.all.push(charge);
                }
            }
            charges.complete();
            Ok(charges)
        };
        self.on(read())
    }

    /// Loads all sessions as accounts. Returns the account of each session id.
    fn accounts(&self, charges: &mut Charges) -> rusqlite::Result<HashMap<i64, usize>> {
        let sql = "SELECT id, agent, name, project, title, thread, coalesce(ended_at, started_at),
            cost, input + cache_read + cache_write + output FROM session";
        let mut account_indexes = HashMap::new();
        let mut all = self.connection.prepare_cached(sql)?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            account_indexes.insert(row.get(0)?, charges.accounts.len());
            charges.accounts.push(Account {
                agent: row.get(1)?,
                session: row.get(2)?,
                project: row.get(3)?,
                title: row.get(4)?,
                thread: row.get(5)?,
                at: row.get(6)?,
                stated: row.get(7)?,
                size: number_at(row, 8)?,
            });
        }
        Ok(account_indexes)
    }
}

fn charge(row: &Row<'_>, charges: &mut Charges, account: usize) -> rusqlite::Result<Charge> {
    let model = charges.model(row.get_ref(1)?.as_str_or_null()?.unwrap_or_default());
    let mut tokens = [0; 7];
    for (at, number) in tokens.iter_mut().enumerate() {
        *number = number_at(row, 4 + at)?;
    }
    // A charge without a time counts at the end of its session.
    let time = |stated: Option<i64>| stated.or(charges.accounts[account].at);
    let (first, last) = (time(row.get(2)?), time(row.get(3)?));
    let band = row.get::<_, Option<u32>>(11)?.map_or_else(|| band_of(tokens), |band| band as usize);
    Ok(Charge { account, model, band, first, last, tokens })
}

/// Reads an integer. SQLite returns sums that overflow as floating-point numbers.
fn number_at(row: &Row<'_>, at: usize) -> rusqlite::Result<i64> {
    match row.get_ref(at)? {
        ValueRef::Real(number) => Ok(number as i64),
        _ => row.get(at),
    }
}
