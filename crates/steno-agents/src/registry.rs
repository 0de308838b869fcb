//! The readers of all agents, protocols and interchange formats, in the order in which they are tried.

use std::path::Path;

use steno_model::durable::FileError;

use crate::agents::{
    aider, amp, claude_code, cline, codex, copilot, crush, cursor, droid, gemini, goose, kimi,
    opencode, pi, qwen, vibe, vscode_chat, zed,
};
use crate::interchange::{atif, inspect_eval, litellm, otel, swe_agent, vercel};
use crate::protocols::{acp, api_log};
use crate::reader::{self, FormatReader, FoundSession};

/// The readers in order: Claude Code first, because it has the most files. A reader that identifies its files precisely
/// comes before one that accepts any file of a similar shape.
pub const READERS: [&FormatReader; 26] = [
    &claude_code::READER,
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

/// Finds the sessions of all agents at or below `path`.
pub fn find_sessions(path: &Path) -> Result<Vec<FoundSession>, FileError> {
    reader::find_sessions(path, READERS).map(|found| found.sessions)
}
