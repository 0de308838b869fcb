//! Tokens: what a message was billed, and what messages add up to.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::timestamp::Timestamp;

/// Tokens billed, in one set of names for all vendors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens that no cache served.
    #[serde(default)]
    pub input: u64,
    /// Prompt tokens read from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Prompt tokens written to a cache, for however long.
    #[serde(default)]
    pub cache_write: u64,
    /// The part of `cache_write` that is kept for five minutes, where the vendor tells.
    #[serde(default)]
    pub cache_write_5m: u64,
    /// The part of `cache_write` that is kept for an hour, where the vendor tells.
    #[serde(default)]
    pub cache_write_1h: u64,
    /// Answer tokens, reasoning included.
    #[serde(default)]
    pub output: u64,
    /// The part of `output` that was reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl Usage {
    /// Adds another message's tokens.
    pub fn add(&mut self, other: &Usage) {
        self.combine(other, u64::saturating_add);
    }

    /// Takes the larger number of each kind: a message whose lines repeat a growing count.
    pub fn max(&mut self, other: &Usage) {
        self.combine(other, u64::max);
    }

    /// Takes the larger number of each kind, and tells what that added.
    fn grow(&mut self, other: &Usage) -> Usage {
        let before = *self;
        self.max(other);
        self.minus(&before)
    }

    /// What is left of it after `other`, which is no larger.
    pub(crate) fn minus(mut self, other: &Usage) -> Usage {
        self.combine(other, u64::saturating_sub);
        self
    }

    /// All numbers, in the order of the fields.
    pub(crate) fn numbers(&self) -> [u64; 7] {
        let Self { input, cache_read, cache_write, cache_write_5m, cache_write_1h, .. } = *self;
        [
            input,
            cache_read,
            cache_write,
            cache_write_5m,
            cache_write_1h,
            self.output,
            self.reasoning,
        ]
    }

    /// The tokens whose [`Usage::numbers`] these are.
    pub(crate) fn from_numbers(numbers: [u64; 7]) -> Self {
        let [input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning] =
            numbers;
        Self { input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning }
    }

    fn combine(&mut self, other: &Usage, how: impl Fn(u64, u64) -> u64) {
        for (mine, theirs) in [
            (&mut self.input, other.input),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.cache_write_5m, other.cache_write_5m),
            (&mut self.cache_write_1h, other.cache_write_1h),
            (&mut self.output, other.output),
            (&mut self.reasoning, other.reasoning),
        ] {
            *mine = how(*mine, theirs);
        }
    }

    /// All tokens of the prompt, cached or not.
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Whether nothing was billed.
    pub fn is_empty(&self) -> bool {
        *self == Usage::default()
    }
}

/// Adds up tokens, each API message once: what several records of a message repeat, or let grow, is not added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    messages: HashMap<String, Bill, RandomState>,
    total: Usage,
}

/// What one message was billed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bill {
    usage: Usage,
    /// When its first record with tokens was written.
    at: Option<Timestamp>,
}

impl Tally {
    /// Counts one more entry.
    pub fn count(&mut self, entry: &Entry) {
        if let Some(usage) = &entry.usage {
            self.bill(entry.message_id.as_ref(), entry.created_at, usage);
        }
    }

    /// Counts what a record of a message states.
    pub(crate) fn bill(&mut self, message: Option<&String>, at: Option<Timestamp>, usage: &Usage) {
        let Some(message) = message else { return self.total.add(usage) };
        let bill = match self.messages.get_mut(message) {
            Some(bill) => bill,
            None => {
                let new = Bill { usage: Usage::default(), at };
                self.messages.entry(message.clone()).or_insert(new)
            }
        };
        self.total.add(&bill.usage.grow(usage));
    }

    /// All tokens so far.
    pub fn total(&self) -> Usage {
        self.total
    }
}

/// The length from which an id is long enough to be one of its kind in the world.
const UNIQUE: usize = 16;

/// Adds up tokens of several sources: a message that was copied from one into another counts once.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    messages: HashMap<String, Usage, RandomState>,
}

impl Ledger {
    /// Counts what stands in one more source of an agent; tells how much of it earlier ones had already.
    pub fn repeated(&mut self, agent: &str, tally: &Tally) -> Usage {
        let mut repeated = Usage::default();
        for (message, bill) in &tally.messages {
            if let Some(key) = key(agent, message, bill.at) {
                let growth = self.messages.entry(key).or_default().grow(&bill.usage);
                repeated.add(&bill.usage.minus(&growth));
            }
        }
        repeated
    }
}

/// What names a message in all sources; nothing where another message may have the same name.
pub(crate) fn key(agent: &str, message: &str, at: Option<Timestamp>) -> Option<String> {
    if message.len() >= UNIQUE {
        return Some(format!("{agent}\n{message}"));
    }
    at.map(|at| format!("{agent}\n{message}\n{at}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Kind, Role};

    fn tally(messages: &[(&str, &str, u64)]) -> Tally {
        let mut tally = Tally::default();
        for (id, at, output) in messages {
            let mut entry = Entry::new(Role::Assistant, Kind::Text, "");
            entry.message_id = Some((*id).to_owned());
            entry.created_at = at.parse().ok();
            entry.usage = Some(Usage { output: *output, ..Usage::default() });
            tally.count(&entry);
        }
        tally
    }

    #[test]
    fn a_copied_message_counts_once_and_may_have_grown() {
        let (noon, later) = ("2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z");
        let mut ledger = Ledger::default();
        let first = [("msg_0123456789abcdef", noon, 5), ("step-1", noon, 7), ("step-2", "", 9)];
        assert_eq!(ledger.repeated("a", &tally(&first)).output, 0);
        let grown = [("msg_0123456789abcdef", later, 3), ("msg_0123456789abcdef", later, 8)];
        assert_eq!(ledger.repeated("a", &tally(&grown)).output, 5);
        // A short name is another message's unless it was written at the same time.
        assert_eq!(ledger.repeated("a", &tally(&[("step-1", later, 7)])).output, 0);
        assert_eq!(ledger.repeated("a", &tally(&[("step-1", noon, 7)])).output, 7);
        assert_eq!(ledger.repeated("a", &tally(&[("step-2", "", 9)])).output, 0);
        assert_eq!(ledger.repeated("b", &tally(&first)).output, 0);
    }
}
