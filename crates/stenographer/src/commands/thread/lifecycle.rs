//! `steno lifecycle`: ends, pauses or resumes a thread.

use steno_core::thread::{Action, Lifecycle, Operator};

use super::json_line;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::threads::{Place, Threads, one_of, told};
use crate::ui::Ui;

/// End, pause or resume a thread, and print how it stands then.
///
/// An objective is completed once all its threads are over.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The thread: its id, the beginning of one, or `latest`.
    thread: String,
    /// What happens to it.
    #[arg(value_parser = one_of::<Action>(Action::WORDS))]
    action: Action,
    /// Why.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub(super) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let threads = Threads::open(ui, scene, &args.place)?;
    let change = Lifecycle {
        thread: threads.thread(&args.thread)?.id.to_string(),
        action: args.action,
        reason: args.reason.clone(),
        operator: Operator::User,
    };
    let thread = threads.store.lifecycle(&change).map_err(told)?;
    if args.place.json {
        return json_line(ui, &thread);
    }
    writeln!(ui.out(), "{} {}", thread.id, thread.status)?;
    Ok(Exit::Done)
}
