//! Charges directly from agents' session files, by the rules of the index: each API message once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;

use super::band;
use super::bill::{self, Bill, Bills, Rest, signed};
use super::charge::{Account, Charge, Charges};
use crate::format::{FormatError, Found, Item};
use crate::problem::ProblemList;
use crate::session::{Session, SessionId};
use crate::sums::{Sum, Sums};
use crate::timestamp::Timestamp;
use steno_vault::Wanted;

/// The charges of one session, from its files.
#[derive(Debug)]
pub struct Statement {
    session: Session,
    bills: Vec<Bill>,
    rest: Rest,
    /// Records that could not be read.
    pub problems: ProblemList,
}

impl Statement {
    /// Reads a session.
    pub fn read(found: &Found) -> Result<Self, FormatError> {
        let (mut bills, mut problems) = (Bills::default(), ProblemList::default());
        let nobody = SessionId::for_native("", "draft");
        let mut facts = Session::new(nobody, "");
        let mut number = 0;
        let bundle = found.bundle.clone().wanting(Wanted::Bills);
        let session = (found.reader.read)(&bundle, &mut |item| match item {
            Item::Entry(entry) => {
                bills.take(&entry, number);
                number += 1;
                facts.note_facts(&entry);
            }
            Item::Problem(problem) => problems.push(problem),
        })?;
        let total = bills.total();
        facts.totals.usage = total;
        let session = session.completed_by(facts);
        let rest = bill::rest(&session, &total);
        Ok(Self { session, bills: bills.all, rest, problems })
    }
}

/// Collects the charges of several sessions.
#[derive(Debug, Default)]
pub struct Register {
    charges: Charges,
    /// Index of the charge of each message that several sessions may share.
    messages: HashMap<Sum, usize, RandomState>,
    sums: Sums,
}

impl Register {
    /// Adds the charges of a session.
    pub fn enter(&mut self, Statement { session, bills, rest, .. }: Statement) {
        let account = self.charges.accounts.len();
        // A message without a time counts at the end of its session.
        let time = |at: Option<Timestamp>| at.or(rest.at);
        for bill in &bills {
            let tokens = signed(bill.usage.numbers());
            let charge = self.charge(account, (time(bill.at), bill.model.as_deref()), tokens);
            self.add(&bill.name(&session), charge);
        }
        if rest.tokens != [0; 7] {
            let charge = self.charge(account, (rest.at, rest.model.as_deref()), rest.tokens);
            // A copy of the session has the same remainder.
            let Rest { at, tokens, .. } = &rest;
            let name = format!("rest\n{}\n{}\n{at:?}\n{tokens:?}", session.agent, session.id);
            self.add(&name, charge);
        }
        self.charges.accounts.push(Account::of(session));
    }

    /// All charges.
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

    /// Adds a charge. If another session has the same message, the larger numbers win.
    fn add(&mut self, name: &str, charge: Charge) {
        match self.messages.entry(self.sums.of(name)) {
            Entry::Vacant(free) => {
                free.insert(self.charges.all.len());
                self.charges.all.push(charge);
            }
            Entry::Occupied(known) => {
                let known = &mut self.charges.all[*known.get()];
                for (mine, theirs) in known.tokens.iter_mut().zip(charge.tokens) {
                    *mine = (*mine).max(theirs);
                }
                known.band = band_of(known.tokens);
            }
        }
    }
}

/// The prompt band of a message with these tokens.
pub(crate) fn band_of(tokens: [i64; 7]) -> usize {
    let prompt = tokens[..3].iter().fold(0, |sum: i64, tokens| sum.saturating_add(*tokens));
    band(u64::try_from(prompt).unwrap_or(0))
}

impl Account {
    fn of(session: Session) -> Self {
        let at = session.ended.or(session.started);
        let usage = session.totals.usage;
        let size = usage.prompt().saturating_add(usage.output);
        Self {
            agent: session.agent,
            session: session.id.to_string(),
            project: session.project,
            title: session.title,
            thread: session.thread,
            at: at.map(|at| at.instant().as_millisecond()),
            stated: session.totals.cost,
            size: i64::try_from(size).unwrap_or(i64::MAX),
        }
    }
}
