//! Adds sessions to the index in batches, in a thread of its own, so that it works while the next sessions are read and
//! compressed. Index failures never prevent recording.

use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};

use crate::index::PreparedSession;
use crate::index::attribution::MillisecondSpan;
use crate::index::pending_sessions::{PendingMarker, PendingSessions};
use steno_vault::{SessionDir, Vault};

use super::index_updater::IndexUpdater;
use crate::store_error::StoreError;
use crate::store_location::StoreLocation;

/// Maximum number of sessions per batch.
const MAX_BATCH: usize = 256;

/// Maximum size of a batch in bytes. One is gathered and one written while others wait.
const MAX_BATCH_BYTES: usize = 11 << 20;

/// Jobs that wait for the one that runs. Batches take longer to write or to gather by turns, and waiting ones keep both
/// threads busy.
const WAITING_JOBS: usize = 2;

/// Queues sessions for the index. Sessions that fail stay marked, and the next search indexes them.
pub struct Indexer {
    location: StoreLocation,
    pending: PendingSessions,
    batch: SessionBatch,
    thread: Option<IndexThread>,
}

/// Sessions to write with one transaction, and their markers.
#[derive(Default)]
pub(super) struct SessionBatch {
    pub(super) sessions: Vec<PreparedSession>,
    pub(super) markers: Vec<PendingMarker>,
    size_bytes: usize,
}

/// Something to do with the index.
type IndexJob = Box<dyn FnOnce(&mut IndexUpdater) + Send>;

/// The thread that has the index open. It does one job at a time, in order.
struct IndexThread {
    jobs: SyncSender<IndexJob>,
    handle: JoinHandle<()>,
}

impl SessionBatch {
    pub(super) fn push(&mut self, prepared: PreparedSession, marker: Option<PendingMarker>) {
        self.size_bytes += prepared.size_bytes();
        self.sessions.push(prepared);
        self.markers.extend(marker);
    }

    pub(super) fn is_full(&self) -> bool {
        self.size_bytes >= MAX_BATCH_BYTES || self.sessions.len() >= MAX_BATCH
    }
}

impl Indexer {
    /// An empty batch for the index of a store.
    pub fn new(location: &StoreLocation) -> Self {
        Self {
            location: location.clone(),
            pending: PendingSessions::new(&location.folder),
            batch: SessionBatch::default(),
            thread: None,
        }
    }

    /// Marks a session as pending before writing it. A failure to mark is ignored.
    pub fn mark(&self, dir: &SessionDir) -> Option<PendingMarker> {
        self.pending.mark_session(dir).ok()
    }

    /// Queues a session that was parsed during its import.
    pub fn add_prepared(&mut self, prepared: PreparedSession, marker: Option<PendingMarker>) {
        self.batch.push(prepared, marker);
    }

    /// Returns whether the index has the session as damaged. Without an index, that shows when one is built.
    pub(crate) fn has_damage(&mut self, dir: &SessionDir) -> bool {
        let dir = dir.clone();
        self.wait_for(move |updater| updater.has_damage(&dir))
    }

    /// Returns whether the batch is full.
    pub fn is_full(&self) -> bool {
        self.batch.is_full()
    }

    /// Drops the batch, as its sessions were not written after all. They stay marked.
    pub fn discard(&mut self) {
        self.batch = SessionBatch::default();
    }

    /// Queues a session to be read from the vault.
    pub fn add_from_vault(&mut self, dir: &SessionDir, marker: Option<PendingMarker>) {
        let dir = dir.clone();
        self.start(move |updater| updater.add_from_vault(&dir, marker));
    }

    /// Moves traffic that was recorded in a time span to the sessions of its agents, and indexes both. On failure the
    /// next sync tries again.
    pub fn attribute_traffic(
        &mut self,
        vault: &Vault,
        span: MillisecondSpan,
    ) -> Result<(), StoreError> {
        let vault = vault.clone();
        self.wait_for(move |updater| updater.attribute_traffic(&vault, span))
    }

    /// Writes the batch and waits until everything is indexed. Returns the last error since the previous call.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.write_batch();
        if self.thread.is_none() {
            return Ok(());
        }
        self.wait_for(IndexUpdater::flush)
    }

    /// Writes the batch to the index. Returns at once, or when one of the batches that wait is written.
    pub fn write_batch(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        if !batch.sessions.is_empty() {
            self.start(move |updater| updater.write_batch(batch));
        }
    }

    /// Does a job after those before it, and waits for its result.
    fn wait_for<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut IndexUpdater) -> T + Send + 'static,
    ) -> T {
        let (result_sender, result) = mpsc::sync_channel(1);
        self.start(move |updater| {
            let _ = result_sender.send(job(updater));
        });
        result.recv().unwrap_or_else(|_| self.resume_panic())
    }

    /// Starts a job as soon as those before it are done.
    fn start(&mut self, job: impl FnOnce(&mut IndexUpdater) + Send + 'static) {
        let thread = self.thread.get_or_insert_with(|| IndexThread::spawn(&self.location));
        if thread.jobs.send(Box::new(job)).is_err() {
            self.resume_panic()
        }
    }

    /// Continues a panic of the thread, which ends only so before this value.
    fn resume_panic(&mut self) -> ! {
        let thread = self.thread.take().expect("the thread was started");
        match thread.handle.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the thread runs as long as it may get jobs"),
        }
    }
}

impl IndexThread {
    fn spawn(location: &StoreLocation) -> Self {
        // Few jobs wait, so that few sessions are in memory.
        let (sender, jobs) = mpsc::sync_channel::<IndexJob>(WAITING_JOBS);
        let mut updater = IndexUpdater::new(location);
        let handle = thread::spawn(move || jobs.into_iter().for_each(|job| job(&mut updater)));
        Self { jobs: sender, handle }
    }
}

/// Waits for the last job: the process must not end in the middle of it.
impl Drop for Indexer {
    fn drop(&mut self) {
        if let Some(IndexThread { jobs, handle }) = self.thread.take() {
            drop(jobs);
            let _ = handle.join();
        }
    }
}
