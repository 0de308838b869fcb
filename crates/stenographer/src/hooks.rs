//! Agents with hooks, and how to register Steno in their settings.
//!
//! This module works on the text of settings; [`crate::agent_settings`] reads and writes the files.

mod codex_notify;
pub(crate) mod hook_log;
pub(crate) mod hook_payload;
mod json_hooks;
pub(crate) mod session_sync;

use steno_agents::agent::hooks::{AgentHooks, HookShape};
use steno_agents::registry;

use crate::agent_settings::{RegistrationState, SettingsRefusal, SettingsRegistration, is_steno};

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

/// Steno's registration in the settings of an agent.
#[derive(Debug)]
pub(crate) struct HookRegistration<'a> {
    pub(crate) agent: HookedAgent,
    /// Program to call.
    pub(crate) program: &'a str,
}

impl SettingsRegistration for HookRegistration<'_> {
    fn state(&self, text: &str) -> Result<RegistrationState, SettingsRefusal> {
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
            0 => RegistrationState::NotInstalled,
            count if complete && count == self.agent.hooks.events.len() => {
                RegistrationState::Installed
            }
            _ => RegistrationState::Outdated,
        })
    }

    fn add_to(&self, text: &str) -> Result<String, SettingsRefusal> {
        let text = self.remove_from(text)?;
        match self.agent.hooks.shape {
            HookShape::Notify => codex_notify::add_notify(&text, self),
            _ => json_hooks::add_hooks(&text, self),
        }
    }

    fn remove_from(&self, text: &str) -> Result<String, SettingsRefusal> {
        match self.agent.hooks.shape {
            HookShape::Notify => codex_notify::remove_notify(text, self),
            _ => json_hooks::remove_hooks(text, self),
        }
    }
}

impl HookRegistration<'_> {
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

#[cfg(test)]
mod tests;
