//! Registers Steno in the settings of agents: as a hook, or as an MCP server.
//!
//! A [`SettingsRegistration`] works on the text of settings; [`settings_file`] reads and writes the files.

pub(crate) mod json_settings;
pub(crate) mod settings_file;
pub(crate) mod toml_settings;

use std::path::Path;

use serde::Serialize;

use crate::error::CommandError;
use crate::text_table::TextTable;
use crate::ui::Ui;

/// Whether an agent's settings name Steno.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RegistrationState {
    Installed,
    /// A plugin or an extension of the agent calls Steno; the settings do not.
    Plugin,
    NotInstalled,
    /// Names another program, or is incomplete.
    Outdated,
    /// The agent has no settings folder here.
    NotFound,
}

impl std::fmt::Display for RegistrationState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RegistrationState::Installed => "installed",
            RegistrationState::Plugin => "installed by a plugin",
            RegistrationState::NotInstalled => "not installed",
            RegistrationState::Outdated => "outdated",
            RegistrationState::NotFound => "agent not found",
        })
    }
}

/// Settings that cannot be edited, with the line and reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SettingsRefusal {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// Steno's entry in the settings of an agent.
pub(crate) trait SettingsRegistration {
    /// Returns whether the settings name this program.
    fn state(&self, text: &str) -> Result<RegistrationState, SettingsRefusal>;

    /// Adds Steno to the settings exactly once.
    fn add_to(&self, text: &str) -> Result<String, SettingsRefusal>;

    /// Removes Steno from the settings.
    fn remove_from(&self, text: &str) -> Result<String, SettingsRefusal>;
}

/// Returns whether a program is Steno, at any path.
pub(crate) fn is_steno(program: &str) -> bool {
    Path::new(program).file_stem().is_some_and(|stem| stem == "steno")
}

/// Prints the state of agents' settings: a table of agent, state and settings, or JSON Lines.
pub(crate) fn print_states<Row: Serialize>(
    ui: &mut Ui,
    rows: &[Row],
    json: bool,
    columns: impl Fn(&Row) -> [String; 3],
) -> Result<(), CommandError> {
    if json {
        for row in rows {
            serde_json::to_writer(ui.out(), row)?;
            writeln!(ui.out())?;
        }
        return Ok(());
    }
    let mut table = TextTable::new(["AGENT", "STATE", "SETTINGS"]);
    rows.iter().for_each(|row| table.add_row(columns(row)));
    let text = table.render(ui.width());
    Ok(ui.listing_text(&text)?)
}
