//! Records both sides of a connection.
//!
//! One thread writes to the store, another one syncs. [`SideRecorder::record`] returns once the bytes are in the log
//! of their session, so bytes forwarded afterwards survive a kill of this process. It waits for `STORE_TIMEOUT` at
//! most: a store that hangs delays the agent once, and then no more until it works again.

mod connection_log;
mod naming;
mod recording_session;
mod side;
mod sync;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use steno_agents::protocols::acp::wire::AcpSide;
use steno_model::durable::FileError;
use steno_model::{Clock, SessionId, Timestamp};
use steno_vault::record::RecordingClosing;
use steno_vault::{AgentName, SessionDir};

use self::connection_log::ConnectionLog;
pub use self::side::SideRecorder;
pub(crate) use self::side::WireBytes;
use self::side::WrittenCount;
use self::sync::SYNC_INTERVAL;

/// How long bytes wait for the store before they are forwarded.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a connection is recorded, and how its agent is run.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// The folder of the store.
    pub store: PathBuf,
    /// The current time.
    pub clock: Clock,
    /// The agent's working folder.
    pub project: PathBuf,
    /// The agent's command and its arguments.
    pub command: Vec<OsString>,
    /// Environment variables for the agent, in addition to ours.
    pub variables: Vec<(String, OsString)>,
    /// The agent's name, if the user states it.
    pub agent: Option<AgentName>,
    /// The thread that the sessions belong to.
    pub thread: Option<String>,
    /// The name or command by which the user called the agent.
    pub launch: Option<String>,
    /// Called when recording pauses, resumes or stops.
    pub on_change: fn(&RecordingStatus<'_>),
}

/// A change of the recording state. The agent continues in any case.
#[derive(Debug)]
pub enum RecordingStatus<'a> {
    /// Nothing is recorded until the store can be written again.
    Paused(&'a RecordingError),
    /// Recording continues; the gap is marked in the record.
    Resumed {
        /// How many messages were not recorded.
        lost: u64,
    },
    /// Nothing more will be recorded.
    Stopped(&'a RecordingError),
}

/// Why recording paused or stopped.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] FileError),
    /// Another recorder wrote the session.
    #[error("session {0} was recorded by `steno record`")]
    ForeignSession(SessionId),
    /// Too many bytes are queued for the store.
    #[error("the store is too slow")]
    TooSlow,
}

/// A recorded session.
#[derive(Clone, Debug)]
pub struct KeptSession {
    /// The folder of the session.
    pub dir: SessionDir,
    /// The session's id in the protocol.
    pub name: String,
}

/// Messages to the thread that writes.
enum RecorderMessage {
    /// Write bytes of a side, and count them as written.
    Write { side: AcpSide, at: Timestamp, bytes: WireBytes, written: Arc<WrittenCount> },
    /// Bytes of a side are missing from here up to its next ones.
    Overflow(AcpSide, Timestamp),
    /// Sync everything before this message, and then reply.
    Sync(Sender<()>),
    /// Close the sessions.
    Close(RecordingClosing),
}

/// The state of the queue to the store, which the threads of a connection share.
#[derive(Clone, Debug, Default)]
struct QueueState {
    /// How many bytes are queued.
    queued_bytes: Arc<AtomicUsize>,
    /// How many lines of both sides were dropped because the queue was full.
    dropped_lines: Arc<AtomicU64>,
}

/// Records one connection.
#[derive(Debug)]
pub struct ConnectionRecorder {
    messages: Sender<RecorderMessage>,
    queue: QueueState,
    clock: Clock,
    closed: Receiver<Vec<KeptSession>>,
}

impl ConnectionRecorder {
    /// Starts the thread that writes.
    pub fn start(settings: ConnectionSettings) -> Self {
        let (messages, received) = mpsc::channel();
        let (sender, closed) = mpsc::channel();
        let (queue, clock) = (QueueState::default(), settings.clock.clone());
        let state = queue.clone();
        let writer = thread::Builder::new().name("recorder".to_owned()).spawn(move || {
            let log = ConnectionLog::new(settings, Arc::clone(&state.dropped_lines));
            let _ = sender.send(write_messages(log, &received, &state.queued_bytes));
        });
        writer.expect("the system has room for a thread");
        Self { messages, queue, clock, closed }
    }

    /// The recorder of one side.
    pub fn side(&self, side: AcpSide) -> SideRecorder {
        SideRecorder::new(side, self.messages.clone(), self.queue.clone(), self.clock.clone())
    }

    /// Waits until everything recorded is on disk, or `timeout` passes.
    pub fn sync(&self, timeout: Duration) {
        let (sender, synced) = mpsc::channel();
        let _ = self.messages.send(RecorderMessage::Sync(sender));
        let _ = synced.recv_timeout(timeout);
    }

    /// Closes the sessions and returns them. Waits as long as the store makes progress: `timeout` applies to each
    /// step.
    pub fn finish(self, closing: RecordingClosing, timeout: Duration) -> Vec<KeptSession> {
        let _ = self.messages.send(RecorderMessage::Close(closing));
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
) -> Vec<KeptSession> {
    loop {
        match messages.recv_timeout(SYNC_INTERVAL) {
            Ok(RecorderMessage::Overflow(side, at)) => log.note_overflow(side, at),
            Ok(RecorderMessage::Write { side, at, bytes, written }) => {
                let ends_turn = log.record(side, at, bytes.as_slice());
                queued_bytes.fetch_sub(bytes.len(), Ordering::AcqRel);
                // The forwarder may now reuse the buffer.
                drop(bytes);
                written.increment();
                log.sync_if_due(ends_turn);
            }
            Ok(RecorderMessage::Sync(synced)) => log.sync_now(synced),
            Ok(RecorderMessage::Close(closing)) => return log.close_sessions(Some(closing)),
            Err(RecvTimeoutError::Timeout) => log.sync_if_due(true),
            Err(RecvTimeoutError::Disconnected) => return log.close_sessions(None),
        }
    }
}
