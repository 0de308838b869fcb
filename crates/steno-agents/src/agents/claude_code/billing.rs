//! Assigns the usage of each API message to one entry: the last entry of the message.
//!
//! Claude Code writes a message as several lines. Each line repeats the message's usage, and the counts of early
//! lines are too low. So the last entry is held back until the next message begins.

use steno_model::entry::{Entry, Usage};
use steno_model::usage_tally::UsageTally;

/// How many entries may queue behind the held one. Beyond that, the message is closed early.
const MAX_WAITING_ENTRIES: usize = 256;

/// The usage that one line reports for its message.
#[derive(Debug, PartialEq)]
pub(super) struct ClaudeMessageUsage {
    pub(super) message_id: String,
    pub(super) usage: Usage,
}

/// Holds back entries until the usage of their message is final.
#[derive(Debug, Default)]
pub(super) struct ClaudeUsageAssigner {
    /// Usage that entries have already.
    billed: UsageTally,
    open: Option<ClaudeMessageUsage>,
    /// The last entry of the open message, and the entries after it.
    waiting: Vec<Entry>,
}

impl ClaudeUsageAssigner {
    /// Queues the entries of one record, and passes on to `out` those that need not wait.
    pub(super) fn push_entries(
        &mut self,
        entries: Vec<Entry>,
        bill: Option<ClaudeMessageUsage>,
        out: &mut dyn FnMut(Entry),
    ) {
        let Some(bill) = bill else {
            if self.open.is_none() {
                return entries.into_iter().for_each(out);
            }
            self.waiting.extend(entries);
            if self.waiting.len() > MAX_WAITING_ENTRIES {
                self.close_message(out);
            }
            return;
        };
        match &mut self.open {
            Some(open) if open.message_id == bill.message_id => open.usage.raise_to(&bill.usage),
            _ => {
                self.close_message(out);
                self.open = Some(bill);
            }
        }
        self.waiting.extend(entries);
        let last = self.waiting.len().saturating_sub(1);
        self.waiting.drain(..last).for_each(out);
    }

    /// Closes the open message: assigns its usage and passes all queued entries on to `out`.
    pub(super) fn close_message(&mut self, out: &mut dyn FnMut(Entry)) {
        if let (Some(open), Some(entry)) = (self.open.take(), self.waiting.first_mut()) {
            let growth = self.billed.count_message(Some(&open.message_id), None, &open.usage);
            // A message that appears again repeats its whole usage; the tally keeps the larger count.
            entry.usage =
                self.billed.message_usage(&open.message_id).filter(|_| !growth.is_empty());
        }
        self.waiting.drain(..).for_each(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::entry::{EntryKind, Role};

    fn bill(id: &str, output: u64) -> Option<ClaudeMessageUsage> {
        let usage = Usage { output, ..Usage::default() };
        Some(ClaudeMessageUsage { message_id: id.to_owned(), usage })
    }

    fn run(records: &[(&str, Option<ClaudeMessageUsage>)]) -> Vec<(String, u64)> {
        let mut out = Vec::new();
        let mut take =
            |entry: Entry| out.push((entry.content, entry.usage.map_or(0, |u| u.output)));
        let mut billing = ClaudeUsageAssigner::default();
        for (text, bill) in records {
            let entry = Entry::new(Role::Assistant, EntryKind::Text, *text);
            let bill = bill.as_ref().and_then(|b| self::bill(&b.message_id, b.usage.output));
            billing.push_entries(vec![entry], bill, &mut take);
        }
        billing.close_message(&mut take);
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
    fn waiting_entries_are_bounded() {
        let mut records = vec![("a", bill("m1", 3))];
        records.extend((0..MAX_WAITING_ENTRIES * 2).map(|_| ("x", None)));
        records.push(("b", bill("m1", 8)));
        let got = run(&records);
        assert_eq!((got[0].1, got[got.len() - 1].1), (3, 8));
    }
}
