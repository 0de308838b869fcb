//! Readers for the session files of each agent, one module per agent.
//!
//! A reader parses the agent's records into entries, record by record where the format allows it. A bad record is
//! reported as `path:line: reason` and reading continues. A record of an unknown kind becomes an entry of kind
//! `other`.

pub(crate) mod json_lines;
pub(crate) mod responses;

pub mod acp;
pub mod aider;
pub mod amp;
pub mod api_log;
pub mod atif;
pub(crate) mod attachment;
pub mod claude_code;
pub mod cline;
pub mod codex;
pub mod copilot;
pub mod crush;
pub mod cursor;
pub(crate) mod document;
pub mod droid;
pub(crate) mod entries;
pub(crate) mod fields;
pub mod gemini;
pub mod goose;
pub(crate) mod head;
mod ids;
pub mod inspect_eval;
#[cfg(test)]
pub(crate) mod kept;
pub mod kimi;
#[cfg(test)]
pub(crate) mod large;
pub(crate) mod listing;
pub mod litellm;
mod message;
pub mod near;
pub mod opencode;
pub mod otel;
mod output;
pub mod pi;
pub mod places;
pub mod qwen;
mod record;
pub(crate) mod repair;
pub mod resume;
mod shared_log;
pub mod swe_agent;
mod telling;
mod texts;
#[cfg(test)]
mod trial;
pub(crate) mod usage;
pub mod vercel;
pub mod vibe;
pub mod vscode_chat;
pub(crate) mod walk;
pub mod zed;
pub(crate) mod zip_archive;

use crate::format::Reader;
use steno_vault::Schema;

/// The readers of all agents except Claude Code, which is tried first.
pub(crate) const READERS: [&Reader; 25] = [
    &acp::READER,
    &codex::READER,
    &gemini::READER,
    &qwen::READER,
    &opencode::READER,
    &copilot::READER,
    &cursor::READER,
    &cline::READER,
    &goose::READER,
    &crush::READER,
    &amp::READER,
    &droid::READER,
    &pi::READER,
    &kimi::READER,
    &zed::READER,
    &vibe::READER,
    &vscode_chat::READER,
    &aider::READER,
    &api_log::READER,
    &litellm::READER,
    &vercel::READER,
    &atif::READER,
    &swe_agent::READER,
    &inspect_eval::READER,
    &otel::READER,
];

/// The database schemas of an agent. Empty for an agent without a database.
pub(crate) fn schemas(agent: &str) -> &'static [&'static Schema] {
    match agent {
        opencode::AGENT => &[&opencode::SCHEMA],
        cursor::AGENT => &cursor::SCHEMAS,
        goose::AGENT => &[&goose::SCHEMA],
        crush::AGENT => &[&crush::SCHEMA],
        zed::AGENT => &[&zed::SCHEMA],
        vscode_chat::AGENT => &vscode_chat::SCHEMAS,
        _ => &[],
    }
}
