//! `steno sync`: copies the sessions of all agents on this machine into the vault.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::automatic_sync;
use crate::byte_size::ByteSize;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::ProjectThreads;
use crate::session_paths::{self, existing_roots};
use crate::session_store::SessionStore;
use crate::sync_state::{LastSync, SyncLock};
use crate::text_table::TextTable;
use crate::ui::{Ui, group_digits};
use steno_store::sync::{AgentSyncRow, SessionSyncer, SyncResult};

/// Maximum number of problems printed per agent.
const MAX_PROBLEMS: usize = 5;

/// Copy the sessions of all agents on this machine into the store.
///
/// Reads each agent's session folder, or the given paths, and copies what is new. Files that have not changed since
/// the last sync are not opened. Of a database, the rows of each session are copied. Aider and Crush keep sessions in
/// project folders; these are found through the projects of other sessions and Crush's own list.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Read these paths instead of the agents' session folders.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only this agent; may be repeated.
    #[arg(long, value_name = "NAME", value_parser = session_paths::agent_name_parser())]
    agent: Vec<String>,
    /// Print what would be copied, and copy nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not update the index; the next search does.
    #[arg(long)]
    no_index: bool,
    /// Print JSON Lines, one per agent, and report every unreadable record.
    #[arg(long)]
    json: bool,
    /// Sync for another command that reports to the user.
    #[arg(long, hide = true)]
    background: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if args.background {
        return sync_in_background(env, args);
    }
    let _lock = (!args.dry_run).then(|| acquire_lock(ui, env));
    let mut syncer = SessionSyncer::new(env.store_location())?;
    let mut progress = ui.start_progress("keeping");
    if progress.is_shown() {
        progress.set_total_bytes(count_changed_bytes(&syncer, env, args));
    }
    syncer = syncer.with_progress(progress.into_callback());
    syncer.dry_run = args.dry_run;
    if args.no_index {
        syncer.disable_index();
    }
    let SyncResult { failures, rows } = sync_roots(ui, env, args, syncer)?;
    let is_complete = failures.is_empty();
    for failure in failures {
        ui.report_error(&failure.into());
    }
    rows.values().for_each(|row| report_problems(ui, row, args));
    print_summary(ui, &rows, args)?;
    Ok(if is_complete { CommandExit::Done } else { CommandExit::Failed })
}

/// Returns the size of all files that have changed since the last sync.
fn count_changed_bytes(syncer: &SessionSyncer, env: &ProcessEnvironment, args: &Args) -> u64 {
    let roots = existing_roots(env, &args.paths, &args.agent);
    // A folder that cannot be listed is reported by the sync itself.
    let changed = roots.iter().filter_map(|root| syncer.changed_files(root).ok());
    changed.flat_map(|found| found.changed.into_values()).map(|(size, _)| size).sum()
}

/// Waits until no other process syncs.
fn acquire_lock(ui: &mut Ui, env: &ProcessEnvironment) -> SyncLock {
    SyncLock::try_acquire(&env.store).unwrap_or_else(|| {
        ui.status("waiting for another sync to end");
        SyncLock::acquire(&env.store)
    })
}

/// Syncs and reports to the command that started this process. Does nothing if another process syncs.
fn sync_in_background(env: &ProcessEnvironment, args: &Args) -> Result<CommandExit, CommandError> {
    let Some(_lock) = SyncLock::try_acquire(&env.store) else { return Ok(CommandExit::Done) };
    sync_and_report(env, args).inspect_err(automatic_sync::report_failure)
}

/// Syncs all agents, the newest sessions of an empty store first.
fn sync_and_report(env: &ProcessEnvironment, args: &Args) -> Result<CommandExit, CommandError> {
    let mut ui = Ui::silent();
    let mut syncer = SessionSyncer::new(env.store_location())?;
    if !SessionStore::new(env).vault.has_sessions()? {
        syncer.sync_newest(&existing_roots(env, &[], &[]));
        automatic_sync::report_newest();
        let total = count_changed_bytes(&syncer, env, args);
        syncer = automatic_sync::report_progress(syncer, total);
    }
    let SyncResult { rows, mut failures } = sync_roots(&mut ui, env, args, syncer)?;
    if !failures.is_empty() {
        automatic_sync::report_failure(&failures.swap_remove(0).into());
    }
    automatic_sync::report_finished(rows.values().map(|row| row.sessions).sum());
    Ok(CommandExit::Done)
}

/// Syncs the selected paths and agents.
fn sync_roots(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
    mut syncer: SessionSyncer,
) -> Result<SyncResult, CommandError> {
    let started = Instant::now();
    let mut looked_at = BTreeSet::new();
    // New sessions may name projects in which other agents have sessions, so a second pass follows.
    for _ in 0..2 {
        for path in existing_roots(env, &args.paths, &args.agent) {
            if !looked_at.insert(path.clone()) {
                continue;
            }
            syncer.sync_root(&path, &args.agent)?;
            if !args.dry_run {
                syncer.seen.save()?;
            }
        }
    }
    let result = syncer.finish();
    if !args.dry_run && SessionStore::new(env).vault.restore_journal()? {
        ui.warning("the store had no journal; its files are listed in a new one");
    }
    if !args.dry_run && !args.no_index {
        // Indexes sessions that an earlier run has not indexed.
        SessionStore::new(env).query(ui, |_| Ok(()))?;
    }
    if !args.dry_run {
        ProjectThreads::finish_killed_runs_near(ui, env);
    }
    if !args.dry_run && args.paths.is_empty() && args.agent.is_empty() {
        LastSync::now(&env.home, started).save(&env.store)?;
    } else if !args.dry_run
        && !args.paths.is_empty()
        && !env.is_default_store
        && LastSync::load(&env.store).is_none()
    {
        // A store of its own for these sessions: those of the home folder do not belong there.
        LastSync::now(Path::new(""), started).save(&env.store)?;
    }
    Ok(result)
}

/// Reports records that cannot be parsed. Their bytes are kept, so this is not a failure.
fn report_problems(ui: &mut Ui, row: &AgentSyncRow, args: &Args) {
    let (reported, more) =
        row.problem_list.first_kept(if args.json { usize::MAX } else { MAX_PROBLEMS });
    reported.iter().for_each(|problem| ui.warning(problem));
    if more > 0 {
        ui.warning(format_args!("{more} more problems of {}", row.agent));
    }
}

fn print_summary(
    ui: &mut Ui,
    rows: &BTreeMap<String, AgentSyncRow>,
    args: &Args,
) -> Result<(), CommandError> {
    if args.json {
        for row in rows.values() {
            serde_json::to_writer(ui.out(), row)?;
            writeln!(ui.out())?;
        }
        return Ok(());
    }
    if rows.is_empty() {
        ui.status("nothing new");
        return Ok(());
    }
    let heading = if args.dry_run { "BYTES CHANGED" } else { "BYTES NEW" };
    let mut table =
        TextTable::new(["AGENT", "SESSIONS", "ENTRIES", heading, "BYTES KEPT", "PROBLEMS"]);
    let is_terminal = ui.is_terminal();
    for row in rows.values() {
        let numbers = [row.sessions, row.entries, row.bytes_new, row.bytes_kept, row.problems];
        let [sessions, entries, mut new, mut kept, problems] = numbers
            .map(|number| if is_terminal { group_digits(number) } else { number.to_string() });
        if is_terminal {
            (new, kept) =
                (ByteSize(row.bytes_new).to_string(), ByteSize(row.bytes_kept).to_string());
        }
        table.add_row([row.agent.clone(), sessions, entries, new, kept, problems]);
    }
    let text = table.render(ui.width());
    Ok(ui.transcript_text(&text)?)
}
