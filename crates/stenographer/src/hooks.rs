//! The agents that call others when something happens, and how each is told whom to call.
//!
//! Here are texts of settings only; `file` is about the files in which they stand.

mod codex_notify;
pub(crate) mod hook_log;
pub(crate) mod hook_payload;
mod json_hooks;
pub(crate) mod session_sync;
pub(crate) mod settings_file;

use std::path::Path;

use serde::Serialize;
use steno_core::agent::{claude_code, codex, copilot, cursor, gemini, qwen};

/// An agent that can be told to call Steno.
#[derive(Debug)]
pub(crate) struct HookedAgent {
    pub(crate) name: &'static str,
    /// The file with the hooks, below the folder of the agent's settings.
    pub(crate) file: &'static str,
    shape: HookShape,
    /// When Steno is to be called.
    events: &'static [&'static str],
}

/// How an agent writes down whom to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HookShape {
    /// `hooks.EVENT` has groups, each with a list `hooks` of commands.
    Groups,
    /// `hooks.EVENT` has commands, in a field of this name.
    Commands(&'static str),
    /// One program for all, as a list of arguments.
    Notify,
}

const CLAUDE_EVENTS: [&str; 5] =
    ["SessionStart", "Stop", "SubagentStop", "PreCompact", "SessionEnd"];

/// Every agent whose hooks are known.
pub(crate) const HOOKED_AGENTS: [HookedAgent; 6] = [
    HookedAgent {
        name: claude_code::AGENT,
        file: "settings.json",
        shape: HookShape::Groups,
        events: &CLAUDE_EVENTS,
    },
    HookedAgent {
        name: codex::AGENT,
        file: "config.toml",
        shape: HookShape::Notify,
        events: &["notify"],
    },
    HookedAgent {
        name: gemini::AGENT,
        file: "settings.json",
        shape: HookShape::Groups,
        events: &["SessionStart", "AfterAgent", "PreCompress", "SessionEnd"],
    },
    HookedAgent {
        name: qwen::AGENT,
        file: "settings.json",
        shape: HookShape::Groups,
        events: &CLAUDE_EVENTS,
    },
    HookedAgent {
        name: copilot::AGENT,
        file: "hooks/steno.json",
        shape: HookShape::Commands("bash"),
        events: &["sessionStart", "agentStop", "subagentStop", "preCompact", "sessionEnd"],
    },
    HookedAgent {
        name: cursor::AGENT,
        file: "hooks.json",
        shape: HookShape::Commands("command"),
        events: &["sessionStart", "stop", "subagentStop", "preCompact", "sessionEnd"],
    },
];

/// Whether an agent calls Steno.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HookState {
    Installed,
    NotInstalled,
    /// Another program, or not at each event.
    Outdated,
    /// The agent has no folder here.
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

/// Settings that are not touched, because of what stands in this line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SettingsRefusal {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// Steno's place in the settings of an agent.
#[derive(Debug)]
pub(crate) struct HookRegistration<'a> {
    pub(crate) agent: &'static HookedAgent,
    /// The program to call.
    pub(crate) program: &'a str,
}

impl HookRegistration<'_> {
    /// Whether the settings tell the agent to call this program.
    pub(crate) fn state(&self, text: &str) -> Result<HookState, SettingsRefusal> {
        let (calls, wanted) = match self.agent.shape {
            HookShape::Notify => (codex_notify::find_calls(text)?, self.program.to_owned()),
            _ => (json_hooks::find_calls(text, self)?, self.hook_command()),
        };
        let is_called = |event: &str| {
            let mut here = calls.iter().filter(|(name, _)| name == event);
            here.next().is_some_and(|(_, command)| *command == wanted) && here.next().is_none()
        };
        let complete = self.agent.events.iter().all(|event| is_called(event));
        Ok(match calls.len() {
            0 => HookState::NotInstalled,
            count if complete && count == self.agent.events.len() => HookState::Installed,
            _ => HookState::Outdated,
        })
    }

    /// The settings with Steno in them, and once only.
    pub(crate) fn add_to(&self, text: &str) -> Result<String, SettingsRefusal> {
        let text = self.remove_from(text)?;
        match self.agent.shape {
            HookShape::Notify => codex_notify::add_notify(&text, self.program),
            _ => json_hooks::add_hooks(&text, self),
        }
    }

    /// The settings without Steno.
    pub(crate) fn remove_from(&self, text: &str) -> Result<String, SettingsRefusal> {
        match self.agent.shape {
            HookShape::Notify => codex_notify::remove_notify(text),
            _ => json_hooks::remove_hooks(text, self),
        }
    }

    /// What the agent's shell is to run.
    fn hook_command(&self) -> String {
        let quoted = if cfg!(windows) {
            format!("\"{}\"", self.program)
        } else {
            format!("'{}'", self.program.replace('\'', r"'\''"))
        };
        format!("{quoted} hook {}", self.agent.name)
    }

    /// Whether a command calls Steno for this agent, by whatever path.
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
