//! The record of one connection: each of its sessions has a log of its own.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use memchr::memchr;
use memchr::memmem::Finder;
use steno_core::agent::acp;
use steno_core::agent::acp::address::{self, Address};
use steno_core::agent::acp::redact::Redactor;
use steno_core::agent::acp::route::{Line, Router};
use steno_core::agent::acp::wire::{Side, Wire};
use steno_core::durable::FileError;
use steno_core::index::pending::{Marker, Pending};
use steno_core::lines::LINE_LIMIT;
use steno_core::vault::gap::RecordingGap;
use steno_core::vault::record::{Closing, Opening};
use steno_core::vault::resumable::{NotRecorded, RecordedSession, ResumableRecorder};
use steno_core::vault::retry::RetrySchedule;
use steno_core::vault::wire_lines::WireLines;
use steno_core::vault::{SessionDir, Vault};
use steno_core::{SessionId, Status, Timestamp};

use super::sync::{LogSyncer, NamedRecorder, SyncFailure};
use super::{Assignment, Kept, RecordingStatus, StoppedError, naming};

/// Bytes that name no session and wait for the first one; more of them get a session of their own. They wait in memory,
/// so a kill loses them.
const MAX_UNNAMED_BYTES: usize = 16 << 10;

/// What is counted as lost during a gap.
const UNIT: &str = "message";

/// What a message says that ends a turn.
static STOP: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"stopReason\""));

/// The record of a connection that is open.
pub(super) struct ConnectionLog {
    assignment: Assignment,
    vault: Vault,
    /// What the agent calls itself.
    told: Option<String>,
    /// What each side has begun to say.
    torn: HashMap<Side, Vec<u8>>,
    redactor: Redactor,
    router: Router,
    sessions: HashMap<String, OpenSession>,
    syncer: LogSyncer,
    /// Lines that are written together, and the session that they belong to.
    lines: WireLines,
    writing: Option<String>,
    /// Whether something was written that no sync was asked for.
    has_news: bool,
    /// Sessions whose recording is paused, and what those have lost that were resumed before the others.
    paused: usize,
    lost: u64,
    overflow: Overflow,
    /// Nothing more is recorded.
    is_over: bool,
}

/// What was dropped because too much waited for the store.
struct Overflow {
    /// When it began, until its end is marked in the records.
    since: Option<Timestamp>,
    /// Sides whose next line has lost its beginning.
    torn_sides: HashSet<Side>,
    /// Lines that were dropped.
    dropped_lines: Arc<AtomicU64>,
}

/// A session that is being recorded.
struct OpenSession {
    recorder: Arc<ResumableRecorder>,
    schedule: RetrySchedule,
    /// Has the next search take the session in: nobody is to wait for that here.
    _marker: Option<Marker>,
}

impl ConnectionLog {
    pub(super) fn new(assignment: Assignment, dropped_lines: Arc<AtomicU64>) -> Self {
        let overflow = Overflow { since: None, torn_sides: HashSet::new(), dropped_lines };
        Self {
            vault: Vault::new(assignment.store.join("vault")),
            assignment,
            told: None,
            torn: HashMap::new(),
            redactor: Redactor::default(),
            router: Router::default(),
            sessions: HashMap::new(),
            syncer: LogSyncer::start(),
            lines: WireLines::default(),
            writing: None,
            has_news: false,
            paused: 0,
            lost: 0,
            overflow,
            is_over: false,
        }
    }

    /// Writes what one side has said, at whichever byte it was cut; whether it may end a turn.
    pub(super) fn record(&mut self, side: Side, at: Timestamp, mut bytes: &[u8]) -> bool {
        if self.is_over {
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
        ends_turn
    }

    /// Has the sessions synced that have news, if that is urgent or was long ago.
    pub(super) fn sync_if_due(&mut self, is_urgent: bool) {
        if self.is_over {
            return;
        }
        self.note_sync_failures();
        self.resume_if_due();
        if self.has_news && self.syncer.is_due(is_urgent) {
            self.has_news = false;
            self.syncer.request(self.recorders(), None);
        }
    }

    /// Has all sessions synced, and answers then.
    pub(super) fn sync(&mut self, synced: Sender<()>) {
        self.has_news = false;
        self.syncer.request(self.recorders(), Some(synced));
    }

    fn recorders(&self) -> Vec<NamedRecorder> {
        let sessions = self.sessions.iter();
        sessions.map(|(name, open)| (name.clone(), Arc::clone(&open.recorder))).collect()
    }

    fn note_sync_failures(&mut self) {
        for SyncFailure { session, error } in self.syncer.failures() {
            self.note_failure(&session, error);
        }
    }

    fn note_failure(&mut self, session: &str, error: FileError) {
        if let Some(open) = self.sessions.get_mut(session) {
            open.schedule.note_failure(Instant::now());
        }
        self.note_pause(error);
    }

    /// Too much waits for the store: from here on lines of a side are missing.
    pub(super) fn note_overflow(&mut self, side: Side, at: Timestamp) {
        self.torn.remove(&side);
        self.overflow.torn_sides.insert(side);
        if self.overflow.since.is_none() && !self.is_over {
            self.overflow.since = Some(at);
            (self.assignment.on_change)(&RecordingStatus::Paused(&StoppedError::TooSlow));
        }
    }

    /// Marks that lines are missing which were dropped, in all sessions: nobody knows whose they were.
    fn end_overflow(&mut self) {
        let Some(since) = self.overflow.since.take() else { return };
        // A line whose end is heard next has lost its beginning, and counts too.
        let torn = self.overflow.torn_sides.len() as u64;
        let lost = self.overflow.dropped_lines.swap(0, Ordering::AcqRel) + torn;
        let (reason, unit) = (StoppedError::TooSlow.to_string(), UNIT.to_owned());
        let gap = RecordingGap { since, reason, lost, unit };
        let mut failures = Vec::new();
        for open in self.sessions.values_mut() {
            let marked = open.recorder.append(0, |recorder| recorder.append_gap(&gap));
            failures.extend(open.failure_of(marked));
        }
        failures.into_iter().for_each(|error| self.note_pause(error));
        (self.assignment.on_change)(&RecordingStatus::Resumed { lost });
    }

    /// Closes the sessions; gives those whose record is whole.
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
        self.syncer.finish();
        self.note_sync_failures();
        if self.is_over {
            return Vec::new();
        }
        let closing = closing.unwrap_or(Closing { status: Status::Completed, reason: None });
        let sessions = std::mem::take(&mut self.sessions).into_iter();
        sessions.filter_map(|(name, session)| self.close(name, session, &closing)).collect()
    }

    fn close(&mut self, name: String, open: OpenSession, closing: &Closing) -> Option<Kept> {
        let recorder = Arc::into_inner(open.recorder).expect("the syncer has ended");
        let (dir, was_paused) = (recorder.dir().clone(), recorder.is_paused());
        match recorder.close(closing) {
            Ok(gap) => {
                gap.into_iter().for_each(|gap| self.note_resumption(gap.lost));
                return Some(Kept { dir, name });
            }
            // That it has paused was said before.
            Err(_) if was_paused => {}
            Err(unclosed) => self.note_pause(unclosed.error),
        }
        None
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
            self.lines.push(at, side, &bytes, is_json);
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
        if self.router.waiting() > MAX_UNNAMED_BYTES {
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
        self.lines.push(line.at, line.wire.side, &line.wire.bytes, false);
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
            let (open, failure) = self.open(session)?;
            self.sessions.insert(session.clone(), open);
            failure.into_iter().for_each(|error| self.note_pause(error));
        }
        self.has_news = true;
        let lines = &self.lines;
        let open = self.writing.as_ref().and_then(|session| self.sessions.get_mut(session));
        let failure = open.and_then(|open| {
            let lost = lines.len() as u64;
            let appended = open.recorder.append(lost, |recorder| recorder.append_wire(lines));
            open.failure_of(appended)
        });
        failure.into_iter().for_each(|error| self.note_pause(error));
        Ok(())
    }

    /// Opens a session; one whose store cannot be written is paused, and the failure is given too.
    fn open(&self, name: &str) -> Result<(OpenSession, Option<FileError>), StoppedError> {
        let assignment = &self.assignment;
        let agent = assignment.agent.clone();
        let agent =
            agent.unwrap_or_else(|| naming::agent(self.told.as_deref(), &assignment.command));
        let id = SessionId::for_native(agent.as_str(), name);
        let dir = self.vault.session(&agent, &id);
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
        let usable = check_usable(&dir);
        let session = RecordedSession { dir, opening, clock: assignment.clock.clone(), unit: UNIT };
        let (recorder, failure) = match usable {
            Ok(()) => ResumableRecorder::open(session),
            Err(StoppedError::Store(error)) => {
                (ResumableRecorder::paused(session, &error), Some(error))
            }
            Err(error) => return Err(error),
        };
        let mut schedule = RetrySchedule::default();
        if failure.is_some() {
            schedule.note_failure(Instant::now());
        }
        let recorder = Arc::new(recorder);
        Ok((OpenSession { recorder, schedule, _marker }, failure))
    }

    /// Tries the store again, for each session whose recording is paused.
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
            self.stop(&error);
        }
    }

    /// Says that recording pauses, unless that of another session does already.
    fn note_pause(&mut self, error: FileError) {
        self.paused += 1;
        if self.paused == 1 {
            (self.assignment.on_change)(&RecordingStatus::Paused(&error.into()));
        }
    }

    /// Says that recording continues, once that of all sessions does.
    fn note_resumption(&mut self, lost: u64) {
        self.lost += lost;
        self.paused = self.paused.saturating_sub(1);
        if self.paused == 0 {
            let lost = std::mem::take(&mut self.lost);
            (self.assignment.on_change)(&RecordingStatus::Resumed { lost });
        }
    }

    /// Reports once that nothing more is recorded.
    fn stop(&mut self, error: &StoppedError) {
        if !std::mem::replace(&mut self.is_over, true) {
            (self.assignment.on_change)(&RecordingStatus::Stopped(error));
        }
    }
}

impl OpenSession {
    /// Tries the store again if an attempt is due; an error means that the session must not be recorded into.
    fn try_resume(&mut self) -> Result<Option<RecordingGap>, StoppedError> {
        let began = Instant::now();
        if !self.schedule.is_due(began) {
            return Ok(None);
        }
        let usable = check_usable(self.recorder.dir());
        match usable.and_then(|()| Ok(self.recorder.try_resume()?)) {
            Ok(gap) => {
                self.schedule.note_success(Instant::now());
                Ok(gap)
            }
            Err(StoppedError::Store(_)) => {
                self.schedule.note_failed_attempt(began, Instant::now());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The failure that has paused the recording, if this was it.
    fn failure_of(&mut self, appended: Result<(), NotRecorded>) -> Option<FileError> {
        let Err(NotRecorded::Failed(error)) = appended else { return None };
        self.schedule.note_failure(Instant::now());
        Some(error)
    }
}

/// Makes sure that a session holds nothing but the wire of an agent.
fn check_usable(dir: &SessionDir) -> Result<(), StoppedError> {
    if dir.is_recorded()? && !dir.is_wire()? {
        return Err(StoppedError::Recorded(dir.id().clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
