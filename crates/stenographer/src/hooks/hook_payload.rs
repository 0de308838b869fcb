//! What an agent tells a hook: one JSON object, on standard input or as an argument.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

/// An agent that tells more than this tells nothing for us.
const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// How long an agent may take to tell.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The session that an agent tells of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HookPayload {
    /// The file of the session.
    pub(crate) transcript: Option<PathBuf>,
    /// The file of a subagent.
    pub(crate) subagent: Option<PathBuf>,
    /// The agent's own name of the session.
    pub(crate) session: Option<String>,
    /// Whether the session has only just begun, so that there may be no file yet.
    pub(crate) is_start: bool,
    /// Whether a turn of Codex has ended.
    pub(crate) is_codex_turn: bool,
}

impl HookPayload {
    /// A session that is known by its name only.
    pub(crate) fn for_session(name: &str) -> Self {
        let session = Some(name).filter(|name| is_searchable_name(name)).map(str::to_owned);
        Self { transcript: None, subagent: None, session, is_start: false, is_codex_turn: false }
    }

    /// Reads what an agent tells.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let told: Map<String, Value> = serde_json::from_slice(bytes)?;
        let text = |names: &[&str]| {
            let mut named = names.iter().filter_map(|name| told.get(*name)?.as_str());
            named.find(|text| !text.is_empty())
        };
        let path =
            |names: &[&str]| text(names).map(PathBuf::from).filter(|path| path.is_absolute());
        let event = text(&["hook_event_name", "hookEventName"]).unwrap_or_default();
        // Copilot names no event, but only the first one has a source.
        let begins = event.eq_ignore_ascii_case("SessionStart") || told.contains_key("source");
        let session = text(&["session_id", "sessionId", "thread-id", "conversation_id"]);
        Ok(Self {
            transcript: path(&["transcript_path", "transcriptPath"]),
            subagent: path(&["agent_transcript_path", "agentTranscriptPath"]),
            session: session.filter(|name| is_searchable_name(name)).map(str::to_owned),
            is_start: begins,
            is_codex_turn: told.contains_key("thread-id"),
        })
    }

    /// Whether a path has the session's name in it.
    pub(crate) fn is_named_in(&self, path: &Path) -> bool {
        let is_named = |part: &std::ffi::OsStr| {
            self.session.as_ref().is_some_and(|name| part.to_string_lossy().contains(name))
        };
        path.iter().any(is_named)
    }
}

/// Whether a name is long and plain enough to look for it in the names of files.
fn is_searchable_name(name: &str) -> bool {
    name.len() >= 8 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Reads one JSON object from standard input, without waiting for its end for long.
pub(crate) fn read_stdin() -> Vec<u8> {
    let (sender, receiver) = mpsc::channel();
    // Ends with the process: an agent may never close our input.
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
    let mut told = Vec::new();
    while let Ok(chunk) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
        told.extend_from_slice(&chunk);
        if told.len() > MAX_PAYLOAD_BYTES || is_complete_object(&told) {
            break;
        }
    }
    told
}

fn is_complete_object(told: &[u8]) -> bool {
    told.trim_ascii_end().ends_with(b"}")
        && serde_json::from_slice::<serde::de::IgnoredAny>(told).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_is_understood() {
        let claude = br#"{"session_id":"1b4e28ba-2fa1","transcript_path":"/p/1.jsonl",
            "agent_transcript_path":"/p/1/subagents/agent-a.jsonl","hook_event_name":"SubagentStop"}"#;
        let told = HookPayload::parse(claude).unwrap();
        assert_eq!(told.transcript.as_deref(), Some(Path::new("/p/1.jsonl")));
        assert_eq!(told.subagent.as_deref(), Some(Path::new("/p/1/subagents/agent-a.jsonl")));
        assert!(!told.is_start);
        let codex = br#"{"type":"agent-turn-complete","thread-id":"0199a213-81c0","cwd":"/p"}"#;
        let told = HookPayload::parse(codex).unwrap();
        assert!(told.is_named_in(Path::new("/c/2026/rollout-0199a213-81c0.jsonl")));
        assert!(!told.is_named_in(Path::new("/c/2026/rollout-0199a213-81c1.jsonl")));
        let cursor = br#"{"conversation_id":"668320d2-2fd8","transcript_path":null,
            "hook_event_name":"sessionStart"}"#;
        let told = HookPayload::parse(cursor).unwrap();
        assert_eq!((told.transcript.as_deref(), told.is_start), (None, true));
    }

    #[test]
    fn what_is_no_name_or_path_is_not_looked_for() {
        let told =
            HookPayload::parse(br#"{"session_id":"../../x","transcript_path":"x.jsonl"}"#).unwrap();
        assert_eq!((told.session, told.transcript), (None, None));
        assert!(HookPayload::parse(b"[1]").is_err());
    }
}
