//! Gives each API message's tokens to one entry: the last one of the message.
//!
//! A message comes in several lines that repeat its tokens, and early lines state too few. So its
//! last entry is held back until the next message begins.

use crate::entry::{Entry, Usage};
use crate::usage::Tally;

/// How many entries may wait behind one that is held back.
const WAITING_LIMIT: usize = 256;

/// The tokens that one line states for its message.
#[derive(Debug, PartialEq)]
pub(super) struct Bill {
    pub(super) message_id: String,
    pub(super) usage: Usage,
}

/// Entries on their way out.
#[derive(Debug, Default)]
pub(super) struct Billing {
    /// What was given to entries already.
    billed: Tally,
    open: Option<Bill>,
    /// The last entry of the open message, and what came after it.
    waiting: Vec<Entry>,
}

impl Billing {
    /// Takes the entries of one record, and lets go of those that need not wait.
    pub(super) fn take(
        &mut self,
        entries: Vec<Entry>,
        bill: Option<Bill>,
        out: &mut dyn FnMut(Entry),
    ) {
        let Some(bill) = bill else {
            if self.open.is_none() {
                return entries.into_iter().for_each(out);
            }
            self.waiting.extend(entries);
            if self.waiting.len() > WAITING_LIMIT {
                self.close(out);
            }
            return;
        };
        match &mut self.open {
            Some(open) if open.message_id == bill.message_id => open.usage.max(&bill.usage),
            _ => {
                self.close(out);
                self.open = Some(bill);
            }
        }
        self.waiting.extend(entries);
        let last = self.waiting.len().saturating_sub(1);
        self.waiting.drain(..last).for_each(out);
    }

    /// Ends the open message.
    pub(super) fn close(&mut self, out: &mut dyn FnMut(Entry)) {
        if let (Some(open), Some(entry)) = (self.open.take(), self.waiting.first_mut()) {
            let growth = self.billed.bill(Some(&open.message_id), None, &open.usage);
            // One that comes back states all of its tokens again: a tally takes the larger count.
            entry.usage = self.billed.billed(&open.message_id).filter(|_| !growth.is_empty());
        }
        self.waiting.drain(..).for_each(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Kind, Role};

    fn bill(id: &str, output: u64) -> Option<Bill> {
        let usage = Usage { output, ..Usage::default() };
        Some(Bill { message_id: id.to_owned(), usage })
    }

    fn run(records: &[(&str, Option<Bill>)]) -> Vec<(String, u64)> {
        let mut out = Vec::new();
        let mut take =
            |entry: Entry| out.push((entry.content, entry.usage.map_or(0, |u| u.output)));
        let mut billing = Billing::default();
        for (text, bill) in records {
            let entry = Entry::new(Role::Assistant, Kind::Text, *text);
            let bill = bill.as_ref().and_then(|b| self::bill(&b.message_id, b.usage.output));
            billing.take(vec![entry], bill, &mut take);
        }
        billing.close(&mut take);
        out
    }

    #[test]
    fn the_last_entry_of_a_message_has_the_largest_count() {
        let got = run(&[
            ("a", bill("m1", 1)),
            ("result", None),
            ("b", bill("m1", 9)),
            ("result", None),
            ("c", bill("m2", 5)),
        ]);
        let names: Vec<_> = got.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(names, [("a", 0), ("result", 0), ("b", 9), ("result", 0), ("c", 5)]);
    }

    #[test]
    fn a_message_that_comes_back_states_its_tokens_again_if_they_grew() {
        let (same, grown) = (bill("m1", 3), bill("m1", 4));
        let got = run(&[("a", bill("m1", 3)), ("b", bill("m2", 5)), ("c", same), ("d", None)]);
        assert_eq!(got.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [3, 5, 0, 0]);
        let got = run(&[("a", bill("m1", 3)), ("b", bill("m2", 5)), ("c", grown)]);
        assert_eq!(got.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [3, 5, 4]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut records = vec![("a", bill("m1", 3))];
        records.extend((0..WAITING_LIMIT * 2).map(|_| ("x", None)));
        records.push(("b", bill("m1", 8)));
        let got = run(&records);
        assert_eq!((got[0].1, got[got.len() - 1].1), (3, 8));
    }
}
