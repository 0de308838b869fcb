//! Records both sides of a connection.
//!
//! One thread writes to the store, another one syncs. [`SideRecorder::record`] returns once the bytes are in the log of
//! their session, so what is forwarded afterwards survives a kill of this process. It waits at most `STORE_TIMEOUT`: a
//! store that hangs delays an agent once and then no more, until it works again.

mod connection_log;
mod naming;
mod side;
mod sync;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use steno_core::agent::acp::wire::Side;
use steno_core::durable::FileError;
use steno_core::vault::record::Closing;
use steno_core::vault::{AgentName, SessionDir};
use steno_core::{Clock, SessionId, Timestamp};

use self::connection_log::ConnectionLog;
pub use self::side::SideRecorder;
pub(crate) use self::side::WireBytes;
use self::side::WrittenCount;
use self::sync::SYNC_INTERVAL;

/// How long bytes wait for the store before they are forwarded.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a connection is recorded, and what is known of it beside its bytes.
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
    /// Variables that the agent gets besides ours.
    pub variables: Vec<(String, OsString)>,
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
    /// Too much waits for the store.
    #[error("the store is too slow")]
    TooSlow,
}

/// A session that was recorded.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Where it is kept.
    pub dir: SessionDir,
    /// Its name in the protocol.
    pub name: String,
}

/// What the thread that writes is asked to do.
enum RecorderMessage {
    /// Writes bytes of a side, and then counts them as written.
    Write { side: Side, at: Timestamp, bytes: WireBytes, written: Arc<WrittenCount> },
    /// From here on bytes of a side are missing, up to its next ones.
    Overflow(Side, Timestamp),
    /// Syncs all before it, and answers then.
    Sync(Sender<()>),
    /// Closes the sessions.
    End(Closing),
}

/// What the threads of a connection know of what waits for the store.
#[derive(Clone, Debug, Default)]
struct QueueState {
    /// Bytes that wait.
    queued_bytes: Arc<AtomicUsize>,
    /// Lines of both sides that were dropped because too many bytes wait.
    dropped_lines: Arc<AtomicU64>,
}

/// Records one connection.
#[derive(Debug)]
pub struct ConnectionRecorder {
    messages: Sender<RecorderMessage>,
    queue: QueueState,
    clock: Clock,
    closed: Receiver<Vec<Kept>>,
}

impl ConnectionRecorder {
    /// Starts the threads.
    pub fn start(assignment: Assignment) -> Self {
        let (messages, received) = mpsc::channel();
        let (sender, closed) = mpsc::channel();
        let (queue, clock) = (QueueState::default(), assignment.clock.clone());
        let state = queue.clone();
        let writer = thread::Builder::new().name("recorder".to_owned()).spawn(move || {
            let log = ConnectionLog::new(assignment, Arc::clone(&state.dropped_lines));
            let _ = sender.send(write_messages(log, &received, &state.queued_bytes));
        });
        writer.expect("the system has room for a thread");
        Self { messages, queue, clock, closed }
    }

    /// The recorder of what one side says.
    pub fn side(&self, side: Side) -> SideRecorder {
        SideRecorder::new(side, self.messages.clone(), self.queue.clone(), self.clock.clone())
    }

    /// Waits until all that was recorded is on disk, but no longer than `timeout`.
    pub fn sync(&self, timeout: Duration) {
        let (sender, synced) = mpsc::channel();
        let _ = self.messages.send(RecorderMessage::Sync(sender));
        let _ = synced.recv_timeout(timeout);
    }

    /// Closes the sessions and returns them. Waits as long as the store makes progress: `timeout` is for each step.
    pub fn finish(self, closing: Closing, timeout: Duration) -> Vec<Kept> {
        let _ = self.messages.send(RecorderMessage::End(closing));
        loop {
            let before = self.queue.queued_bytes.load(Ordering::Acquire);
            match self.closed.recv_timeout(timeout) {
                Err(RecvTimeoutError::Timeout)
                    if self.queue.queued_bytes.load(Ordering::Acquire) != before => {}
                closed => return closed.unwrap_or_default(),
            }
        }
    }
}

fn write_messages(
    mut log: ConnectionLog,
    messages: &Receiver<RecorderMessage>,
    queued_bytes: &AtomicUsize,
) -> Vec<Kept> {
    loop {
        match messages.recv_timeout(SYNC_INTERVAL) {
            Ok(RecorderMessage::Overflow(side, at)) => log.note_overflow(side, at),
            Ok(RecorderMessage::Write { side, at, bytes, written }) => {
                let ends_turn = log.record(side, at, bytes.as_slice());
                queued_bytes.fetch_sub(bytes.len(), Ordering::AcqRel);
                // Whoever waits may use the buffer again.
                drop(bytes);
                written.increment();
                log.sync_if_due(ends_turn);
            }
            Ok(RecorderMessage::Sync(synced)) => log.sync(synced),
            Ok(RecorderMessage::End(closing)) => return log.end(Some(closing)),
            Err(RecvTimeoutError::Timeout) => log.sync_if_due(true),
            Err(RecvTimeoutError::Disconnected) => return log.end(None),
        }
    }
}
