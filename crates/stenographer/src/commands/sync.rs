//! `steno sync`: keeps what every agent has left on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::ProjectThreads;
use crate::session_store::SessionStore;
use crate::session_syncer::{self, AgentSyncRow, SessionSyncer, SyncResult, existing_roots};
use crate::text_table::TextTable;
use crate::ui::Ui;

/// How many records that could not be read are told of for each agent.
const MAX_PROBLEMS: usize = 5;

/// Keep every session that agents have left on this machine.
///
/// Looks where each agent keeps its sessions, or at the paths that are named, and keeps what is new. What has not
/// changed since the last time is not even opened. Of a database, the rows of each session are kept. Aider and Crush
/// keep theirs in project folders: those are looked at that sessions in repositories, or Crush's own list, tell of.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look here instead of where agents keep their sessions.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only this agent's; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = session_syncer::agent_name_parser())]
    agent: Vec<String>,
    /// Tell what would be kept, and keep nothing.
    #[arg(long)]
    dry_run: bool,
    /// Only keep: the next search brings what is new into the index.
    #[arg(long)]
    no_index: bool,
    /// Print JSON Lines, one per agent; tell of every record that could not be read.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let mut sync = SessionSyncer::new(ui, env)?;
    sync.dry_run = args.dry_run;
    if args.no_index {
        sync.disable_index();
    }
    let mut looked_at = BTreeSet::new();
    // What is kept tells of projects in which other agents may have left something.
    for _ in 0..2 {
        for path in existing_roots(env, &args.paths, &args.agent) {
            if !looked_at.insert(path.clone()) {
                continue;
            }
            sync.sync_root(&path, &args.agent)?;
            if !args.dry_run {
                sync.seen.save()?;
            }
        }
    }
    sync.progress.finish();
    let SyncResult { failures, rows } = sync.finish();
    if !args.dry_run && !args.no_index {
        // What an earlier run left behind, or kept before there was an index.
        SessionStore::new(env).query(ui, |_| Ok(()))?;
    }
    if !args.dry_run {
        ProjectThreads::finish_killed_runs_near(ui, env);
    }
    for failure in &failures {
        ui.report_error(failure);
    }
    rows.values().for_each(|row| report_problems(ui, row, args));
    print_summary(ui, &rows, args)?;
    Ok(if failures.is_empty() { CommandExit::Done } else { CommandExit::Failed })
}

/// Tells where records could not be read. Their bytes are kept, so that is no failure.
fn report_problems(ui: &mut Ui, row: &AgentSyncRow, args: &Args) {
    let (told, more) = row.problem_list.first(if args.json { usize::MAX } else { MAX_PROBLEMS });
    told.iter().for_each(|problem| ui.warning(problem));
    if more > 0 {
        ui.warning(format_args!("and {more} more of {}", row.agent));
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
    for row in rows.values() {
        let numbers = [row.sessions, row.entries, row.bytes_new, row.bytes_kept, row.problems];
        let [sessions, entries, new, kept, problems] = numbers.map(|number| number.to_string());
        table.add_row([row.agent.clone(), sessions, entries, new, kept, problems]);
    }
    let text = table.render(ui.width());
    Ok(ui.transcript_text(&text)?)
}
