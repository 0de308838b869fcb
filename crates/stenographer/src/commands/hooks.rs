//! `steno hooks`: registers Steno in the settings of agents.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use serde::Serialize;
use steno_agents::registry::session_locations::settings_folders;

use crate::agent_settings::settings_file::AgentSettingsFile;
use crate::agent_settings::{RegistrationState, print_states};
use crate::error::{CommandError, CommandExit};
use crate::hooks::hook_log::HookLog;
use crate::hooks::{HookRegistration, HookedAgent, hooked_agents};
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// Record sessions as they happen, through the hooks of agents.
///
/// Adds `steno hook` to the agents' own settings. All other settings and comments stay unchanged; the previous
/// settings are saved as `NAME.steno-backup`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: HooksAction,
}

#[derive(Debug, clap::Subcommand)]
enum HooksAction {
    /// Register Steno; without names, with every installed agent.
    Install(AgentSelection),
    /// Remove Steno from the settings.
    #[command(alias = "uninstall")]
    Remove(AgentSelection),
    /// Show which agents call Steno, and the last error.
    Status(AgentSelection),
}

impl HooksAction {
    fn selection(&self) -> &AgentSelection {
        let (Self::Install(names) | Self::Remove(names) | Self::Status(names)) = self;
        names
    }
}

#[derive(Debug, clap::Args)]
struct AgentSelection {
    /// Agents.
    #[arg(value_name = "AGENT", value_parser = agent_name_parser())]
    agents: Vec<String>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

fn agent_name_parser() -> PossibleValuesParser {
    hooked_agents().map(|agent| agent.name).collect::<Vec<_>>().into()
}

#[derive(Serialize)]
pub(crate) struct HookStatusRow {
    pub(crate) agent: &'static str,
    pub(crate) state: RegistrationState,
    settings: String,
    pub(crate) last_problem: Option<String>,
}

/// Returns the state of all agents' hooks, and the errors of settings that cannot be read.
pub(crate) fn hook_status(
    ui: &mut Ui,
    env: &ProcessEnvironment,
) -> Result<(Vec<HookStatusRow>, Vec<CommandError>), CommandError> {
    let action = HooksAction::Status(AgentSelection { agents: Vec::new(), json: false });
    apply_to_agents(ui, env, &action)
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let (rows, errors) = apply_to_agents(ui, env, &args.action)?;
    let exit = if errors.is_empty() { CommandExit::Done } else { CommandExit::Failed };
    errors.iter().for_each(|error| _ = ui.report_error(error));
    if rows.is_empty() && exit == CommandExit::Done {
        ui.status("no agent with hooks is installed");
        return Ok(CommandExit::Failed);
    }
    print_status_rows(ui, &rows, args.action.selection().json)?;
    Ok(exit)
}

/// Applies the action to the selected agents.
fn apply_to_agents(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    action: &HooksAction,
) -> Result<(Vec<HookStatusRow>, Vec<CommandError>), CommandError> {
    let program = ProcessEnvironment::stable_program_path()?;
    let program = program.to_str().ok_or("the path of this program is not UTF-8")?;
    let log = HookLog::new(&env.store);
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    for agent_settings in select_settings(env, action) {
        let registration = HookRegistration { agent: agent_settings.agent, program };
        match apply_action(ui, action, &agent_settings, &registration) {
            Ok(state) => rows.push(HookStatusRow {
                agent: agent_settings.agent.name,
                state,
                settings: agent_settings.file.to_string_lossy().into_owned(),
                last_problem: log.last_error(agent_settings.agent.name),
            }),
            Err(error) => errors.push(error),
        }
    }
    Ok((rows, errors))
}

/// Settings of an agent.
struct AgentSettings {
    agent: HookedAgent,
    folder: PathBuf,
    file: PathBuf,
    /// Whether the agent is installed.
    is_installed: bool,
}

/// Selects the settings to act on. Those of an agent that is not installed are changed only if it was named.
fn select_settings(env: &ProcessEnvironment, action: &HooksAction) -> Vec<AgentSettings> {
    let names = action.selection();
    let is_listed = matches!(action, HooksAction::Status(_));
    let mut found = Vec::new();
    for agent_settings in settings_folders(&env.home, &ProcessEnvironment::variable) {
        let agent = hooked_agents().find(|agent| agent.name == agent_settings.agent);
        let is_named = names.agents.iter().any(|name| name == agent_settings.agent);
        let is_installed = agent_settings.path.is_dir();
        let is_wanted = is_named || (names.agents.is_empty() && (is_installed || is_listed));
        if let Some(agent) = agent.filter(|_| is_wanted) {
            found.push(AgentSettings {
                agent,
                file: agent_settings.path.join(agent.hooks.settings_file),
                folder: agent_settings.path,
                is_installed,
            });
        }
    }
    found
}

/// Applies the action to one agent and returns its state.
fn apply_action(
    ui: &mut Ui,
    action: &HooksAction,
    agent_settings: &AgentSettings,
    registration: &HookRegistration<'_>,
) -> Result<RegistrationState, CommandError> {
    let file = AgentSettingsFile::read(&agent_settings.file)?;
    let has_plugin = (agent_settings.agent.hooks.has_plugin)(&agent_settings.folder);
    match action {
        HooksAction::Install(_) if has_plugin => {
            let name = agent_settings.agent.name;
            ui.status(format_args!("{name} already calls Steno through its plugin"));
        }
        HooksAction::Install(_) => {
            if let Some(backup) = file.install(registration)? {
                ui.status(format_args!("previous settings saved as {}", backup.display()));
            }
        }
        HooksAction::Remove(_) => file.remove(registration)?,
        HooksAction::Status(_) if !agent_settings.is_installed => {
            return Ok(RegistrationState::NotFound);
        }
        HooksAction::Status(_) => {}
    }
    Ok(match AgentSettingsFile::read(&agent_settings.file)?.state(registration)? {
        RegistrationState::NotInstalled if has_plugin => RegistrationState::Plugin,
        state => state,
    })
}

fn print_status_rows(ui: &mut Ui, rows: &[HookStatusRow], json: bool) -> Result<(), CommandError> {
    print_states(ui, rows, json, |row| {
        [row.agent.to_owned(), row.state.to_string(), row.settings.clone()]
    })?;
    for problem in distinct_problems(rows).into_iter().filter(|_| !json) {
        ui.print_note(format_args!("last error: {problem}"));
    }
    Ok(())
}

/// Returns the last errors of all agents' hooks. One that names no agent is that of several agents.
pub(crate) fn distinct_problems(rows: &[HookStatusRow]) -> BTreeSet<&String> {
    rows.iter().filter_map(|row| row.last_problem.as_ref()).collect()
}
