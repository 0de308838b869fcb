//! `view`, `export` and `diff`: print whole runs.

use clap::ValueEnum;
use steno_seeds::devflow::{self, RunFileShape, RunView, RunViewStyle};

use super::DevflowStore;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Run id, unique prefix, or `latest`.
    #[arg(value_name = "RUN-ID")]
    id: String,
    /// Print one line per turn.
    #[arg(long, group = "part")]
    summary: bool,
    /// Print only the assistant's messages.
    #[arg(long, group = "part")]
    assistant_only: bool,
    /// Print one turn.
    #[arg(long, group = "part", value_name = "N")]
    turn: Option<u64>,
    /// Output style.
    #[arg(long, value_enum, default_value_t = DevflowStyle::Shipped)]
    style: DevflowStyle,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum DevflowStyle {
    /// Rules of `=` and `-`, plain numbers.
    Shipped,
    /// Box-drawing rules and thousands separators.
    #[value(name = "adr-013")]
    Adr013,
}

#[derive(Debug, clap::Args)]
pub(super) struct DevflowExportArgs {
    /// Run id, unique prefix, or `latest`.
    #[arg(value_name = "RUN-ID")]
    id: String,
    /// Output format.
    #[arg(long, value_enum, default_value_t = DevflowExportFormat::Md)]
    format: DevflowExportFormat,
    /// With JSON: only the fields that ADR-011 defines.
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(super) enum DevflowExportFormat {
    /// Markdown.
    Md,
    /// The run's own JSON.
    Json,
}

#[derive(Debug, clap::Args)]
pub(super) struct DevflowDiffArgs {
    /// First run.
    #[arg(value_name = "RUN-ID")]
    a: String,
    /// Second run.
    #[arg(value_name = "RUN-ID")]
    b: String,
}

impl DevflowStyle {
    fn to_look(self) -> RunViewStyle {
        match self {
            DevflowStyle::Shipped => RunViewStyle::Shipped,
            DevflowStyle::Adr013 => RunViewStyle::Adr013,
        }
    }
}

/// Prints a run or a part of it.
pub(super) fn run(
    ui: &mut Ui,
    devflow: &DevflowStore,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let run = devflow.load_run(ui, &args.id)?.run;
    let look = args.style.to_look();
    let view = RunView { run: &run, now: devflow.env.clock.now(), style: look };
    let text = match args.turn {
        Some(number) => {
            let turn = run.turns.iter().find(|turn| turn.id == number);
            look.render_turn(turn.ok_or_else(|| missing_turn_error(number, run.turns.len()))?)
        }
        None if args.summary => view.render_summary(),
        None if args.assistant_only => view.render_assistant_only(),
        None => view.render_full(),
    };
    ui.transcript_text(&text)?;
    Ok(CommandExit::Done)
}

/// Prints a run in another format.
pub(super) fn export_run(
    ui: &mut Ui,
    devflow: &DevflowStore,
    args: &DevflowExportArgs,
) -> Result<CommandExit, CommandError> {
    if args.strict && args.format != DevflowExportFormat::Json {
        return Err(CommandError::usage("--strict needs --format json"));
    }
    let run = devflow.load_run(ui, &args.id)?.run;
    let shape = if args.strict { RunFileShape::Adr011 } else { RunFileShape::Shipped };
    let text = match args.format {
        DevflowExportFormat::Md => devflow::render_markdown(&run, devflow.env.clock.now()),
        DevflowExportFormat::Json => run.to_json(shape) + "\n",
    };
    ui.transcript_text(&text)?;
    Ok(CommandExit::Done)
}

/// Compares two runs.
pub(super) fn diff_runs(
    ui: &mut Ui,
    devflow: &DevflowStore,
    args: &DevflowDiffArgs,
) -> Result<CommandExit, CommandError> {
    let a = devflow.load_run(ui, &args.a)?.run;
    let b = devflow.load_run(ui, &args.b)?.run;
    ui.transcript_text(&devflow::diff_runs(&a, &b, devflow.env.clock.now()))?;
    Ok(CommandExit::Done)
}

fn missing_turn_error(number: u64, turns: usize) -> CommandError {
    CommandError::user(format!("no such turn: {number}"))
        .hint(format!("the run has {}", super::pluralize(turns as u64, "turn")))
}
