//! Costs by blocks of five hours, by which Claude's plans limit usage.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, DateTime};
use maud::{Markup, html};
use steno_store::amount::format_dollars;
use steno_store::cost::billing_block::BillingBlock;
use steno_store::view::json_rows::cost::timestamp_from_millis;

use super::{ADDRESS, CostView, NO_PRICE, no_charges};
use crate::chart::{BarChart, ChartBar, ChartStyle};
use crate::chart_axis::{ChartAxis, span_of};
use crate::cost_tables::{CostLine, cost_table};
use crate::period_step::PeriodStep;
use crate::render::plain::clean_text;
use crate::units::{count_of, exact_count};

/// The most bars of a chart of single blocks. More are added up by day, week or month.
const MAX_BLOCK_BARS: usize = 60;

/// The agent whose plans limit usage by blocks.
const PLAN_AGENT: &str = "claude-code";

/// What a chart of single blocks shows.
const SINGLE_CAPTION: &str = "US dollars a block of five hours; times without a block are left out";

impl CostView<'_> {
    /// The chart and the table of blocks.
    pub(super) fn block_costs(&self) -> Markup {
        let Self { library, accounts, filters, .. } = *self;
        let (blocks, _) = accounts.charges.blocks_started_in(&accounts.costs, &accounts.filter);
        let now = library.clock.now().instant().as_millisecond();
        let used: Vec<_> = blocks.iter().filter(|block| !block.is_gap).collect();
        let mut lines = self.block_lines(&used);
        lines.reverse();
        let open = used.last().filter(|block| block.is_active(now));
        html! {
            p { small { "Claude's plans limit usage in blocks of five hours." (self.agents_of_blocks()) } }
            @if let Some((open, end)) = open.and_then(|open| Some((open, open.project_end(now)?))) {
                p.card {
                    "The current block ends in " b { (end.minutes_left) " minutes" } ", at "
                    b { (end.cost.map_or("an unknown cost".to_owned(), format_dollars)) }
                    @if let Some(rate) = open.burn_rate().and_then(|burn| burn.cost_per_hour) {
                        " if spending continues at " (format_dollars(rate)) " an hour"
                    }
                    "."
                }
            }
            @if lines.is_empty() { (no_charges(filters)) }
            @else { (self.block_chart(&used)) (cost_table("block", &lines)) }
        }
    }

    /// Says whose costs the blocks add up, if it is not Claude Code's alone.
    fn agents_of_blocks(&self) -> Markup {
        let charges = &self.accounts.charges;
        let agent = |at: usize| charges.accounts[charges.charges[at].account].agent.as_str();
        let agents: BTreeSet<&str> =
            charges.select_charges(&self.accounts.filter).map(agent).collect();
        note_of_agents(&agents, &self.filters.address_with(ADDRESS, "agent", PLAN_AGENT))
    }

    fn local_time(&self, at: i64) -> Option<DateTime> {
        Some(timestamp_from_millis(at)?.in_zone(&self.viewer.zone).wall())
    }

    /// The rows of a table of blocks, the oldest first.
    pub(super) fn block_lines<'b>(&self, blocks: &[&'b BillingBlock]) -> Vec<CostLine<'b>> {
        let name = |block: &BillingBlock| {
            let at = self.local_time(block.start);
            at.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
        };
        let line =
            |block: &&'b BillingBlock| CostLine { name: name(block), link: None, sum: &block.sum };
        blocks.iter().map(line).collect()
    }

    /// All blocks: each as a bar, or many by day, week or month.
    fn block_chart(&self, blocks: &[&BillingBlock]) -> Markup {
        let begun: Vec<Date> = blocks.iter().filter_map(|block| self.begin_day(block)).collect();
        let Some(days) = span_of(&begun) else { return html! {} };
        let (bars, unit) = match blocks.len() > MAX_BLOCK_BARS {
            true => {
                self.summed_bars(blocks, &ChartAxis::new(PeriodStep::for_bars(days), days, &begun))
            }
            false => (self.single_bars(blocks), SINGLE_CAPTION.to_owned()),
        };
        BarChart {
            title: "Cost by block",
            unit: &unit,
            unknown: NO_PRICE,
            bars: &bars,
            format: format_dollars,
            limits: &[],
            series: &[],
            style: ChartStyle::Bars,
        }
        .draw()
    }

    fn begin_day(&self, block: &BillingBlock) -> Option<Date> {
        Some(self.local_time(block.start)?.date())
    }

    /// A bar for each step of the axis, with the sum of the blocks that began in it, and the caption.
    fn summed_bars(&self, blocks: &[&BillingBlock], axis: &ChartAxis) -> (Vec<ChartBar>, String) {
        let mut steps: BTreeMap<Date, Vec<&BillingBlock>> = BTreeMap::new();
        for block in blocks {
            let Some(day) = self.begin_day(block) else { continue };
            steps.entry(axis.step.first_day(day)).or_default().push(block);
        }
        let bars = steps.iter().map(|(day, blocks)| (*day, sum_bar(blocks))).collect();
        let (count, step) = (exact_count(blocks.len() as u64), axis.step.name());
        let unit = axis.caption(&format!(
            "US dollars in {count} blocks of five hours, by the {step} in which they began"
        ));
        (axis.fill(bars, Some(0.0)), unit)
    }

    /// A bar for each block. The first of a day has the day as its label.
    fn single_bars(&self, blocks: &[&BillingBlock]) -> Vec<ChartBar> {
        let mut last_day = None;
        let mut bars = Vec::new();
        for block in blocks {
            let Some(begin) = self.local_time(block.start) else { continue };
            let is_new_day = last_day.replace(begin.date()) != Some(begin.date());
            let label = is_new_day.then(|| begin.strftime("%-d %b").to_string());
            bars.push(ChartBar {
                name: begin.strftime("%A, %-d %B %Y, %H:%M").to_string(),
                label: label.unwrap_or_default(),
                ..ChartBar::with_amount(block.sum.cost())
            });
        }
        bars
    }
}

/// Names the agents of blocks, with a link to those of Claude Code alone. Says nothing if there are no others.
fn note_of_agents(agents: &BTreeSet<&str>, plan_address: &str) -> Markup {
    let names: Vec<&str> = agents.iter().copied().collect();
    html! {
        @if names.iter().any(|agent| *agent != PLAN_AGENT) {
            " These have the costs of " (count_of(names.len() as u64, "agent")) ": " (clean_text(&names.join(", "))) "."
            @if agents.contains(PLAN_AGENT) { " " a href=(plan_address) { "Only Claude Code" } }
        }
    }
}

/// The bar of several blocks.
fn sum_bar(blocks: &[&BillingBlock]) -> ChartBar {
    let known: Vec<f64> = blocks.iter().filter_map(|block| block.sum.cost()).collect();
    let amount = (!known.is_empty()).then(|| known.iter().sum());
    ChartBar { note: count_of(blocks.len() as u64, "block"), ..ChartBar::with_amount(amount) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_several_agents_are_said_to_be() {
        let note = |agents: &[&str]| {
            note_of_agents(&agents.iter().copied().collect(), "/cost?agent=claude-code").0
        };
        assert_eq!(note(&["claude-code"]), "");
        assert_eq!(note(&["codex"]), " These have the costs of 1 agent: codex.");
        let both = note(&["codex", "claude-code"]);
        assert!(
            both.starts_with(" These have the costs of 2 agents: claude-code, codex. <a "),
            "{both}"
        );
    }
}
