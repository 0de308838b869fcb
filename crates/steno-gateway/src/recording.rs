//! Records pieces of traffic: each piece is in the file before it is forwarded, and on disk a moment later.
//!
//! A write goes to the page cache and takes microseconds; another thread syncs. If a write fails, recording pauses and
//! forwarding continues. The sync thread then retries the store, and marks the gap in the record.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steno_agents::protocols::traffic::piece::TrafficPieceKind;
use steno_agents::protocols::traffic::{TrafficPiece, append_traffic};
use steno_model::durable::FileError;
use steno_vault::gap::RecordingGap;
use steno_vault::resumable::{NotRecordedError, ResumableRecorder};
use steno_vault::retry::RetrySchedule;

use crate::locking::lock_unpoisoned;

/// How long pieces are collected before they are synced.
const SYNC_DELAY: Duration = Duration::from_millis(20);

/// How often a paused recording checks whether a retry is due.
const RETRY_POLL: Duration = Duration::from_millis(200);

/// Called with every recorded piece.
pub type PieceListener = Box<dyn FnMut(&TrafficPiece<'_>) + Send>;

/// The listener that the recorders of all sessions share.
pub(crate) type SharedPieceListener = Arc<Mutex<PieceListener>>;

/// A change of the recording state.
#[derive(Debug)]
pub enum RecordingChange {
    /// The store cannot be written; forwarding continues.
    Paused(FileError),
    /// Recording continues after a gap, which is marked in the record.
    Resumed(RecordingGap),
}

/// Called when recording pauses, and when it resumes.
pub type ChangeCallback = Arc<dyn Fn(RecordingChange) + Send + Sync>;

/// A session that traffic is recorded into.
#[derive(Debug)]
pub struct TrafficSession {
    /// The recorder of the session.
    pub recorder: ResumableRecorder,
    /// Whether conversations after the first one get a source of their own.
    pub subagents: bool,
}

/// Records the exchanges of one session.
pub(crate) struct TrafficRecorder {
    recorder: Arc<ResumableRecorder>,
    /// How many requests were recorded.
    requests: Arc<AtomicU64>,
    on_change: ChangeCallback,
    listener: Option<SharedPieceListener>,
    /// Wakes the thread that syncs and retries.
    wake: SyncSender<()>,
}

/// The parts of a recorder that outlive the runtime.
#[derive(Debug)]
pub(crate) struct RecordingHandle {
    pub(crate) recorder: Arc<ResumableRecorder>,
    pub(crate) requests: Arc<AtomicU64>,
    pub(crate) syncing: JoinHandle<()>,
}

impl TrafficRecorder {
    /// Starts the sync thread, which ends once the recorder is dropped.
    pub(crate) fn start(
        session: TrafficSession,
        on_change: ChangeCallback,
        listener: Option<SharedPieceListener>,
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
        recording.append(0, &[TrafficPiece::new_settings(subagents)]);
        (recording, handle)
    }

    /// Appends pieces of one exchange; they are in the file when this returns. Returns whether they were recorded. If
    /// not, `lost` is added to the lost exchanges of the gap.
    pub(crate) fn append(&self, lost: u64, pieces: &[TrafficPiece<'_>]) -> bool {
        let appended = self.recorder.append_with(lost, |recorder| append_traffic(recorder, pieces));
        let _ = self.wake.try_send(());
        match appended {
            Ok(()) => {}
            Err(NotRecordedError::Paused) => return false,
            Err(NotRecordedError::Failed(error)) => {
                (self.on_change)(RecordingChange::Paused(error));
                return false;
            }
        }
        let requests =
            pieces.iter().filter(|piece| piece.traffic == TrafficPieceKind::Request).count();
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

/// Syncs the record, and retries a store after a failure.
struct StoreMaintenance {
    recorder: Arc<ResumableRecorder>,
    on_change: ChangeCallback,
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
            let is_over = woken.recv_timeout(SYNC_DELAY) == Err(RecvTimeoutError::Disconnected);
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
        // If the session could not be opened before, it has no settings yet.
        let settings = [TrafficPiece::new_settings(self.subagents)];
        match self.recorder.try_resume_with(|recorder| append_traffic(recorder, &settings)) {
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
