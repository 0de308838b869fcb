//! Charges straight from agents' files, by the same rules as the index has: each API message once.

use std::collections::HashMap;

use super::band;
use super::bill::{self, Bills, signed};
use super::charge::{Account, Charge, Charges};
use crate::format::{FormatError, Found, Item};
use crate::problem::ProblemList;
use crate::session::{Session, SessionId};
use crate::timestamp::Timestamp;
use crate::usage::key;

/// What one session was billed, as its files tell.
#[derive(Debug)]
pub struct Statement {
    session: Session,
    bills: Bills,
    /// Records that could not be read.
    pub problems: ProblemList,
}

impl Statement {
    /// Reads a session.
    pub fn read(found: &Found) -> Result<Self, FormatError> {
        let (mut bills, mut problems) = (Bills::default(), ProblemList::default());
        let nobody = SessionId::for_native("", "draft");
        let mut told = Session::new(nobody, "");
        let mut number = 0;
        let stated = (found.reader.read)(&found.bundle, &mut |item| match item {
            Item::Entry(entry) => {
                bills.take(&entry, number);
                number += 1;
                told.note_facts(&entry);
            }
            Item::Problem(problem) => problems.push(problem),
        })?;
        told.totals.usage = bills.total();
        Ok(Self { session: stated.completed_by(told), bills, problems })
    }
}

/// What was billed in several sessions.
#[derive(Debug, Default)]
pub struct Register {
    charges: Charges,
    /// Which charge a message is that several sessions may have.
    messages: HashMap<String, usize>,
}

impl Register {
    /// Enters what one more session was billed.
    pub fn enter(&mut self, Statement { session, bills, .. }: Statement) {
        let account = self.charges.accounts.len();
        let rest = bill::rest(&session, &bills.total());
        // What tells no time counts when its session ended.
        let time = |at: Option<Timestamp>| at.or(rest.at);
        for bill in &bills.all {
            let name = bill.message.as_ref();
            let name = name.and_then(|message| key(&session.agent, message, bill.at));
            let tokens = signed(bill.usage.numbers());
            let charge = self.charge(account, (time(bill.at), bill.model.as_deref()), tokens);
            self.add(name, charge);
        }
        if rest.tokens != [0; 7] {
            let charge = self.charge(account, (rest.at, rest.model.as_deref()), rest.tokens);
            self.add(None, charge);
        }
        self.charges.accounts.push(Account::of(session));
    }

    /// All that was billed.
    pub fn finish(mut self) -> Charges {
        self.charges.complete();
        self.charges
    }

    fn charge(
        &mut self,
        account: usize,
        (at, model): (Option<Timestamp>, Option<&str>),
        tokens: [i64; 7],
    ) -> Charge {
        let at = at.map(|at| at.instant().as_millisecond());
        let model = self.charges.model(model.unwrap_or_default());
        Charge { account, model, band: band_of(tokens), first: at, last: at, tokens }
    }

    /// Adds a charge; what another session states of the same message counts where it is larger.
    fn add(&mut self, name: Option<String>, charge: Charge) {
        let known = name.as_ref().and_then(|name| self.messages.get(name));
        if let Some(known) = known {
            let known = &mut self.charges.all[*known];
            for (mine, theirs) in known.tokens.iter_mut().zip(charge.tokens) {
                *mine = (*mine).max(theirs);
            }
            known.band = band_of(known.tokens);
            return;
        }
        if let Some(name) = name {
            self.messages.insert(name, self.charges.all.len());
        }
        self.charges.all.push(charge);
    }
}

/// In which band a message with these tokens is.
pub(crate) fn band_of(tokens: [i64; 7]) -> usize {
    band(u64::try_from(tokens[..3].iter().sum::<i64>()).unwrap_or(0))
}

impl Account {
    fn of(session: Session) -> Self {
        let at = session.ended.or(session.started);
        Self {
            agent: session.agent,
            session: session.id.to_string(),
            project: session.project,
            title: session.title,
            thread: session.thread,
            at: at.map(|at| at.instant().as_millisecond()),
            stated: session.totals.cost,
        }
    }
}
