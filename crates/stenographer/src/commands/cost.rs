//! `steno cost`: what was billed, added up.

mod blocks;
mod charged;
mod chart;
mod rows;
mod svg;

use std::path::{Path, PathBuf};

use steno_core::cost::charge::{Charges, Mode};
use steno_core::cost::report::By;
use steno_core::index::Filter;

use crate::config::Config;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::scope::Scope;
use crate::ui::Ui;

/// Add up tokens and what they cost, each API message once.
///
/// Prices come with Steno; those in `config.toml` come before them. A model without a price
/// is named and its cost left open, never taken for nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// By what to add up.
    #[arg(long, value_enum, default_value_t = Grouping::Day)]
    by: Grouping,
    #[command(flatten)]
    scope: Scope,
    /// Whose word to take for what a message cost.
    #[arg(long, value_enum, default_value_t = Source::Auto)]
    mode: Source,
    /// Days and times of this zone, such as Europe/Berlin, instead of the system's.
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Read the agents' own files instead of what is kept.
    #[arg(long)]
    no_index: bool,
    /// Files or folders to read instead of all places that `steno sync` knows.
    #[arg(value_name = "PATH", requires = "no_index")]
    paths: Vec<PathBuf>,
    /// Draw the costs into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

/// By what to add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Grouping {
    /// Days.
    Day,
    /// Weeks, by their Mondays.
    Week,
    /// Months.
    Month,
    /// Sessions.
    Session,
    /// Project folders.
    Project,
    /// Agents.
    Agent,
    /// Models.
    Model,
    /// Threads.
    Thread,
    /// Blocks of five hours, in which Claude's plans are limited.
    Block,
}

/// Whose word to take for what a message cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Source {
    /// What the agent states, where it does; else it is calculated.
    Auto,
    /// Tokens times prices.
    Calculate,
    /// What the agent states only.
    Stated,
}

/// What is to be added up, with the cost of each.
struct Accounts {
    charges: Charges,
    costs: Vec<Option<f64>>,
    /// Which are asked for.
    filter: Filter,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let scene = scene.in_zone(args.timezone.as_deref())?;
    let prices = Config::load(&scene)?.prices()?;
    let mut exit = Exit::Done;
    let (charges, filter) = if args.no_index {
        let read = charged::from_files(ui, &scene, &args.paths, &args.scope)?;
        if !read.failures.is_empty() {
            exit = Exit::Failed;
        }
        read.failures.iter().for_each(|failure| _ = ui.report(failure));
        (read.charges, read.filter)
    } else {
        charged::from_index(ui, &scene, &args.scope)?
    };
    let costs = charges.costs(&prices, args.mode.into());
    let accounts = Accounts { charges, costs, filter };
    match args.by.by() {
        Some(by) => rows::print(ui, &scene, args, (&accounts, by))?,
        None => blocks::print(ui, &scene, args, &accounts)?,
    }
    Ok(exit)
}

impl Grouping {
    fn by(self) -> Option<By> {
        Some(match self {
            Grouping::Day => By::Day,
            Grouping::Week => By::Week,
            Grouping::Month => By::Month,
            Grouping::Session => By::Session,
            Grouping::Project => By::Project,
            Grouping::Agent => By::Agent,
            Grouping::Model => By::Model,
            Grouping::Thread => By::Thread,
            Grouping::Block => return None,
        })
    }

    /// The word for it.
    fn name(self) -> &'static str {
        self.by().map_or("block", By::name)
    }
}

impl From<Source> for Mode {
    fn from(source: Source) -> Self {
        match source {
            Source::Auto => Mode::Auto,
            Source::Calculate => Mode::Calculate,
            Source::Stated => Mode::Stated,
        }
    }
}

/// Writes a drawing.
fn write_svg(scene: &Scene, path: &Path, text: &str) -> Result<(), CommandError> {
    let path = scene.cwd.join(path);
    std::fs::write(&path, text)
        .map_err(|error| CommandError::user(format!("could not write {}: {error}", path.display())))
}
