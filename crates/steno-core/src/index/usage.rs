//! Stores usage once per API message over all sessions, and sums it.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params, params_from_iter};

use super::blocks::{Hash, hash};
use super::draft::Prepared;
use super::{Index, IndexError};
use crate::cost::bill::{self, Bill, signed};
use crate::cost::charge::QUARTER;
use crate::cost::files::band_of;
use crate::timestamp::Timestamp;

const COLUMNS: &str =
    "session, number, time, model, input, cache_read, cache_write, cache_write_5m,
    cache_write_1h, output, reasoning";

/// The usage tables and the pending changes of the sums.
pub(super) struct Books<'a> {
    index: &'a Index,
    sums: BTreeMap<(i64, i64, String, i64), Sum>,
}

/// A pending change of one row of sums.
#[derive(Default)]
struct Sum {
    first: Option<i64>,
    last: Option<i64>,
    messages: i64,
    tokens: [i64; 7],
}

/// The usage of one message.
#[derive(Clone, Debug, PartialEq)]
struct Billed {
    session: i64,
    number: Option<i64>,
    time: Option<i64>,
    model: Option<String>,
    tokens: [i64; 7],
}

impl<'a> Books<'a> {
    pub(super) fn new(index: &'a Index) -> Self {
        Self { index, sums: BTreeMap::new() }
    }

    /// Adds the usage in a session's entries from number `from` on, and the remainder of its own total.
    pub(super) fn session(
        &mut self,
        id: i64,
        prepared: &Prepared,
        from: usize,
    ) -> Result<(), IndexError> {
        for bill in prepared.bills.iter().filter(|bill| bill.last >= from) {
            let key = hash(&bill.name(&prepared.session));
            self.state(&key, &Billed::of(id, bill))?;
        }
        if prepared.is_part { Ok(()) } else { self.rest(id, prepared) }
    }

    /// Adds the part of the session's own total that its messages do not account for.
    fn rest(&mut self, id: i64, prepared: &Prepared) -> Result<(), IndexError> {
        let session = &prepared.session;
        let (agent, name) = match &prepared.total_origin {
            Some(origin) => (&origin.agent, &origin.id),
            None => (&session.agent, &session.id),
        };
        let key = hash(&format!("rest\n{agent}\n{name}"));
        let before = self.find(&key)?;
        let bill::Rest { at, model, tokens } = bill::rest(session, &prepared.billed);
        let rest = Billed { session: id, number: None, time: at.map(millisecond), model, tokens };
        let is_shared = before.as_ref().is_some_and(|before| before.session != id);
        if is_shared || !self.statements(&key)?.is_empty() {
            return self.shared_rest(&key, before.as_ref(), &rest);
        }
        if tokens != [0; 7] {
            self.replace(&key, before.as_ref(), &rest)
        } else if let Some(before) = before {
            self.delete(&key, &before)
        } else {
            Ok(())
        }
    }

    /// Enters what one of several sessions has beyond its messages: an agent's own, and recordings of it. The larger
    /// numbers count.
    fn shared_rest(
        &mut self,
        key: &Hash,
        before: Option<&Billed>,
        rest: &Billed,
    ) -> Result<(), IndexError> {
        if let Some(before) = before {
            self.statement(key, before)?;
        }
        let own = [Value::Blob(key.to_vec()), rest.session.into()];
        self.run("DELETE FROM statement WHERE key = ?1 AND session = ?2", own)?;
        if rest.tokens != [0; 7] {
            let sql = format!(
                "INSERT INTO statement (key, {COLUMNS})
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
            );
            self.run(&sql, rest.values(key))?;
        }
        let stated = self.statements(key)?;
        match (stated.split_first(), before) {
            (Some((first, more)), _) => {
                let after = more.iter().fold(first.clone(), |sum, next| sum.raised(next));
                self.replace(key, before, &after)
            }
            (None, Some(before)) => self.delete(key, before),
            (None, None) => Ok(()),
        }
    }

    /// Adds what a session reports about a message.
    fn state(&mut self, key: &Hash, reported: &Billed) -> Result<(), IndexError> {
        if self.enter(key, reported)? {
            self.add(reported, 1);
            return Ok(());
        }
        let Some(before) = self.find(key)? else { return Ok(()) };
        if before.session == reported.session {
            let raised =
                "UPDATE statement SET input = max(input, ?3), cache_read = max(cache_read, ?4),
                cache_write = max(cache_write, ?5), cache_write_5m = max(cache_write_5m, ?6),
                cache_write_1h = max(cache_write_1h, ?7), output = max(output, ?8),
                reasoning = max(reasoning, ?9) WHERE key = ?1 AND session = ?2";
            let values = [Value::Blob(key.to_vec()), reported.session.into()];
            let values = values.into_iter().chain(reported.tokens.map(Value::from));
            self.run(raised, values)?;
        } else {
            self.statement(key, &before)?;
            self.statement(key, reported)?;
        }
        let after = before.raised(reported);
        if after == before { Ok(()) } else { self.replace(key, Some(&before), &after) }
    }

    /// Stores what one of several sessions reports. The larger number of each kind wins.
    fn statement(&mut self, key: &Hash, reported: &Billed) -> Result<(), IndexError> {
        let sql = format!(
            "INSERT INTO statement (key, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (key, session) DO UPDATE SET input = max(input, excluded.input),
             cache_read = max(cache_read, excluded.cache_read),
             cache_write = max(cache_write, excluded.cache_write),
             cache_write_5m = max(cache_write_5m, excluded.cache_write_5m),
             cache_write_1h = max(cache_write_1h, excluded.cache_write_1h),
             output = max(output, excluded.output), reasoning = max(reasoning, excluded.reasoning)
             WHERE excluded.session != (SELECT session FROM usage WHERE key = ?1)"
        );
        self.run(&sql, reported.values(key))
    }

    /// Removes what a session reports. Other sessions' reports of the same messages remain.
    pub(super) fn remove(&mut self, session: i64) -> Result<(), IndexError> {
        let shared: Vec<Hash> =
            self.all("SELECT key FROM statement WHERE session = ?1", session)?;
        self.run("DELETE FROM statement WHERE session = ?1", [session.into()])?;
        for key in &shared {
            let Some(before) = self.find(key)? else { continue };
            let others = self.statements(key)?;
            match others.split_first() {
                None => self.delete(key, &before)?,
                Some((first, more)) => {
                    let after = more.iter().fold(first.clone(), |sum, next| sum.raised(next));
                    self.replace(key, Some(&before), &after)?;
                }
            }
        }
        let own: Vec<Hash> = self.all("SELECT key FROM usage WHERE session = ?1", session)?;
        for key in &own {
            if let Some(before) = self.find(key)? {
                self.delete(key, &before)?;
            }
        }
        Ok(())
    }

    /// Writes the pending changes of the sums.
    pub(super) fn close(self) -> Result<(), IndexError> {
        let connection = &self.index.connection;
        let sql = "INSERT INTO rollup
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
            ON CONFLICT DO UPDATE SET first = min(first, excluded.first),
            last = max(last, excluded.last), messages = messages + excluded.messages,
            input = input + excluded.input, cache_read = cache_read + excluded.cache_read,
            cache_write = cache_write + excluded.cache_write,
            cache_write_5m = cache_write_5m + excluded.cache_write_5m,
            cache_write_1h = cache_write_1h + excluded.cache_write_1h,
            output = output + excluded.output, reasoning = reasoning + excluded.reasoning";
        let close = || -> rusqlite::Result<()> {
            let mut add = connection.prepare_cached(sql)?;
            let empty = "DELETE FROM rollup WHERE session = ?1 AND quarter = ?2 AND model = ?3
                AND band = ?4 AND messages = 0 AND input = 0 AND cache_read = 0 AND cache_write = 0
                AND output = 0 AND reasoning = 0";
            let mut clean = connection.prepare_cached(empty)?;
            for ((session, quarter, model, band), sum) in &self.sums {
                let names: [Value; 7] = [
                    (*session).into(),
                    (*quarter).into(),
                    model.clone().into(),
                    (*band).into(),
                    sum.first.into(),
                    sum.last.into(),
                    sum.messages.into(),
                ];
                let values = names.into_iter().chain(sum.tokens.map(Value::from));
                add.execute(params_from_iter(values))?;
                if sum.messages < 0 || sum.tokens.iter().any(|tokens| *tokens < 0) {
                    clean.execute(params![session, quarter, model, band])?;
                }
            }
            Ok(())
        };
        self.index.on(close())
    }

    fn find(&self, key: &Hash) -> Result<Option<Billed>, IndexError> {
        let sql = format!("SELECT {COLUMNS} FROM usage WHERE key = ?1");
        let find = || {
            self.index.connection.prepare_cached(&sql)?.query_row([key], Billed::read).optional()
        };
        self.index.on(find())
    }

    fn statements(&self, key: &Hash) -> Result<Vec<Billed>, IndexError> {
        let sql = format!("SELECT {COLUMNS} FROM statement WHERE key = ?1 ORDER BY id");
        let all = || -> rusqlite::Result<Vec<Billed>> {
            self.index.connection.prepare_cached(&sql)?.query_map([key], Billed::read)?.collect()
        };
        self.index.on(all())
    }

    fn all(&self, sql: &str, session: i64) -> Result<Vec<Hash>, IndexError> {
        let all = || -> rusqlite::Result<Vec<Hash>> {
            let mut keys = self.index.connection.prepare_cached(sql)?;
            keys.query_map([session], |row| row.get(0))?.collect()
        };
        self.index.on(all())
    }

    /// Inserts a message. Returns `false` if it exists; most do not.
    fn enter(&self, key: &Hash, billed: &Billed) -> Result<bool, IndexError> {
        let sql = "INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
            ON CONFLICT DO NOTHING";
        let [input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning] =
            billed.tokens;
        let enter = || {
            self.index.connection.prepare_cached(sql)?.execute(params![
                key,
                billed.session,
                billed.number,
                billed.time,
                billed.model,
                input,
                cache_read,
                cache_write,
                cache_write_5m,
                cache_write_1h,
                output,
                reasoning
            ])
        };
        self.index.on(enter()).map(|entered| entered > 0)
    }

    fn replace(
        &mut self,
        key: &Hash,
        before: Option<&Billed>,
        after: &Billed,
    ) -> Result<(), IndexError> {
        if let Some(before) = before {
            self.add(before, -1);
        }
        self.add(after, 1);
        let sql = format!(
            "INSERT OR REPLACE INTO usage (key, {COLUMNS})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
        );
        self.run(&sql, after.values(key))
    }

    fn delete(&mut self, key: &Hash, before: &Billed) -> Result<(), IndexError> {
        self.add(before, -1);
        self.run("DELETE FROM usage WHERE key = ?1", [Value::Blob(key.to_vec())])
    }

    fn add(&mut self, billed: &Billed, sign: i64) {
        let quarter = billed.time.map_or(-1, |time| time.div_euclid(QUARTER));
        let band = band_of(billed.tokens) as i64;
        let model = billed.model.clone().unwrap_or_default();
        let sum = self.sums.entry((billed.session, quarter, model, band)).or_default();
        sum.first = [sum.first, billed.time].into_iter().flatten().min();
        sum.last = [sum.last, billed.time].into_iter().flatten().max();
        sum.messages += sign * i64::from(billed.number.is_some());
        for (sum, tokens) in sum.tokens.iter_mut().zip(billed.tokens) {
            *sum = sum.saturating_add(tokens.saturating_mul(sign));
        }
    }

    fn run(&self, sql: &str, values: impl IntoIterator<Item = Value>) -> Result<(), IndexError> {
        let run = || self.index.connection.prepare_cached(sql)?.execute(params_from_iter(values));
        self.index.on(run()).map(|_| ())
    }
}

fn millisecond(at: Timestamp) -> i64 {
    at.instant().as_millisecond()
}

impl Billed {
    fn of(session: i64, bill: &Bill) -> Self {
        Self {
            session,
            number: Some(bill.number as i64),
            time: bill.at.map(millisecond),
            model: bill.model.clone(),
            tokens: signed(bill.usage.numbers()),
        }
    }

    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let mut tokens = [0; 7];
        for (at, number) in tokens.iter_mut().enumerate() {
            *number = row.get(4 + at)?;
        }
        let (session, number, time, model) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(Self { session, number, time, model, tokens })
    }

    fn values(&self, key: &Hash) -> impl Iterator<Item = Value> {
        let names: [Value; 5] = [
            Value::Blob(key.to_vec()),
            self.session.into(),
            self.number.into(),
            self.time.into(),
            self.model.clone().into(),
        ];
        names.into_iter().chain(self.tokens.map(Value::from))
    }

    /// The larger number of each kind.
    fn raised(&self, other: &Self) -> Self {
        let mut raised = self.clone();
        for (mine, theirs) in raised.tokens.iter_mut().zip(other.tokens) {
            *mine = (*mine).max(theirs);
        }
        raised
    }
}
