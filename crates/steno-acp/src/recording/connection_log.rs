//! The record of one connection. Each of its sessions has a log of its own.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, LazyLock};

use memchr::memchr;
use memchr::memmem::Finder;
use steno_agents::protocols::acp::message_header::{self, AcpMessageHeader};
use steno_agents::protocols::acp::redact::AcpRedactor;
use steno_agents::protocols::acp::session_router::{ForwardedLine, SessionRouter};
use steno_agents::protocols::acp::wire::{AcpSide, WireLine, write_wire_record};
use steno_agents::protocols::acp::{self};
use steno_model::durable::FileError;
use steno_model::lines::MAX_LINE_LENGTH;
use steno_model::{SessionId, SessionStatus, Timestamp};
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::Vault;
use steno_vault::gap::RecordingGap;
use steno_vault::record::{RecordingClosing, RecordingOpening};
use steno_vault::record_batch::RecordBatch;
use steno_vault::resumable::RecordedSession;

use super::recording_session::RecordingSession;
use super::sync::{LogSyncer, NamedRecorder, SyncFailure};
use super::{ConnectionSettings, KeptSession, RecordingError, RecordingStatus, naming};

/// How many bytes that name no session wait for the first session. More of them get a session of their own. They are
/// held in memory, so a kill loses them.
const MAX_UNNAMED_BYTES: usize = 16 << 10;

/// The unit of what a gap loses.
const GAP_UNIT: &str = "message";

/// The field of a message that ends a turn.
static STOP_REASON_KEY: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(b"\"stopReason\""));

/// The record of an open connection.
pub(super) struct ConnectionLog {
    settings: ConnectionSettings,
    vault: Vault,
    /// The name that the agent reports.
    agent_name: Option<String>,
    /// The unfinished line of each side.
    partial_lines: HashMap<AcpSide, Vec<u8>>,
    redactor: AcpRedactor,
    router: SessionRouter,
    sessions: HashMap<String, RecordingSession>,
    syncer: LogSyncer,
    /// The lines of the next write, and their session.
    lines: RecordBatch,
    lines_session: Option<String>,
    /// Whether bytes were written since the last sync request.
    has_unsynced: bool,
    /// How many sessions are paused, and how many messages the resumed ones have lost.
    paused: usize,
    lost_messages: u64,
    overflow: QueueOverflow,
    /// Whether recording has stopped for good.
    is_stopped: bool,
}

/// Lines dropped because the queue was full.
struct QueueOverflow {
    /// When the overflow began; `None` once the gap is marked.
    since: Option<Timestamp>,
    /// Sides of which the next line lacks its beginning.
    torn_sides: HashSet<AcpSide>,
    /// How many lines were dropped.
    dropped_lines: Arc<AtomicU64>,
}

impl ConnectionLog {
    pub(super) fn new(settings: ConnectionSettings, dropped_lines: Arc<AtomicU64>) -> Self {
        let overflow = QueueOverflow { since: None, torn_sides: HashSet::new(), dropped_lines };
        Self {
            vault: Vault::new(settings.store.join("vault")),
            settings,
            agent_name: None,
            partial_lines: HashMap::new(),
            redactor: AcpRedactor::default(),
            router: SessionRouter::default(),
            sessions: HashMap::new(),
            syncer: LogSyncer::start(),
            lines: RecordBatch::default(),
            lines_session: None,
            has_unsynced: false,
            paused: 0,
            lost_messages: 0,
            overflow,
            is_stopped: false,
        }
    }

    /// Records bytes of one side, which may end anywhere in a line. Returns whether they may end a turn.
    pub(super) fn record(&mut self, side: AcpSide, at: Timestamp, mut bytes: &[u8]) -> bool {
        if self.is_stopped {
            return false;
        }
        self.note_sync_failures();
        self.resume_if_due();
        self.end_overflow();
        if self.overflow.torn_sides.contains(&side) {
            let Some(end) = memchr(b'\n', bytes) else { return false };
            self.overflow.torn_sides.remove(&side);
            bytes = &bytes[end + 1..];
        }
        let mut ends_turn = false;
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end + 1);
            bytes = rest;
            ends_turn |=
                match self.partial_lines.get_mut(&side).filter(|partial| !partial.is_empty()) {
                    None => self.record_line(side, at, line),
                    Some(partial) => {
                        let line = [std::mem::take(partial).as_slice(), line].concat();
                        self.record_line(side, at, &line)
                    }
                };
        }
        let partial = self.partial_lines.entry(side).or_default();
        partial.extend_from_slice(bytes);
        if partial.len() >= MAX_LINE_LENGTH {
            let line = std::mem::take(partial);
            ends_turn |= self.record_line(side, at, &line);
        }
        self.write_lines();
        ends_turn
    }

    /// Requests a sync of written bytes, if it is urgent or the interval has passed.
    pub(super) fn sync_if_due(&mut self, is_urgent: bool) {
        if self.is_stopped {
            return;
        }
        self.note_sync_failures();
        self.resume_if_due();
        if self.has_unsynced && self.syncer.is_due(is_urgent) {
            self.has_unsynced = false;
            self.syncer.request_sync(self.recorders(), None);
        }
    }

    /// Requests a sync of all sessions, and replies through `synced`.
    pub(super) fn sync_now(&mut self, synced: Sender<()>) {
        self.has_unsynced = false;
        self.syncer.request_sync(self.recorders(), Some(synced));
    }

    fn recorders(&self) -> Vec<NamedRecorder> {
        let sessions = self.sessions.iter();
        sessions.map(|(name, open)| (name.clone(), Arc::clone(&open.recorder))).collect()
    }

    fn note_sync_failures(&mut self) {
        for SyncFailure { session, error } in self.syncer.take_failures() {
            self.note_failure(&session, error);
        }
    }

    fn note_failure(&mut self, session: &str, error: FileError) {
        if let Some(open) = self.sessions.get_mut(session) {
            open.note_sync_failure();
        }
        self.note_pause(error);
    }

    /// Notes that lines of a side are missing from here on, because the queue is full.
    pub(super) fn note_overflow(&mut self, side: AcpSide, at: Timestamp) {
        self.partial_lines.remove(&side);
        self.overflow.torn_sides.insert(side);
        if self.overflow.since.is_none() && !self.is_stopped {
            self.overflow.since = Some(at);
            (self.settings.on_change)(&RecordingStatus::Paused(&RecordingError::TooSlow));
        }
    }

    /// Marks the dropped lines as a gap in all sessions, because their session is unknown.
    fn end_overflow(&mut self) {
        let Some(since) = self.overflow.since.take() else { return };
        // The next line lacks its beginning, so it is lost too.
        let torn = self.overflow.torn_sides.len() as u64;
        let lost = self.overflow.dropped_lines.swap(0, Ordering::AcqRel) + torn;
        let (reason, unit) = (RecordingError::TooSlow.to_string(), GAP_UNIT.to_owned());
        let gap = RecordingGap { since, reason, lost, unit };
        let mut failures = Vec::new();
        for open in self.sessions.values_mut() {
            let marked = open.recorder.append_with(0, |recorder| recorder.append_gap(&gap));
            failures.extend(open.note_append(marked));
        }
        failures.into_iter().for_each(|error| self.note_pause(error));
        (self.settings.on_change)(&RecordingStatus::Resumed { lost });
    }

    /// Closes the sessions; returns those with a complete record.
    pub(super) fn close_sessions(mut self, closing: Option<RecordingClosing>) -> Vec<KeptSession> {
        for (side, line) in std::mem::take(&mut self.partial_lines) {
            if !line.is_empty() {
                self.record_line(side, self.settings.clock.now(), &line);
            }
        }
        let rest = std::mem::take(&mut self.router).unrouted_lines();
        // Requests to an agent that ended without a word are no session.
        if rest.iter().any(|line| line.wire.side == AcpSide::Agent) {
            let name = SessionId::new_unique(self.settings.clock.now()).to_string();
            rest.iter().for_each(|line| self.queue_line(&name, line));
        }
        self.write_lines();
        self.syncer.finish();
        self.note_sync_failures();
        if self.is_stopped {
            return Vec::new();
        }
        let closing =
            closing.unwrap_or(RecordingClosing { status: SessionStatus::Completed, reason: None });
        let sessions = std::mem::take(&mut self.sessions).into_iter();
        sessions.filter_map(|(name, session)| self.close_session(name, session, &closing)).collect()
    }

    fn close_session(
        &mut self,
        name: String,
        open: RecordingSession,
        closing: &RecordingClosing,
    ) -> Option<KeptSession> {
        let recorder = Arc::into_inner(open.recorder).expect("the syncer has ended");
        let (dir, was_paused) = (recorder.dir().clone(), recorder.is_paused());
        match recorder.close(closing) {
            Ok(gap) => {
                gap.into_iter().for_each(|gap| self.note_resumption(gap.lost));
                return Some(KeptSession { dir, name });
            }
            // The pause was reported before.
            Err(_) if was_paused => {}
            Err(unclosed) => self.note_pause(unclosed.error),
        }
        None
    }

    /// Records a line. Returns whether it may end a turn.
    fn record_line(&mut self, side: AcpSide, at: Timestamp, line: &[u8]) -> bool {
        let address = AcpMessageHeader::parse(line);
        if side == AcpSide::Agent && self.agent_name.is_none() {
            let is_response = address.as_ref().is_some_and(|address| address.method.is_none());
            self.agent_name = is_response.then(|| message_header::parse_agent_name(line)).flatten();
        }
        let bytes = self.redactor.redact(line, address.as_ref());
        let running = address.as_ref().and_then(|address| self.router.current_session_of(address));
        if running.is_some() && running == self.lines_session.as_deref() {
            let is_json = matches!(bytes, Cow::Borrowed(_));
            self.lines.push_with(at, |out| write_wire_record(out, side, &bytes, is_json));
        } else {
            let line = ForwardedLine { at, wire: WireLine { side, bytes: bytes.into_owned() } };
            let placed = self.router.route_line(address.as_ref(), line);
            placed.iter().for_each(|(session, line)| self.queue_line(session, line));
            self.assign_unnamed_lines();
        }
        side == AcpSide::Agent && STOP_REASON_KEY.find(line).is_some()
    }

    /// Moves lines that name no session into a new one, if they are too many.
    fn assign_unnamed_lines(&mut self) {
        if self.router.waiting_bytes() > MAX_UNNAMED_BYTES {
            let placed = self
                .router
                .assign_waiting(SessionId::new_unique(self.settings.clock.now()).as_str());
            placed.iter().for_each(|(session, line)| self.queue_line(session, line));
        }
    }

    /// Queues a line for the next write.
    fn queue_line(&mut self, session: &str, line: &ForwardedLine) {
        if self.lines_session.as_deref() != Some(session) {
            self.write_lines();
            self.lines_session = Some(session.to_owned());
        }
        let WireLine { side, bytes } = &line.wire;
        self.lines.push_with(line.at, |out| write_wire_record(out, *side, bytes, false));
    }

    /// Writes the queued lines.
    fn write_lines(&mut self) {
        if !self.lines.is_empty()
            && !self.is_stopped
            && let Err(error) = self.append_lines()
        {
            self.stop_recording(&error);
        }
        self.lines.clear();
    }

    fn append_lines(&mut self) -> Result<(), RecordingError> {
        let Some(session) = &self.lines_session else { return Ok(()) };
        if !self.sessions.contains_key(session) {
            let (open, failure) = self.open_session(session)?;
            self.sessions.insert(session.clone(), open);
            failure.into_iter().for_each(|error| self.note_pause(error));
        }
        self.has_unsynced = true;
        let lines = &self.lines;
        let open = self.lines_session.as_ref().and_then(|session| self.sessions.get_mut(session));
        let failure = open.and_then(|open| {
            let lost = lines.len() as u64;
            let appended = open.recorder.append_with(lost, |recorder| recorder.append_batch(lines));
            open.note_append(appended)
        });
        failure.into_iter().for_each(|error| self.note_pause(error));
        Ok(())
    }

    /// Opens a session. If the store cannot be written, the session starts paused, and the error is returned with it.
    fn open_session(
        &self,
        name: &str,
    ) -> Result<(RecordingSession, Option<FileError>), RecordingError> {
        let settings = &self.settings;
        let agent = settings.agent.clone();
        let agent = agent.unwrap_or_else(|| {
            naming::connection_agent(self.agent_name.as_deref(), &settings.command)
        });
        let id = SessionId::for_native(agent.as_str(), name);
        let dir = self.vault.session_dir(&agent, &id);
        let opening = RecordingOpening {
            agent: agent.as_str().to_owned(),
            project: Some(settings.project.to_string_lossy().into_owned()),
            native_id: Some(name.to_owned()),
            protocol: Some(acp::AGENT_NAME.to_owned()),
            thread: settings.thread.clone(),
            launch: settings.launch.clone(),
        };
        let session = RecordedSession {
            dir,
            opening,
            clock: settings.clock.clone(),
            decoder: RECORD_DECODER,
            unit: GAP_UNIT,
        };
        RecordingSession::open(session, &settings.store)
    }

    /// Retries the store for each paused session.
    fn resume_if_due(&mut self) {
        if self.paused == 0 {
            return;
        }
        let (mut resumed, mut refusal) = (Vec::new(), None);
        for open in self.sessions.values_mut().filter(|open| open.recorder.is_paused()) {
            match open.try_resume() {
                Ok(gap) => resumed.extend(gap.map(|gap| gap.lost)),
                Err(error) => refusal = Some(error),
            }
        }
        resumed.into_iter().for_each(|lost| self.note_resumption(lost));
        if let Some(error) = refusal {
            self.stop_recording(&error);
        }
    }

    /// Reports that recording pauses, unless another session is paused already.
    fn note_pause(&mut self, error: FileError) {
        self.paused += 1;
        if self.paused == 1 {
            (self.settings.on_change)(&RecordingStatus::Paused(&error.into()));
        }
    }

    /// Reports that recording continues, once no session is paused.
    fn note_resumption(&mut self, lost: u64) {
        self.lost_messages += lost;
        self.paused = self.paused.saturating_sub(1);
        if self.paused == 0 {
            let lost = std::mem::take(&mut self.lost_messages);
            (self.settings.on_change)(&RecordingStatus::Resumed { lost });
        }
    }

    /// Reports that nothing more is recorded, once.
    fn stop_recording(&mut self, error: &RecordingError) {
        if !std::mem::replace(&mut self.is_stopped, true) {
            (self.settings.on_change)(&RecordingStatus::Stopped(error));
        }
    }
}

#[cfg(test)]
mod tests;
