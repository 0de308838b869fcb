//! `search`: the turns that hold a text.

use serde_json::json;
use steno_core::format::devflow::Query;

use super::Place;
use crate::error::{CommandError, Exit};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The text, taken literally.
    query: String,
    /// `A` and `a` are different.
    #[arg(long)]
    case_sensitive: bool,
    /// At most so many turns.
    #[arg(long, value_name = "N")]
    max: Option<usize>,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
}

/// Prints one line per turn that holds the text.
pub(super) fn run(ui: &mut Ui, place: &Place, args: Args) -> Result<Exit, CommandError> {
    if args.query.is_empty() {
        return Err(CommandError::usage("nothing to search for"));
    }
    let hits = place.store.search(&Query {
        text: args.query,
        case_sensitive: args.case_sensitive,
        limit: args.max,
    })?;
    for hit in &hits {
        let (run, turn, excerpt) = (&hit.run_id, hit.turn_id, &hit.excerpt);
        if args.json {
            let line = json!({
                "runId": run.as_str(), "turnId": turn, "role": hit.role, "content": excerpt
            });
            ui.transcript_text(&format!("{line}\n"))?;
        } else {
            ui.transcript_text(&format!("{run}: Turn {turn}: \"{excerpt}\"\n"))?;
        }
    }
    Ok(if hits.is_empty() { Exit::Failed } else { Exit::Done })
}
