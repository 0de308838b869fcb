//! Agents with hooks, and how to register Steno in their settings.
//!
//! This module works on the text of settings; [`settings_file`] reads and writes the files.

mod codex_notify;
pub(crate) mod hook_log;
pub(crate) mod hook_payload;
mod json_hooks;
pub(crate) mod session_sync;
pub(crate) mod settings_file;

use std::path::Path;

use serde::Serialize;
use steno_agents::agent::hooks::{AgentHooks, HookShape};
use steno_agents::registry;

/// An agent with hooks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookedAgent {
    pub(crate) name: &'static str,
    pub(crate) hooks: &'static AgentHooks,
}

/// Returns all agents with known hooks.
pub(crate) fn hooked_agents() -> impl Iterator<Item = HookedAgent> {
    registry::all_agents()
        .filter_map(|agent| Some(HookedAgent { name: agent.name(), hooks: agent.hooks.as_ref()? }))
}

/// Whether an agent calls Steno.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HookState {
    Installed,
    NotInstalled,
    /// Calls another program, or not at each event.
    Outdated,
    /// The agent has no settings folder here.
    NotFound,
}

impl std::fmt::Display for HookState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HookState::Installed => "installed",
            HookState::NotInstalled => "not installed",
            HookState::Outdated => "outdated",
            HookState::NotFound => "agent not found",
        })
    }
}

/// Settings that cannot be edited, with the line and reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SettingsRefusal {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// Steno's registration in the settings of an agent.
#[derive(Debug)]
pub(crate) struct HookRegistration<'a> {
    pub(crate) agent: HookedAgent,
    /// Program to call.
    pub(crate) program: &'a str,
}

impl HookRegistration<'_> {
    /// Returns whether the settings call this program.
    pub(crate) fn state(&self, text: &str) -> Result<HookState, SettingsRefusal> {
        let (calls, wanted) = match self.agent.hooks.shape {
            HookShape::Notify => (codex_notify::find_calls(text, self)?, self.program.to_owned()),
            _ => (json_hooks::find_calls(text, self)?, self.hook_command()),
        };
        let is_called = |event: &str| {
            let mut here = calls.iter().filter(|(name, _)| name == event);
            here.next().is_some_and(|(_, command)| *command == wanted) && here.next().is_none()
        };
        let complete = self.agent.hooks.events.iter().all(|event| is_called(event));
        Ok(match calls.len() {
            0 => HookState::NotInstalled,
            count if complete && count == self.agent.hooks.events.len() => HookState::Installed,
            _ => HookState::Outdated,
        })
    }

    /// Adds Steno to the settings exactly once.
    pub(crate) fn add_to(&self, text: &str) -> Result<String, SettingsRefusal> {
        let text = self.remove_from(text)?;
        match self.agent.hooks.shape {
            HookShape::Notify => codex_notify::add_notify(&text, self),
            _ => json_hooks::add_hooks(&text, self),
        }
    }

    /// Removes Steno from the settings.
    pub(crate) fn remove_from(&self, text: &str) -> Result<String, SettingsRefusal> {
        match self.agent.hooks.shape {
            HookShape::Notify => codex_notify::remove_notify(text, self),
            _ => json_hooks::remove_hooks(text, self),
        }
    }

    /// Returns the shell command for the agent.
    fn hook_command(&self) -> String {
        let quoted = if cfg!(windows) {
            format!("\"{}\"", self.program)
        } else {
            format!("'{}'", self.program.replace('\'', r"'\''"))
        };
        format!("{quoted} hook {}", self.agent.name)
    }

    /// Returns whether a command calls Steno for this agent, by any path.
    fn is_ours(&self, command: &str) -> bool {
        let call = format!(" hook {}", self.agent.name);
        let program = command.trim().strip_suffix(&call).map(|path| path.trim_matches(['\'', '"']));
        command == self.hook_command() || program.is_some_and(is_steno)
    }
}

fn is_steno(program: &str) -> bool {
    Path::new(program).file_stem().is_some_and(|stem| stem == "steno")
}

#[cfg(test)]
mod tests;
