//! `steno inject`: sends a message to the agent of a thread.

use serde_json::json;
use steno_seeds::thread::{Operator, ThreadInjection};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::ThreadArgument;
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Send a message to the agent of a thread.
///
/// The agent gets it between two steps, or with its next task.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    thread: ThreadArgument,
    /// Text of the message.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    content: String,
    /// Type of the message, such as `constraint`.
    #[arg(long = "type", value_name = "WORD", default_value = "note")]
    kind: String,
}

/// Runs the command.
pub(super) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if args.content.trim().is_empty() || args.kind.trim().is_empty() {
        return Err(CommandError::usage("the message is empty"));
    }
    let (threads, thread) = args.thread.find_thread(ui, env)?;
    let inject = ThreadInjection {
        thread: thread.id.to_string(),
        kind: args.kind.clone(),
        content: args.content.clone(),
        operator: Operator::User,
    };
    let at = threads.store.inject_text(&inject).map_err(explain_thread_error)?;
    if args.thread.flags.json {
        let row = json!({
            "thread_id": inject.thread,
            "injected_at": at,
            "type": inject.kind,
            "content": inject.content,
        });
        return json_line(ui, &row);
    }
    ui.status(format_args!("message queued for {}", inject.thread));
    Ok(CommandExit::Done)
}
