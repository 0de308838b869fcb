//! Blocks of five hours, and where the one that is open is going.

use serde_json::{Map, Value, json};
use steno_core::Timestamp;
use steno_core::cost::block::Block;
use steno_core::cost::report::Sum;
use steno_core::index::Filter;

use super::chart::Chart;
use super::rows::{print_chart, print_json, total_key};
use super::{Accounts, Args, svg, write_svg};
use crate::amount::{dollars, rounded, short};
use crate::error::CommandError;
use crate::scene::Scene;
use crate::ui::Ui;

/// Prints the blocks.
pub(super) fn print(
    ui: &mut Ui,
    scene: &Scene,
    args: &Args,
    accounts: &Accounts,
) -> Result<(), CommandError> {
    let charges = &accounts.charges;
    let (blocks, total) = accounts.blocks();
    let now = scene.clock.now().instant().as_millisecond();
    if let Some(path) = &args.svg {
        let used = blocks.iter().filter(|block| !block.is_gap);
        let bars: Vec<_> = used.map(|block| (begin(scene, block), block.sum.cost())).collect();
        write_svg(scene, path, &svg::draw("block", &bars))?;
    }
    if args.json {
        for block in &blocks {
            print_json(ui, key(block, now), (charges, &block.sum))?;
        }
        return print_json(ui, total_key(), (charges, &total));
    }
    if blocks.is_empty() {
        ui.status("nothing was billed");
        return Ok(());
    }
    let mut chart = Chart::new("BLOCK");
    for block in blocks.iter().filter(|block| !block.is_gap) {
        let active = if block.is_active(now) { " *" } else { "" };
        chart.line(format!("{}{active}", begin(scene, block)), &block.sum);
    }
    chart.total(&total);
    print_chart(ui, &chart, (charges, &total))?;
    if let Some(open) = blocks.last().filter(|block| block.is_active(now)) {
        print_open(ui, scene, open)?;
    }
    Ok(())
}

impl Accounts {
    /// The blocks that began in the time that is asked for, and what they add up to.
    fn blocks(&self) -> (Vec<Block>, Sum) {
        // Where a block begins depends on what was before.
        let always = Filter { since: None, until: None, ..self.filter.clone() };
        let wanted: Vec<usize> = self.charges.select(&always).collect();
        let mut blocks = self.charges.blocks(&self.costs, &wanted);
        blocks.retain(|block| self.filter.has_time(Some(block.start)));
        let within: Vec<usize> = blocks.iter().flat_map(|block| &block.charges).copied().collect();
        let total = self.charges.total(&self.costs, &within);
        (blocks, total)
    }
}

/// The open block: how long it goes on, how fast, and to what.
fn print_open(ui: &mut Ui, scene: &Scene, block: &Block) -> Result<(), CommandError> {
    let now = scene.clock.now().instant().as_millisecond();
    let left = (block.end - now) / 60_000;
    let mut words = vec![format!("* ends in {}h {:02}m", left / 60, left % 60)];
    if let Some(burn) = block.burn() {
        let cost = burn.cost_per_hour.map(|cost| format!(" ({}/h)", dollars(cost)));
        let tokens = short(burn.tokens_per_minute.round() as u64);
        words.push(format!("{tokens} tokens/min{}", cost.unwrap_or_default()));
    }
    if let Some(end) = block.projection(now) {
        let cost = end.cost.map(|cost| format!(" ({})", dollars(cost)));
        words.push(format!("{} tokens{} by then", short(end.tokens), cost.unwrap_or_default()));
    }
    Ok(writeln!(ui.out(), "{}", words.join(" · "))?)
}

/// What tells a block from the others, in JSON.
fn key(block: &Block, now: i64) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| _ = fields.insert(name.to_owned(), value);
    add("block", json!(moment(block.start)));
    add("end", json!(moment(block.end)));
    add("gap", json!(block.is_gap));
    add("active", json!(block.is_active(now)));
    add("first", json!(block.sum.first.and_then(moment)));
    add("last", json!(block.sum.last.and_then(moment)));
    let burn = block.burn().filter(|_| block.is_active(now));
    let burn = burn.map(|burn| {
        json!({"tokens_per_minute": rounded(burn.tokens_per_minute),
               "cost_per_hour": burn.cost_per_hour.map(rounded)})
    });
    add("burn", json!(burn));
    let projection = block.projection(now).map(|end| {
        json!({"minutes_left": end.minutes_left, "tokens": end.tokens, "cost": end.cost.map(rounded)})
    });
    add("projection", json!(projection));
    fields
}

fn moment(at: i64) -> Option<Timestamp> {
    let instant = jiff::Timestamp::from_millisecond(at).ok()?;
    Some(Timestamp::from_instant(instant, if at % 1000 == 0 { 0 } else { 3 }))
}

/// When a block began, on the user's clock.
fn begin(scene: &Scene, block: &Block) -> String {
    let begin = moment(block.start).map(|at| at.in_zone(&scene.zone).wall());
    begin.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}
