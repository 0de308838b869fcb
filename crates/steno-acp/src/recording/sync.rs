//! Syncs the logs of a connection on a thread of its own, so that no message waits for the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use steno_model::durable::FileError;
use steno_vault::resumable::ResumableRecorder;

/// How long written bytes may stay off the disk, unless the disk is slower.
pub(super) const SYNC_INTERVAL: Duration = Duration::from_millis(300);

/// A session's id in the protocol, and its recorder.
pub(super) type NamedRecorder = (String, Arc<ResumableRecorder>);

/// Syncs logs, one request after the other.
pub(super) struct LogSyncer {
    /// `None` once finished.
    running: Option<(Sender<SyncRequest>, JoinHandle<()>)>,
    failures: Receiver<SyncFailure>,
    is_busy: Arc<AtomicBool>,
    last_request: Instant,
}

/// A session and the error of its failed sync; its recording has paused.
pub(super) struct SyncFailure {
    pub(super) session: String,
    pub(super) error: FileError,
}

struct SyncRequest {
    recorders: Vec<NamedRecorder>,
    synced: Option<Sender<()>>,
}

impl LogSyncer {
    pub(super) fn start() -> Self {
        let (requests, received) = mpsc::channel();
        let (sender, failures) = mpsc::channel();
        let is_busy = Arc::<AtomicBool>::default();
        let busy = Arc::clone(&is_busy);
        let thread = thread::Builder::new()
            .name("syncer".to_owned())
            .spawn(move || sync_logs(&received, &sender, &busy));
        let thread = thread.expect("the system has room for a thread");
        let running = Some((requests, thread));
        Self { running, failures, is_busy, last_request: Instant::now() }
    }

    /// Whether the thread is idle, and either `is_urgent` or the interval has passed.
    pub(super) fn is_due(&self, is_urgent: bool) -> bool {
        let is_due = is_urgent || self.last_request.elapsed() >= SYNC_INTERVAL;
        is_due && !self.is_busy.load(Ordering::Acquire)
    }

    /// Syncs logs, and then replies through `synced`.
    pub(super) fn request_sync(
        &mut self,
        recorders: Vec<NamedRecorder>,
        synced: Option<Sender<()>>,
    ) {
        self.last_request = Instant::now();
        self.is_busy.store(true, Ordering::Release);
        if let Some((requests, _)) = &self.running {
            let _ = requests.send(SyncRequest { recorders, synced });
        }
    }

    /// The failures since the last call.
    pub(super) fn take_failures(&self) -> Vec<SyncFailure> {
        self.failures.try_iter().collect()
    }

    /// Waits for all requests. The thread holds no recorder afterwards.
    pub(super) fn finish(&mut self) {
        if let Some((requests, thread)) = self.running.take() {
            drop(requests);
            let _ = thread.join();
        }
    }
}

fn sync_logs(
    requests: &Receiver<SyncRequest>,
    failures: &Sender<SyncFailure>,
    is_busy: &AtomicBool,
) {
    for SyncRequest { recorders, synced } in requests {
        for (session, recorder) in recorders {
            if let Err(error) = recorder.commit() {
                let _ = failures.send(SyncFailure { session, error });
            }
        }
        is_busy.store(false, Ordering::Release);
        // The caller may have stopped waiting.
        let _ = synced.map(|synced| synced.send(()));
    }
}
