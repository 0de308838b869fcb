//! `steno artifacts`: lists the assets of a thread.

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ThreadArgument, report_warnings};
use crate::text_table::TextTable;
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// List the assets of a thread.
///
/// Assets are its plan, progress, design, learnings, discussions and transcripts.
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
    let (assets, warnings) =
        threads.store.assets_and_warnings(thread.id.as_str()).map_err(explain_thread_error)?;
    report_warnings(ui, &warnings);
    if args.thread.flags.json {
        assets.iter().try_for_each(|asset| json_line(ui, asset).map(drop))?;
        return Ok(CommandExit::Done);
    }
    let mut table = TextTable::new(["TYPE", "PATH"]);
    for asset in &assets {
        table.add_row([asset.kind.as_str().to_owned(), asset.path.clone()]);
    }
    // A shortened path would be useless.
    let text = table.render(usize::MAX);
    ui.listing_text(&text)?;
    Ok(CommandExit::Done)
}
