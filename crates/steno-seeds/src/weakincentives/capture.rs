//! Capture: converts events and Claude Code's files to entries in a session's LOG slice. Off by default.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use super::events::{PromptExecuted, PromptRendered, ToolInvoked};
use super::reducers::append_all;
use super::session::{DispatchError, SliceSession};
use super::slice::{SliceChange, SliceError, SliceItem, SlicePolicy};
use super::{AGENT_NAME, claude};
use steno_model::entry::{Entry, PRIMARY_SOURCE};
use steno_model::numbering::EntryNumbering;
use steno_model::problem::Problem;
use steno_vault::{FormatError, SessionBundle};

/// What to capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureSettings {
    /// The main conversation.
    pub capture_transcript: bool,
    /// The conversations of subagents.
    pub capture_subagent_transcripts: bool,
}

/// A capture that failed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Reading the agent's file failed.
    #[error(transparent)]
    Read(#[from] FormatError),
    /// Setting up the slice failed.
    #[error(transparent)]
    Slice(#[from] SliceError),
    /// Storing an entry failed.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
}

/// Registers reducers that convert each event of an adapter's loop to entries, numbered after the existing ones.
/// Calling it again has no effect.
pub fn capture_events(
    session: &mut SliceSession,
    settings: CaptureSettings,
) -> Result<(), SliceError> {
    if !settings.capture_transcript || session.is_capturing {
        return Ok(());
    }
    session.set_policy::<Entry>(SlicePolicy::Log)?;
    session.is_capturing = true;
    let counter = EntryCounter::continue_after(session)?;
    register_capture(session, &counter, PromptRendered::to_entries)?;
    register_capture(session, &counter, ToolInvoked::to_entries)?;
    register_capture(session, &counter, PromptExecuted::to_entries)
}

/// Copies a Claude Code session into the slice, and returns records that could not be read as problems. Entries that
/// the slice already has are skipped.
pub fn capture_claude(
    session: &mut SliceSession,
    settings: CaptureSettings,
    bundle: &SessionBundle,
) -> Result<Vec<Problem>, CaptureError> {
    if !settings.capture_transcript {
        return Ok(Vec::new());
    }
    session.set_policy::<Entry>(SlicePolicy::Log)?;
    let transcript = claude::read_session(bundle, Some(session.clock().now()))?;
    let known: HashSet<Uuid> =
        session.query::<Entry>().read_all()?.into_iter().map(|entry| entry.entry_id).collect();
    for entry in transcript.entries {
        let is_wanted = entry.source == PRIMARY_SOURCE || settings.capture_subagent_transcripts;
        if is_wanted && !known.contains(&entry.entry_id) {
            session.dispatch(entry)?;
        }
    }
    Ok(transcript.problems)
}

fn register_capture<E: SliceItem>(
    session: &mut SliceSession,
    counter: &EntryCounter,
    entries: fn(&E) -> Vec<Entry>,
) -> Result<(), SliceError> {
    session.register_reducer(E::POLICY, append_all::<E>)?;
    let counter = counter.clone();
    session.register_reducer(SlicePolicy::Log, move |_, event: &E| {
        Ok(SliceChange::Append(counter.number_entries(entries(event))))
    })
}

/// Numbers the entries of all reducers of one session.
#[derive(Clone)]
struct EntryCounter {
    numbering: EntryNumbering,
    next: Arc<Mutex<u64>>,
}

impl EntryCounter {
    fn continue_after(session: &mut SliceSession) -> Result<Self, SliceError> {
        let own = session.query::<Entry>().filter_items(|entry| entry.source == PRIMARY_SOURCE)?;
        let last = own.iter().map(|entry| entry.sequence).max();
        Ok(Self {
            numbering: EntryNumbering::new(AGENT_NAME, &session.id().to_string()),
            next: Arc::new(Mutex::new(last.map_or(0, |last| last + 1))),
        })
    }

    fn number_entries(&self, mut entries: Vec<Entry>) -> Vec<Entry> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in &mut entries {
            entry.sequence = *next;
            self.numbering.assign_id(entry);
            *next += 1;
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::weakincentives::events::PromptMessage;
    use crate::weakincentives::line;
    use crate::weakincentives::slice::SliceFactoryConfig;
    use steno_model::entry::Usage;
    use steno_model::timestamp::{Clock, Timestamp};
    use steno_vault::SessionFile;

    const ON: CaptureSettings =
        CaptureSettings { capture_transcript: true, capture_subagent_transcripts: false };

    fn now() -> Timestamp {
        "2026-01-05T09:15:32+00:00".parse().unwrap()
    }

    fn session() -> SliceSession {
        let clock = Clock::fixed(now());
        SliceSession::new(Uuid::from_u128(7), clock, SliceFactoryConfig::default())
    }

    fn rendered() -> PromptRendered {
        let message = |role: &str, content: Option<&str>| PromptMessage {
            role: role.to_owned(),
            content: content.map(str::to_owned),
        };
        PromptRendered {
            prompt_name: "review".to_owned(),
            adapter: "openai".to_owned(),
            messages: vec![message("developer", Some("Be kind")), message("human", None)],
            created_at: now(),
        }
    }

    fn invoked(arguments: Option<&str>) -> ToolInvoked {
        ToolInvoked {
            prompt_name: "review".to_owned(),
            adapter: "openai".to_owned(),
            text: Some("I'll read it.".to_owned()),
            name: arguments.map(|_| "Read".to_owned()),
            arguments: arguments.map(str::to_owned),
            call_id: Some("call_1".to_owned()),
            output: "x".repeat(3000),
            success: true,
            created_at: now(),
        }
    }

    fn summarize_slice(session: &mut SliceSession) -> Vec<String> {
        let entries = session.query::<Entry>().read_all().unwrap();
        let summarize =
            |e: &Entry| format!("{} {} {}: {:.14}", e.sequence, e.role, e.kind, e.content);
        entries.iter().map(summarize).collect()
    }

    #[test]
    fn nothing_is_captured_unless_asked_for() {
        let mut session = session();
        capture_events(&mut session, CaptureSettings::default()).unwrap();
        session.dispatch(rendered()).unwrap();
        assert_eq!(session.query::<Entry>().read_all().unwrap(), []);
        assert_eq!(session.query::<PromptRendered>().read_all().unwrap(), [rendered()]);
    }

    #[test]
    fn each_event_becomes_its_entries() {
        let mut session = session();
        capture_events(&mut session, ON).unwrap();
        session.dispatch(rendered()).unwrap();
        session.dispatch(invoked(Some(r#"{"path":"é.py"}"#))).unwrap();
        let executed = PromptExecuted {
            prompt_name: "review".to_owned(),
            adapter: "openai".to_owned(),
            text: None,
            has_structured_output: true,
            usage: Some(Usage { input: 3, ..Usage::default() }),
            created_at: now(),
        };
        session.dispatch(executed.clone()).unwrap();
        assert_eq!(
            summarize_slice(&mut session),
            [
                "0 system text: Be kind",
                "1 user text: ",
                "2 assistant text: I'll read it.",
                "3 assistant tool_call: {\n  \"path\": \"é",
                "4 tool tool_result: xxxxxxxxxxxxxx",
                "5 assistant text: ",
            ]
        );
        let entries = session.query::<Entry>().read_all().unwrap();
        assert_eq!(entries[3].tool_input, Some(json!({"path": "é.py"})));
        assert_eq!(entries[4].content.len(), 3000);
        let metadata = |index: usize| {
            line::object_from_entry(&entries[index], false, now())["metadata"].to_string()
        };
        assert_eq!(metadata(0), r#"{"adapter":"openai"}"#);
        assert_eq!(metadata(4), r#"{"success":true,"adapter":"openai"}"#);
        assert_eq!(
            metadata(5),
            r#"{"adapter":"openai","has_structured_output":true,"steno":{"usage":{"input":3,"cache_read":0,"cache_write":0,"cache_write_5m":0,"cache_write_1h":0,"output":0,"reasoning":0}}}"#
        );
        assert_eq!(session.query::<PromptExecuted>().read_all().unwrap(), [executed]);
    }

    #[test]
    fn odd_arguments_are_kept() {
        let input = |arguments| invoked(arguments).to_entries()[1].tool_input.clone();
        assert_eq!(input(Some("not json")), Some(json!({"raw": "not json"})));
        assert_eq!(input(Some("[1]")), None);
        assert_eq!(input(None), Some(json!({})));
        let call = invoked(None).to_entries().remove(1);
        assert_eq!(call.tool_name.as_deref(), Some("unknown"));
    }

    #[test]
    fn a_second_capture_counts_on() {
        let mut session = session();
        session.dispatch(rendered().to_entries().remove(0)).unwrap();
        capture_events(&mut session, ON).unwrap();
        session.dispatch(rendered()).unwrap();
        let numbers = summarize_slice(&mut session).join("; ");
        assert_eq!(numbers, "0 system text: Be kind; 1 system text: Be kind; 2 user text: ");
    }

    #[test]
    fn capturing_twice_adds_nothing() {
        let mut session = session();
        capture_events(&mut session, ON).unwrap();
        capture_events(&mut session, ON).unwrap();
        session.dispatch(rendered()).unwrap();
        assert_eq!(session.query::<Entry>().len().unwrap(), 2);
        assert_eq!(session.query::<PromptRendered>().len().unwrap(), 1);
        let lines =
            "{\"type\":\"user\",\"content\":\"hi\"}\n{\"type\":\"user\",\"content\":\"hi\"}\n";
        let grown = format!("{lines}{{\"type\":\"assistant\",\"content\":\"ho\"}}\n");
        for (lines, count) in [(lines, 4), (lines, 4), (&grown, 5), (&grown, 5)] {
            let source = SessionFile::in_memory("s.jsonl", "s.jsonl", lines.into());
            capture_claude(&mut session, ON, &SessionBundle::new("s.jsonl", vec![source])).unwrap();
            assert_eq!(session.query::<Entry>().len().unwrap(), count);
        }
        let entries = session.query::<Entry>().read_all().unwrap();
        let ids: HashSet<_> = entries.iter().map(|entry| entry.entry_id).collect();
        assert_eq!(ids.len(), entries.len());
        assert!(!ids.contains(&Uuid::nil()));
    }

    #[test]
    fn subagents_are_captured_only_if_asked_for() {
        let line = r#"{"type":"user","content":"hi"}"#;
        let sources = ["s.jsonl", "s/subagents/agent-a.jsonl"];
        let bundle = SessionBundle::new(
            "p",
            sources.map(|name| SessionFile::in_memory(name, name, line.into())).into(),
        );
        let captured = |settings| {
            let mut session = session();
            capture_claude(&mut session, settings, &bundle).unwrap();
            let entries = session.query::<Entry>().read_all().unwrap();
            entries.into_iter().map(|entry| entry.source).collect::<Vec<_>>()
        };
        assert!(captured(CaptureSettings::default()).is_empty());
        assert_eq!(captured(ON), ["primary"]);
        let all = CaptureSettings { capture_subagent_transcripts: true, ..ON };
        assert_eq!(captured(all), ["primary", "subagent:a"]);
    }
}
