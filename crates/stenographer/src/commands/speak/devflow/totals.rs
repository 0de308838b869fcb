//! `cost` and `usage`: totals of runs.

use std::collections::BTreeMap;

use steno_seeds::devflow::{RunFilter, RunMetadata, RunStats, format_thousands};

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
    let runs = devflow.list_runs(ui, &RunFilter { after, ..RunFilter::default() })?;
    let stats = RunStats::from_runs(&runs);
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
    let runs = devflow.list_runs(ui, &RunFilter { flow: args.flow, ..RunFilter::default() })?;
    if runs.is_empty() {
        writeln!(ui.out(), "No runs found.")?;
        return Ok(CommandExit::Failed);
    }
    let mut flows: BTreeMap<&str, Vec<&RunMetadata>> = BTreeMap::new();
    for run in &runs {
        flows.entry(&run.flow_id).or_default().push(run);
    }
    for (flow, runs) in flows {
        ui.transcript_text(&format_flow_usage(flow, &RunStats::from_runs(runs)))?;
    }
    Ok(CommandExit::Done)
}

fn format_flow_usage(flow: &str, stats: &RunStats) -> String {
    format!(
        "{flow} ({}):\n  Input:  {} tokens\n  Output: {} tokens\n  Avg:    {} in / {} out per run\n",
        pluralize(stats.total_runs, "run"),
        format_thousands(stats.total_tokens_in),
        format_thousands(stats.total_tokens_out),
        format_thousands(stats.average_tokens_in()),
        format_thousands(stats.average_tokens_out())
    )
}
