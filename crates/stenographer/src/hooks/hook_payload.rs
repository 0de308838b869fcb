//! The JSON payload that an agent passes to a hook, on standard input or as an argument.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

/// Limit of the payload; a longer one fails to parse.
const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// Timeout for reading the payload.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The session that an agent reports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HookPayload {
    /// File of the session.
    pub(crate) transcript: Option<PathBuf>,
    /// File of a subagent.
    pub(crate) subagent: Option<PathBuf>,
    /// The agent's own session id.
    pub(crate) session: Option<String>,
    /// Whether the session has just started, so that there may be no file yet.
    pub(crate) is_start: bool,
    /// Whether this is the end of a Codex turn.
    pub(crate) is_codex_turn: bool,
}

impl HookPayload {
    /// Creates a payload with a session id only.
    pub(crate) fn for_session(name: &str) -> Self {
        let session = Some(name).filter(|name| is_searchable_name(name)).map(str::to_owned);
        Self { transcript: None, subagent: None, session, is_start: false, is_codex_turn: false }
    }

    /// Parses the payload.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let payload: Map<String, Value> = serde_json::from_slice(bytes)?;
        let text = |names: &[&str]| {
            let mut named = names.iter().filter_map(|name| payload.get(*name)?.as_str());
            named.find(|text| !text.is_empty())
        };
        let path =
            |names: &[&str]| text(names).map(PathBuf::from).filter(|path| path.is_absolute());
        let event = text(&["hook_event_name", "hookEventName"]).unwrap_or_default();
        // Copilot names no event, but only its first event has a source.
        let is_start = event.eq_ignore_ascii_case("SessionStart") || payload.contains_key("source");
        let session = text(&["session_id", "sessionId", "thread-id", "conversation_id"]);
        Ok(Self {
            transcript: path(&["transcript_path", "transcriptPath"]),
            subagent: path(&["agent_transcript_path", "agentTranscriptPath"]),
            session: session.filter(|name| is_searchable_name(name)).map(str::to_owned),
            is_start,
            is_codex_turn: payload.contains_key("thread-id"),
        })
    }

    /// Returns whether the path contains the session id.
    pub(crate) fn is_named_in(&self, path: &Path) -> bool {
        let is_named = |part: &std::ffi::OsStr| {
            self.session.as_ref().is_some_and(|name| part.to_string_lossy().contains(name))
        };
        path.iter().any(is_named)
    }
}

/// Returns whether a name is long and plain enough to search for in file names.
fn is_searchable_name(name: &str) -> bool {
    name.len() >= 8 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Reads one JSON object from standard input. Stops at its end or after a timeout.
pub(crate) fn read_stdin() -> Vec<u8> {
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the process: an agent may never close our input.
    thread::spawn(move || {
        let mut chunk = vec![0; 64 << 10];
        loop {
            match io::stdin().read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(count @ 1..) if sender.send(chunk[..count].to_vec()).is_ok() => {}
                _ => return,
            }
        }
    });
    let end = Instant::now() + READ_TIMEOUT;
    let mut payload = Vec::new();
    while let Ok(chunk) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
        payload.extend_from_slice(&chunk);
        if payload.len() > MAX_PAYLOAD_BYTES || is_complete_object(&payload) {
            break;
        }
    }
    payload
}

fn is_complete_object(payload: &[u8]) -> bool {
    payload.trim_ascii_end().ends_with(b"}")
        && serde_json::from_slice::<serde::de::IgnoredAny>(payload).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_is_understood() {
        let claude = br#"{"session_id":"1b4e28ba-2fa1","transcript_path":"/p/1.jsonl",
            "agent_transcript_path":"/p/1/subagents/agent-a.jsonl","hook_event_name":"SubagentStop"}"#;
        let payload = HookPayload::parse(claude).unwrap();
        assert_eq!(payload.transcript.as_deref(), Some(Path::new("/p/1.jsonl")));
        assert_eq!(payload.subagent.as_deref(), Some(Path::new("/p/1/subagents/agent-a.jsonl")));
        assert!(!payload.is_start);
        let codex = br#"{"type":"agent-turn-complete","thread-id":"0199a213-81c0","cwd":"/p"}"#;
        let payload = HookPayload::parse(codex).unwrap();
        assert!(payload.is_named_in(Path::new("/c/2026/rollout-0199a213-81c0.jsonl")));
        assert!(!payload.is_named_in(Path::new("/c/2026/rollout-0199a213-81c1.jsonl")));
        let cursor = br#"{"conversation_id":"668320d2-2fd8","transcript_path":null,
            "hook_event_name":"sessionStart"}"#;
        let payload = HookPayload::parse(cursor).unwrap();
        assert_eq!((payload.transcript.as_deref(), payload.is_start), (None, true));
    }

    #[test]
    fn what_is_no_name_or_path_is_not_looked_for() {
        let payload =
            HookPayload::parse(br#"{"session_id":"../../x","transcript_path":"x.jsonl"}"#).unwrap();
        assert_eq!((payload.session, payload.transcript), (None, None));
        assert!(HookPayload::parse(b"[1]").is_err());
    }
}
