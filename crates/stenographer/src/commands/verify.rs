//! `steno verify`: checks every byte that is kept.

use serde_json::json;

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::ui::{Ui, count};

/// Check every hash and chain of what is kept.
///
/// Names the file and the byte of anything that was changed, is missing or was added, and exits with 1 then.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print what is wrong as JSON Lines: path, offset, reason.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let store = Store::new(scene);
    let mut progress = ui.progress("verifying");
    let report = store.vault.verify(&mut |session| progress.step(session.id()))?;
    progress.finish();
    for damage in &report.damage {
        let path = damage.path.display();
        if args.json {
            let row =
                json!({"path": path.to_string(), "offset": damage.offset, "reason": damage.reason});
            writeln!(ui.out(), "{row}")?;
        } else {
            writeln!(ui.out(), "{path}: byte {}: {}", damage.offset, damage.reason)?;
        }
    }
    if report.unfinished > 0 {
        ui.status(format_args!(
            "{} bytes of records that a killed recorder left half written",
            report.unfinished
        ));
    }
    let (sessions, files) = (count(report.sessions, "session"), count(report.files, "file"));
    let checked = format!("{sessions}, {files}, {}", count(report.bytes, "byte"));
    if report.damage.is_empty() {
        ui.status(format_args!("{checked}: all as it was written"));
        return Ok(Exit::Done);
    }
    ui.status(format_args!("{checked}: damaged in {}", count(report.damage.len() as u64, "place")));
    Ok(Exit::Failed)
}
