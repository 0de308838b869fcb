//! `cost` and `usage`: totals of runs.

use std::collections::BTreeMap;

use steno_core::format::devflow::{Filter, RunMeta, Stats, thousands};

use super::since::SinceDuration;
use super::{DevflowStore, pluralize};
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(super) struct DevflowCostArgs {
    /// Duration to add up, such as 24h or 7d.
    #[arg(long, default_value = "30d")]
    since: SinceDuration,
}

#[derive(Debug, clap::Args)]
pub(super) struct DevflowUsageArgs {
    /// Only this flow.
    #[arg(long)]
    flow: Option<String>,
}

/// Prints the cost of runs.
pub(super) fn print_cost(
    ui: &mut Ui,
    devflow: &DevflowStore,
    args: &DevflowCostArgs,
) -> Result<CommandExit, CommandError> {
    let after = Some(args.since.start_before(devflow.env.clock.now()));
    let runs = devflow.list_runs(ui, &Filter { after, ..Filter::default() })?;
    let stats = Stats::of(&runs);
    writeln!(
        ui.out(),
        "Last {}: ${:.2} across {}",
        args.since.to_words(),
        stats.total_cost,
        pluralize(stats.total_runs, "run")
    )?;
    Ok(CommandExit::Done)
}

/// Prints the tokens of each flow.
pub(super) fn print_usage(
    ui: &mut Ui,
    devflow: &DevflowStore,
    args: DevflowUsageArgs,
) -> Result<CommandExit, CommandError> {
    let runs = devflow.list_runs(ui, &Filter { flow: args.flow, ..Filter::default() })?;
    if runs.is_empty() {
        writeln!(ui.out(), "No runs found.")?;
        return Ok(CommandExit::Failed);
    }
    let mut flows: BTreeMap<&str, Vec<&RunMeta>> = BTreeMap::new();
    for run in &runs {
        flows.entry(&run.flow_id).or_default().push(run);
    }
    for (flow, runs) in flows {
        ui.transcript_text(&format_flow_usage(flow, &Stats::of(runs)))?;
    }
    Ok(CommandExit::Done)
}

fn format_flow_usage(flow: &str, stats: &Stats) -> String {
    format!(
        "{flow} ({}):\n  Input:  {} tokens\n  Output: {} tokens\n  Avg:    {} in / {} out per run\n",
        pluralize(stats.total_runs, "run"),
        thousands(stats.total_tokens_in),
        thousands(stats.total_tokens_out),
        thousands(stats.average_tokens_in()),
        thousands(stats.average_tokens_out())
    )
}
