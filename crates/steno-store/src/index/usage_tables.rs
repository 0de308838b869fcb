//! Stores usage once per API message over all sessions, and sums it.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params, params_from_iter};

use super::session_draft::PreparedSession;
use super::text_blocks::{TextHash, hash_text};
use super::{Index, IndexError};
use crate::cost::bill::{self, MessageBill, signed_counts};
use crate::cost::charge::QUARTER_HOUR_MS;
use crate::cost::file_charges::token_band;
use steno_model::timestamp::Timestamp;

const USAGE_COLUMNS: &str =
    "session, number, time, model, input, cache_read, cache_write, cache_write_5m,
    cache_write_1h, output, reasoning";

/// The usage tables and the pending changes of the sums.
pub(super) struct UsageTables<'a> {
    index: &'a Index,
    deltas: BTreeMap<(i64, i64, String, i64), RollupDelta>,
}

/// A pending change of one row of sums.
#[derive(Default)]
struct RollupDelta {
    first: Option<i64>,
    last: Option<i64>,
    messages: i64,
    tokens: [i64; 7],
}

/// The usage of one message.
#[derive(Clone, Debug, PartialEq)]
struct BilledMessage {
    session: i64,
    number: Option<i64>,
    time: Option<i64>,
    model: Option<String>,
    tokens: [i64; 7],
}

impl<'a> UsageTables<'a> {
    pub(super) fn new(index: &'a Index) -> Self {
        Self { index, deltas: BTreeMap::new() }
    }

    /// Adds the usage in a session's entries from number `from` on, and the remainder of its own total.
    pub(super) fn enter_session(
        &mut self,
        id: i64,
        prepared: &PreparedSession,
        from: usize,
    ) -> Result<(), IndexError> {
        for bill in prepared.bills.iter().filter(|bill| bill.last >= from) {
            let key = hash_text(&bill.message_key(&prepared.session));
            self.enter_statement(&key, &BilledMessage::from_bill(id, bill))?;
        }
        if prepared.is_part { Ok(()) } else { self.enter_remainder(id, prepared) }
    }

    /// Adds the part of the session's own total that its messages do not account for.
    fn enter_remainder(&mut self, id: i64, prepared: &PreparedSession) -> Result<(), IndexError> {
        let session = &prepared.session;
        let (agent, name) = match &prepared.total_origin {
            Some(origin) => (&origin.agent, &origin.id),
            None => (&session.agent, &session.id),
        };
        let key = hash_text(&format!("rest\n{agent}\n{name}"));
        let before = self.find_message(&key)?;
        let bill::BillRemainder { at, model, tokens } =
            bill::bill_remainder(session, &prepared.billed_usage);
        let rest = BilledMessage {
            session: id,
            number: None,
            time: at.map(timestamp_millis),
            model,
            tokens,
        };
        let is_shared = before.as_ref().is_some_and(|before| before.session != id);
        if is_shared || !self.find_statements(&key)?.is_empty() {
            return self.shared_rest(&key, before.as_ref(), &rest);
        }
        if tokens != [0; 7] {
            self.replace_message(&key, before.as_ref(), &rest)
        } else if let Some(before) = before {
            self.delete_message(&key, &before)
        } else {
            Ok(())
        }
    }

    /// Enters what one of several sessions has beyond its messages: an agent's own, and recordings of it. The larger
    /// numbers count.
    fn shared_rest(
        &mut self,
        key: &TextHash,
        before: Option<&BilledMessage>,
        rest: &BilledMessage,
    ) -> Result<(), IndexError> {
        if let Some(before) = before {
            self.upsert_statement(key, before)?;
        }
        let own = [Value::Blob(key.to_vec()), rest.session.into()];
        self.execute_cached("DELETE FROM statement WHERE key = ?1 AND session = ?2", own)?;
        if rest.tokens != [0; 7] {
            let sql = format!(
                "INSERT INTO statement (key, {USAGE_COLUMNS})
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
            );
            self.execute_cached(&sql, rest.sql_values(key))?;
        }
        let stated = self.find_statements(key)?;
        match (stated.split_first(), before) {
            (Some((first, more)), _) => {
                let after = more.iter().fold(first.clone(), |sum, next| sum.max_with(next));
                self.replace_message(key, before, &after)
            }
            (None, Some(before)) => self.delete_message(key, before),
            (None, None) => Ok(()),
        }
    }

    /// Adds what a session reports about a message.
    fn enter_statement(
        &mut self,
        key: &TextHash,
        reported: &BilledMessage,
    ) -> Result<(), IndexError> {
        if self.insert_message(key, reported)? {
            self.add_to_rollup(reported, 1);
            return Ok(());
        }
        let Some(before) = self.find_message(key)? else { return Ok(()) };
        if before.session == reported.session {
            let raised =
                "UPDATE statement SET input = max(input, ?3), cache_read = max(cache_read, ?4),
                cache_write = max(cache_write, ?5), cache_write_5m = max(cache_write_5m, ?6),
                cache_write_1h = max(cache_write_1h, ?7), output = max(output, ?8),
                reasoning = max(reasoning, ?9) WHERE key = ?1 AND session = ?2";
            let values = [Value::Blob(key.to_vec()), reported.session.into()];
            let values = values.into_iter().chain(reported.tokens.map(Value::from));
            self.execute_cached(raised, values)?;
        } else {
            self.upsert_statement(key, &before)?;
            self.upsert_statement(key, reported)?;
        }
        let after = before.max_with(reported);
        if after == before { Ok(()) } else { self.replace_message(key, Some(&before), &after) }
    }

    /// Stores what one of several sessions reports. The larger number of each kind wins.
    fn upsert_statement(
        &mut self,
        key: &TextHash,
        reported: &BilledMessage,
    ) -> Result<(), IndexError> {
        let sql = format!(
            "INSERT INTO statement (key, {USAGE_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (key, session) DO UPDATE SET input = max(input, excluded.input),
             cache_read = max(cache_read, excluded.cache_read),
             cache_write = max(cache_write, excluded.cache_write),
             cache_write_5m = max(cache_write_5m, excluded.cache_write_5m),
             cache_write_1h = max(cache_write_1h, excluded.cache_write_1h),
             output = max(output, excluded.output), reasoning = max(reasoning, excluded.reasoning)
             WHERE excluded.session != (SELECT session FROM usage WHERE key = ?1)"
        );
        self.execute_cached(&sql, reported.sql_values(key))
    }

    /// Removes what a session reports. Other sessions' reports of the same messages remain.
    pub(super) fn remove_session(&mut self, session: i64) -> Result<(), IndexError> {
        let shared: Vec<TextHash> =
            self.query_keys("SELECT key FROM statement WHERE session = ?1", session)?;
        self.execute_cached("DELETE FROM statement WHERE session = ?1", [session.into()])?;
        for key in &shared {
            let Some(before) = self.find_message(key)? else { continue };
            let others = self.find_statements(key)?;
            match others.split_first() {
                None => self.delete_message(key, &before)?,
                Some((first, more)) => {
                    let after = more.iter().fold(first.clone(), |sum, next| sum.max_with(next));
                    self.replace_message(key, Some(&before), &after)?;
                }
            }
        }
        let own: Vec<TextHash> =
            self.query_keys("SELECT key FROM usage WHERE session = ?1", session)?;
        for key in &own {
            if let Some(before) = self.find_message(key)? {
                self.delete_message(key, &before)?;
            }
        }
        Ok(())
    }

    /// Writes the pending changes of the sums.
    pub(super) fn write_rollups(self) -> Result<(), IndexError> {
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
            for ((session, quarter, model, band), sum) in &self.deltas {
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
        self.index.wrap_error(close())
    }

    fn find_message(&self, key: &TextHash) -> Result<Option<BilledMessage>, IndexError> {
        let sql = format!("SELECT {USAGE_COLUMNS} FROM usage WHERE key = ?1");
        let find = || {
            self.index
                .connection
                .prepare_cached(&sql)?
                .query_row([key], BilledMessage::from_row)
                .optional()
        };
        self.index.wrap_error(find())
    }

    fn find_statements(&self, key: &TextHash) -> Result<Vec<BilledMessage>, IndexError> {
        let sql = format!("SELECT {USAGE_COLUMNS} FROM statement WHERE key = ?1 ORDER BY id");
        let all = || -> rusqlite::Result<Vec<BilledMessage>> {
            self.index
                .connection
                .prepare_cached(&sql)?
                .query_map([key], BilledMessage::from_row)?
                .collect()
        };
        self.index.wrap_error(all())
    }

    fn query_keys(&self, sql: &str, session: i64) -> Result<Vec<TextHash>, IndexError> {
        let all = || -> rusqlite::Result<Vec<TextHash>> {
            let mut keys = self.index.connection.prepare_cached(sql)?;
            keys.query_map([session], |row| row.get(0))?.collect()
        };
        self.index.wrap_error(all())
    }

    /// Inserts a message. Returns `false` if it exists; most do not.
    fn insert_message(&self, key: &TextHash, billed: &BilledMessage) -> Result<bool, IndexError> {
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
        self.index.wrap_error(enter()).map(|entered| entered > 0)
    }

    fn replace_message(
        &mut self,
        key: &TextHash,
        before: Option<&BilledMessage>,
        after: &BilledMessage,
    ) -> Result<(), IndexError> {
        if let Some(before) = before {
            self.add_to_rollup(before, -1);
        }
        self.add_to_rollup(after, 1);
        let sql = format!(
            "INSERT OR REPLACE INTO usage (key, {USAGE_COLUMNS})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
        );
        self.execute_cached(&sql, after.sql_values(key))
    }

    fn delete_message(&mut self, key: &TextHash, before: &BilledMessage) -> Result<(), IndexError> {
        self.add_to_rollup(before, -1);
        self.execute_cached("DELETE FROM usage WHERE key = ?1", [Value::Blob(key.to_vec())])
    }

    fn add_to_rollup(&mut self, billed: &BilledMessage, sign: i64) {
        let quarter = billed.time.map_or(-1, |time| time.div_euclid(QUARTER_HOUR_MS));
        let band = token_band(billed.tokens) as i64;
        let model = billed.model.clone().unwrap_or_default();
        let sum = self.deltas.entry((billed.session, quarter, model, band)).or_default();
        sum.first = [sum.first, billed.time].into_iter().flatten().min();
        sum.last = [sum.last, billed.time].into_iter().flatten().max();
        sum.messages += sign * i64::from(billed.number.is_some());
        for (sum, tokens) in sum.tokens.iter_mut().zip(billed.tokens) {
            *sum = sum.saturating_add(tokens.saturating_mul(sign));
        }
    }

    fn execute_cached(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<(), IndexError> {
        let run = || self.index.connection.prepare_cached(sql)?.execute(params_from_iter(values));
        self.index.wrap_error(run()).map(|_| ())
    }
}

fn timestamp_millis(at: Timestamp) -> i64 {
    at.instant().as_millisecond()
}

impl BilledMessage {
    fn from_bill(session: i64, bill: &MessageBill) -> Self {
        Self {
            session,
            number: Some(bill.number as i64),
            time: bill.at.map(timestamp_millis),
            model: bill.model.clone(),
            tokens: signed_counts(bill.usage.numbers()),
        }
    }

    fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let mut tokens = [0; 7];
        for (at, number) in tokens.iter_mut().enumerate() {
            *number = row.get(4 + at)?;
        }
        let (session, number, time, model) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(Self { session, number, time, model, tokens })
    }

    fn sql_values(&self, key: &TextHash) -> impl Iterator<Item = Value> {
        let names: [Value; 5] = [
            Value::Blob(key.to_vec()),
            self.session.into(),
            self.number.into(),
            self.time.into(),
            self.model.clone().into(),
        ];
        names.into_iter().chain(self.tokens.map(Value::from))
    }

    /// The larger number of each kind, and the first model that is known.
    fn max_with(&self, other: &Self) -> Self {
        let mut raised = self.clone();
        raised.model = raised.model.or_else(|| other.model.clone());
        for (mine, theirs) in raised.tokens.iter_mut().zip(other.tokens) {
            *mine = (*mine).max(theirs);
        }
        raised
    }
}
