//! `steno cost`: what was billed, added up.

mod blocks;
mod charge_source;
mod cost_table;
mod rows;
mod svg;

use std::path::{Path, PathBuf};

use steno_core::cost::charge::{Charges, Mode};
use steno_core::cost::report::By;
use steno_core::index::Filter;

use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_scope::SessionScope;
use crate::ui::Ui;

/// Add up tokens and what they cost, each API message once.
///
/// Prices come with Steno; those in `config.toml` come before them. A model without a price
/// is named and its cost left open, never taken for nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// By what to add up.
    #[arg(long, value_enum, default_value_t = CostGrouping::Day)]
    by: CostGrouping,
    #[command(flatten)]
    scope: SessionScope,
    /// Whose word to take for what a message cost.
    #[arg(long, value_enum, default_value_t = CostSource::Auto)]
    mode: CostSource,
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
enum CostGrouping {
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
enum CostSource {
    /// What the agent states, where it does; else it is calculated.
    Auto,
    /// Tokens times prices.
    Calculate,
    /// What the agent states only.
    Stated,
}

/// What is to be added up, with the cost of each.
struct PricedCharges {
    charges: Charges,
    costs: Vec<Option<f64>>,
    /// Which are asked for.
    filter: Filter,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let env = env.in_zone(args.timezone.as_deref())?;
    let prices = Config::load(&env)?.prices()?;
    let mut exit = CommandExit::Done;
    let (charges, filter) = if args.no_index {
        let read = charge_source::from_files(ui, &env, &args.paths, &args.scope)?;
        if !read.failures.is_empty() {
            exit = CommandExit::Failed;
        }
        read.failures.iter().for_each(|failure| _ = ui.report_error(failure));
        (read.charges, read.filter)
    } else {
        charge_source::from_index(ui, &env, &args.scope)?
    };
    let costs = charges.costs(&prices, args.mode.into());
    let accounts = PricedCharges { charges, costs, filter };
    match args.by.group_key() {
        Some(by) => rows::print_rows(ui, &env, args, (&accounts, by))?,
        None => blocks::print_blocks(ui, &env, args, &accounts)?,
    }
    Ok(exit)
}

impl CostGrouping {
    fn group_key(self) -> Option<By> {
        Some(match self {
            CostGrouping::Day => By::Day,
            CostGrouping::Week => By::Week,
            CostGrouping::Month => By::Month,
            CostGrouping::Session => By::Session,
            CostGrouping::Project => By::Project,
            CostGrouping::Agent => By::Agent,
            CostGrouping::Model => By::Model,
            CostGrouping::Thread => By::Thread,
            CostGrouping::Block => return None,
        })
    }

    /// The word for it.
    fn noun(self) -> &'static str {
        self.group_key().map_or("block", By::name)
    }
}

impl From<CostSource> for Mode {
    fn from(source: CostSource) -> Self {
        match source {
            CostSource::Auto => Mode::Auto,
            CostSource::Calculate => Mode::Calculate,
            CostSource::Stated => Mode::Stated,
        }
    }
}

/// Writes a drawing.
fn write_svg(env: &ProcessEnvironment, path: &Path, text: &str) -> Result<(), CommandError> {
    let path = env.cwd.join(path);
    std::fs::write(&path, text)
        .map_err(|error| CommandError::user(format!("could not write {}: {error}", path.display())))
}
