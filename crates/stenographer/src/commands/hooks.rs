//! `steno hooks`: has agents call Steno, so that each session is kept as it happens.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use serde::Serialize;
use steno_core::agent::places::settings;

use crate::error::{CommandError, CommandExit};
use crate::hooks::hook_log::HookLog;
use crate::hooks::settings_file::HookSettingsFile;
use crate::hooks::{HOOKED_AGENTS, HookRegistration, HookState, HookedAgent};
use crate::process_environment::ProcessEnvironment;
use crate::text_table::TextTable;
use crate::ui::Ui;

/// Have agents call Steno, so that each session is kept as it happens.
///
/// Registers `steno hook` in the agents' own settings. Whatever else stands there stays as it is, comments included;
/// the settings as they were before are kept beside them as `NAME.steno-backup`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: HooksAction,
}

#[derive(Debug, clap::Subcommand)]
enum HooksAction {
    /// Register Steno; without names, in every agent that is on this machine.
    Install(AgentSelection),
    /// Take Steno out of the settings again.
    Remove(AgentSelection),
    /// Tell which agents call Steno, and what last went wrong.
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
    /// The agents.
    #[arg(value_name = "AGENT", value_parser = agent_name_parser())]
    agents: Vec<String>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

fn agent_name_parser() -> PossibleValuesParser {
    HOOKED_AGENTS.iter().map(|agent| agent.name).collect::<Vec<_>>().into()
}

#[derive(Serialize)]
struct HookStatusRow {
    agent: &'static str,
    state: HookState,
    settings: String,
    last_problem: Option<String>,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let program = ProcessEnvironment::stable_program_path()?;
    let program = program.to_str().ok_or("the path of this program is not UTF-8")?;
    let log = HookLog::new(&env.store);
    let (mut rows, mut exit) = (Vec::new(), CommandExit::Done);
    for place in select_settings(env, &args.action) {
        let registration = HookRegistration { agent: place.agent, program };
        match apply_action(ui, &args.action, &place, &registration) {
            Ok(state) => rows.push(HookStatusRow {
                agent: place.agent.name,
                state,
                settings: place.file.to_string_lossy().into_owned(),
                last_problem: log.last_error(place.agent.name),
            }),
            Err(error) => exit = ui.report_error(&error),
        }
    }
    if rows.is_empty() && exit == CommandExit::Done {
        ui.status("no agent that has hooks was found on this machine");
        return Ok(CommandExit::Failed);
    }
    print_status_rows(ui, &rows, args.action.selection().json)?;
    Ok(exit)
}

/// An agent's settings.
struct AgentSettings {
    agent: &'static HookedAgent,
    file: PathBuf,
    /// Whether the agent is on this machine.
    is_installed: bool,
}

/// The settings to look at. Those of an agent that is not there are changed only if it was named.
fn select_settings(env: &ProcessEnvironment, action: &HooksAction) -> Vec<AgentSettings> {
    let names = action.selection();
    let is_listed = matches!(action, HooksAction::Status(_));
    let mut found = Vec::new();
    for place in settings(&env.home, &ProcessEnvironment::variable) {
        let agent = HOOKED_AGENTS.iter().find(|agent| agent.name == place.agent);
        let is_named = names.agents.iter().any(|name| name == place.agent);
        let is_there = place.path.is_dir();
        let is_wanted = is_named || (names.agents.is_empty() && (is_there || is_listed));
        if let Some(agent) = agent.filter(|_| is_wanted) {
            found.push(AgentSettings {
                agent,
                file: place.path.join(agent.file),
                is_installed: is_there,
            });
        }
    }
    found
}

/// Does what is asked for with one agent, and tells how it stands then.
fn apply_action(
    ui: &mut Ui,
    action: &HooksAction,
    place: &AgentSettings,
    registration: &HookRegistration<'_>,
) -> Result<HookState, CommandError> {
    let file = HookSettingsFile::read(&place.file)?;
    match action {
        HooksAction::Install(_) => {
            if let Some(backup) = file.install(registration)? {
                ui.status(format_args!("the settings as they were: {}", backup.display()));
            }
        }
        HooksAction::Remove(_) => file.remove(registration)?,
        HooksAction::Status(_) if !place.is_installed => return Ok(HookState::NotFound),
        HooksAction::Status(_) => {}
    }
    HookSettingsFile::read(&place.file)?.state(registration)
}

fn print_status_rows(ui: &mut Ui, rows: &[HookStatusRow], json: bool) -> Result<(), CommandError> {
    if json {
        for row in rows {
            serde_json::to_writer(ui.out(), row)?;
            writeln!(ui.out())?;
        }
        return Ok(());
    }
    let mut table = TextTable::new(["AGENT", "STATE", "SETTINGS"]);
    for row in rows {
        table.add_row([row.agent.to_owned(), row.state.to_string(), row.settings.clone()]);
    }
    let text = table.render(ui.width());
    ui.listing_text(&text)?;
    for problem in rows.iter().filter_map(|row| row.last_problem.as_ref()) {
        ui.print_note(format_args!("last problem: {problem}"));
    }
    Ok(())
}
