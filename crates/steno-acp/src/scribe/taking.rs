//! What is taken down of one connection: each session in a log of its own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::Finder;
use steno_core::agent::acp;
use steno_core::agent::acp::address::{self, Address};
use steno_core::agent::acp::redact::Redactor;
use steno_core::agent::acp::route::{Line, Router};
use steno_core::agent::acp::wire::{Side, Wire};
use steno_core::index::pending::{Marker, Pending};
use steno_core::lines::LINE_LIMIT;
use steno_core::vault::Vault;
use steno_core::vault::record::{Closing, Opening};
use steno_core::vault::recorder::Recorder;
use steno_core::vault::wire_lines::WireLines;
use steno_core::{SessionId, Status, Timestamp};

use super::{Assignment, Kept, StoppedError, naming};

/// Bytes that may wait for a session to be named; then they get one of their own.
const NAMELESS: usize = 1 << 20;

/// What a message says that ends a turn.
static STOP: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"stopReason\""));

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
    /// Lines that are written together, and the session that they belong to.
    lines: WireLines,
    writing: Option<String>,
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
            lines: WireLines::default(),
            writing: None,
            has_news: false,
            is_over: false,
        }
    }

    /// Takes what one side has said, at whichever byte it was cut.
    pub(super) fn piece(&mut self, side: Side, at: Timestamp, mut bytes: &[u8]) {
        if self.is_over {
            return;
        }
        let mut ends_turn = false;
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end + 1);
            bytes = rest;
            ends_turn |= match self.torn.get_mut(&side).filter(|torn| !torn.is_empty()) {
                None => self.line(side, at, line),
                Some(torn) => {
                    let line = [std::mem::take(torn).as_slice(), line].concat();
                    self.line(side, at, &line)
                }
            };
        }
        let torn = self.torn.entry(side).or_default();
        torn.extend_from_slice(bytes);
        if torn.len() >= LINE_LIMIT {
            let line = std::mem::take(torn);
            ends_turn |= self.line(side, at, &line);
        }
        self.write();
        if ends_turn {
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
                self.line(side, self.assignment.clock.now(), &line);
            }
        }
        let rest = std::mem::take(&mut self.router).rest().into_iter();
        let name = SessionId::fresh().to_string();
        rest.for_each(|line| self.keep(&name, &line));
        self.write();
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

    /// Takes a line; whether it may end a turn.
    fn line(&mut self, side: Side, at: Timestamp, line: &[u8]) -> bool {
        let address = Address::of(line);
        if side == Side::Agent && self.told.is_none() {
            let is_answer = address.as_ref().is_some_and(|address| address.method.is_none());
            self.told = is_answer.then(|| address::agent_name(line)).flatten();
        }
        let bytes = self.redactor.redact(line, address.as_ref());
        let running = address.as_ref().and_then(|address| self.router.running(address));
        if running.is_some() && running == self.writing.as_deref() {
            let is_json = matches!(bytes, Cow::Borrowed(_));
            self.lines.push(at, (side, &bytes), is_json);
        } else {
            let line = Line { at, wire: Wire { side, bytes: bytes.into_owned() } };
            let placed = self.router.place(address.as_ref(), line);
            placed.iter().for_each(|(session, line)| self.keep(session, line));
            self.settle();
        }
        side == Side::Agent && STOP.find(line).is_some()
    }

    /// Gives what waits for a session one of its own, if that is too much.
    fn settle(&mut self) {
        if self.router.waiting() > NAMELESS {
            let placed = self.router.settle(SessionId::fresh().as_str());
            placed.iter().for_each(|(session, line)| self.keep(session, line));
        }
    }

    /// Puts a line to those that are written together.
    fn keep(&mut self, session: &str, line: &Line) {
        if self.writing.as_deref() != Some(session) {
            self.write();
            self.writing = Some(session.to_owned());
        }
        self.lines.push(line.at, (line.wire.side, &line.wire.bytes), false);
    }

    /// Writes the lines that are ready.
    fn write(&mut self) {
        if !self.lines.is_empty()
            && !self.is_over
            && let Err(error) = self.append()
        {
            self.stop(&error);
        }
        self.lines.clear();
    }

    fn append(&mut self) -> Result<(), StoppedError> {
        let Some(session) = &self.writing else { return Ok(()) };
        if !self.sessions.contains_key(session) {
            let taken = self.open(session)?;
            self.sessions.insert(session.clone(), taken);
        }
        self.has_news = true;
        Ok(self.sessions[session].recorder.append_wire(&self.lines)?)
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
