//! Takes down what is passed on, on a thread of its own, so that nobody ever waits for the store.

mod naming;
mod taking;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use steno_core::agent::acp::wire::Side;
use steno_core::durable::FileError;
use steno_core::vault::record::Closing;
use steno_core::vault::{AgentName, SessionDir};
use steno_core::{Clock, SessionId, Timestamp};

use self::taking::Taking;

/// Bytes that may wait for a slow store. More of them are not recorded, until half of them are written.
const MAX_QUEUED_BYTES: usize = 256 << 20;

/// How long what was said may stay off the disk while nothing new comes.
const PAUSE: Duration = Duration::from_millis(300);

/// Where a connection is taken down, and what is known of it beside its bytes.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The store's folder.
    pub store: PathBuf,
    /// What time it is.
    pub clock: Clock,
    /// The folder that the agent works in.
    pub project: PathBuf,
    /// The agent's command and its arguments.
    pub command: Vec<OsString>,
    /// Whose sessions these are, where the user says so.
    pub agent: Option<AgentName>,
    /// The thread of work that they belong to.
    pub thread: Option<String>,
    /// By which name or command the user has called the agent.
    pub launch: Option<String>,
    /// Is called when recording pauses, resumes or stops.
    pub on_change: fn(&RecordingStatus<'_>),
}

/// A change in whether a connection is recorded. Whatever it is, the agent continues.
#[derive(Debug)]
pub enum RecordingStatus<'a> {
    /// Nothing is recorded until the store can be written again.
    Paused(&'a StoppedError),
    /// Recording continues. The gap is marked in the record.
    Resumed {
        /// How many messages were not recorded.
        lost: u64,
    },
    /// Nothing more is recorded.
    Stopped(&'a StoppedError),
}

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub enum StoppedError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] FileError),
    /// The session is somebody else's.
    #[error("session {0} was recorded by `steno record`")]
    Recorded(SessionId),
    /// The store could not follow.
    #[error("the store is too slow")]
    TooSlow,
}

/// A session that was taken down.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Where it is kept.
    pub dir: SessionDir,
    /// Its name in the protocol.
    pub name: String,
}

/// What is told to who takes down.
enum Told {
    Piece(Side, Timestamp, Vec<u8>),
    /// From here on bytes of a side are missing, up to its next piece.
    Overflow(Side, Timestamp),
    /// All before it is to be on disk.
    Commit(Sender<()>),
    End(Closing),
}

/// Who takes down.
#[derive(Debug)]
pub struct Scribe {
    told: Sender<Told>,
    waiting: Arc<AtomicUsize>,
    dropped_lines: Arc<AtomicU64>,
    clock: Clock,
    done: Receiver<Vec<Kept>>,
}

/// Where one side is heard.
#[derive(Debug)]
pub struct Ear {
    side: Side,
    told: Sender<Told>,
    waiting: Arc<AtomicUsize>,
    /// Lines of both sides that were dropped because too many bytes wait.
    dropped_lines: Arc<AtomicU64>,
    is_dropping: AtomicBool,
    clock: Clock,
}

impl Scribe {
    /// Begins to listen.
    pub fn start(assignment: Assignment) -> Self {
        let (told, heard) = mpsc::channel();
        let (finished, done) = mpsc::channel();
        let (waiting, dropped_lines) = (Arc::<AtomicUsize>::default(), Arc::<AtomicU64>::default());
        let (left, clock) = (Arc::clone(&waiting), assignment.clock.clone());
        let dropped = Arc::clone(&dropped_lines);
        let listening = thread::Builder::new().name("scribe".to_owned()).spawn(move || {
            stand_back();
            let kept = listen(Taking::new(assignment, dropped), &heard, &left);
            let _ = finished.send(kept);
        });
        listening.expect("the system has room for a thread");
        Self { told, waiting, dropped_lines, clock, done }
    }

    /// An ear for what one side says.
    pub fn ear(&self, side: Side) -> Ear {
        let (told, waiting) = (self.told.clone(), Arc::clone(&self.waiting));
        let dropped_lines = Arc::clone(&self.dropped_lines);
        let (is_dropping, clock) = (AtomicBool::new(false), self.clock.clone());
        Ear { side, told, waiting, dropped_lines, is_dropping, clock }
    }

    /// Waits a while for all that was heard to be on disk.
    pub fn commit(&self, patience: Duration) {
        let (committed, done) = mpsc::channel();
        let _ = self.told.send(Told::Commit(committed));
        let _ = done.recv_timeout(patience);
    }

    /// The connection has ended; waits for what was said to be taken down, as long as that goes on, and gives the sessions.
    pub fn finish(self, closing: Closing, patience: Duration) -> Vec<Kept> {
        let _ = self.told.send(Told::End(closing));
        loop {
            let before = self.waiting.load(Ordering::Acquire);
            match self.done.recv_timeout(patience) {
                Err(RecvTimeoutError::Timeout)
                    if self.waiting.load(Ordering::Acquire) != before => {}
                done => return done.unwrap_or_default(),
            }
        }
    }
}

impl Ear {
    /// Hears what is being passed on now. It only lays a copy down, and never waits.
    pub fn hear(&self, bytes: &[u8]) {
        self.hear_at(self.clock.now(), bytes.to_vec());
    }

    /// Hears what was passed on at some moment. If too much waits already, it is only counted.
    pub(crate) fn hear_at(&self, at: Timestamp, bytes: Vec<u8>) {
        let was_dropping = self.is_dropping.load(Ordering::Acquire);
        let limit = if was_dropping { MAX_QUEUED_BYTES / 2 } else { MAX_QUEUED_BYTES };
        let is_dropping = self.waiting.load(Ordering::Acquire) >= limit;
        self.is_dropping.store(is_dropping, Ordering::Release);
        if !is_dropping {
            self.waiting.fetch_add(bytes.len(), Ordering::AcqRel);
            let _ = self.told.send(Told::Piece(self.side, at, bytes));
            return;
        }
        let lines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
        self.dropped_lines.fetch_add(lines, Ordering::AcqRel);
        if !was_dropping {
            let _ = self.told.send(Told::Overflow(self.side, at));
        }
    }
}

/// Lets agents and editors work first: here, nobody waits.
fn stand_back() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(5);
}

fn listen(mut taking: Taking, heard: &Receiver<Told>, waiting: &AtomicUsize) -> Vec<Kept> {
    loop {
        match heard.recv_timeout(PAUSE) {
            Ok(Told::Overflow(side, at)) => taking.note_overflow(side, at),
            Ok(Told::Piece(side, at, piece)) => {
                taking.piece(side, at, &piece);
                waiting.fetch_sub(piece.len(), Ordering::AcqRel);
            }
            Ok(Told::Commit(committed)) => {
                taking.commit();
                let _ = committed.send(());
            }
            Ok(Told::End(closing)) => return taking.end(Some(closing)),
            Err(RecvTimeoutError::Timeout) => taking.commit(),
            Err(RecvTimeoutError::Disconnected) => return taking.end(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_the_queue_is_counted_and_not_held() {
        let (told, heard) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(MAX_QUEUED_BYTES));
        let ear = Ear {
            side: Side::Agent,
            told,
            waiting: Arc::clone(&waiting),
            dropped_lines: Arc::default(),
            is_dropping: AtomicBool::new(false),
            clock: Clock::system(),
        };
        ear.hear(b"a\nb\n");
        ear.hear(b"c\n");
        // It is recorded again only once half of what waits is written.
        waiting.store(MAX_QUEUED_BYTES / 2, Ordering::Release);
        ear.hear(b"d\n");
        assert!(matches!(heard.try_recv(), Ok(Told::Overflow(Side::Agent, _))));
        assert!(heard.try_recv().is_err());
        assert_eq!(ear.dropped_lines.load(Ordering::Acquire), 4);
        waiting.store(0, Ordering::Release);
        ear.hear(b"e\n");
        assert!(matches!(heard.try_recv(), Ok(Told::Piece(_, _, bytes)) if bytes == b"e\n"));
        assert_eq!(waiting.load(Ordering::Acquire), 2);
    }
}
