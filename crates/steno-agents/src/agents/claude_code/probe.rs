//! Recognizes Claude Code's files by their first lines.

use std::io::BufRead;

use serde::Deserialize;

use super::find;
use super::lenient_value::{LenientScalar, LenientValue};
use steno_model::durable::{self, FileError, OnPath};
use steno_model::lines::{LineEnd, LineReader};
use steno_vault::SessionFile;

/// How many lines of a file are parsed to recognize it.
const PROBED_LINES: usize = 20;

/// How many bytes of each of these lines are read.
const PROBED_BYTES: usize = 8 << 20;

/// Types of records outside the conversation that a file may begin with.
const SESSION_STATE_TYPES: [&str; 19] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "ai-title",
    "atis-latch",
    "bridge-session",
    "content-replacement",
    "cost-state",
    "custom-title",
    "frame-link",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "queue-operation",
    "relocated",
    "tag",
    "tools-used",
    "worktree-state",
];

/// The kind of a file of Claude Code.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClaudeFileKind {
    /// A session or subagent, with the session id in its records.
    Session(Option<String>),
    /// A session exported from the web.
    Export,
    /// The prompts of all sessions.
    History,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaudeProbeLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: LenientScalar<'a>,
    #[serde(borrow)]
    session_id: LenientScalar<'a>,
    #[serde(borrow)]
    uuid: LenientScalar<'a>,
    #[serde(borrow)]
    leaf_uuid: LenientScalar<'a>,
    #[serde(borrow)]
    message_id: LenientScalar<'a>,
    #[serde(borrow)]
    hash: LenientScalar<'a>,
    #[serde(borrow)]
    shape_hash: LenientScalar<'a>,
    #[serde(borrow)]
    message: LenientValue<'a, ClaudeProbeMessage<'a>>,
    #[serde(borrow)]
    system_payload: LenientScalar<'a>,
    #[serde(borrow)]
    display: LenientScalar<'a>,
    #[serde(borrow)]
    project: LenientScalar<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaudeProbeMessage<'a> {
    #[serde(borrow)]
    parts: LenientScalar<'a>,
}

/// Whether this reader can read the file.
pub fn is_claude_file(source: &SessionFile) -> Result<bool, FileError> {
    Ok(probe_file(source)?.is_some())
}

/// The kind of a file, or none if Claude Code did not write it. An empty file is recognized by its name.
pub(super) fn probe_file(source: &SessionFile) -> Result<Option<ClaudeFileKind>, FileError> {
    let mut input = source.open()?;
    let start = input.fill_buf().on("read", source.path())?;
    if start.is_empty() {
        // Qwen Code names its files the same way, but keeps them in a folder `chats`.
        let is_elsewhere = durable::parent_folder(source.path()).ends_with("chats");
        let is_named = find::is_session_name(source.name()) && !is_elsewhere;
        return Ok(is_named.then_some(ClaudeFileKind::Session(None)));
    }
    let mut start = start[..start.len().min(64)].to_vec();
    start.retain(|byte| !byte.is_ascii_whitespace());
    if start.starts_with(b"{\"loglines\":[") {
        return Ok(Some(ClaudeFileKind::Export));
    }
    let (mut kind, mut is_cut) = (None, false);
    for line in LineReader::with_limit(input, PROBED_BYTES).take(PROBED_LINES) {
        let line = line.on("read", source.path())?;
        is_cut |= line.end == LineEnd::Limit;
        let bytes = line.bytes.trim_ascii();
        if bytes.first() != Some(&b'{') {
            continue;
        }
        let Ok(mark) = serde_json::from_slice::<ClaudeProbeLine<'_>>(bytes) else { continue };
        if mark.is_foreign() {
            return Ok(None);
        }
        if mark.is_history() {
            return Ok(Some(ClaudeFileKind::History));
        }
        if mark.is_record() {
            kind = Some(ClaudeFileKind::Session(mark.session_id.owned_text()));
        }
        if let Some(ClaudeFileKind::Session(Some(_))) = kind {
            break;
        }
    }
    // A prompt with images may exceed PROBED_BYTES. Claude Code writes `parentUuid` as the first field.
    let is_named =
        is_cut && start.starts_with(b"{\"parentUuid\":") && find::is_session_name(source.name());
    Ok(kind.or(is_named.then_some(ClaudeFileKind::Session(None))))
}

impl ClaudeProbeLine<'_> {
    /// Whether the line is Qwen Code's, which uses the same envelope around Gemini's messages.
    fn is_foreign(&self) -> bool {
        let parts = self.message.object().is_some_and(|message| !message.parts.is_absent());
        parts || !self.system_payload.is_absent()
    }

    fn is_history(&self) -> bool {
        self.kind.is_absent() && self.display.text().is_some() && self.project.text().is_some()
    }

    fn is_record(&self) -> bool {
        let names_session = self.session_id.text().is_some();
        match self.kind.text().unwrap_or_default() {
            "user" | "assistant" => {
                names_session && (self.uuid.text().is_some() || self.message.object().is_some())
            }
            "system" | "attachment" | "progress" => names_session && self.uuid.text().is_some(),
            "summary" => self.leaf_uuid.text().is_some(),
            "file-history-snapshot" | "file-history-delta" => self.message_id.text().is_some(),
            "api-request" | "api-request-shape" => self.shape_hash.text().is_some(),
            "api-request-blob" => self.hash.text().is_some(),
            kind => names_session && SESSION_STATE_TYPES.contains(&kind),
        }
    }
}
