//! Records what passes: each piece is in the file before it is passed on, and on disk a moment later.
//!
//! A write goes to the system's cache and takes microseconds; another thread syncs. If the store cannot be written,
//! recording pauses and the traffic goes on; the same thread tries the store again and marks the gap in the record.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steno_core::durable::FileError;
use steno_core::traffic::Piece;
use steno_core::traffic::piece::PieceKind;
use steno_core::vault::gap::RecordingGap;
use steno_core::vault::resumable::{NotRecorded, ResumableRecorder};
use steno_core::vault::retry::RetrySchedule;

use crate::locking::lock_unpoisoned;

/// How long pieces gather before they are synced.
const GATHER: Duration = Duration::from_millis(20);

/// How often a paused recording looks whether an attempt is due.
const RETRY_POLL: Duration = Duration::from_millis(200);

/// Takes every piece that was recorded.
pub type Listener = Box<dyn FnMut(&Piece<'_>) + Send>;

/// One listener for the recorders of all sessions.
pub(crate) type SharedListener = Arc<Mutex<Listener>>;

/// A change in whether traffic is recorded.
#[derive(Debug)]
pub enum RecordingChange {
    /// The store cannot be written; the traffic goes on.
    Paused(FileError),
    /// Recording continues after a gap, which is marked in the record.
    Resumed(RecordingGap),
}

/// Is called when recording pauses, and when it resumes.
pub type OnChange = Arc<dyn Fn(RecordingChange) + Send + Sync>;

/// A session into which traffic is recorded.
#[derive(Debug)]
pub struct TrafficSession {
    /// Its recorder.
    pub recorder: ResumableRecorder,
    /// Whether conversations beside the first have sources of their own.
    pub subagents: bool,
}

/// The recording under way, shared by all exchanges.
pub(crate) struct TrafficRecorder {
    recorder: Arc<ResumableRecorder>,
    /// Requests that were recorded.
    requests: Arc<AtomicU64>,
    on_change: OnChange,
    listener: Option<SharedListener>,
    /// Wakes the thread that syncs and retries.
    wake: SyncSender<()>,
}

/// What the recorder's owner keeps while it is in use.
#[derive(Debug)]
pub(crate) struct RecordingHandle {
    pub(crate) recorder: Arc<ResumableRecorder>,
    pub(crate) requests: Arc<AtomicU64>,
    pub(crate) syncing: JoinHandle<()>,
}

impl TrafficRecorder {
    /// Starts the thread that syncs; it ends once the recorder is dropped.
    pub(crate) fn start(
        session: TrafficSession,
        on_change: OnChange,
        listener: Option<SharedListener>,
    ) -> (Self, RecordingHandle) {
        let (wake, woken) = mpsc::sync_channel(1);
        let (recorder, requests) = (Arc::new(session.recorder), Arc::<AtomicU64>::default());
        let subagents = session.subagents;
        let maintenance = StoreMaintenance {
            recorder: Arc::clone(&recorder),
            on_change: Arc::clone(&on_change),
            subagents,
            schedule: RetrySchedule::default(),
            was_paused: false,
        };
        let syncing = std::thread::spawn(move || maintenance.run(&woken));
        let handle = RecordingHandle {
            recorder: Arc::clone(&recorder),
            requests: Arc::clone(&requests),
            syncing,
        };
        let recording = Self { recorder, requests, on_change, listener, wake };
        recording.append(0, &[Piece::settings(subagents)]);
        (recording, handle)
    }

    /// Appends pieces of one exchange, which are in the file when this returns. If they cannot be recorded, that counts
    /// as `lost` exchanges; whether they were.
    pub(crate) fn append(&self, lost: u64, pieces: &[Piece<'_>]) -> bool {
        let appended = self.recorder.append(lost, |recorder| recorder.append_traffic(pieces));
        let _ = self.wake.try_send(());
        match appended {
            Ok(()) => {}
            Err(NotRecorded::Paused) => return false,
            Err(NotRecorded::Failed(error)) => {
                (self.on_change)(RecordingChange::Paused(error));
                return false;
            }
        }
        let requests = pieces.iter().filter(|piece| piece.traffic == PieceKind::Request).count();
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        if let Some(listener) = &self.listener {
            let mut listener = lock_unpoisoned(listener);
            for piece in pieces {
                listener(piece);
            }
        }
        true
    }
}

/// Syncs what was recorded, and tries a store again that has failed.
struct StoreMaintenance {
    recorder: Arc<ResumableRecorder>,
    on_change: OnChange,
    subagents: bool,
    schedule: RetrySchedule,
    was_paused: bool,
}

impl StoreMaintenance {
    fn run(mut self, woken: &Receiver<()>) {
        loop {
            let is_over = if self.recorder.is_paused() {
                self.retry_if_due();
                woken.recv_timeout(RETRY_POLL) == Err(RecvTimeoutError::Disconnected)
            } else {
                self.was_paused = false;
                woken.recv().is_err()
            };
            if is_over {
                return;
            }
            let is_over = woken.recv_timeout(GATHER) == Err(RecvTimeoutError::Disconnected);
            if let Err(error) = self.recorder.commit() {
                (self.on_change)(RecordingChange::Paused(error));
            }
            if is_over {
                return;
            }
        }
    }

    fn retry_if_due(&mut self) {
        let began = Instant::now();
        if !std::mem::replace(&mut self.was_paused, true) {
            self.schedule.note_failure(began);
        }
        if !self.schedule.is_due(began) {
            return;
        }
        // They may be missing, if the session could not be opened before.
        let settings = [Piece::settings(self.subagents)];
        match self.recorder.try_resume_with(|recorder| recorder.append_traffic(&settings)) {
            Ok(Some(gap)) => {
                self.schedule.note_success(Instant::now());
                self.was_paused = false;
                (self.on_change)(RecordingChange::Resumed(gap));
            }
            Ok(None) => {}
            Err(_) => self.schedule.note_failed_attempt(began, Instant::now()),
        }
    }
}
