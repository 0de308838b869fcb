//! `steno as devflow`: the command line that devflow's decisions publish, on a `.devflow` folder.

mod archive;
mod artifact;
mod cleanup;
mod follow;
mod list;
mod search;
mod since;
mod totals;
mod view;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use steno_core::format::devflow::{self, Decoded, Filter, RunId, RunMeta, Store, StoreError};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder that holds the runs.
    #[arg(long, value_name = "BASE", default_value = ".devflow", global = true)]
    dir: PathBuf,
    #[command(subcommand)]
    command: DevflowCommand,
}

#[derive(Debug, Subcommand)]
enum DevflowCommand {
    /// Look at what was recorded.
    #[command(subcommand)]
    Transcript(DevflowTranscriptCommand),
    /// Look at the files that runs have left.
    #[command(subcommand)]
    Artifact(artifact::ArtifactCommand),
    /// List or delete archives of runs.
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Archive old runs; delete them only when told to.
    Cleanup(cleanup::Args),
    /// Bring an archived run back.
    Restore {
        /// The run.
        #[arg(value_name = "RUN-ID")]
        id: String,
    },
}

#[derive(Debug, Subcommand)]
enum DevflowTranscriptCommand {
    /// Show a run.
    View(view::Args),
    /// Print a run as Markdown or JSON.
    Export(view::DevflowExportArgs),
    /// Compare two runs, turn by turn.
    Diff(view::DevflowDiffArgs),
    /// Show a run while it is recorded, until it ends.
    Follow(follow::Args),
    /// Find a text in what was said.
    Search(search::Args),
    /// List runs, the newest first.
    List(list::Args),
    /// Add up what runs have cost.
    Cost(totals::DevflowCostArgs),
    /// Add up the tokens of each flow.
    Usage(totals::DevflowUsageArgs),
}

impl DevflowCommand {
    /// Whether the command may change what is in the folder.
    fn is_writing(&self) -> bool {
        match self {
            DevflowCommand::Transcript(_) | DevflowCommand::Artifact(_) => false,
            DevflowCommand::Archive(command) => command.is_writing(),
            DevflowCommand::Cleanup(args) => !args.dry_run,
            DevflowCommand::Restore { .. } => true,
        }
    }
}

/// An opened store, and how its folder is called on the command line.
struct DevflowStore<'a> {
    store: Store,
    displayed_path: PathBuf,
    env: &'a ProcessEnvironment,
}

/// Runs a devflow command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: Args,
) -> Result<CommandExit, CommandError> {
    let place = DevflowStore::open_store(env, &args)?;
    ui.report_problems(place.store.problems());
    match args.command {
        DevflowCommand::Transcript(DevflowTranscriptCommand::View(args)) => {
            view::run(ui, &place, &args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Export(args)) => {
            view::export_run(ui, &place, &args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Diff(args)) => {
            view::diff_runs(ui, &place, &args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Follow(args)) => {
            follow::run(ui, &place, &args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Search(args)) => {
            search::run(ui, &place, args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::List(args)) => {
            list::run(ui, &place, args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Cost(args)) => {
            totals::print_cost(ui, &place, &args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Usage(args)) => {
            totals::print_usage(ui, &place, args)
        }
        DevflowCommand::Artifact(command) => artifact::run(ui, &place, &command),
        DevflowCommand::Archive(command) => archive::run(ui, &place, &command),
        DevflowCommand::Cleanup(args) => cleanup::run(ui, &place, &args),
        DevflowCommand::Restore { id } => restore_run(ui, &place, &id),
    }
}

fn restore_run(ui: &mut Ui, place: &DevflowStore, id: &str) -> Result<CommandExit, CommandError> {
    let id: RunId = id.parse()?;
    place.store.restore(&id)?;
    let folder = place.displayed_path.join("runs").join(id.as_str());
    ui.transcript_text(&format!("Restored to {}\n", folder.display()))?;
    Ok(CommandExit::Done)
}

impl<'a> DevflowStore<'a> {
    /// Opens the store, for reading unless the command changes runs.
    fn open_store(
        env: &'a ProcessEnvironment,
        Args { dir, command }: &Args,
    ) -> Result<Self, CommandError> {
        let given = env.cwd.join(dir);
        let base = devflow::base_of(&given);
        let deeper = base.strip_prefix(&given).unwrap_or(Path::new(""));
        let shown = if deeper.as_os_str().is_empty() { dir.to_owned() } else { dir.join(deeper) };
        let clock = env.clock.clone();
        let store = if command.is_writing() {
            Store::open(&base, clock)?
        } else {
            Store::open_read_only(&base, clock)
        };
        Ok(Self { store, displayed_path: shown, env })
    }

    /// The runs that a filter lets through; what cannot be read is reported.
    fn list_runs(&self, ui: &mut Ui, filter: &Filter) -> Result<Vec<RunMeta>, CommandError> {
        let list = self.store.list_all(filter)?;
        ui.report_problems(&list.problems);
        Ok(list.runs)
    }

    /// The run that a user means: its name, a beginning that only it has, or `latest`.
    fn resolve_run(&self, text: &str) -> Result<RunId, CommandError> {
        let id: RunId = text.parse()?;
        if self.store.folder(&id).exists() {
            return Ok(id);
        }
        let runs = self.store.list(&Filter::default())?;
        let names: Vec<&str> = runs.iter().map(|run| run.run_id.as_str()).collect();
        let begun: Vec<&str> =
            names.iter().copied().filter(|name| name.starts_with(text)).collect();
        match (text, names.first(), begun.as_slice()) {
            ("latest", Some(newest), _) => Ok(newest.parse()?),
            (_, _, [only]) => Ok(only.parse()?),
            _ => Err(unknown_run_error(id, &names)),
        }
    }

    /// Loads the run that a user means, and tells what of it could not be read.
    fn load_run(&self, ui: &mut Ui, text: &str) -> Result<Decoded, CommandError> {
        let decoded = self.store.load(&self.resolve_run(text)?)?;
        ui.report_problems(&decoded.problems);
        Ok(decoded)
    }
}

/// Says that there is no such run, and which ones the user may have meant.
fn unknown_run_error(id: RunId, names: &[&str]) -> CommandError {
    let wanted = id.as_str().to_lowercase();
    let near: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| name.to_lowercase().contains(&wanted))
        .take(3)
        .collect();
    let error = CommandError::user(StoreError::NotFound(id));
    if near.is_empty() {
        error.hint("`steno as devflow transcript list` shows all runs")
    } else {
        error.hint(format!("did you mean {}?", near.join(" or ")))
    }
}

/// A number and what it counts: `1 run`, `2 runs`.
fn pluralize(count: u64, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}
