//! Readers for the session files of each agent, one module per agent.
//!
//! A reader parses the agent's records into entries, record by record where the format allows it. A bad record is
//! reported as `path:line: reason` and reading continues. A record of an unknown kind becomes an entry of kind
//! `other`.

pub mod aider;
pub mod amp;
pub mod claude_code;
pub mod cline;
pub mod codex;
pub mod copilot;
pub mod crush;
pub mod cursor;
pub mod droid;
pub mod gemini;
pub mod goose;
pub mod kimi;
pub mod opencode;
pub mod pi;
pub mod qwen;
pub mod vibe;
pub mod vscode_chat;
pub mod zed;

use crate::agent::Agent;

/// All agents. [`crate::registry::all_agents`] explains the order.
pub(crate) const AGENTS: &[&Agent] = &[
    &claude_code::AGENT,
    &codex::AGENT,
    &gemini::AGENT,
    &qwen::AGENT,
    &opencode::AGENT,
    &copilot::AGENT,
    &cursor::AGENT,
    &cline::AGENT,
    &goose::AGENT,
    &crush::AGENT,
    &amp::AGENT,
    &droid::AGENT,
    &pi::AGENT,
    &kimi::AGENT,
    &zed::AGENT,
    &vibe::AGENT,
    &vscode_chat::AGENT,
    &aider::AGENT,
];
