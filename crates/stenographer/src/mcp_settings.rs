//! Registers `steno mcp` in the settings of agents.
//!
//! This module works on the text of settings; [`crate::agent_settings`] reads and writes the files.

mod json_servers;
pub(crate) mod skill_file;
mod toml_servers;

use steno_agents::agent::mcp_client::McpServerShape;

use crate::agent_settings::{RegistrationState, SettingsRefusal, SettingsRegistration, is_steno};

/// The server's name in settings. Agents put it before the names of its tools.
const SERVER_NAME: &str = "steno";

/// The command of Steno that agents start.
const MCP_COMMAND: &str = "mcp";

/// Steno's registration as a server.
#[derive(Debug)]
pub(crate) struct McpRegistration<'a> {
    pub(crate) shape: McpServerShape,
    /// Program to start.
    pub(crate) program: &'a str,
    /// Whether it serves the sessions of all projects.
    pub(crate) serves_all: bool,
    /// The store, if it is not the usual one: some agents pass no variables on.
    pub(crate) store: Option<&'a str>,
}

/// The variable that names the store.
const STORE_VARIABLE: &str = "STENO_HOME";

/// A server in settings.
#[derive(Debug, PartialEq, Eq)]
struct ServerCommand {
    /// The program and its arguments.
    words: Vec<String>,
    store: Option<String>,
}

impl ServerCommand {
    fn is_steno(&self) -> bool {
        let [program, command, ..] = self.words.as_slice() else { return false };
        is_steno(program) && command == MCP_COMMAND
    }
}

impl McpRegistration<'_> {
    /// Returns the program and its arguments.
    fn command(&self) -> ServerCommand {
        let all = self.serves_all.then_some("--all");
        let words = [self.program, MCP_COMMAND].into_iter().chain(all);
        let store = self.store.map(str::to_owned);
        ServerCommand { words: words.map(str::to_owned).collect(), store }
    }

    /// Finds the server with our name. One of another program is refused, never replaced.
    fn find_server(&self, text: &str) -> Result<Option<ServerCommand>, SettingsRefusal> {
        let found = match self.shape {
            McpServerShape::TomlTable => toml_servers::find_server(text)?,
            shape => json_servers::find_server(text, shape)?,
        };
        if found.as_ref().is_some_and(|found| *found != self.command() && !found.is_steno()) {
            let reason = format!("another server has the name `{SERVER_NAME}`");
            return Err(SettingsRefusal { line: 1, reason });
        }
        Ok(found)
    }
}

impl SettingsRegistration for McpRegistration<'_> {
    fn state(&self, text: &str) -> Result<RegistrationState, SettingsRefusal> {
        Ok(match self.find_server(text)? {
            None => RegistrationState::NotInstalled,
            Some(found) if found == self.command() => RegistrationState::Installed,
            Some(_) => RegistrationState::Outdated,
        })
    }

    fn add_to(&self, text: &str) -> Result<String, SettingsRefusal> {
        let text = self.remove_from(text)?;
        match self.shape {
            McpServerShape::TomlTable => toml_servers::add_server(&text, &self.command()),
            shape => json_servers::add_server(&text, shape, &self.command()),
        }
    }

    fn remove_from(&self, text: &str) -> Result<String, SettingsRefusal> {
        if self.find_server(text)?.is_none() {
            return Ok(text.to_owned());
        }
        match self.shape {
            McpServerShape::TomlTable => toml_servers::remove_server(text),
            shape => json_servers::remove_server(text, shape),
        }
    }
}

#[cfg(test)]
mod tests;
