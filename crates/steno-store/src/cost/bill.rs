//! The billed messages of one session, from its entries.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::transcript::run_reading::RecordOrigin;
use steno_agents::agents::codex;
use steno_model::entry::Entry;
use steno_model::session::Session;
use steno_model::timestamp::Timestamp;
use steno_model::usage::{Usage, message_key};

/// Entries of a recording that are those of another session.
#[derive(Debug)]
struct OriginSpan {
    origin: RecordOrigin,
    /// The number of its first entry in the recording.
    first: usize,
}

/// The usage of one message.
#[derive(Clone, Debug)]
pub(crate) struct MessageBill {
    /// The session that it was billed in, where that is another than the one that is read.
    span: Option<Arc<OriginSpan>>,
    pub(crate) message: Option<String>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) model: Option<String>,
    /// Number of the first entry with this usage.
    pub(crate) number: usize,
    /// Number of the last entry with this usage.
    pub(crate) last: usize,
    pub(crate) usage: Usage,
    /// All tokens that the session, or its origin, was billed before, of all kinds.
    tokens_before: u64,
}

/// The part of a session's own total that its messages do not account for. Numbers may be negative.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BillRemainder {
    pub(crate) at: Option<Timestamp>,
    pub(crate) model: Option<String>,
    pub(crate) tokens: [i64; 7],
}

/// The billed messages of one session, each once.
#[derive(Debug, Default)]
pub(crate) struct SessionBills {
    pub(crate) bills: Vec<MessageBill>,
    messages: HashMap<String, usize, RandomState>,
    span: Option<Arc<OriginSpan>>,
    /// The tokens that this origin was billed so far, also in bills that were taken out, as they were first stated.
    tokens: u64,
}

impl SessionBills {
    /// From entry `first` on, messages were billed in the session `origin`; without one, in the session itself.
    pub(crate) fn begin_origin(&mut self, origin: Option<RecordOrigin>, first: usize) {
        if self.span.as_ref().map(|span| &span.origin) != origin.as_ref() {
            self.tokens = 0;
        }
        self.span = origin.map(|origin| Arc::new(OriginSpan { origin, first }));
    }

    /// No bills yet; the next one has the same origin and continues the count of tokens.
    pub(crate) fn emptied(&self) -> Self {
        Self { span: self.span.clone(), tokens: self.tokens, ..Self::default() }
    }

    /// Adds the entry with this number. If several records report the same message, the largest number of each kind
    /// counts.
    pub(crate) fn add_entry(&mut self, entry: &Entry, number: usize) {
        let Some(usage) = &entry.usage else { return };
        let known = entry.message_id.as_ref().and_then(|message| self.messages.get(message));
        if let Some(bill) = known.and_then(|at| self.bills.get_mut(*at)) {
            bill.usage.raise_to(usage);
            bill.last = number;
            bill.model = bill.model.take().or_else(|| entry.model.clone());
            return;
        }
        if let Some(message) = &entry.message_id {
            self.messages.insert(message.clone(), self.bills.len());
        }
        self.bills.push(MessageBill {
            span: self.span.clone(),
            message: entry.message_id.clone(),
            at: entry.created_at,
            model: entry.model.clone(),
            number,
            last: number,
            usage: *usage,
            tokens_before: self.tokens,
        });
        self.tokens = usage.numbers().into_iter().fold(self.tokens, u64::saturating_add);
    }

    /// Total usage of the messages.
    pub(crate) fn total_usage(&self) -> Usage {
        let mut total = Usage::default();
        self.bills.iter().for_each(|bill| total.add(&bill.usage));
        total
    }
}

impl MessageBill {
    /// A key that identifies the message in all sessions. A message without a global id gets a key of its session, unless
    /// its agent's copies of a session can be recognized.
    pub(crate) fn message_key(&self, session: &Session) -> String {
        if let Some(key) = self.copied_key(session) {
            return key;
        }
        let (agent, id, number) = match self.span.as_deref() {
            Some(OriginSpan { origin, first }) => (&origin.agent, &origin.id, self.number - first),
            None => (&session.agent, &session.id, self.number),
        };
        let Some(message) = &self.message else {
            let at = self.at.map(|at| at.to_string()).unwrap_or_default();
            return format!("entry\n{agent}\n{id}\n{number}\n{at}");
        };
        match message_key(agent, message, self.at) {
            Some(key) => format!("message\n{key}"),
            None => format!("name\n{agent}\n{id}\n{message}"),
        }
    }

    /// The key of a message of Codex, which states no message ids: what a copy of the session has too. The tokens before
    /// it tell apart messages of one session; time and tokens tell apart sessions.
    fn copied_key(&self, session: &Session) -> Option<String> {
        let agent = self.span.as_ref().map_or(&session.agent, |span| &span.origin.agent);
        let is_codex = agent == codex::AGENT_NAME;
        let at = self.at.filter(|_| is_codex && self.message.is_none())?;
        let before = self.tokens_before;
        let model = self.model.as_deref().unwrap_or_default();
        let numbers = self.usage.numbers().map(|number| number.to_string()).join(" ");
        Some(format!("count\n{agent}\n{at}\n{model}\n{before}\n{numbers}"))
    }
}

/// The part of the session's total that messages with `billed` usage do not account for.
pub(crate) fn bill_remainder(session: &Session, billed: &Usage) -> BillRemainder {
    let mut tokens = signed_counts(session.totals.usage.numbers());
    let billed = signed_counts(billed.numbers());
    tokens.iter_mut().zip(billed).for_each(|(total, billed)| *total = total.saturating_sub(billed));
    // With several models, the remainder has no known model.
    let model = session.models.first().filter(|_| session.models.len() == 1);
    BillRemainder { at: session.ended.or(session.started), model: model.cloned(), tokens }
}

/// Signed numbers, as SQLite stores them.
pub(crate) fn signed_counts(numbers: [u64; 7]) -> [i64; 7] {
    numbers.map(|number| i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::entry::{EntryKind, Role};

    fn name(agent: &str, message: &str) -> String {
        let mut entry = Entry::new(Role::Assistant, EntryKind::Text, "");
        entry.message_id = Some(message.to_owned());
        entry.usage = Some(Usage { output: 7, ..Usage::default() });
        let mut bills = SessionBills::default();
        bills.add_entry(&entry, 0);
        bills.bills[0].message_key(&Session::new("s".parse().unwrap(), agent))
    }

    /// The keys of two answers of Codex, in a session with this id.
    fn codex_keys(id: &str, outputs: [u64; 2], second: u32) -> Vec<String> {
        let session = Session::new(id.parse().unwrap(), codex::AGENT_NAME);
        let mut bills = SessionBills::default();
        let mut keys = Vec::new();
        for (number, output) in outputs.into_iter().enumerate() {
            let mut entry = Entry::new(Role::Assistant, EntryKind::Text, "");
            entry.created_at = format!("2026-01-05T09:00:{second:02}.123Z").parse().ok();
            entry.usage = Some(Usage { output, ..Usage::default() });
            bills.add_entry(&entry, number);
            keys.extend(bills.bills.iter().map(|bill| bill.message_key(&session)));
            bills = bills.emptied();
        }
        keys
    }

    #[test]
    fn a_copy_of_a_codex_session_has_its_keys() {
        let keys = codex_keys("a", [7, 7], 1);
        assert_eq!(keys, codex_keys("b", [7, 7], 1));
        assert_ne!(keys[0], keys[1], "two answers of one time with the same tokens");
        for other in [codex_keys("a", [7, 7], 2), codex_keys("a", [8, 8], 1)] {
            assert!(keys.iter().all(|key| !other.contains(key)), "{keys:?} {other:?}");
        }
    }

    #[test]
    fn a_message_of_an_api_has_one_key_for_all_recorders() {
        let id = "msg_01AbCdEfGhIjKlMnOpQr";
        assert_eq!(name("claude-code", id), name("claude", id));
        assert_ne!(name("claude-code", id), name("claude-code", "msg_01AbCdEfGhIjKlMnOpQs"));
        assert_ne!(name("claude-code", "1"), name("claude", "1"), "a short id is the agent's own");
    }
}
