//! Adds sessions to the index in batches. Index failures never prevent recording.

use crate::index::attribution::MillisecondSpan;
use crate::index::pending_sessions::{PendingMarker, PendingSessions};
use crate::index::{Index, IndexError, MAX_BATCH_BYTES, PreparedSession, RebuildReason};
use steno_vault::{SessionDir, Vault};

use crate::store_error::StoreError;
use crate::store_location::StoreLocation;

/// Maximum number of sessions per batch.
const MAX_BATCH: usize = 256;

/// Queues sessions for the index. Sessions that fail stay marked, and the next search indexes them.
pub struct Indexer {
    location: StoreLocation,
    pending: PendingSessions,
    index: Option<Index>,
    batch: Vec<PreparedSession>,
    markers: Vec<PendingMarker>,
    batch_size: usize,
    failure: Option<StoreError>,
}

impl Indexer {
    /// An empty batch for the index of a store.
    pub fn new(location: &StoreLocation) -> Self {
        Self {
            location: location.clone(),
            pending: PendingSessions::new(&location.folder),
            index: None,
            batch: Vec::new(),
            markers: Vec::new(),
            batch_size: 0,
            failure: None,
        }
    }

    /// Marks a session as pending before writing it. A failure to mark is ignored.
    pub fn mark(&self, dir: &SessionDir) -> Option<PendingMarker> {
        self.pending.mark_session(dir).ok()
    }

    /// Queues a session that was parsed during its import.
    pub fn add_prepared(&mut self, prepared: PreparedSession, marker: Option<PendingMarker>) {
        self.batch_size += prepared.size_bytes();
        self.batch.push(prepared);
        self.markers.extend(marker);
    }

    /// Returns whether the index has the session as damaged. Without an index, that shows when one is built.
    pub(crate) fn has_damage(&mut self, dir: &SessionDir) -> bool {
        self.open_index().and_then(|index| index.has_damage(dir)).unwrap_or(false)
    }

    /// Returns whether the batch is full.
    pub fn is_full(&self) -> bool {
        self.batch_size >= MAX_BATCH_BYTES || self.batch.len() >= MAX_BATCH
    }

    /// Drops the batch, as its sessions were not written after all. They stay marked.
    pub fn discard(&mut self) {
        self.batch_size = 0;
        self.batch.clear();
        self.markers.clear();
    }

    /// Queues a session read from the vault.
    pub fn add_from_vault(&mut self, dir: &SessionDir, marker: Option<PendingMarker>) {
        match self
            .open_index()
            .and_then(|index| Ok((index.read_session(dir)?, index.is_current_file())))
        {
            Ok((Some(prepared), _)) => self.add_prepared(prepared, marker),
            Ok((None, true)) => marker.into_iter().for_each(PendingMarker::remove),
            Ok((None, false)) => self.index = None,
            Err(error) => self.handle_error(error),
        }
    }

    /// Moves traffic that was recorded in a time span to the sessions of its agents, and indexes both. On failure the
    /// next sync tries again.
    pub fn attribute_traffic(
        &mut self,
        vault: &Vault,
        span: MillisecondSpan,
    ) -> Result<(), StoreError> {
        let clock = self.location.clock.clone();
        let changed = self.open_index()?.attribute_traffic(vault, span, &clock)?;
        if changed.is_empty() {
            return Ok(());
        }
        for dir in changed {
            let marker = self.mark(&dir);
            self.add_from_vault(&dir, marker);
        }
        self.flush()
    }

    /// Writes the batch. Returns the last error since the previous call.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.write_batch();
        self.index.iter().for_each(Index::checkpoint_log);
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Writes the batch to the index.
    pub fn write_batch(&mut self) {
        self.batch_size = 0;
        let gathered = std::mem::take(&mut self.batch);
        let markers = std::mem::take(&mut self.markers);
        if gathered.is_empty() {
            return;
        }
        match self
            .open_index()
            .and_then(|index| index.write_sessions(&gathered).map(|()| index.is_current_file()))
        {
            Ok(true) => markers.into_iter().for_each(PendingMarker::remove),
            // Another process builds a new index, which includes the marked sessions.
            Ok(false) => self.index = None,
            Err(error) => self.handle_error(error),
        }
    }

    fn open_index(&mut self) -> Result<&Index, IndexError> {
        match self.index.take().filter(Index::is_current_file) {
            Some(index) => Ok(self.index.insert(index)),
            None => {
                let index = Index::open(&self.location.folder)?;
                if let Some(boot_id) = &self.location.boot_id {
                    index.note_first_boot(boot_id)?;
                }
                Ok(self.index.insert(index))
            }
        }
    }

    fn handle_error(&mut self, error: IndexError) {
        self.index = None;
        if error.is_corruption() {
            // The next query indexes everything again.
            match Index::rebuild(&self.location.folder, Some(RebuildReason::Damaged)) {
                Ok(index) => self.index = Some(index),
                Err(error) => self.failure = Some(error.into()),
            }
            return;
        }
        self.failure = Some(error.into());
    }
}
