//! `cost` and `usage`: what runs add up to.

use std::collections::BTreeMap;

use steno_core::format::devflow::{Filter, RunMeta, Stats, thousands};

use super::since::Since;
use super::{Place, counted};
use crate::error::{CommandError, Exit};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(super) struct CostArgs {
    /// The time that is added up, such as 24h or 7d.
    #[arg(long, default_value = "30d")]
    since: Since,
}

#[derive(Debug, clap::Args)]
pub(super) struct UsageArgs {
    /// This flow only.
    #[arg(long)]
    flow: Option<String>,
}

/// Prints what runs have cost.
pub(super) fn cost(ui: &mut Ui, place: &Place, args: &CostArgs) -> Result<Exit, CommandError> {
    let after = Some(args.since.before(place.scene.clock.now()));
    let runs = place.list(ui, &Filter { after, ..Filter::default() })?;
    let stats = Stats::of(&runs);
    writeln!(
        ui.out(),
        "Last {}: ${:.2} across {}",
        args.since.words(),
        stats.total_cost,
        counted(stats.total_runs, "run")
    )?;
    Ok(Exit::Done)
}

/// Prints the tokens of each flow.
pub(super) fn usage(ui: &mut Ui, place: &Place, args: UsageArgs) -> Result<Exit, CommandError> {
    let runs = place.list(ui, &Filter { flow: args.flow, ..Filter::default() })?;
    if runs.is_empty() {
        writeln!(ui.out(), "No runs found.")?;
        return Ok(Exit::Failed);
    }
    let mut flows: BTreeMap<&str, Vec<&RunMeta>> = BTreeMap::new();
    for run in &runs {
        flows.entry(&run.flow_id).or_default().push(run);
    }
    for (flow, runs) in flows {
        ui.transcript_text(&flow_usage(flow, &Stats::of(runs)))?;
    }
    Ok(Exit::Done)
}

fn flow_usage(flow: &str, stats: &Stats) -> String {
    format!(
        "{flow} ({}):\n  Input:  {} tokens\n  Output: {} tokens\n  Avg:    {} in / {} out per run\n",
        counted(stats.total_runs, "run"),
        thousands(stats.total_tokens_in),
        thousands(stats.total_tokens_out),
        thousands(stats.average_tokens_in()),
        thousands(stats.average_tokens_out())
    )
}
