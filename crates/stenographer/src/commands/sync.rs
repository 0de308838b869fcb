//! `steno sync`: keeps what every agent has left on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::sweep::{self, Row, Sweep, SweepResult, roots};
use crate::table::Table;
use crate::threads::Threads;
use crate::ui::Ui;

/// How many records that could not be read are told of for each agent.
const TOLD: usize = 5;

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
    #[arg(long, value_name = "NAME", value_parser = sweep::agents())]
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
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let mut sync = Sweep::new(ui, scene)?;
    sync.dry_run = args.dry_run;
    if args.no_index {
        sync.leave_out_index();
    }
    let mut looked_at = BTreeSet::new();
    // What is kept tells of projects in which other agents may have left something.
    for _ in 0..2 {
        for path in roots(scene, &args.paths, &args.agent) {
            if !looked_at.insert(path.clone()) {
                continue;
            }
            sync.root(&path, &args.agent)?;
            if !args.dry_run {
                sync.seen.save()?;
            }
        }
    }
    sync.progress.finish();
    let SweepResult { failures, rows } = sync.finish();
    if !args.dry_run && !args.no_index {
        // What an earlier run left behind, or kept before there was an index.
        Store::new(scene).ask(ui, |_| Ok(()))?;
    }
    if !args.dry_run {
        Threads::finish_killed_runs_near(ui, scene);
    }
    for failure in &failures {
        ui.report(failure);
    }
    rows.values().for_each(|row| tell_problems(ui, row, args));
    print(ui, &rows, args)?;
    Ok(if failures.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Tells where records could not be read. Their bytes are kept, so that is no failure.
fn tell_problems(ui: &mut Ui, row: &Row, args: &Args) {
    let (told, more) = row.unread.first(if args.json { usize::MAX } else { TOLD });
    told.iter().for_each(|problem| ui.warning(problem));
    if more > 0 {
        ui.warning(format_args!("and {more} more of {}", row.agent));
    }
}

fn print(ui: &mut Ui, rows: &BTreeMap<String, Row>, args: &Args) -> Result<(), CommandError> {
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
    let mut table = Table::new(["AGENT", "SESSIONS", "ENTRIES", heading, "BYTES KEPT", "PROBLEMS"]);
    for row in rows.values() {
        let numbers = [row.sessions, row.entries, row.bytes_new, row.bytes_kept, row.problems];
        let [sessions, entries, new, kept, problems] = numbers.map(|number| number.to_string());
        table.row([row.agent.clone(), sessions, entries, new, kept, problems]);
    }
    let text = table.render(ui.width());
    Ok(ui.transcript_text(&text)?)
}
