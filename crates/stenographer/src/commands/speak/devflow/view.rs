//! `view`, `export` and `diff`: whole runs as text.

use clap::ValueEnum;
use steno_core::format::devflow::{self, Look, Shape, View};

use super::DevflowStore;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its id, a beginning that only it has, or `latest`.
    #[arg(value_name = "RUN-ID")]
    id: String,
    /// One line per turn.
    #[arg(long, group = "part")]
    summary: bool,
    /// What the assistant said and nothing else.
    #[arg(long, group = "part")]
    assistant_only: bool,
    /// One turn.
    #[arg(long, group = "part", value_name = "N")]
    turn: Option<u64>,
    /// How it looks.
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
    /// The run: its id, a beginning that only it has, or `latest`.
    #[arg(value_name = "RUN-ID")]
    id: String,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = DevflowExportFormat::Md)]
    format: DevflowExportFormat,
    /// As JSON, only the fields that ADR-011 defines.
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
    /// One run.
    #[arg(value_name = "RUN-ID")]
    a: String,
    /// The other run.
    #[arg(value_name = "RUN-ID")]
    b: String,
}

impl DevflowStyle {
    fn to_look(self) -> Look {
        match self {
            DevflowStyle::Shipped => Look::Shipped,
            DevflowStyle::Adr013 => Look::Adr013,
        }
    }
}

/// Shows a run, or a part of it.
pub(super) fn run(
    ui: &mut Ui,
    place: &DevflowStore,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let run = place.load_run(ui, &args.id)?.run;
    let look = args.style.to_look();
    let view = View { run: &run, now: place.env.clock.now(), look };
    let text = match args.turn {
        Some(number) => {
            let turn = run.turns.iter().find(|turn| turn.id == number);
            look.turn(turn.ok_or_else(|| missing_turn_error(number, run.turns.len()))?)
        }
        None if args.summary => view.summary(),
        None if args.assistant_only => view.assistant_only(),
        None => view.full(),
    };
    ui.transcript_text(&text)?;
    Ok(CommandExit::Done)
}

/// Prints a run in another format.
pub(super) fn export_run(
    ui: &mut Ui,
    place: &DevflowStore,
    args: &DevflowExportArgs,
) -> Result<CommandExit, CommandError> {
    if args.strict && args.format != DevflowExportFormat::Json {
        return Err(CommandError::usage("--strict is for --format json"));
    }
    let run = place.load_run(ui, &args.id)?.run;
    let shape = if args.strict { Shape::Adr011 } else { Shape::Shipped };
    let text = match args.format {
        DevflowExportFormat::Md => devflow::markdown(&run, place.env.clock.now()),
        DevflowExportFormat::Json => run.to_json(shape) + "\n",
    };
    ui.transcript_text(&text)?;
    Ok(CommandExit::Done)
}

/// Compares two runs.
pub(super) fn diff_runs(
    ui: &mut Ui,
    place: &DevflowStore,
    args: &DevflowDiffArgs,
) -> Result<CommandExit, CommandError> {
    let a = place.load_run(ui, &args.a)?.run;
    let b = place.load_run(ui, &args.b)?.run;
    ui.transcript_text(&devflow::diff(&a, &b, place.env.clock.now()))?;
    Ok(CommandExit::Done)
}

fn missing_turn_error(number: u64, turns: usize) -> CommandError {
    CommandError::user(format!("no such turn: {number}"))
        .hint(format!("the run has {}", super::pluralize(turns as u64, "turn")))
}
