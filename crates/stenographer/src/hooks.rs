//! The agents that call others when something happens, and how each is told whom to call.
//!
//! Here are texts of settings only; `file` is about the files in which they stand.

pub(crate) mod file;
mod json;
pub(crate) mod log;
mod notify;
pub(crate) mod session_sync;
pub(crate) mod told;

use std::path::Path;

use serde::Serialize;
use steno_core::agent::{claude_code, codex, copilot, cursor, gemini, qwen};

/// An agent that can be told to call Steno.
#[derive(Debug)]
pub(crate) struct HookedAgent {
    pub(crate) name: &'static str,
    /// The file with the hooks, below the folder of the agent's settings.
    pub(crate) file: &'static str,
    shape: Shape,
    /// When Steno is to be called.
    events: &'static [&'static str],
}

/// How an agent writes down whom to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
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
pub(crate) const AGENTS: [HookedAgent; 6] = [
    HookedAgent {
        name: claude_code::AGENT,
        file: "settings.json",
        shape: Shape::Groups,
        events: &CLAUDE_EVENTS,
    },
    HookedAgent {
        name: codex::AGENT,
        file: "config.toml",
        shape: Shape::Notify,
        events: &["notify"],
    },
    HookedAgent {
        name: gemini::AGENT,
        file: "settings.json",
        shape: Shape::Groups,
        events: &["SessionStart", "AfterAgent", "PreCompress", "SessionEnd"],
    },
    HookedAgent {
        name: qwen::AGENT,
        file: "settings.json",
        shape: Shape::Groups,
        events: &CLAUDE_EVENTS,
    },
    HookedAgent {
        name: copilot::AGENT,
        file: "hooks/steno.json",
        shape: Shape::Commands("bash"),
        events: &["sessionStart", "agentStop", "subagentStop", "preCompact", "sessionEnd"],
    },
    HookedAgent {
        name: cursor::AGENT,
        file: "hooks.json",
        shape: Shape::Commands("command"),
        events: &["sessionStart", "stop", "subagentStop", "preCompact", "sessionEnd"],
    },
];

/// Whether an agent calls Steno.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Installed,
    NotInstalled,
    /// Another program, or not at each event.
    Outdated,
    /// The agent has no folder here.
    NotFound,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            State::Installed => "installed",
            State::NotInstalled => "not installed",
            State::Outdated => "outdated",
            State::NotFound => "agent not found",
        })
    }
}

/// Settings that are not touched, because of what stands in this line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// Steno's place in the settings of an agent.
#[derive(Debug)]
pub(crate) struct Registration<'a> {
    pub(crate) agent: &'static HookedAgent,
    /// The program to call.
    pub(crate) program: &'a str,
}

impl Registration<'_> {
    /// Whether the settings tell the agent to call this program.
    pub(crate) fn state(&self, text: &str) -> Result<State, Refusal> {
        let (calls, wanted) = match self.agent.shape {
            Shape::Notify => (notify::calls(text)?, self.program.to_owned()),
            _ => (json::calls(text, self)?, self.command()),
        };
        let is_called = |event: &str| {
            let mut here = calls.iter().filter(|(name, _)| name == event);
            here.next().is_some_and(|(_, command)| *command == wanted) && here.next().is_none()
        };
        let complete = self.agent.events.iter().all(|event| is_called(event));
        Ok(match calls.len() {
            0 => State::NotInstalled,
            count if complete && count == self.agent.events.len() => State::Installed,
            _ => State::Outdated,
        })
    }

    /// The settings with Steno in them, and once only.
    pub(crate) fn added(&self, text: &str) -> Result<String, Refusal> {
        let text = self.removed(text)?;
        match self.agent.shape {
            Shape::Notify => notify::added(&text, self.program),
            _ => json::added(&text, self),
        }
    }

    /// The settings without Steno.
    pub(crate) fn removed(&self, text: &str) -> Result<String, Refusal> {
        match self.agent.shape {
            Shape::Notify => notify::removed(text),
            _ => json::removed(text, self),
        }
    }

    /// What the agent's shell is to run.
    fn command(&self) -> String {
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
        command == self.command() || program.is_some_and(is_steno)
    }
}

fn is_steno(program: &str) -> bool {
    Path::new(program).file_stem().is_some_and(|stem| stem == "steno")
}

#[cfg(test)]
mod tests;
