//! `steno show`: a session on the terminal.

use steno_core::format::devflow::{Look, View};
use steno_core::format::{chibi, devflow, leslie, weakincentives};
use steno_core::{Entry, Role, Transcript};

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::ui::Ui;

mod terminal;

/// Show what was said in a session.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, `latest`, or a path.
    #[arg(value_name = "ID")]
    session: String,
    /// Only the last N entries.
    #[arg(long, value_name = "N", conflicts_with = "first")]
    last: Option<usize>,
    /// Only the first N entries.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Only entries of this role: system, user, assistant, tool.
    #[arg(long, value_name = "ROLE")]
    only: Option<String>,
    /// One line per entry.
    #[arg(long)]
    summary: bool,
    /// Whose view to show.
    #[arg(long, value_enum, default_value_t = Style::Terminal)]
    style: Style,
    /// Print the entries as JSON Lines.
    #[arg(long)]
    json: bool,
}

/// How a session is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Style {
    /// Ours.
    Terminal,
    /// `format_transcript`.
    Weakincentives,
    /// The viewer's.
    Devflow,
    /// Its text files.
    Leslie,
    /// `-g`.
    Chibi,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    if args.summary && !matches!(args.style, Style::Terminal | Style::Devflow) {
        let error = CommandError::usage("this style has no summary");
        return Err(error.hint("leave --summary out, or use --style terminal or devflow"));
    }
    let mut transcript = Store::new(scene).transcript(&args.session)?;
    ui.problems(&transcript.problems);
    select(&mut transcript.entries, args);
    if args.json {
        for entry in &transcript.entries {
            serde_json::to_writer(ui.out(), entry)?;
            writeln!(ui.out())?;
        }
        return Ok(Exit::Done);
    }
    let text = render(&transcript, scene, args, ui.width());
    ui.transcript_text(&text)?;
    Ok(Exit::Done)
}

fn select(entries: &mut Vec<Entry>, args: &Args) {
    if let Some(role) = &args.only {
        let role = Role::from(role.to_lowercase());
        entries.retain(|entry| entry.role == role);
    }
    if let Some(first) = args.first {
        entries.truncate(first);
    }
    if let Some(last) = args.last {
        entries.drain(..entries.len().saturating_sub(last));
    }
}

fn render(transcript: &Transcript, scene: &Scene, args: &Args, width: usize) -> String {
    match (args.style, args.summary) {
        (Style::Terminal, false) => terminal::full(transcript, &scene.zone),
        (Style::Terminal, true) => terminal::summary(transcript, &scene.zone, width),
        (Style::Weakincentives, _) => weakincentives::format_transcript(&transcript.entries),
        (Style::Devflow, summary) => {
            let run = devflow::Run::from(transcript);
            let view = View { run: &run, now: scene.clock.now(), look: Look::default() };
            if summary { view.summary() } else { view.full() }
        }
        (Style::Leslie, _) => leslie::render(transcript),
        (Style::Chibi, _) => chibi::render_log(&chibi::lines_of_transcript(transcript), false),
    }
}
