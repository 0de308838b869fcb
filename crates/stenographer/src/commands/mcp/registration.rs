//! `steno mcp install`, `remove` and `status`: registers the server in the settings of agents.

use clap::builder::PossibleValuesParser;
use serde::Serialize;
use steno_agents::registry;
use steno_agents::registry::session_locations::{McpClientSettings, mcp_client_settings};

use crate::agent_settings::settings_file::AgentSettingsFile;
use crate::agent_settings::{RegistrationState, print_states};
use crate::error::{CommandError, CommandExit};
use crate::mcp_settings::McpRegistration;
use crate::mcp_settings::skill_file::SkillFile;
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(super) struct McpClientSelection {
    /// Agents.
    #[arg(value_name = "AGENT", value_parser = client_name_parser())]
    agents: Vec<String>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct InstallSelection {
    #[command(flatten)]
    selection: McpClientSelection,
    /// Let the agents search the sessions of all projects, not only of the one they work in.
    #[arg(long)]
    all: bool,
}

fn client_name_parser() -> PossibleValuesParser {
    let clients = registry::all_agents().filter(|agent| agent.mcp_client.is_some());
    clients.map(|agent| agent.name()).collect::<Vec<_>>().into()
}

#[derive(Serialize)]
struct McpStatusRow {
    agent: &'static str,
    state: RegistrationState,
    settings: String,
    skill: Option<String>,
}

/// What to do with an agent's settings.
#[derive(Clone, Copy)]
enum SettingsAction {
    Install { serves_all: bool },
    Remove,
    Inspect,
}

/// Adds the server to settings.
pub(super) fn install(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &InstallSelection,
) -> Result<CommandExit, CommandError> {
    let action = SettingsAction::Install { serves_all: args.all };
    apply_to_agents(ui, env, &args.selection, action)
}

/// Removes the server from settings.
pub(super) fn remove(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    selection: &McpClientSelection,
) -> Result<CommandExit, CommandError> {
    apply_to_agents(ui, env, selection, SettingsAction::Remove)
}

/// Prints which settings have the server.
pub(super) fn print_status(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    selection: &McpClientSelection,
) -> Result<CommandExit, CommandError> {
    apply_to_agents(ui, env, selection, SettingsAction::Inspect)
}

fn apply_to_agents(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    selection: &McpClientSelection,
    action: SettingsAction,
) -> Result<CommandExit, CommandError> {
    let program = ProcessEnvironment::stable_program_path()?;
    let program = program.to_str().ok_or("the path of this program is not UTF-8")?;
    let store = env.cwd.join(&env.store);
    let store = store.to_str().filter(|_| !env.is_default_store);
    let serves_all = matches!(action, SettingsAction::Install { serves_all: true });
    let (mut rows, mut exit) = (Vec::new(), CommandExit::Done);
    for client in select_clients(env, selection, action) {
        let registration = McpRegistration { shape: client.shape, program, serves_all, store };
        match apply_action(ui, &client, &registration, action) {
            Ok(row) => rows.push(row),
            Err(error) => {
                ui.report_error(&error);
                exit = CommandExit::Failed;
            }
        }
    }
    if rows.is_empty() && exit == CommandExit::Done {
        ui.status("no agent that can use MCP servers is installed");
        return Ok(CommandExit::Failed);
    }
    print_states(ui, &rows, selection.json, |row| {
        [row.agent.to_owned(), row.state.to_string(), row.settings.clone()]
    })?;
    Ok(exit)
}

/// Selects the settings to act on. Those of an agent that is not installed are changed only if it was named.
fn select_clients(
    env: &ProcessEnvironment,
    selection: &McpClientSelection,
    action: SettingsAction,
) -> Vec<McpClientSettings> {
    let is_listed = matches!(action, SettingsAction::Inspect);
    let is_wanted = |client: &McpClientSettings| match selection.agents.as_slice() {
        [] => is_listed || client.location.folder.is_dir(),
        named => named.iter().any(|name| name == client.agent),
    };
    let clients = mcp_client_settings(&env.home, &ProcessEnvironment::variable);
    clients.into_iter().filter(is_wanted).collect()
}

fn apply_action(
    ui: &mut Ui,
    client: &McpClientSettings,
    registration: &McpRegistration<'_>,
    action: SettingsAction,
) -> Result<McpStatusRow, CommandError> {
    let location = &client.location;
    let skill = location.skills.as_deref().map(SkillFile::in_folder);
    let file = AgentSettingsFile::read(&location.settings)?;
    match action {
        SettingsAction::Install { .. } => {
            if let Some(backup) = file.install(registration)? {
                ui.status(format_args!("previous settings saved as {}", backup.display()));
            }
            if let Some(skill) = &skill
                && !skill.install()?
            {
                let path = skill.path().display();
                ui.warning(format_args!("{path} is not a file of steno; it was left as it is"));
            }
        }
        SettingsAction::Remove => {
            file.remove(registration)?;
            skill.iter().try_for_each(SkillFile::remove)?;
        }
        SettingsAction::Inspect => {}
    }
    let state = inspect_state(client, registration)?;
    let skill = skill.filter(SkillFile::is_ours);
    Ok(McpStatusRow {
        agent: client.agent,
        state,
        settings: location.settings.to_string_lossy().into_owned(),
        skill: skill.map(|skill| skill.path().to_string_lossy().into_owned()),
    })
}

/// Returns whether the settings have the server, for one project or for all.
fn inspect_state(
    client: &McpClientSettings,
    registration: &McpRegistration<'_>,
) -> Result<RegistrationState, CommandError> {
    if !client.location.folder.is_dir() && !client.location.settings.exists() {
        return Ok(RegistrationState::NotFound);
    }
    let file = AgentSettingsFile::read(&client.location.settings)?;
    match file.state(registration)? {
        RegistrationState::Outdated => {
            let serves_all = !registration.serves_all;
            file.state(&McpRegistration { serves_all, ..*registration })
        }
        state => Ok(state),
    }
}
