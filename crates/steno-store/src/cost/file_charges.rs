//! Charges directly from agents' session files, by the rules of the index: each API message once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;

use super::bill::{self, BillRemainder, MessageBill, SessionBills, signed_counts};
use super::charge::{ChargeTable, SessionAccount, UsageCharge};
use super::{PriceTable, prompt_band};
use steno_agents::reader::{FormatError, FoundSession, ReaderItem};
use steno_model::name_hash::{NameHash, NameHasher};
use steno_model::problem::ProblemList;
use steno_model::session::{Session, SessionId, Transcript};
use steno_model::timestamp::Timestamp;
use steno_vault::ReadDetail;

/// The charges of one session, from its files.
#[derive(Debug)]
pub struct SessionStatement {
    session: Session,
    bills: Vec<MessageBill>,
    rest: BillRemainder,
    /// Records that could not be read.
    pub problems: ProblemList,
}

impl SessionStatement {
    /// Reads a session. Fails if its files cannot be opened; records that cannot be parsed are problems, not errors.
    pub fn read(found: &FoundSession) -> Result<Self, FormatError> {
        let (mut bills, mut problems) = (SessionBills::default(), ProblemList::default());
        let nobody = SessionId::for_native("", "draft");
        let mut facts = Session::new(nobody, "");
        let mut number = 0;
        let bundle = found.bundle.clone().with_detail(ReadDetail::UsageOnly);
        let session = (found.reader.read)(&bundle, &mut |item| match item {
            ReaderItem::Entry(entry) => {
                bills.add_entry(&entry, number);
                number += 1;
                facts.add_entry_facts(&entry);
            }
            ReaderItem::Problem(problem) => problems.push(problem),
        })?;
        let total = bills.total_usage();
        facts.totals.usage = total;
        let session = session.completed_with(facts);
        let rest = bill::bill_remainder(&session, &total);
        Ok(Self { session, bills: bills.bills, rest, problems })
    }

    /// The charges of a transcript.
    fn from_transcript(transcript: &Transcript) -> Self {
        let mut bills = SessionBills::default();
        for (number, entry) in transcript.entries.iter().enumerate() {
            bills.add_entry(entry, number);
        }
        let session = transcript.session.clone();
        let rest = bill::bill_remainder(&session, &bills.total_usage());
        Self { session, bills: bills.bills, rest, problems: ProblemList::default() }
    }
}

/// The cost of a transcript's own messages; see [`ChargeTable::total_cost`].
pub fn transcript_cost(transcript: &Transcript, prices: &PriceTable) -> Option<f64> {
    let mut collector = ChargeCollector::default();
    collector.add_statement(SessionStatement::from_transcript(transcript));
    collector.finish().total_cost(prices)
}

/// Collects the charges of several sessions.
#[derive(Debug, Default)]
pub struct ChargeCollector {
    charges: ChargeTable,
    /// Index of the charge of each message that several sessions may share.
    messages: HashMap<NameHash, usize, RandomState>,
    hasher: NameHasher,
}

impl ChargeCollector {
    /// Adds the charges of a session.
    pub fn add_statement(
        &mut self,
        SessionStatement { session, bills, rest, .. }: SessionStatement,
    ) {
        let account = self.charges.accounts.len();
        // A message without a time counts at the end of its session.
        let time = |at: Option<Timestamp>| at.or(rest.at);
        for bill in &bills {
            let tokens = signed_counts(bill.usage.numbers());
            let charge = self.build_charge(account, time(bill.at), bill.model.as_deref(), tokens);
            self.merge_charge(&bill.message_key(&session), charge);
        }
        if rest.tokens != [0; 7] {
            let charge = self.build_charge(account, rest.at, rest.model.as_deref(), rest.tokens);
            // A copy of the session has the same remainder.
            let BillRemainder { at, tokens, .. } = &rest;
            let name = format!("rest\n{}\n{}\n{at:?}\n{tokens:?}", session.agent, session.id);
            self.merge_charge(&name, charge);
        }
        self.charges.accounts.push(SessionAccount::from_session(session));
    }

    /// All charges.
    pub fn finish(mut self) -> ChargeTable {
        self.charges.add_tokenless_sessions();
        self.charges
    }

    fn build_charge(
        &mut self,
        account: usize,
        at: Option<Timestamp>,
        model: Option<&str>,
        tokens: [i64; 7],
    ) -> UsageCharge {
        let at = at.map(|at| at.instant().as_millisecond());
        let model = self.charges.model_index(model.unwrap_or_default());
        UsageCharge { account, model, band: token_band(tokens), first: at, last: at, tokens }
    }

    /// Adds a charge. If another session has the same message, the larger numbers win.
    fn merge_charge(&mut self, name: &str, charge: UsageCharge) {
        match self.messages.entry(self.hasher.hash_name(name)) {
            Entry::Vacant(free) => {
                free.insert(self.charges.charges.len());
                self.charges.charges.push(charge);
            }
            Entry::Occupied(known) => {
                let known = &mut self.charges.charges[*known.get()];
                for (mine, theirs) in known.tokens.iter_mut().zip(charge.tokens) {
                    *mine = (*mine).max(theirs);
                }
                known.band = token_band(known.tokens);
            }
        }
    }
}

/// The prompt band of a message with these tokens.
pub(crate) fn token_band(tokens: [i64; 7]) -> usize {
    let prompt = tokens[..3].iter().fold(0, |sum: i64, tokens| sum.saturating_add(*tokens));
    prompt_band(u64::try_from(prompt).unwrap_or(0))
}

impl SessionAccount {
    fn from_session(session: Session) -> Self {
        let at = session.ended.or(session.started);
        let usage = session.totals.usage;
        let size = usage.prompt_tokens().saturating_add(usage.output);
        Self {
            agent: session.agent,
            session: session.id.to_string(),
            project: session.project,
            title: session.title,
            thread: session.thread,
            person: None,
            ended_at: at.map(|at| at.instant().as_millisecond()),
            reported_cost: session.totals.cost,
            reported_tokens: i64::try_from(size).unwrap_or(i64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::entry::{Entry, EntryKind, Role};
    use steno_model::usage::Usage;

    fn transcript(models: &[&str]) -> Transcript {
        let id = "one".parse().expect("the id is valid");
        let mut transcript = Transcript::new(Session::new(id, "codex"));
        for model in models {
            let mut entry = Entry::new(Role::Assistant, EntryKind::Text, "done");
            entry.model = Some((*model).to_owned());
            entry.usage = Some(Usage { output: 1_000_000, ..Usage::default() });
            transcript.push(entry);
        }
        transcript
    }

    #[test]
    fn the_cost_of_a_transcript_is_known_only_if_all_prices_are() {
        let prices = PriceTable::bundled();
        let cost = |models: &[&str]| transcript_cost(&transcript(models), &prices);
        assert_eq!(cost(&["claude-sonnet-4-5"]), Some(15.0));
        assert_eq!(cost(&["claude-sonnet-4-5", "claude-sonnet-4-5"]), Some(30.0));
        assert_eq!(cost(&["claude-sonnet-4-5", "unknown-model"]), None);
        assert_eq!(cost(&[]), None);
        let mut reported = transcript(&["unknown-model"]);
        reported.session.totals.cost = Some(0.5);
        assert_eq!(transcript_cost(&reported, &prices), Some(0.5));
    }
}
