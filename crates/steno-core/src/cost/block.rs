//! Five-hour blocks, the unit of Claude's plan limits, and the burn rate of the active one.
//!
//! A block starts at the full hour (UTC) of its first message and lasts five hours. The next block starts with the
//! first message after that, or after a pause of more than five hours.

use super::charge::Charges;
use super::report::Sum;
use crate::index::Filter;

/// Milliseconds per hour.
const HOUR: i64 = 3_600_000;

/// Milliseconds per block.
const LENGTH: i64 = 5 * HOUR;

/// A five-hour block with charges, or a longer gap between blocks.
#[derive(Clone, Debug)]
pub struct Block {
    /// The start, in milliseconds since 1970.
    pub start: i64,
    /// The end.
    pub end: i64,
    /// Whether it is a gap.
    pub is_gap: bool,
    /// Indexes of its charges.
    pub charges: Vec<usize>,
    /// The sum of its charges.
    pub sum: Sum,
}

/// How fast a block is used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burn {
    /// Tokens of all kinds.
    pub tokens_per_minute: f64,
    /// Dollars; `None` if no price is known.
    pub cost_per_hour: Option<f64>,
}

/// The totals at the end of a block, at its current rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projection {
    /// Minutes until the end.
    pub minutes_left: i64,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// Dollars; `None` if no price is known.
    pub cost: Option<f64>,
}

impl Charges {
    /// The blocks that start within the filter's time range, and their sum.
    pub fn blocks_begun(&self, costs: &[Option<f64>], filter: &Filter) -> (Vec<Block>, Sum) {
        // The start of a block depends on earlier charges.
        let always = Filter { since: None, until: None, ..filter.clone() };
        let selected: Vec<usize> = self.select(&always).collect();
        let mut blocks = self.blocks(costs, &selected);
        blocks.retain(|block| filter.has_time(Some(block.start)));
        let within: Vec<usize> = blocks.iter().flat_map(|block| &block.charges).copied().collect();
        let total = self.total(costs, &within);
        (blocks, total)
    }

    /// The blocks of these charges, and the gaps between them.
    pub fn blocks(&self, costs: &[Option<f64>], selected: &[usize]) -> Vec<Block> {
        let timed = selected.iter().filter_map(|at| Some((self.all[*at].first?, *at)));
        let mut timed: Vec<(i64, usize)> = timed.collect();
        timed.sort_unstable();
        let mut blocks: Vec<Block> = Vec::new();
        for (first, at) in timed {
            let open = blocks.last().filter(|block| first < block.end && !block.is_gap);
            let last = blocks.last().and_then(|block| block.sum.last);
            if open.is_none() || last.is_some_and(|last| first - last > LENGTH) {
                let pause = last.filter(|last| first - last > LENGTH);
                blocks.extend(pause.map(|last| Block::new(last + LENGTH, first, true)));
                let start = first - first.rem_euclid(HOUR);
                blocks.push(Block::new(start, start + LENGTH, false));
            }
            if let Some(block) = blocks.last_mut() {
                block.charges.push(at);
                block.sum.add(&self.all[at], costs[at]);
            }
        }
        blocks
    }
}

impl Block {
    fn new(start: i64, end: i64, is_gap: bool) -> Self {
        Self { start, end, is_gap, charges: Vec::new(), sum: Sum::default() }
    }

    /// Whether the block is active: it has not ended, and its last message is less than five hours old.
    pub fn is_active(&self, now: i64) -> bool {
        let used = self.sum.last.is_some_and(|last| now - last < LENGTH);
        !self.is_gap && used && now < self.end
    }

    /// The rate between the first and the last message; `None` with a single message.
    pub fn burn(&self) -> Option<Burn> {
        let minutes = (self.sum.last? - self.sum.first?) as f64 / 60_000.0;
        (minutes > 0.0).then(|| Burn {
            tokens_per_minute: self.tokens() as f64 / minutes,
            cost_per_hour: self.sum.cost().map(|cost| cost / minutes * 60.0),
        })
    }

    /// The projection, if the block is active.
    pub fn projection(&self, now: i64) -> Option<Projection> {
        let burn = Some(self.burn()?).filter(|_| self.is_active(now))?;
        let left = (self.end - now) as f64 / 60_000.0;
        let more = burn.cost_per_hour.map(|rate| rate / 60.0 * left);
        Some(Projection {
            minutes_left: left.round() as i64,
            tokens: self.tokens().saturating_add((burn.tokens_per_minute * left).round() as u64),
            cost: self.sum.cost().zip(more).map(|(cost, more)| cost + more),
        })
    }

    /// Tokens of all kinds.
    pub fn tokens(&self) -> u64 {
        let tokens = self.sum.tokens();
        tokens.prompt().saturating_add(tokens.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Prices;
    use crate::cost::charge::{Account, Charge, Mode};

    fn at(time: &str) -> i64 {
        time.parse::<jiff::Timestamp>().unwrap().as_millisecond()
    }

    /// The blocks of messages with a million output tokens each, at these times of day.
    fn blocks(times: &[&str]) -> Vec<Block> {
        let mut charges = Charges::default();
        charges.accounts.push(Account::default());
        let model = charges.model("claude-haiku-4-5");
        for time in times {
            let at = Some(at(&format!("2026-01-05T{time}Z")));
            let tokens = [0, 0, 0, 0, 0, 1_000_000, 0];
            charges.all.push(Charge { account: 0, model, band: 0, first: at, last: at, tokens });
        }
        let costs = charges.costs(&Prices::bundled(), Mode::Auto);
        charges.blocks(&costs, &(0..times.len()).collect::<Vec<_>>())
    }

    fn shape(blocks: &[Block]) -> Vec<(String, String, usize)> {
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
        let burn = block.burn().unwrap();
        assert_eq!(burn.cost_per_hour, Some(10.0));
        assert!((burn.tokens_per_minute - 2_000_000.0 / 60.0).abs() < 1e-6);
        let end = block.projection(noon).unwrap();
        assert_eq!((end.minutes_left, end.tokens, end.cost), (120, 6_000_000, Some(30.0)));
        assert_eq!(block.projection(later), None);
    }
}
