//! `view`, `export` and `diff`: whole runs as text.

use clap::ValueEnum;
use steno_core::format::devflow::{self, Look, Shape, View};

use super::Place;
use crate::error::{CommandError, Exit};
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
    #[arg(long, value_enum, default_value_t = Style::Shipped)]
    style: Style,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Style {
    /// Rules of `=` and `-`, plain numbers.
    Shipped,
    /// Box-drawing rules and thousands separators.
    #[value(name = "adr-013")]
    Adr013,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// The run: its id, a beginning that only it has, or `latest`.
    #[arg(value_name = "RUN-ID")]
    id: String,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = Format::Md)]
    format: Format,
    /// As JSON, only the fields that ADR-011 defines.
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(super) enum Format {
    /// Markdown.
    Md,
    /// The run's own JSON.
    Json,
}

#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// One run.
    #[arg(value_name = "RUN-ID")]
    a: String,
    /// The other run.
    #[arg(value_name = "RUN-ID")]
    b: String,
}

impl Style {
    fn look(self) -> Look {
        match self {
            Style::Shipped => Look::Shipped,
            Style::Adr013 => Look::Adr013,
        }
    }
}

/// Shows a run, or a part of it.
pub(super) fn run(ui: &mut Ui, place: &Place, args: &Args) -> Result<Exit, CommandError> {
    let run = place.load(ui, &args.id)?.run;
    let look = args.style.look();
    let view = View { run: &run, now: place.scene.clock.now(), look };
    let text = match args.turn {
        Some(number) => {
            let turn = run.turns.iter().find(|turn| turn.id == number);
            look.turn(turn.ok_or_else(|| missing_turn(number, run.turns.len()))?)
        }
        None if args.summary => view.summary(),
        None if args.assistant_only => view.assistant_only(),
        None => view.full(),
    };
    ui.transcript_text(&text)?;
    Ok(Exit::Done)
}

/// Prints a run in another format.
pub(super) fn export(ui: &mut Ui, place: &Place, args: &ExportArgs) -> Result<Exit, CommandError> {
    if args.strict && args.format != Format::Json {
        return Err(CommandError::usage("--strict is for --format json"));
    }
    let run = place.load(ui, &args.id)?.run;
    let shape = if args.strict { Shape::Adr011 } else { Shape::Shipped };
    let text = match args.format {
        Format::Md => devflow::markdown(&run, place.scene.clock.now()),
        Format::Json => run.to_json(shape) + "\n",
    };
    ui.transcript_text(&text)?;
    Ok(Exit::Done)
}

/// Compares two runs.
pub(super) fn diff(ui: &mut Ui, place: &Place, args: &DiffArgs) -> Result<Exit, CommandError> {
    let a = place.load(ui, &args.a)?.run;
    let b = place.load(ui, &args.b)?.run;
    ui.transcript_text(&devflow::diff(&a, &b, place.scene.clock.now()))?;
    Ok(Exit::Done)
}

fn missing_turn(number: u64, turns: usize) -> CommandError {
    CommandError::user(format!("no such turn: {number}"))
        .hint(format!("the run has {}", super::counted(turns as u64, "turn")))
}
