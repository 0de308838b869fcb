//! The record of what passes: each piece is in the file before it is passed on, and on disk a moment later.
//!
//! A write goes to the system's cache and takes microseconds; the sync is another thread's. A record that fails stops the
//! recording, never the traffic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use steno_core::traffic::Piece;
use steno_core::vault::recorder::Recorder;

/// How long pieces gather before they are synced.
const GATHER: Duration = Duration::from_millis(20);

/// Takes every piece that was recorded.
pub type Listener = Box<dyn FnMut(&Piece<'_>) + Send>;

/// Told once, when the recording has failed.
pub type OnFailure = Box<dyn Fn(String) + Send + Sync>;

/// A recording under way.
pub(crate) struct Log {
    recorder: Arc<Recorder>,
    failed: AtomicBool,
    on_failure: OnFailure,
    listener: Option<Mutex<Listener>>,
    dirty: SyncSender<()>,
}

impl Log {
    /// Begins; the thread ends once the log is dropped.
    pub(crate) fn new(
        recorder: Arc<Recorder>,
        on_failure: OnFailure,
        listener: Option<Listener>,
    ) -> (Self, JoinHandle<()>) {
        let (dirty, due) = mpsc::sync_channel(1);
        let syncing = Arc::clone(&recorder);
        let thread = std::thread::spawn(move || {
            while due.recv().is_ok() {
                let stop = matches!(due.recv_timeout(GATHER), Err(RecvTimeoutError::Disconnected));
                // A sync that fails shows in the next write.
                let _ = syncing.commit();
                if stop {
                    break;
                }
            }
        });
        let listener = listener.map(Mutex::new);
        (Self { recorder, failed: AtomicBool::new(false), on_failure, listener, dirty }, thread)
    }

    /// Appends pieces; they are in the file when this returns.
    pub(crate) fn keep(&self, pieces: &[Piece<'_>]) {
        if self.failed.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = self.recorder.append_traffic(pieces) {
            if !self.failed.swap(true, Ordering::Relaxed) {
                let cause = &error.source;
                (self.on_failure)(format!("the recording has stopped: {error}: {cause}"));
            }
            return;
        }
        let _ = self.dirty.try_send(());
        if let Some(listener) = &self.listener {
            let mut listener = listener.lock().unwrap_or_else(PoisonError::into_inner);
            for piece in pieces {
                listener(piece);
            }
        }
    }
}
