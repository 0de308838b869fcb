//! Five-hour blocks, the unit of Claude's plan limits, and the burn rate of the active one.
//!
//! A block starts at the full hour (UTC) of its first message and lasts five hours. The next block starts with the
//! first message after that, or after a pause of more than five hours.

use super::charge::ChargeTable;
use super::report::ChargeSum;
use crate::entry_filter::EntryFilter;

/// Milliseconds per hour.
const HOUR_MS: i64 = 3_600_000;

/// Milliseconds per block.
const BLOCK_MS: i64 = 5 * HOUR_MS;

/// A five-hour block with charges, or a longer gap between blocks.
#[derive(Clone, Debug)]
pub struct BillingBlock {
    /// The start, in milliseconds since 1970.
    pub start: i64,
    /// The end.
    pub end: i64,
    /// Whether it is a gap.
    pub is_gap: bool,
    /// Indexes of its charges.
    pub charges: Vec<usize>,
    /// The sum of its charges.
    pub sum: ChargeSum,
}

/// How fast a block is used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurnRate {
    /// Tokens of all kinds.
    pub tokens_per_minute: f64,
    /// Dollars; `None` if no price is known.
    pub cost_per_hour: Option<f64>,
}

/// The totals at the end of a block, at its current rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockProjection {
    /// Minutes until the end.
    pub minutes_left: i64,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// Dollars; `None` if no price is known.
    pub cost: Option<f64>,
}

impl ChargeTable {
    /// The blocks that start within the filter's time range, and their sum.
    pub fn blocks_started_in(
        &self,
        costs: &[Option<f64>],
        filter: &EntryFilter,
    ) -> (Vec<BillingBlock>, ChargeSum) {
        // The start of a block depends on earlier charges.
        let always = EntryFilter { since: None, until: None, ..filter.clone() };
        let selected: Vec<usize> = self.select_charges(&always).collect();
        let mut blocks = self.split_blocks(costs, &selected);
        blocks.retain(|block| filter.matches_time(Some(block.start)));
        let within: Vec<usize> = blocks.iter().flat_map(|block| &block.charges).copied().collect();
        let total = self.sum_charges(costs, &within);
        (blocks, total)
    }

    /// The blocks of these charges, and the gaps between them.
    pub fn split_blocks(&self, costs: &[Option<f64>], selected: &[usize]) -> Vec<BillingBlock> {
        let timed = selected.iter().filter_map(|at| Some((self.charges[*at].first?, *at)));
        let mut timed: Vec<(i64, usize)> = timed.collect();
        timed.sort_unstable();
        let mut blocks: Vec<BillingBlock> = Vec::new();
        for (first, at) in timed {
            let open = blocks.last().filter(|block| first < block.end && !block.is_gap);
            let last = blocks.last().and_then(|block| block.sum.last);
            if open.is_none() || last.is_some_and(|last| first - last > BLOCK_MS) {
                let pause = last.filter(|last| first - last > BLOCK_MS);
                blocks.extend(pause.map(|last| BillingBlock::new(last + BLOCK_MS, first, true)));
                let start = first - first.rem_euclid(HOUR_MS);
                blocks.push(BillingBlock::new(start, start + BLOCK_MS, false));
            }
            if let Some(block) = blocks.last_mut() {
                block.charges.push(at);
                block.sum.add_charge(&self.charges[at], costs[at]);
            }
        }
        blocks
    }
}

impl BillingBlock {
    fn new(start: i64, end: i64, is_gap: bool) -> Self {
        Self { start, end, is_gap, charges: Vec::new(), sum: ChargeSum::default() }
    }

    /// Whether the block is active: it has not ended, and its last message is less than five hours old.
    pub fn is_active(&self, now: i64) -> bool {
        let used = self.sum.last.is_some_and(|last| now - last < BLOCK_MS);
        !self.is_gap && used && now < self.end
    }

    /// The rate between the first and the last message; `None` with a single message.
    pub fn burn_rate(&self) -> Option<BurnRate> {
        let minutes = (self.sum.last? - self.sum.first?) as f64 / 60_000.0;
        (minutes > 0.0).then(|| BurnRate {
            tokens_per_minute: self.total_tokens() as f64 / minutes,
            cost_per_hour: self.sum.cost().map(|cost| cost / minutes * 60.0),
        })
    }

    /// The projection, if the block is active.
    pub fn project_end(&self, now: i64) -> Option<BlockProjection> {
        let burn = Some(self.burn_rate()?).filter(|_| self.is_active(now))?;
        let left = (self.end - now) as f64 / 60_000.0;
        let more = burn.cost_per_hour.map(|rate| rate / 60.0 * left);
        Some(BlockProjection {
            minutes_left: left.round() as i64,
            tokens: self
                .total_tokens()
                .saturating_add((burn.tokens_per_minute * left).round() as u64),
            cost: self.sum.cost().zip(more).map(|(cost, more)| cost + more),
        })
    }

    /// Tokens of all kinds.
    pub fn total_tokens(&self) -> u64 {
        let tokens = self.sum.tokens();
        tokens.prompt_tokens().saturating_add(tokens.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::PriceTable;
    use crate::cost::charge::{CostMode, SessionAccount, UsageCharge};

    fn at(time: &str) -> i64 {
        time.parse::<jiff::Timestamp>().unwrap().as_millisecond()
    }

    /// The blocks of messages with a million output tokens each, at these times of day.
    fn blocks(times: &[&str]) -> Vec<BillingBlock> {
        let mut charges = ChargeTable::default();
        charges.accounts.push(SessionAccount::default());
        let model = charges.model_index("claude-haiku-4-5");
        for time in times {
            let at = Some(at(&format!("2026-01-05T{time}Z")));
            let tokens = [0, 0, 0, 0, 0, 1_000_000, 0];
            charges.charges.push(UsageCharge {
                account: 0,
                model,
                band: 0,
                first: at,
                last: at,
                tokens,
            });
        }
        let costs = charges.charge_costs(&PriceTable::bundled(), CostMode::Auto);
        charges.split_blocks(&costs, &(0..times.len()).collect::<Vec<_>>())
    }

    fn shape(blocks: &[BillingBlock]) -> Vec<(String, String, usize)> {
        let time =
            |at| jiff::Timestamp::from_millisecond(at).unwrap().strftime("%H:%M:%S").to_string();
        blocks
            .iter()
            .map(|block| (time(block.start), time(block.end), block.charges.len()))
            .collect()
    }

    #[test]
    fn a_block_begins_at_the_full_hour_and_takes_five() {
        let blocks = blocks(&["09:59:00", "14:00:00", "02:30:00", "13:59:59"]);
        let block = |start: &str, end: &str, count| (start.to_owned(), end.to_owned(), count);
        let pause = block("07:30:00", "09:59:00", 0);
        let all = [
            block("02:00:00", "07:00:00", 1),
            pause,
            block("09:00:00", "14:00:00", 2),
            block("14:00:00", "19:00:00", 1),
        ];
        assert_eq!(shape(&blocks), all);
        assert!(blocks[1].is_gap);
    }

    #[test]
    fn an_open_block_is_projected_to_its_end() {
        let blocks = blocks(&["09:30:00", "10:30:00"]);
        let block = &blocks[0];
        let (noon, later) = (at("2026-01-05T12:00:00Z"), at("2026-01-05T14:00:00Z"));
        assert!(block.is_active(noon) && !block.is_active(later));
        let burn = block.burn_rate().unwrap();
        assert_eq!(burn.cost_per_hour, Some(10.0));
        assert!((burn.tokens_per_minute - 2_000_000.0 / 60.0).abs() < 1e-6);
        let end = block.project_end(noon).unwrap();
        assert_eq!((end.minutes_left, end.tokens, end.cost), (120, 6_000_000, Some(30.0)));
        assert_eq!(block.project_end(later), None);
    }
}
