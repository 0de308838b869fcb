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
pub mod resume;
pub mod session_locations;
pub mod vibe;
pub mod vscode_chat;
pub mod zed;

use steno_vault::DatabaseSchemas;

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
