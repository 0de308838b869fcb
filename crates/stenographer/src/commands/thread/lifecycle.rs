//! `steno lifecycle`: ends, pauses or resumes a thread.

use steno_seeds::thread::{LifecycleAction, Operator, StatusChange};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ThreadArgument, word_parser};
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// End, pause or resume a thread, and print its new status.
///
/// An objective is completed once all its threads have ended.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    thread: ThreadArgument,
    /// Action.
    #[arg(value_parser = word_parser::<LifecycleAction>(LifecycleAction::WORDS))]
    action: LifecycleAction,
    /// Reason.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Runs the command.
pub(super) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let (threads, thread) = args.thread.find_thread(ui, env)?;
    let change = StatusChange {
        thread: thread.id.to_string(),
        action: args.action,
        reason: args.reason.clone(),
        operator: Operator::User,
    };
    let thread = threads.store.change_status(&change).map_err(explain_thread_error)?;
    if args.thread.flags.json {
        return json_line(ui, &thread);
    }
    writeln!(ui.out(), "{} {}", thread.id, thread.status)?;
    Ok(CommandExit::Done)
}
