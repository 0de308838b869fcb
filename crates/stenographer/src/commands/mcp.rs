//! `steno mcp`: lets agents search the recorded sessions.

mod registration;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use steno_mcp::{AgentHistory, HistoryOptions, HistoryScope, TeamHistory};

use self::registration::{InstallSelection, McpClientSelection};
use crate::automatic_sync::AutomaticSyncFlag;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::mirror_refresher::MirrorRefresher;
use crate::process_environment::ProcessEnvironment;
use crate::project_folder::resolve_folder;
use crate::ui::Ui;

/// How long a mirror counts as current.
const PULL_INTERVAL: Duration = Duration::from_secs(60);

/// Let agents search the recorded sessions (MCP server).
///
/// Without a subcommand, serves one agent on standard input and output, over the Model Context Protocol; agents start
/// it so. The agent gets dated quotes of past sessions of this project, of all agents. Secrets are redacted. Sessions
/// with a note tagged #private, and those that `[private]` in `config.toml` names, are never served.
///
/// With `--from`, it gets those of a team, each with the name of its owner. Sessions pushed as private are not served.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<McpAction>,
    /// Serve the sessions of all projects.
    #[arg(long)]
    all: bool,
    /// Serve the sessions of this project [default: the Git repository of this folder].
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    project: Option<PathBuf>,
    /// Serve the team's sessions in this remote instead of this machine's; the project is known by its folder's name.
    #[arg(long, value_name = "REMOTE")]
    from: Option<String>,
    #[command(flatten)]
    pub(crate) sync: AutomaticSyncFlag,
}

#[derive(Debug, clap::Subcommand)]
enum McpAction {
    /// Add the server to the settings of agents, and a skill that explains it; without names, of every installed agent.
    ///
    /// All other settings and comments stay unchanged; the previous settings are saved as `NAME.steno-backup`.
    Install(InstallSelection),
    /// Remove the server and the skill from the settings.
    #[command(alias = "uninstall")]
    Remove(McpClientSelection),
    /// Show which agents can search the sessions.
    Status(McpClientSelection),
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    match &args.action {
        Some(McpAction::Install(selection)) => registration::install(ui, env, selection),
        Some(McpAction::Remove(selection)) => registration::remove(ui, env, selection),
        Some(McpAction::Status(selection)) => registration::print_status(ui, env, selection),
        None => serve_agent(ui, env, args),
    }
}

fn serve_agent(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let scope = match &args.project {
        _ if args.all => HistoryScope::All,
        Some(folder) => HistoryScope::Project(resolve_folder(&env.cwd.join(folder))?),
        None => current_project(env),
    };
    let options = match &args.from {
        Some(name) => team_history_options(ui, env, name, scope)?,
        None => history_options(env, scope, args.sync.no_sync)?,
    };
    if io::stdin().is_terminal() {
        ui.status("waiting for an agent on standard input; run `steno mcp install` to let agents start this");
    }
    steno_mcp::serve_stdio(AgentHistory::new(options))?;
    Ok(CommandExit::Done)
}

/// Returns the project of the working folder.
pub(super) fn current_project(env: &ProcessEnvironment) -> HistoryScope {
    let resolved = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    HistoryScope::of_folder(&resolved(&env.cwd), &resolved(&env.home))
}

/// Returns what a server serves.
pub(super) fn history_options(
    env: &ProcessEnvironment,
    scope: HistoryScope,
    no_sync: bool,
) -> Result<HistoryOptions, CommandError> {
    let config = Config::load(env)?;
    config.configure_redaction()?;
    Ok(HistoryOptions {
        store: env.store_location(),
        scope,
        privacy: config.privacy_rules(&env.home)?,
        prices: config.prices()?,
        zone: env.zone.clone(),
        before_call: sync_before_call(env, no_sync),
        team: None,
    })
}

/// Returns what a server of a team's sessions serves.
fn team_history_options(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    name: &str,
    scope: HistoryScope,
) -> Result<HistoryOptions, CommandError> {
    let refresher = MirrorRefresher::open(ui, env, name, PULL_INTERVAL)?;
    let owners = Arc::clone(&refresher.owners);
    let options = history_options(&refresher.mirror, scope, true)?;
    let team = TeamHistory {
        remote: name.to_owned(),
        owners: Arc::new(move || owners.load()),
        own_vault: env.store_location().vault(),
    };
    let before_call = Arc::new(move || refresher.refresh_if_due());
    Ok(HistoryOptions { before_call, team: Some(team), ..options })
}

/// Returns an action that starts a sync if one is due, and waits only for the first sessions of an empty store.
fn sync_before_call(env: &ProcessEnvironment, no_sync: bool) -> Arc<dyn Fn() + Send + Sync> {
    let env = env.clone();
    Arc::new(move || {
        let mut ui = Ui::stdio();
        ui.set_quiet(true);
        if let Some(sync) = (AutomaticSyncFlag { no_sync }).start_if_due(&mut ui, &env) {
            sync.wait_until_listable();
        }
    })
}
