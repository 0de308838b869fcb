//! Readers of what agents leave on disk, one module per agent.
//!
//! Each turns the agent's records into entries, streaming where the format allows it. A bad record is reported as
//! `path:line: reason` and the rest goes on; a record of a kind that is not known survives as kind `other`.

mod json_lines;
mod responses;

pub mod aider;
pub mod amp;
pub mod api_log;
pub mod atif;
mod attachment;
pub mod claude_code;
pub mod cline;
pub mod codex;
pub mod copilot;
pub mod crush;
pub mod cursor;
mod document;
pub mod droid;
mod entries;
mod fields;
pub mod gemini;
pub mod goose;
mod head;
pub mod inspect_eval;
pub mod kimi;
pub mod litellm;
mod message;
pub mod opencode;
pub mod otel;
mod output;
pub mod pi;
pub mod places;
pub mod qwen;
mod record;
mod repair;
pub mod resume;
mod sqlite;
pub mod swe_agent;
mod telling;
mod usage;
pub mod vercel;
pub mod vscode_chat;
pub mod zed;

use crate::format::Reader;

/// Every agent's reader.
pub(crate) const READERS: [&Reader; 24] = [
    &aider::READER,
    &amp::READER,
    &api_log::READER,
    &atif::READER,
    &claude_code::READER,
    &cline::READER,
    &codex::READER,
    &copilot::READER,
    &crush::READER,
    &cursor::READER,
    &droid::READER,
    &gemini::READER,
    &goose::READER,
    &inspect_eval::READER,
    &kimi::READER,
    &litellm::READER,
    &opencode::READER,
    &otel::READER,
    &pi::READER,
    &qwen::READER,
    &swe_agent::READER,
    &vercel::READER,
    &vscode_chat::READER,
    &zed::READER,
];
