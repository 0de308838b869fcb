//! Tokens, cost, tool calls and time of some entries of a session, such as a turn or a subagent's run.

use std::collections::HashMap;

use crate::cost::PriceTable;
use crate::cost::bill::SessionBills;
use steno_model::entry::{Entry, EntryKind};
use steno_model::timestamp::Timestamp;
use steno_model::usage::Usage;

/// What the messages of a session cost, by the number of the first entry of each message.
#[derive(Clone, Debug, Default)]
pub struct EntryCosts {
    charges: HashMap<usize, EntryCharge>,
}

/// The tokens of one message, and its cost if the price of its model is known.
#[derive(Clone, Copy, Debug)]
struct EntryCharge {
    usage: Usage,
    cost: Option<f64>,
}

/// The totals of some entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryTotals {
    /// How many entries there are.
    pub entries: u64,
    /// How many of them call a tool.
    pub tool_calls: u64,
    /// How many of them are results of tool calls that failed.
    pub failed_calls: u64,
    /// How many of them are other errors, as of the model's API.
    pub other_errors: u64,
    /// The tokens of their messages.
    pub usage: Usage,
    /// The cost of the messages whose price is known, in dollars; `None` if there are none.
    pub cost: Option<f64>,
    /// Whether the price of a message is unknown.
    pub is_partly_unpriced: bool,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// Whether the clock went back between two entries of one source.
    is_out_of_order: bool,
}

/// How far the clock may go back between two entries, in milliseconds. Agents write some entries a little late.
const MAX_STEP_BACK: i64 = 60_000;

impl EntryCosts {
    /// The costs of these entries. Each message counts once, at its first entry.
    pub fn from_entries(entries: &[Entry], prices: &PriceTable) -> Self {
        let mut bills = SessionBills::default();
        entries.iter().enumerate().for_each(|(number, entry)| bills.add_entry(entry, number));
        let mut known_prices = HashMap::new();
        let charges = bills.bills.iter().map(|bill| {
            let model = bill.model.as_deref().unwrap_or_default();
            let price = *known_prices.entry(model).or_insert_with(|| prices.find_price(model));
            let cost = price.and_then(|price| price.message_cost(&bill.usage));
            (bill.number, EntryCharge { usage: bill.usage, cost })
        });
        Self { charges: charges.collect() }
    }

    /// The totals of some entries with their numbers.
    pub fn sum_entries<'a>(
        &self,
        entries: impl Iterator<Item = (usize, &'a Entry)>,
    ) -> EntryTotals {
        let mut totals = EntryTotals::default();
        let mut times = Vec::new();
        for (number, entry) in entries {
            totals.add_entry(entry);
            let time = entry.created_at.map(|at| at.instant().as_millisecond());
            times.extend(time.map(|time| (entry.source.as_str(), number, time)));
            if let Some(charge) = self.charges.get(&number).filter(|one| !one.usage.is_empty()) {
                totals.usage.add(&charge.usage);
                match charge.cost {
                    Some(cost) => *totals.cost.get_or_insert_default() += cost,
                    None => totals.is_partly_unpriced = true,
                }
            }
        }
        totals.is_out_of_order = goes_back(times);
        totals
    }
}

/// Whether the time goes back between two entries of one source, in the order in which they were written.
fn goes_back(mut times: Vec<(&str, usize, i64)>) -> bool {
    times.sort_unstable();
    times.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[1].2 + MAX_STEP_BACK < pair[0].2)
}

impl EntryTotals {
    fn add_entry(&mut self, entry: &Entry) {
        self.entries += 1;
        self.tool_calls += u64::from(entry.kind == EntryKind::ToolCall);
        let is_failed_call = entry.is_tool_error();
        self.failed_calls += u64::from(is_failed_call);
        self.other_errors += u64::from(entry.kind == EntryKind::Error && !is_failed_call);
        let instant = |at: &Timestamp| at.instant();
        let times = entry.created_at;
        self.first = self.first.into_iter().chain(times).min_by_key(instant);
        self.last = self.last.into_iter().chain(times).max_by_key(instant);
    }

    /// The times of the first entry and the last.
    pub fn time_span(&self) -> Option<(Timestamp, Timestamp)> {
        self.first.zip(self.last)
    }

    /// The time between the first entry and the last, in milliseconds. It is unknown if the clock went back between,
    /// as after a copied entry: then the difference is no duration.
    pub fn duration_ms(&self) -> Option<i64> {
        if self.is_out_of_order {
            return None;
        }
        let (first, last) = (self.first?.instant(), self.last?.instant());
        Some(last.as_millisecond() - first.as_millisecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::entry::Role;

    fn said(message: &str, model: &str, output: u64, time: &str) -> Entry {
        let mut entry = Entry::new(Role::Assistant, EntryKind::Text, "x");
        entry.message_id = Some(message.to_owned());
        entry.model = Some(model.to_owned());
        entry.usage = Some(Usage { input: 100, output, ..Usage::default() });
        entry.created_at = format!("2026-01-05T09:{time}Z").parse().ok();
        entry
    }

    #[test]
    fn each_message_counts_once() {
        let entries = [
            said("msg_a", "claude-sonnet-4-5", 10, "00:00"),
            said("msg_a", "claude-sonnet-4-5", 30, "00:05"),
            said("msg_b", "no-such-model", 5, "01:30"),
        ];
        let costs = EntryCosts::from_entries(&entries, &PriceTable::bundled());
        let totals = costs.sum_entries(entries.iter().enumerate());
        assert_eq!((totals.entries, totals.usage.input, totals.usage.output), (3, 200, 35));
        assert!(totals.is_partly_unpriced);
        let expected = (100.0 * 3.0 + 30.0 * 15.0) / 1e6;
        assert!((totals.cost.unwrap_or(0.0) - expected).abs() < 1e-9, "{totals:?}");
        assert_eq!(totals.duration_ms(), Some(90_000));
        let second = costs.sum_entries(entries.iter().enumerate().skip(1).take(1));
        assert_eq!((second.usage, second.cost), (Usage::default(), None));
    }

    #[test]
    fn a_duration_is_unknown_if_the_clock_went_back() {
        let duration = |times: &[&str]| {
            let entries: Vec<Entry> = times.iter().map(|time| said("m", "x", 1, time)).collect();
            // Entries are in the order of the page; their numbers are the order in which they were written.
            EntryCosts::default().sum_entries(entries.iter().enumerate().rev()).duration_ms()
        };
        assert_eq!(duration(&["00:00", "30:00", "05:00"]), None);
        assert_eq!(duration(&["00:00", "30:00", "29:30"]), Some(1_800_000));
        let mut aside = said("m", "x", 1, "01:00");
        aside.source = "subagent:a".to_owned();
        let entries = [said("m", "x", 1, "00:00"), said("m", "x", 1, "30:00"), aside];
        let totals = EntryCosts::default().sum_entries(entries.iter().enumerate());
        assert_eq!(totals.duration_ms(), Some(1_800_000), "a subagent has its own order");
    }

    #[test]
    fn calls_and_failures_are_counted() {
        let mut failed = Entry::new(Role::Tool, EntryKind::ToolResult, "no");
        failed.extra.insert("is_error".to_owned(), true.into());
        let overloaded = Entry::new(Role::System, EntryKind::Error, "overloaded");
        let entries = [Entry::new(Role::Assistant, EntryKind::ToolCall, ""), failed, overloaded];
        let totals = EntryCosts::default().sum_entries(entries.iter().enumerate());
        assert_eq!((totals.tool_calls, totals.failed_calls, totals.other_errors), (1, 1, 1));
        assert_eq!(totals.duration_ms(), None);
    }
}
