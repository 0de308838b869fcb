//! Capture: events and Claude Code's files become entries in a session's LOG slice. Off unless asked for.

use std::sync::{Arc, Mutex, PoisonError};

use super::events::{PromptExecuted, PromptRendered, ToolInvoked};
use super::reducers::append_all;
use super::session::{DispatchError, SliceSession};
use super::slice::{Change, Policy, SliceError, SliceItem};
use super::{AGENT, claude};
use crate::entry::{Entry, Numbering, PRIMARY};
use crate::format::FormatError;
use crate::problem::Problem;
use crate::source::Bundle;

/// What is captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureSettings {
    /// The conversation itself.
    pub capture_transcript: bool,
    /// The conversations of subagents too.
    pub capture_subagent_transcripts: bool,
}

/// A capture that failed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The agent's file could not be read.
    #[error(transparent)]
    Read(#[from] FormatError),
    /// The slice could not be set up.
    #[error(transparent)]
    Slice(#[from] SliceError),
    /// An entry could not be kept.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
}

/// Lets a session turn each event of an adapter's loop into entries, numbered after those that are there.
pub fn capture_events(
    session: &mut SliceSession,
    settings: CaptureSettings,
) -> Result<(), SliceError> {
    if !settings.capture_transcript {
        return Ok(());
    }
    session.set_policy::<Entry>(Policy::Log)?;
    let counter = Counter::after(session)?;
    capture(session, &counter, PromptRendered::entries)?;
    capture(session, &counter, ToolInvoked::entries)?;
    capture(session, &counter, PromptExecuted::entries)
}

/// Puts what Claude Code wrote about a session into the slice, and says what could not be read.
pub fn capture_claude(
    session: &mut SliceSession,
    settings: CaptureSettings,
    bundle: &Bundle,
) -> Result<Vec<Problem>, CaptureError> {
    if !settings.capture_transcript {
        return Ok(Vec::new());
    }
    session.set_policy::<Entry>(Policy::Log)?;
    let transcript = claude::read(bundle, Some(session.clock().now()))?;
    for entry in transcript.entries {
        if entry.source == PRIMARY || settings.capture_subagent_transcripts {
            session.dispatch(entry)?;
        }
    }
    Ok(transcript.problems)
}

fn capture<E: SliceItem>(
    session: &mut SliceSession,
    counter: &Counter,
    entries: fn(&E) -> Vec<Entry>,
) -> Result<(), SliceError> {
    session.register(E::POLICY, append_all::<E>)?;
    let counter = counter.clone();
    session.register(Policy::Log, move |_, event: &E| {
        Ok(Change::Append(counter.number(entries(event))))
    })
}

/// Numbers the entries of all reducers of one session.
#[derive(Clone)]
struct Counter {
    numbering: Numbering,
    next: Arc<Mutex<u64>>,
}

impl Counter {
    fn after(session: &mut SliceSession) -> Result<Self, SliceError> {
        let own = session
            .query::<Entry>()
            .where_(|entry| entry.source == PRIMARY)?;
        let last = own.iter().map(|entry| entry.sequence).max();
        Ok(Self {
            numbering: Numbering::new(AGENT, &session.id().to_string()),
            next: Arc::new(Mutex::new(last.map_or(0, |last| last + 1))),
        })
    }

    fn number(&self, mut entries: Vec<Entry>) -> Vec<Entry> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in &mut entries {
            entry.sequence = *next;
            self.numbering.identify(entry);
            *next += 1;
        }
        entries
    }
}
