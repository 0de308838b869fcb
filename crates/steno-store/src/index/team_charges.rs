//! Charges of a team's sessions. A message that sessions of several people have is charged to one of them, who must be the
//! same on every machine.

use std::collections::{HashMap, HashSet};

use super::charges::integer_at;
use super::{EntryFilter, Index, IndexError};
use crate::cost::charge::{ChargeTable, QUARTER_HOUR_MS, UsageCharge};
use crate::cost::file_charges::token_band;
use crate::session_owners::SessionOwners;

/// Messages that several sessions have: a row for each of these sessions, those of a message together.
const SHARED_MESSAGES: &str = "
    SELECT stated.key, owner.agent, owner.name, own.agent, own.name, own.started_at, usage.time, usage.model,
        usage.input, usage.cache_read, usage.cache_write, usage.cache_write_5m, usage.cache_write_1h, usage.output,
        usage.reasoning
    FROM statement stated JOIN usage ON usage.key = stated.key
    JOIN session owner ON owner.id = usage.session JOIN session own ON own.id = stated.session
    ORDER BY stated.key";

/// A message that several sessions have.
struct SharedMessage {
    key: Vec<u8>,
    /// The account that it is charged to.
    present: usize,
    time: Option<i64>,
    model: String,
    tokens: [i64; 7],
    /// The session that began first of those that have it.
    first: SessionRank,
}

/// When a session began, and whose it is. The least of all sessions with a message is charged.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SessionRank {
    is_undated: bool,
    started: Option<i64>,
    person: Option<String>,
    account: usize,
}

impl Index {
    /// Loads all charges, with the owners of their sessions. A message that several people have is charged to the one
    /// whose session began first; of equal ones, to the first by name.
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
        let shared = self.wrap_error(self.load_shared_messages(&charges))?;
        let mut mover = ChargeMover::new(&charges);
        for message in &shared {
            let present = &charges.accounts[message.present].person;
            if *present != message.first.person {
                mover.move_message(&mut charges, message);
            }
        }
        mover.finish(&mut charges);
        Ok(charges)
    }

    fn load_shared_messages(&self, charges: &ChargeTable) -> rusqlite::Result<Vec<SharedMessage>> {
        let accounts = charges.accounts.iter().enumerate();
        let accounts: HashMap<(&str, &str), usize> = accounts
            .map(|(at, account)| ((account.agent.as_str(), account.session.as_str()), at))
            .collect();
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
            let person = charges.accounts[account].person.clone();
            let rank = SessionRank { is_undated: started.is_none(), started, person, account };
            let key: Vec<u8> = row.get(0)?;
            if let Some(message) = messages.last_mut().filter(|last| last.key == key) {
                if rank < message.first {
                    message.first = rank;
                }
                continue;
            }
            let mut tokens = [0; 7];
            for (at, number) in tokens.iter_mut().enumerate() {
                *number = integer_at(row, 8 + at)?;
            }
            let model = row.get::<_, Option<String>>(7)?.unwrap_or_default();
            let time = row.get(6)?;
            messages.push(SharedMessage { key, present, time, model, tokens, first: rank });
        }
        Ok(messages)
    }
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

    /// Takes a message out of the charges of its present account, and adds it to those of the first.
    fn move_message(&mut self, charges: &mut ChargeTable, message: &SharedMessage) {
        let SharedMessage { present, tokens, .. } = message;
        let (model, band) = (charges.model_index(&message.model), token_band(*tokens));
        let ended = |account: usize| charges.accounts[account].ended_at;
        let time = message.time.or_else(|| ended(*present));
        let places = self.places.get(&(*present, model, band, time.map(quarter_of)));
        let has_all = |charge: &UsageCharge| {
            charge.tokens.iter().zip(tokens).all(|(all, part)| all >= part)
                && charge.first <= time
                && charge.last >= time
        };
        let place = places.into_iter().flatten().find(|at| has_all(&charges.charges[**at]));
        let Some(at) = place.copied() else { return };
        let charge = &mut charges.charges[at];
        charge.tokens.iter_mut().zip(tokens).for_each(|(all, part)| *all -= part);
        if charge.tokens == [0; 7] {
            self.emptied.insert(at);
        }
        let account = message.first.account;
        let (first, last) = (time, time);
        let moved = UsageCharge { account, model, band, first, last, tokens: *tokens };
        charges.charges.push(moved);
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
