//! `steno verify`: checks every byte of the vault.

use serde_json::json;
use steno_store::StoreLocation;
use steno_store::forget::SessionForgetter;
use steno_team::{SessionKey, TeamError, TeamMirror};
use steno_vault::verify::{JournalHead, VerifyReport};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::team_access::{RemoteFlag, TeamAccess, explain_team_error};
use crate::ui::{Ui, count_bytes, count_noun};

/// Check that everything in the vault is present and unchanged.
///
/// Prints file and byte offset of anything that was changed, removed, rolled back or added, and exits with 1 then.
/// Remains of an interrupted write are not damage: nothing acknowledged is lost. Lists what `steno forget` removed, and
/// checks that exactly this is missing.
///
/// The vault's journal lists every file, so deleted and rolled back files are found. An old copy of the whole store
/// is consistent in itself: to detect it, note the value of `--head` elsewhere, and check it with `--since`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print a short value for the current state of the vault, to note elsewhere.
    #[arg(long, conflicts_with_all = ["since", "json"])]
    head: bool,
    /// Also check that nothing present when HEAD was printed has been removed or changed.
    #[arg(long, value_name = "HEAD")]
    since: Option<JournalHead>,
    /// Print damage as JSON Lines: path, offset, reason; and what was forgotten.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
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
            CommandError::user("the store has no journal yet")
                .hint("run `steno sync` to create one")
        })?;
        writeln!(ui.out(), "{head}")?;
        return Ok(CommandExit::Done);
    }
    let location = StoreLocation::new(&env.store, env.clock.clone());
    if let Err(error) = SessionForgetter::new(&location).finish_interrupted() {
        ui.warning(format_args!("could not complete a removal that was interrupted: {error}"));
    }
    let mut progress = ui.start_progress("verifying");
    let total = if progress.is_shown() { store.vault.list_sessions()?.len() } else { 0 };
    let mut report = store.vault.verify(&mut |session| progress.step_of(total, session.id()))?;
    if let Some(head) = args.since {
        store.vault.verify_since(head, &mut report)?;
    }
    drop(progress);
    print_damage(ui, &report, args)?;
    print_forgotten(ui, env, &report, args)?;
    print_summary(ui, &report);
    Ok(if report.damage.is_empty() { CommandExit::Done } else { CommandExit::Failed })
}

/// Reads every frame of a remote, and checks its hashes and chains.
pub(crate) fn verify_remote(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    name: &str,
) -> Result<CommandExit, CommandError> {
    let access = TeamAccess::find(env, Some(name))?;
    let mut remote = access.connect(env)?;
    let (mut sessions, mut damaged) = (0, Vec::new());
    let mut report = |_: &SessionKey, error: Option<&TeamError>| {
        sessions += 1;
        damaged.extend(error.map(ToString::to_string));
    };
    let bytes = TeamMirror::verify_remote(&mut remote, &mut report);
    let bytes = bytes.map_err(|error| explain_team_error(error, name))?;
    let checked = format!("{}, {}", count_noun(sessions, "session"), count_bytes(bytes));
    for damage in &damaged {
        ui.warning(damage);
    }
    match damaged.len() {
        0 => ui.status(format_args!("{name}: {checked}: no damage")),
        count => ui.status(format_args!("{name}: {checked}: {count} damaged")),
    }
    Ok(if damaged.is_empty() { CommandExit::Done } else { CommandExit::Failed })
}

fn print_damage(ui: &mut Ui, report: &VerifyReport, args: &Args) -> Result<(), CommandError> {
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

/// Lists the tombstones.
fn print_forgotten(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    report: &VerifyReport,
    args: &Args,
) -> Result<(), CommandError> {
    for tombstone in &report.forgotten {
        if args.json {
            let (parts, files) = match tombstone.parts() {
                Some(parts) => (parts.entries.clone(), json!(parts.files)),
                None => (Vec::new(), json!(null)),
            };
            let row = json!({"forgotten": tombstone.session, "tombstone": tombstone.id.to_string(),
                "at": tombstone.at.to_string(), "by": tombstone.by, "reason": tombstone.reason,
                "whole": tombstone.is_whole_session(), "entries": parts, "files": files,
                "bytes": tombstone.bytes()});
            writeln!(ui.out(), "{row}")?;
            continue;
        }
        let at = tombstone.at.in_zone(&env.zone).date_and_clock();
        let what = match tombstone.parts() {
            None => "the session".to_owned(),
            Some(parts) => {
                let count = parts.files.iter().map(|file| file.ranges.len() as u64).sum();
                count_noun(count, "text")
            }
        };
        let why = tombstone.reason.iter().map(|reason| format!(": {reason}")).collect::<String>();
        let (session, bytes) = (&tombstone.session, count_bytes(tombstone.bytes()));
        let (id, by) = (tombstone.short_id(), &tombstone.by);
        let line = format!("{session}: {what}, {bytes}, forgotten {at} by {by} ({id}){why}\n");
        ui.listing_text(&line)?;
    }
    Ok(())
}

fn print_summary(ui: &mut Ui, report: &VerifyReport) {
    for path in &report.interrupted {
        let path = path.display();
        ui.status(format_args!("{path}: interrupted, nothing acknowledged is lost"));
    }
    for path in &report.replaced {
        let path = path.display();
        ui.status(format_args!("{path}: was damaged, and was copied again from its source"));
    }
    if report.is_journal_restarted {
        ui.print_note("the journal was lost once and restarted; its earlier entries are unknown");
    }
    let (sessions, files) =
        (count_noun(report.sessions, "session"), count_noun(report.files, "file"));
    let checked = format!("{sessions}, {files}, {}", count_bytes(report.bytes));
    let places = count_noun(report.damage.len() as u64, "place");
    match report.damage.len() {
        0 => ui.status(format_args!("{checked}: no damage")),
        _ => ui.status(format_args!("{checked}: damage in {places}")),
    }
}
