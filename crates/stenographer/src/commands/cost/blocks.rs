//! Prints billing blocks of five hours, with a projection for the open one.

use steno_store::cost::billing_block::BillingBlock;
use steno_store::view::json_rows::cost as answer;

use super::cost_table::CostTable;
use super::rows::{PricedSum, print_json, print_table};
use super::{CostReport, PricedCharges, svg, write_svg};
use crate::amount::{format_count, format_dollars};
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// Prints the blocks.
pub(super) fn print_blocks(ui: &mut Ui, report: &CostReport<'_>) -> Result<(), CommandError> {
    let CostReport { env, args, priced, .. } = *report;
    let PricedCharges { charges, costs, filter } = priced;
    let (blocks, total) = charges.blocks_started_in(costs, filter);
    let now = env.clock.now().instant().as_millisecond();
    if let Some(path) = &args.svg {
        let used = blocks.iter().filter(|block| !block.is_gap);
        let bars: Vec<_> =
            used.map(|block| (format_block_start(env, block), block.sum.cost())).collect();
        write_svg(env, path, &svg::draw_cost_chart("block", &bars))?;
    }
    if args.json {
        for block in &blocks {
            print_json(ui, answer::block_key(block, now), PricedSum { charges, sum: &block.sum })?;
        }
        return print_json(ui, answer::total_key(), PricedSum { charges, sum: &total });
    }
    if blocks.is_empty() {
        return report.explain_nothing(ui);
    }
    let mut table = CostTable::new("BLOCK");
    for block in blocks.iter().filter(|block| !block.is_gap) {
        let active = if block.is_active(now) { " *" } else { "" };
        table.add_row(format!("{}{active}", format_block_start(env, block)), &block.sum);
    }
    table.add_total(&total);
    print_table(ui, &table, PricedSum { charges, sum: &total })?;
    if let Some(open) = blocks.last().filter(|block| block.is_active(now)) {
        print_open_block(ui, env, open)?;
    }
    Ok(())
}

/// Prints the open block's remaining time, rate and projection.
fn print_open_block(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    block: &BillingBlock,
) -> Result<(), CommandError> {
    let now = env.clock.now().instant().as_millisecond();
    let left = (block.end - now) / 60_000;
    let mut words = vec![format!("* ends in {}h {:02}m", left / 60, left % 60)];
    if let Some(burn) = block.burn_rate() {
        let cost = burn.cost_per_hour.map(|cost| format!(" ({}/h)", format_dollars(cost)));
        let tokens = format_count(burn.tokens_per_minute.round() as u64);
        words.push(format!("{tokens} tokens/min{}", cost.unwrap_or_default()));
    }
    if let Some(end) = block.project_end(now) {
        let cost = end.cost.map(|cost| format!(" ({})", format_dollars(cost)));
        words.push(format!(
            "{} tokens{} by then",
            format_count(end.tokens),
            cost.unwrap_or_default()
        ));
    }
    Ok(ui.listing_text(&format!("{}\n", words.join(" · ")))?)
}

/// Formats the start of a block in the user's time zone.
fn format_block_start(env: &ProcessEnvironment, block: &BillingBlock) -> String {
    let begin = answer::timestamp_from_millis(block.start).map(|at| at.in_zone(&env.zone).wall());
    begin.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}
