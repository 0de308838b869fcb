//! `steno verify`: checks every byte that is kept.

use serde_json::json;
use steno_core::vault::verify::{JournalHead, Report};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::{Ui, count_noun};

/// Check that everything kept is there and unchanged.
///
/// Names the file and the byte of anything that was changed, is missing, is older than it was or was added, and exits
/// with 1 then. What an interrupted write left behind is no damage: nothing acknowledged is lost.
///
/// The vault's journal lists every kept file, so deleted and rolled back files are found. A copy of the whole store from
/// an earlier day is consistent in itself: write down the value of `--head` elsewhere, and check it with `--since`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print a short value that stands for everything kept so far, to be written down elsewhere.
    #[arg(long, conflicts_with_all = ["since", "json"])]
    head: bool,
    /// Also prove that nothing that was kept when HEAD was printed is gone or changed.
    #[arg(long, value_name = "HEAD")]
    since: Option<JournalHead>,
    /// Print what is wrong as JSON Lines: path, offset, reason.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let store = SessionStore::new(env);
    if args.head {
        let head = store.vault.journal_head()?.ok_or_else(|| {
            CommandError::user("the store has no journal yet").hint("run `steno sync` to begin one")
        })?;
        writeln!(ui.out(), "{head}")?;
        return Ok(CommandExit::Done);
    }
    let mut progress = ui.start_progress("verifying");
    let mut report = store.vault.verify(&mut |session| progress.step(session.id()))?;
    if let Some(head) = args.since {
        store.vault.verify_since(head, &mut report)?;
    }
    progress.finish();
    print_damage(ui, &report, args)?;
    print_summary(ui, &report);
    Ok(if report.damage.is_empty() { CommandExit::Done } else { CommandExit::Failed })
}

fn print_damage(ui: &mut Ui, report: &Report, args: &Args) -> Result<(), CommandError> {
    for damage in &report.damage {
        let path = damage.path.display();
        if args.json {
            let row =
                json!({"path": path.to_string(), "offset": damage.offset, "reason": damage.reason});
            writeln!(ui.out(), "{row}")?;
        } else {
            let line = format!("{path}: byte {}: {}\n", damage.offset, damage.reason);
            ui.listing_text(&line)?;
        }
    }
    Ok(())
}

fn print_summary(ui: &mut Ui, report: &Report) {
    for path in &report.interrupted {
        let path = path.display();
        ui.status(format_args!("{path}: interrupted, nothing acknowledged is lost"));
    }
    for path in &report.replaced {
        let path = path.display();
        ui.status(format_args!("{path}: found damaged before, and kept anew from its source"));
    }
    if report.is_journal_restarted {
        ui.print_note("the journal was lost once and begun anew; what it listed before is unknown");
    }
    let (sessions, files) =
        (count_noun(report.sessions, "session"), count_noun(report.files, "file"));
    let checked = format!("{sessions}, {files}, {}", count_noun(report.bytes, "byte"));
    let places = count_noun(report.damage.len() as u64, "place");
    match report.damage.len() {
        0 => ui.status(format_args!("{checked}: all as it was written")),
        _ => ui.status(format_args!("{checked}: damaged in {places}")),
    }
}
