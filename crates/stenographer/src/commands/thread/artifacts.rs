//! `steno artifacts`: the assets of a thread.

use super::json_line;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::table::Table;
use crate::thread_error::explain_thread_error;
use crate::threads::{Named, warn};
use crate::ui::Ui;

/// List the assets of a thread: plan, progress, design, learnings, discussions, transcripts.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
}

/// Runs the command.
pub(super) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let (threads, thread) = args.named.find(ui, scene)?;
    let (assets, warnings) =
        threads.store.artifacts(thread.id.as_str()).map_err(explain_thread_error)?;
    warn(ui, &warnings);
    if args.named.place.json {
        assets.iter().try_for_each(|asset| json_line(ui, asset).map(drop))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(["TYPE", "PATH"]);
    for asset in &assets {
        table.row([asset.kind.as_str().to_owned(), asset.path.clone()]);
    }
    // A path that is cut is none.
    let text = table.render(usize::MAX);
    ui.listing_text(&text)?;
    Ok(Exit::Done)
}
