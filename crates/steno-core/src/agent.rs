//! Readers for the session files of each agent, one module per agent.
//!
//! A reader parses the agent's records into entries, record by record where the format allows it. A bad record is
//! reported as `path:line: reason` and reading continues. A record of an unknown kind becomes an entry of kind
//! `other`.

pub(crate) mod json_lines;
pub(crate) mod responses;

pub mod acp;
mod agent_message;
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
mod entry_emitter;
pub(crate) mod file_head;
pub mod gemini;
pub mod goose;
pub mod inspect_eval;
pub(crate) mod json_fields;
mod json_records;
pub(crate) mod json_repair;
pub(crate) mod json_walker;
pub mod kimi;
#[cfg(test)]
pub(crate) mod large;
pub mod litellm;
mod message_ids;
pub mod opencode;
pub mod otel;
pub mod pi;
pub mod qwen;
pub(crate) mod record_list;
pub mod resume;
mod session_emitter;
pub mod session_locations;
mod shared_log;
mod shared_texts;
pub mod swe_agent;
#[cfg(test)]
pub(crate) mod temporary_vault;
#[cfg(test)]
mod trial;
pub(crate) mod usage;
pub mod vercel;
pub mod vibe;
pub mod vscode_chat;
pub mod zed;
pub(crate) mod zip_archive;

use crate::reader::FormatReader;
use steno_vault::DatabaseSchemas;

/// The readers of all agents except Claude Code, which is tried first.
pub(crate) const READERS: [&FormatReader; 25] = [
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
pub fn database_schemas(agent: &str) -> DatabaseSchemas {
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
