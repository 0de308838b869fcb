//! `list`: lists runs, newest first.

use std::fmt::Write;

use steno_seeds::devflow;

use steno_model::json::JsonStyle;
use steno_seeds::devflow::{RunFileShape, RunFilter, RunMetadata};

use super::DevflowStore;
use super::since::SinceDuration;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only runs of this flow.
    #[arg(long)]
    flow: Option<String>,
    /// Only runs with this status: running, completed, failed or canceled.
    #[arg(long)]
    status: Option<String>,
    /// Only runs that started within this time, such as 24h or 7d.
    #[arg(long)]
    since: Option<SinceDuration>,
    /// Also print tokens and turns.
    #[arg(long, conflicts_with = "json")]
    long: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// Lists runs.
pub(super) fn run(
    ui: &mut Ui,
    devflow: &DevflowStore,
    args: Args,
) -> Result<CommandExit, CommandError> {
    let now = devflow.env.clock.now();
    let filter = RunFilter {
        flow: args.flow,
        status: args.status,
        after: args.since.map(|since| since.start_before(now)),
        ..RunFilter::default()
    };
    let runs = devflow.list_runs(ui, &filter)?;
    if args.json {
        for run in &runs {
            let line = JsonStyle::COMPACT.print(&run.to_object(RunFileShape::Shipped));
            ui.transcript_text(&(line + "\n"))?;
        }
    } else if args.long || runs.is_empty() {
        ui.transcript_text(&devflow::render_run_table(&runs))?;
    } else {
        ui.transcript_text(&render_table(&runs))?;
    }
    Ok(CommandExit::Done)
}

/// Renders four columns, two spaces apart.
fn render_table(runs: &[RunMetadata]) -> String {
    let mut rows = vec![["RUN ID", "STATUS", "STARTED", "COST"].map(str::to_owned)];
    rows.extend(runs.iter().map(|run| {
        let started = run.started_at.map(|at| at.date_and_clock());
        [
            run.run_id.clone(),
            run.status.clone(),
            started.unwrap_or_else(|| "-".to_owned()),
            format!("${:.2}", run.total_cost),
        ]
    }));
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let [id_width, status_width, started_width] = [0, 1, 2].map(width);
    let mut out = String::new();
    for [id, status, started, cost] in &rows {
        writeln!(
            out,
            "{id:<id_width$}  {status:<status_width$}  {started:<started_width$}  {cost}"
        )
        .expect("a String takes all text");
    }
    out
}
