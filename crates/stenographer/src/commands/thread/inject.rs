//! `steno inject`: tells a thread something while it is worked on.

use serde_json::json;
use steno_core::thread::{Inject, Operator};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::ThreadArgument;
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Tell a thread something: its agent finds it between two steps, or with its next task.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    named: ThreadArgument,
    /// What it is told.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    content: String,
    /// What this is, such as `constraint`.
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
        return Err(CommandError::usage("there is nothing to tell"));
    }
    let (threads, thread) = args.named.find_thread(ui, env)?;
    let inject = Inject {
        thread: thread.id.to_string(),
        kind: args.kind.clone(),
        content: args.content.clone(),
        operator: Operator::User,
    };
    let at = threads.store.inject(&inject).map_err(explain_thread_error)?;
    if args.named.flags.json {
        let row = json!({
            "thread_id": inject.thread,
            "injected_at": at,
            "type": inject.kind,
            "content": inject.content,
        });
        return json_line(ui, &row);
    }
    ui.status(format_args!("{} was told", inject.thread));
    Ok(CommandExit::Done)
}
