//! `steno as devflow`: the command line of devflow's decision records, on a `.devflow` folder.

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
use steno_seeds::devflow::{
    self, DecodedRun, RunFilter, RunId, RunMetadata, RunStore, RunStoreError,
};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of the runs.
    #[arg(long, value_name = "BASE", default_value = ".devflow", global = true)]
    dir: PathBuf,
    #[command(subcommand)]
    command: DevflowCommand,
}

#[derive(Debug, Subcommand)]
enum DevflowCommand {
    /// Show recorded runs.
    #[command(subcommand)]
    Transcript(DevflowTranscriptCommand),
    /// Show the files of runs.
    #[command(subcommand)]
    Artifact(artifact::ArtifactCommand),
    /// List or delete archives of runs.
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Archive old runs; delete them only with `--delete`.
    Cleanup(cleanup::Args),
    /// Restore an archived run.
    Restore {
        /// Run id.
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
    /// Print a run while it is recorded, until it ends.
    Follow(follow::Args),
    /// Find a text in turns.
    Search(search::Args),
    /// List runs, newest first.
    List(list::Args),
    /// Add up the cost of runs.
    Cost(totals::DevflowCostArgs),
    /// Add up the tokens of each flow.
    Usage(totals::DevflowUsageArgs),
}

impl DevflowCommand {
    /// Returns whether the command may change the folder.
    fn is_writing(&self) -> bool {
        match self {
            DevflowCommand::Transcript(_) | DevflowCommand::Artifact(_) => false,
            DevflowCommand::Archive(command) => command.is_writing(),
            DevflowCommand::Cleanup(args) => !args.dry_run,
            DevflowCommand::Restore { .. } => true,
        }
    }
}

/// An open store, and its path as given on the command line.
struct DevflowStore<'a> {
    store: RunStore,
    displayed_path: PathBuf,
    env: &'a ProcessEnvironment,
}

/// Runs a devflow command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: Args,
) -> Result<CommandExit, CommandError> {
    let devflow = DevflowStore::open_store(env, &args)?;
    ui.report_problems(devflow.store.problems());
    match args.command {
        DevflowCommand::Transcript(DevflowTranscriptCommand::View(args)) => {
            view::run(ui, &devflow, &args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Export(args)) => {
            view::export_run(ui, &devflow, &args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Diff(args)) => {
            view::diff_runs(ui, &devflow, &args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Follow(args)) => {
            follow::run(ui, &devflow, &args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Search(args)) => {
            search::run(ui, &devflow, args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::List(args)) => {
            list::run(ui, &devflow, args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Cost(args)) => {
            totals::print_cost(ui, &devflow, &args)
        }
        DevflowCommand::Transcript(DevflowTranscriptCommand::Usage(args)) => {
            totals::print_usage(ui, &devflow, args)
        }
        DevflowCommand::Artifact(command) => artifact::run(ui, &devflow, &command),
        DevflowCommand::Archive(command) => archive::run(ui, &devflow, &command),
        DevflowCommand::Cleanup(args) => cleanup::run(ui, &devflow, &args),
        DevflowCommand::Restore { id } => restore_run(ui, &devflow, &id),
    }
}

fn restore_run(ui: &mut Ui, devflow: &DevflowStore, id: &str) -> Result<CommandExit, CommandError> {
    let id: RunId = id.parse()?;
    devflow.store.restore_run(&id)?;
    let folder = devflow.displayed_path.join("runs").join(id.as_str());
    ui.transcript_text(&format!("Restored to {}\n", folder.display()))?;
    Ok(CommandExit::Done)
}

impl<'a> DevflowStore<'a> {
    /// Opens the store, read-only unless the command changes runs.
    fn open_store(
        env: &'a ProcessEnvironment,
        Args { dir, command }: &Args,
    ) -> Result<Self, CommandError> {
        let given = env.cwd.join(dir);
        let base = devflow::find_store_base(&given);
        let deeper = base.strip_prefix(&given).unwrap_or(Path::new(""));
        let displayed_path =
            if deeper.as_os_str().is_empty() { dir.to_owned() } else { dir.join(deeper) };
        let clock = env.clock.clone();
        let store = if command.is_writing() {
            RunStore::open(&base, clock)?
        } else {
            RunStore::open_read_only(&base, clock)
        };
        Ok(Self { store, displayed_path, env })
    }

    /// Lists the matching runs and reports what cannot be read.
    fn list_runs(&self, ui: &mut Ui, filter: &RunFilter) -> Result<Vec<RunMetadata>, CommandError> {
        let list = self.store.list_runs_with_problems(filter)?;
        ui.report_problems(&list.problems);
        Ok(list.runs)
    }

    /// Resolves a run id, unique prefix, or `latest`.
    fn resolve_run(&self, text: &str) -> Result<RunId, CommandError> {
        let id: RunId = text.parse()?;
        if self.store.run_folder(&id).exists() {
            return Ok(id);
        }
        let runs = self.store.list_runs(&RunFilter::default())?;
        let names: Vec<&str> = runs.iter().map(|run| run.run_id.as_str()).collect();
        let matching: Vec<&str> =
            names.iter().copied().filter(|name| name.starts_with(text)).collect();
        match (text, names.first(), matching.as_slice()) {
            ("latest", Some(newest), _) => Ok(newest.parse()?),
            (_, _, [only]) => Ok(only.parse()?),
            _ => Err(unknown_run_error(id, &names)),
        }
    }

    /// Loads a run and reports what cannot be read.
    fn load_run(&self, ui: &mut Ui, text: &str) -> Result<DecodedRun, CommandError> {
        let decoded = self.store.load_run(&self.resolve_run(text)?)?;
        ui.report_problems(&decoded.problems);
        Ok(decoded)
    }
}

/// Returns the error for an unknown run, with similar ids as a hint.
fn unknown_run_error(id: RunId, names: &[&str]) -> CommandError {
    let requested = id.as_str().to_lowercase();
    let near: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| name.to_lowercase().contains(&requested))
        .take(3)
        .collect();
    let error = CommandError::user(RunStoreError::NotFound(id));
    if near.is_empty() {
        error.hint("`steno as devflow transcript list` shows all runs")
    } else {
        error.hint(format!("did you mean {}?", near.join(" or ")))
    }
}

/// Formats a count with its noun: `1 run`, `2 runs`.
fn pluralize(count: u64, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}
