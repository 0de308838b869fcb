//! `steno hooks`: has agents call Steno, so that each session is kept as it happens.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use serde::Serialize;
use steno_core::agent::places::settings;

use crate::error::{CommandError, Exit};
use crate::hooks::file::SettingsFile;
use crate::hooks::log::HookLog;
use crate::hooks::{AGENTS, HookedAgent, Registration, State};
use crate::scene::Scene;
use crate::table::Table;
use crate::ui::Ui;

/// Have agents call Steno, so that each session is kept as it happens.
///
/// Registers `steno hook` in the agents' own settings. Whatever else stands there stays as it is, comments included;
/// the settings as they were before are kept beside them as `NAME.steno-backup`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Register Steno; without names, in every agent that is on this machine.
    Install(Names),
    /// Take Steno out of the settings again.
    Remove(Names),
    /// Tell which agents call Steno, and what last went wrong.
    Status(Names),
}

impl Action {
    fn names(&self) -> &Names {
        let (Self::Install(names) | Self::Remove(names) | Self::Status(names)) = self;
        names
    }
}

#[derive(Debug, clap::Args)]
struct Names {
    /// The agents.
    #[arg(value_name = "AGENT", value_parser = names())]
    agents: Vec<String>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

fn names() -> PossibleValuesParser {
    AGENTS.iter().map(|agent| agent.name).collect::<Vec<_>>().into()
}

#[derive(Serialize)]
struct Row {
    agent: &'static str,
    state: State,
    settings: String,
    last_problem: Option<String>,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let program = Scene::lasting_program()?;
    let program = program.to_str().ok_or("the path of this program is not UTF-8")?;
    let log = HookLog::new(&scene.store);
    let (mut rows, mut exit) = (Vec::new(), Exit::Done);
    for place in found(scene, &args.action) {
        let registration = Registration { agent: place.agent, program };
        match act(ui, &args.action, &place, &registration) {
            Ok(state) => rows.push(Row {
                agent: place.agent.name,
                state,
                settings: place.file.to_string_lossy().into_owned(),
                last_problem: log.last(place.agent.name),
            }),
            Err(error) => exit = ui.report(&error),
        }
    }
    if rows.is_empty() && exit == Exit::Done {
        ui.status("no agent that has hooks was found on this machine");
        return Ok(Exit::Failed);
    }
    print(ui, &rows, args.action.names().json)?;
    Ok(exit)
}

/// An agent's settings.
struct Place {
    agent: &'static HookedAgent,
    file: PathBuf,
    /// Whether the agent is on this machine.
    is_there: bool,
}

/// The settings to look at. Those of an agent that is not there are changed only if it was named.
fn found(scene: &Scene, action: &Action) -> Vec<Place> {
    let names = action.names();
    let is_listed = matches!(action, Action::Status(_));
    let mut found = Vec::new();
    for place in settings(&scene.home, &Scene::variable) {
        let agent = AGENTS.iter().find(|agent| agent.name == place.agent);
        let is_named = names.agents.iter().any(|name| name == place.agent);
        let is_there = place.path.is_dir();
        let is_wanted = is_named || (names.agents.is_empty() && (is_there || is_listed));
        if let Some(agent) = agent.filter(|_| is_wanted) {
            found.push(Place { agent, file: place.path.join(agent.file), is_there });
        }
    }
    found
}

/// Does what is asked for with one agent, and tells how it stands then.
fn act(
    ui: &mut Ui,
    action: &Action,
    place: &Place,
    registration: &Registration<'_>,
) -> Result<State, CommandError> {
    let file = SettingsFile::read(&place.file)?;
    match action {
        Action::Install(_) => {
            if let Some(backup) = file.install(registration)? {
                ui.status(format_args!("the settings as they were: {}", backup.display()));
            }
        }
        Action::Remove(_) => file.remove(registration)?,
        Action::Status(_) if !place.is_there => return Ok(State::NotFound),
        Action::Status(_) => {}
    }
    SettingsFile::read(&place.file)?.state(registration)
}

fn print(ui: &mut Ui, rows: &[Row], json: bool) -> Result<(), CommandError> {
    if json {
        for row in rows {
            serde_json::to_writer(ui.out(), row)?;
            writeln!(ui.out())?;
        }
        return Ok(());
    }
    let mut table = Table::new(["AGENT", "STATE", "SETTINGS"]);
    for row in rows {
        table.row([row.agent.to_owned(), row.state.to_string(), row.settings.clone()]);
    }
    let text = table.render(ui.width());
    ui.listing_text(&text)?;
    for problem in rows.iter().filter_map(|row| row.last_problem.as_ref()) {
        ui.note(format_args!("last problem: {problem}"));
    }
    Ok(())
}
