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

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder that holds the runs.
    #[arg(long, value_name = "BASE", default_value = ".devflow", global = true)]
    dir: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at what was recorded.
    #[command(subcommand)]
    Transcript(Transcript),
    /// Look at the files that runs have left.
    #[command(subcommand)]
    Artifact(artifact::Command),
    /// List or delete archives of runs.
    #[command(subcommand)]
    Archive(archive::Command),
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
enum Transcript {
    /// Show a run.
    View(view::Args),
    /// Print a run as Markdown or JSON.
    Export(view::ExportArgs),
    /// Compare two runs, turn by turn.
    Diff(view::DiffArgs),
    /// Show a run while it is recorded, until it ends.
    Follow(follow::Args),
    /// Find a text in what was said.
    Search(search::Args),
    /// List runs, the newest first.
    List(list::Args),
    /// Add up what runs have cost.
    Cost(totals::CostArgs),
    /// Add up the tokens of each flow.
    Usage(totals::UsageArgs),
}

impl Command {
    /// Whether the command may change what is in the folder.
    fn writes(&self) -> bool {
        match self {
            Command::Transcript(_) | Command::Artifact(_) => false,
            Command::Archive(command) => command.writes(),
            Command::Cleanup(args) => !args.dry_run,
            Command::Restore { .. } => true,
        }
    }
}

/// An opened store, and how its folder is called on the command line.
struct Place<'a> {
    store: Store,
    shown: PathBuf,
    scene: &'a Scene,
}

/// Runs a devflow command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: Args) -> Result<Exit, CommandError> {
    let place = Place::open(scene, &args)?;
    ui.problems(place.store.problems());
    match args.command {
        Command::Transcript(Transcript::View(args)) => view::run(ui, &place, &args),
        Command::Transcript(Transcript::Export(args)) => view::export(ui, &place, &args),
        Command::Transcript(Transcript::Diff(args)) => view::diff(ui, &place, &args),
        Command::Transcript(Transcript::Follow(args)) => follow::run(ui, &place, &args),
        Command::Transcript(Transcript::Search(args)) => search::run(ui, &place, args),
        Command::Transcript(Transcript::List(args)) => list::run(ui, &place, args),
        Command::Transcript(Transcript::Cost(args)) => totals::cost(ui, &place, &args),
        Command::Transcript(Transcript::Usage(args)) => totals::usage(ui, &place, args),
        Command::Artifact(command) => artifact::run(ui, &place, &command),
        Command::Archive(command) => archive::run(ui, &place, &command),
        Command::Cleanup(args) => cleanup::run(ui, &place, &args),
        Command::Restore { id } => restore(ui, &place, &id),
    }
}

fn restore(ui: &mut Ui, place: &Place, id: &str) -> Result<Exit, CommandError> {
    let id: RunId = id.parse()?;
    place.store.restore(&id)?;
    let folder = place.shown.join("runs").join(id.as_str());
    ui.transcript_text(&format!("Restored to {}\n", folder.display()))?;
    Ok(Exit::Done)
}

impl<'a> Place<'a> {
    /// Opens the store, for reading unless the command changes runs.
    fn open(scene: &'a Scene, Args { dir, command }: &Args) -> Result<Self, CommandError> {
        let given = scene.cwd.join(dir);
        let base = devflow::base_of(&given);
        let deeper = base.strip_prefix(&given).unwrap_or(Path::new(""));
        let shown = if deeper.as_os_str().is_empty() { dir.to_owned() } else { dir.join(deeper) };
        let clock = scene.clock.clone();
        let store = if command.writes() {
            Store::open(&base, clock)?
        } else {
            Store::open_read_only(&base, clock)
        };
        Ok(Self { store, shown, scene })
    }

    /// The runs that a filter lets through; what cannot be read is reported.
    fn list(&self, ui: &mut Ui, filter: &Filter) -> Result<Vec<RunMeta>, CommandError> {
        let list = self.store.list_all(filter)?;
        ui.problems(&list.problems);
        Ok(list.runs)
    }

    /// The run that a user means: its name, a beginning that only it has, or `latest`.
    fn resolve(&self, text: &str) -> Result<RunId, CommandError> {
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
            _ => Err(unknown(id, &names)),
        }
    }

    /// Loads the run that a user means, and tells what of it could not be read.
    fn load(&self, ui: &mut Ui, text: &str) -> Result<Decoded, CommandError> {
        let decoded = self.store.load(&self.resolve(text)?)?;
        ui.problems(&decoded.problems);
        Ok(decoded)
    }
}

/// Says that there is no such run, and which ones the user may have meant.
fn unknown(id: RunId, names: &[&str]) -> CommandError {
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
fn counted(count: u64, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}
