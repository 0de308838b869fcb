//! What is taken down of one connection: each session in a log of its own.

use std::collections::HashMap;

use memchr::{memchr, memmem};
use steno_core::agent::acp;
use steno_core::agent::acp::redact::Redactor;
use steno_core::agent::acp::route::{self, Line, Placed, Router};
use steno_core::agent::acp::wire::{Side, Wire};
use steno_core::index::pending::{Marker, Pending};
use steno_core::lines::LINE_LIMIT;
use steno_core::vault::Vault;
use steno_core::vault::record::{Closing, Opening};
use steno_core::vault::recorder::Recorder;
use steno_core::{SessionId, Status, Timestamp};

use super::{Assignment, Kept, StoppedError, naming};

/// Bytes that may wait for a session to be named; then they get one of their own.
const NAMELESS: usize = 1 << 20;

/// What a message says that ends a turn.
const STOP: &[u8] = b"\"stopReason\"";

/// One connection while it is taken down.
pub(super) struct Taking {
    assignment: Assignment,
    vault: Vault,
    /// What the agent calls itself.
    told: Option<String>,
    /// What each side has begun to say.
    torn: HashMap<Side, Vec<u8>>,
    redactor: Redactor,
    router: Router,
    sessions: HashMap<String, Taken>,
    has_news: bool,
    /// The store is of no use; nothing more is taken down.
    is_over: bool,
}

/// A session that is being taken down.
struct Taken {
    recorder: Recorder,
    /// Has the next search take the session in: nobody is to wait for that here.
    _marker: Option<Marker>,
}

impl Taking {
    pub(super) fn new(assignment: Assignment) -> Self {
        Self {
            vault: Vault::new(assignment.store.join("vault")),
            assignment,
            told: None,
            torn: HashMap::new(),
            redactor: Redactor::default(),
            router: Router::default(),
            sessions: HashMap::new(),
            has_news: false,
            is_over: false,
        }
    }

    /// Takes what one side has said, at whichever byte it was cut.
    pub(super) fn piece(&mut self, side: Side, at: Timestamp, mut bytes: &[u8]) {
        if self.is_over {
            return;
        }
        let mut placed = Vec::new();
        while let Some(end) = memchr(b'\n', bytes) {
            let mut line = self.torn.remove(&side).unwrap_or_default();
            line.extend_from_slice(&bytes[..=end]);
            bytes = &bytes[end + 1..];
            placed.extend(self.line(side, at, &line));
        }
        let torn = self.torn.entry(side).or_default();
        torn.extend_from_slice(bytes);
        if torn.len() >= LINE_LIMIT {
            let line = std::mem::take(torn);
            placed.extend(self.line(side, at, &line));
        }
        let ends_turn = |(_, line): &Placed| {
            line.wire.side == Side::Agent && memmem::find(&line.wire.bytes, STOP).is_some()
        };
        let is_turn = placed.iter().any(ends_turn);
        self.keep(&placed);
        if is_turn {
            self.commit();
        }
    }

    /// Has all that was taken down on disk.
    pub(super) fn commit(&mut self) {
        if !std::mem::take(&mut self.has_news) || self.is_over {
            return;
        }
        let failure = self.sessions.values().find_map(|taken| taken.recorder.commit().err());
        if let Some(error) = failure {
            self.stop(&error.into());
        }
    }

    /// The store is too slow, and something was not kept.
    pub(super) fn give_up(&mut self) {
        self.stop(&StoppedError::TooSlow);
    }

    /// The connection has ended; gives the sessions that were taken down whole.
    pub(super) fn end(mut self, closing: Option<Closing>) -> Vec<Kept> {
        for (side, line) in std::mem::take(&mut self.torn) {
            if !line.is_empty() {
                let placed = self.line(side, self.assignment.clock.now(), &line);
                self.keep(&placed);
            }
        }
        let rest = std::mem::take(&mut self.router).rest().into_iter();
        let name = SessionId::fresh().to_string();
        self.keep(&rest.map(|line| (name.clone(), line)).collect::<Vec<_>>());
        let mut kept = Vec::new();
        if self.is_over {
            return kept;
        }
        let closing = closing.unwrap_or(Closing { status: Status::Completed, reason: None });
        for (name, taken) in std::mem::take(&mut self.sessions) {
            let dir = taken.recorder.dir().clone();
            if let Err(error) = taken.recorder.close(&closing) {
                self.stop(&error.into());
                break;
            }
            kept.push(Kept { dir, name });
        }
        kept
    }

    /// Takes a line; gives those whose session is known now.
    fn line(&mut self, side: Side, at: Timestamp, line: &[u8]) -> Vec<Placed> {
        if side == Side::Agent && self.told.is_none() {
            self.told = route::agent_name(line);
        }
        let bytes = self.redactor.redact(line).into_owned();
        let mut placed = self.router.place(Line { at, wire: Wire { side, bytes } });
        if self.router.waiting() > NAMELESS {
            placed.extend(self.router.settle(SessionId::fresh().as_str()));
        }
        placed
    }

    fn keep(&mut self, placed: &[Placed]) {
        for lines in placed.chunk_by(|(one, _), (next, _)| one == next) {
            if self.is_over {
                return;
            }
            if let Err(error) = self.append(lines) {
                self.stop(&error);
            }
        }
    }

    /// Appends lines of one session.
    fn append(&mut self, lines: &[Placed]) -> Result<(), StoppedError> {
        let Some((name, _)) = lines.first() else { return Ok(()) };
        if !self.sessions.contains_key(name) {
            let taken = self.open(name)?;
            self.sessions.insert(name.clone(), taken);
        }
        self.has_news = true;
        let lines = lines.iter().map(|(_, line)| line);
        Ok(self.sessions[name].recorder.append_wire(lines)?)
    }

    fn open(&self, name: &str) -> Result<Taken, StoppedError> {
        let assignment = &self.assignment;
        let agent = assignment.agent.clone();
        let agent =
            agent.unwrap_or_else(|| naming::agent(self.told.as_deref(), &assignment.command));
        let id = SessionId::for_native(agent.as_str(), name);
        let dir = self.vault.session(&agent, &id);
        if dir.is_recorded()? && !dir.is_wire()? {
            return Err(StoppedError::Recorded(id));
        }
        let opening = Opening {
            agent: agent.as_str().to_owned(),
            project: Some(assignment.project.to_string_lossy().into_owned()),
            native_id: Some(name.to_owned()),
            protocol: Some(acp::AGENT.to_owned()),
            thread: assignment.thread.clone(),
            launch: assignment.launch.clone(),
        };
        // That it cannot be marked is no reason not to keep it.
        let _marker = Pending::new(&assignment.store).mark(&dir).ok();
        let recorder = Recorder::open(dir, &opening, assignment.clock.clone())?;
        Ok(Taken { recorder, _marker })
    }

    /// Tells once that nothing more is taken down.
    fn stop(&mut self, error: &StoppedError) {
        if !std::mem::replace(&mut self.is_over, true) {
            (self.assignment.stopped)(error);
        }
    }
}
