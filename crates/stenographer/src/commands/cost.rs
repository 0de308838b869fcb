//! `steno cost`: adds up tokens and costs.

mod blocks;
pub(crate) mod budgets;
mod charge_source;
mod cost_table;
mod rows;
mod svg;

use std::path::{Path, PathBuf};

use steno_store::cost::budget::BudgetLimits;
use steno_store::cost::charge::{ChargeTable, CostMode};
use steno_store::cost::report::GroupBy;
use steno_store::index::EntryFilter;

use crate::automatic_sync::AutomaticSyncFlag;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_scope::SessionScope;
use crate::session_store::SessionStore;
use crate::team_access::{RemoteFlag, explain_no_sessions};
use crate::team_index::find_index;
use crate::ui::Ui;

/// Add up tokens and costs; each API message counts once.
///
/// Prices come with Steno; `config.toml` overrides them. A model without a price is named; its cost counts as
/// unknown, not as zero.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "steno cost [OPTIONS] [ID]\n       steno cost --no-index [OPTIONS] [PATH]..."
)]
pub(crate) struct Args {
    /// Group the totals by this key.
    #[arg(long, value_enum, default_value_t = CostGrouping::Day)]
    by: CostGrouping,
    #[command(flatten)]
    scope: SessionScope,
    /// Where the cost of a message comes from.
    #[arg(long, value_enum, default_value_t = CostSource::Auto)]
    mode: CostSource,
    /// Time zone for days and times, such as Europe/Berlin [default: the system's].
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Read the agents' session files instead of the store.
    #[arg(long)]
    no_index: bool,
    /// Only this session. With --no-index: files or folders to read instead of the agents' own.
    #[arg(value_name = "ID")]
    paths: Vec<PathBuf>,
    /// Write an SVG chart to this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Check the budgets in `config.toml`: exit with 1 if one is crossed, with 2 if they could not be checked.
    #[arg(long, conflicts_with_all = ["svg", "no_index"])]
    check: bool,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) sync: AutomaticSyncFlag,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
}

/// Key of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CostGrouping {
    /// By day.
    Day,
    /// By week, starting on Monday.
    Week,
    /// By month.
    Month,
    /// By session.
    Session,
    /// By project folder.
    Project,
    /// By agent.
    Agent,
    /// By model.
    Model,
    /// By thread.
    Thread,
    /// By member of the team; needs --from.
    Person,
    /// By five-hour block, the period of Claude's plan limits.
    Block,
}

/// Where the cost of a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CostSource {
    /// The cost that the agent reports, else the calculated one.
    Auto,
    /// Tokens times prices.
    Calculate,
    /// Only the cost that the agent reports.
    Stated,
}

/// Charges, the cost of each, and the selection.
pub(crate) struct PricedCharges {
    pub(crate) charges: ChargeTable,
    pub(crate) costs: Vec<Option<f64>>,
    /// Selects the charges to add up.
    pub(crate) filter: EntryFilter,
}

/// The arguments of a report and its charges.
struct CostReport<'a> {
    env: &'a ProcessEnvironment,
    args: &'a Args,
    priced: &'a PricedCharges,
    budgets: &'a BudgetLimits,
}

impl CostReport<'_> {
    /// Says why there is nothing to add up.
    fn explain_nothing(&self, ui: &mut Ui) -> Result<(), CommandError> {
        let is_own_store = !self.args.no_index && self.args.remote.from.is_none();
        let is_empty_store = is_own_store && !SessionStore::new(self.env).vault.has_sessions()?;
        match is_empty_store {
            true => ui.status(explain_no_sessions(self.env)),
            false => ui.status("no charges"),
        }
        Ok(())
    }
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if args.by == CostGrouping::Person && !env.is_mirror && args.remote.from.is_none() {
        let error = CommandError::usage("--by person needs --from");
        return Err(error.hint("only the record of a team has several people"));
    }
    if args.check {
        args.refuse_selection()?;
    }
    let env = env.in_zone(args.timezone.as_deref())?;
    let scope = args.session_scope(&env)?;
    let config = Config::load(&env)?;
    let (prices, budgets) = (config.prices()?, config.budgets()?);
    let mut exit = CommandExit::Done;
    let (charges, filter) = if args.no_index {
        let read = charge_source::from_files(ui, &env, &args.paths, &scope)?;
        if !read.failures.is_empty() {
            exit = CommandExit::Failed;
        }
        read.failures.iter().for_each(|failure| _ = ui.report_error(failure));
        (read.charges, read.filter)
    } else if let Some(name) = args.remote.from.as_deref().filter(|_| !env.is_mirror) {
        charge_source::from_team_index(&env, name, &scope)?
    } else {
        args.sync.sync_before_answer(ui, &env);
        charge_source::from_index(ui, &env, &scope)?
    };
    let costs = charges.charge_costs(&prices, args.mode.into());
    let priced = PricedCharges { charges, costs, filter };
    let report = CostReport { env: &env, args, priced: &priced, budgets: &budgets };
    if args.check {
        return budgets::check_budgets(ui, &report);
    }
    match args.by.group_key() {
        Some(by) => rows::print_rows(ui, &report, by)?,
        None => blocks::print_blocks(ui, &report)?,
    }
    budgets::report_crossed(ui, &report);
    Ok(exit)
}

/// Whether the index of a remote adds up by itself.
pub(crate) fn is_answered_by_index(
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<bool, CommandError> {
    let has_session = !args.paths.is_empty() || args.scope.session.is_some();
    // The mirror knows the people.
    let needs_mirror = args.no_index || has_session || args.scope.has_person();
    Ok(!needs_mirror && find_index(env, args.remote.from.as_deref())?.is_some())
}

impl Args {
    /// Returns whether budgets are checked. Then the exit 1 says only that one is crossed.
    pub(crate) fn is_check(&self) -> bool {
        self.check
    }

    /// Fails if some sessions are selected: budgets are for all.
    fn refuse_selection(&self) -> Result<(), CommandError> {
        let session = self.paths.first().map(|_| "a session");
        let Some(selected) = self.scope.first_flag().or(session) else { return Ok(()) };
        let text = format!(
            "--check compares the cost of all sessions with the budgets; it does not take {selected}"
        );
        let hint = "`steno cost` adds up a selection; `[budget] projects` limits projects";
        Err(CommandError::usage(text).hint(hint))
    }

    /// Returns the selected sessions. Without `--no-index`, an argument is the id of a session.
    fn session_scope(&self, env: &ProcessEnvironment) -> Result<SessionScope, CommandError> {
        let mut scope = self.scope.clone();
        match self.paths.as_slice() {
            _ if self.no_index => Ok(scope),
            [] => Ok(scope),
            [id] if scope.session.is_none() && !env.cwd.join(id).exists() => {
                scope.session = Some(id.to_string_lossy().into_owned());
                Ok(scope)
            }
            [path, ..] if env.cwd.join(path).exists() => {
                let error =
                    CommandError::usage(format!("paths need --no-index: {}", path.display()));
                Err(error.hint("leave out the path, or add --no-index"))
            }
            _ => {
                let error = CommandError::usage("only one session can be selected");
                Err(error.hint("give one id, or leave it out for all sessions"))
            }
        }
    }
}

impl CostGrouping {
    fn group_key(self) -> Option<GroupBy> {
        Some(match self {
            CostGrouping::Day => GroupBy::Day,
            CostGrouping::Week => GroupBy::Week,
            CostGrouping::Month => GroupBy::Month,
            CostGrouping::Session => GroupBy::Session,
            CostGrouping::Project => GroupBy::Project,
            CostGrouping::Agent => GroupBy::Agent,
            CostGrouping::Model => GroupBy::Model,
            CostGrouping::Thread => GroupBy::Thread,
            CostGrouping::Person => GroupBy::Person,
            CostGrouping::Block => return None,
        })
    }

    /// Noun for the key.
    fn noun(self) -> &'static str {
        self.group_key().map_or("block", GroupBy::name)
    }
}

impl From<CostSource> for CostMode {
    fn from(source: CostSource) -> Self {
        match source {
            CostSource::Auto => CostMode::Auto,
            CostSource::Calculate => CostMode::Calculate,
            CostSource::Stated => CostMode::Reported,
        }
    }
}

/// Writes the chart to a file.
fn write_svg(env: &ProcessEnvironment, path: &Path, text: &str) -> Result<(), CommandError> {
    let path = env.cwd.join(path);
    std::fs::write(&path, text).map_err(|error| {
        let error = CommandError::user(format!("could not write {}: {error}", path.display()));
        error.hint("give a file in an existing folder that can be written")
    })
}
