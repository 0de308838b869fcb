//! Charges of a team's sessions. A message that several sessions have is charged to one of them, which must be the same on
//! every machine, in PostgreSQL (`steno.charges()`) and in ClickHouse.

use std::collections::{HashMap, HashSet};

use super::charges::integer_at;
use super::{EntryFilter, Index, IndexError};
use crate::cost::charge::{ChargeTable, QUARTER_HOUR_MS, SummedUsage, UsageCharge};
use crate::cost::file_charges::token_band;
use crate::session_owners::SessionOwners;

/// Messages that several sessions have: a row for each of these sessions, those of a message together.
const SHARED_MESSAGES: &str = "
    SELECT stated.key, owner.agent, owner.name, own.agent, own.name, own.started_at, stated.time, stated.model,
        usage.input, usage.cache_read, usage.cache_write, usage.cache_write_5m, usage.cache_write_1h, usage.output,
        usage.reasoning, usage.time, usage.model
    FROM statement stated JOIN usage ON usage.key = stated.key
    JOIN session owner ON owner.id = usage.session JOIN session own ON own.id = stated.session
    ORDER BY stated.key";

/// A message that several sessions have.
struct SharedMessage {
    key: Vec<u8>,
    /// The account that it is charged to, and how it is described there.
    present: usize,
    present_time: Option<i64>,
    present_model: String,
    tokens: [i64; 7],
    /// What each session states of it.
    statements: Vec<MessageStatement>,
}

/// What a session states of a message. The least of all statements is charged.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MessageStatement {
    is_undated: bool,
    /// When the session started.
    started: Option<i64>,
    /// The place of the session among all, by person, agent and id.
    place: usize,
    account: usize,
    time: Option<i64>,
    model: Option<String>,
}

impl Index {
    /// Loads all charges, with the owners of their sessions. A message that several sessions have is charged to the one
    /// that started first; of equal ones, to the first by person, agent and id.
    pub fn load_team_charges(
        &self,
        filter: &EntryFilter,
        owners: &SessionOwners,
    ) -> Result<ChargeTable, IndexError> {
        let mut charges = self.load_charges(filter)?;
        charges.name_people(owners);
        if owners.is_empty() {
            return Ok(charges);
        }
        let mut shared = self.wrap_error(self.load_shared_messages(&charges))?;
        let mut mover = ChargeMover::new(&charges);
        for message in &mut shared {
            mover.move_message(&mut charges, message);
        }
        mover.finish(&mut charges);
        Ok(charges)
    }

    fn load_shared_messages(&self, charges: &ChargeTable) -> rusqlite::Result<Vec<SharedMessage>> {
        let accounts = charges.accounts.iter().enumerate();
        let accounts: HashMap<(&str, &str), usize> = accounts
            .map(|(at, account)| ((account.agent.as_str(), account.session.as_str()), at))
            .collect();
        let places = account_places(charges);
        let mut messages: Vec<SharedMessage> = Vec::new();
        let mut select = self.connection.prepare_cached(SHARED_MESSAGES)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let account = |at: usize| -> rusqlite::Result<Option<usize>> {
                let name = (row.get_ref(at)?.as_str()?, row.get_ref(at + 1)?.as_str()?);
                Ok(accounts.get(&name).copied())
            };
            // Another process may have added a session since.
            let (Some(present), Some(account)) = (account(1)?, account(3)?) else { continue };
            let started: Option<i64> = row.get(5)?;
            let (is_undated, place) = (started.is_none(), places[account]);
            let (time, model) = (row.get(6)?, row.get(7)?);
            let statement = MessageStatement { is_undated, started, place, account, time, model };
            let key: Vec<u8> = row.get(0)?;
            if let Some(message) = messages.last_mut().filter(|last| last.key == key) {
                message.statements.push(statement);
                continue;
            }
            let mut tokens = [0; 7];
            for (at, number) in tokens.iter_mut().enumerate() {
                *number = integer_at(row, 8 + at)?;
            }
            messages.push(SharedMessage {
                key,
                present,
                present_time: row.get(15)?,
                present_model: row.get::<_, Option<String>>(16)?.unwrap_or_default(),
                tokens,
                statements: vec![statement],
            });
        }
        Ok(messages)
    }
}

/// The place of each account in the order of person, agent and id.
fn account_places(charges: &ChargeTable) -> Vec<usize> {
    let mut order: Vec<usize> = (0..charges.accounts.len()).collect();
    order.sort_by_key(|at| {
        let account = &charges.accounts[*at];
        (&account.person, &account.agent, &account.session)
    });
    let mut places = vec![0; order.len()];
    order.into_iter().enumerate().for_each(|(place, at)| places[at] = place);
    places
}

/// Where charges are that messages are part of.
struct ChargeMover {
    /// Positions by account, model, prompt band and quarter of an hour.
    places: HashMap<(usize, usize, usize, Option<i64>), Vec<usize>>,
    emptied: HashSet<usize>,
}

impl ChargeMover {
    fn new(charges: &ChargeTable) -> Self {
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, charge) in charges.charges.iter().enumerate() {
            let quarter = charge.first.map(quarter_of);
            places
                .entry((charge.account, charge.model, charge.band, quarter))
                .or_default()
                .push(at);
        }
        Self { places, emptied: HashSet::new() }
    }

    /// Takes a message out of the charges of its present account, and adds it to those of the first, if that is another.
    fn move_message(&mut self, charges: &mut ChargeTable, message: &mut SharedMessage) {
        let SharedMessage { present, tokens, statements, .. } = message;
        statements.sort_unstable();
        let first = &statements[0];
        if first.account == *present {
            return;
        }
        let (model, band) = (charges.model_index(&message.present_model), token_band(*tokens));
        let ended = |account: usize| charges.accounts[account].ended_at;
        let time = message.present_time.or_else(|| ended(*present));
        let places = self.places.get(&(*present, model, band, time.map(quarter_of)));
        let has_all = |charge: &UsageCharge| {
            charge.tokens.iter().zip(&*tokens).all(|(all, part)| all >= part)
                && charge.first <= time
                && charge.last >= time
        };
        let place = places.into_iter().flatten().find(|at| has_all(&charges.charges[**at]));
        let Some(at) = place.copied() else { return };
        let charge = &mut charges.charges[at];
        charge.tokens.iter_mut().zip(&*tokens).for_each(|(all, part)| *all -= part);
        if charge.tokens == [0; 7] {
            self.emptied.insert(at);
        }
        let model = statements.iter().find_map(|stated| stated.model.as_deref());
        let usage = SummedUsage { band, first: first.time, last: first.time, tokens: *tokens };
        charges.add_usage(first.account, model.unwrap_or_default(), usage);
    }

    /// Removes the charges of which nothing is left.
    fn finish(self, charges: &mut ChargeTable) {
        let mut at = 0..;
        charges.charges.retain(|_| at.next().is_some_and(|at| !self.emptied.contains(&at)));
    }
}

fn quarter_of(time: i64) -> i64 {
    time.div_euclid(QUARTER_HOUR_MS)
}
