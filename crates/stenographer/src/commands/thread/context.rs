//! `steno context`: prints the context of a thread for an agent.

use serde_json::json;

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ThreadArgument, report_warnings};
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Print the context of a thread for its agent.
///
/// It has the paths of the thread's assets, and of the threads it refers to. Put it before a task, after a resume and after a
/// compaction; `steno run` does this automatically.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    thread: ThreadArgument,
}

/// Runs the command.
pub(super) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let (threads, thread) = args.thread.find_thread(ui, env)?;
    let (context, warnings) =
        threads.store.render_thread_context(thread.id.as_str()).map_err(explain_thread_error)?;
    report_warnings(ui, &warnings);
    if args.thread.flags.json {
        return json_line(ui, &json!({ "thread_id": thread.id, "thread_context": context }));
    }
    ui.transcript_text(&(context + "\n"))?;
    Ok(CommandExit::Done)
}
