//! `steno transfer`: transfers a thread to an agent or a person.

use steno_seeds::thread::{Executor, Operator, ThreadTransfer, TransferDirection};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ThreadArgument, word_parser};
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Transfer a thread to an agent or a person.
///
/// Prints the new status. A request for approval makes the thread wait for a person; `delegate` and `handoff`
/// end that.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    thread: ThreadArgument,
    /// Kind of transfer.
    #[arg(value_parser = word_parser::<TransferDirection>(TransferDirection::WORDS))]
    direction: TransferDirection,
    /// Part to transfer, such as `design`; may be repeated.
    #[arg(long, value_name = "WHAT")]
    scope: Vec<String>,
    /// Reason.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Who works on it from now on.
    #[arg(long = "to", value_name = "WHO", value_parser = word_parser::<Executor>(Executor::WORDS))]
    executor: Option<Executor>,
}

/// Runs the command.
pub(super) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let (threads, thread) = args.thread.find_thread(ui, env)?;
    let transfer = ThreadTransfer {
        thread: thread.id.to_string(),
        direction: args.direction,
        scope: args.scope.clone(),
        reason: args.reason.clone(),
        executor: args.executor,
        operator: Operator::User,
    };
    let thread = threads.store.transfer_thread(&transfer).map_err(explain_thread_error)?;
    if args.thread.flags.json {
        return json_line(ui, &thread);
    }
    writeln!(ui.out(), "{} {} {}", thread.id, thread.status, thread.executor)?;
    Ok(CommandExit::Done)
}
