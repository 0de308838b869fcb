//! Adds sessions to the index in batches. Index failures never prevent recording.

use std::path::{Path, PathBuf};

use steno_model::Clock;
use steno_store::index::attribution::MillisecondSpan;
use steno_store::index::pending_sessions::{PendingMarker, PendingSessions};
use steno_store::index::{Index, IndexError, MAX_BATCH_BYTES, PreparedSession, RebuildReason};
use steno_vault::{SessionDir, Vault};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;

/// Maximum number of sessions per batch.
const MAX_BATCH: usize = 256;

/// Queues sessions for the index. Sessions that fail stay marked, and the next search indexes them.
pub(crate) struct Indexer {
    store: PathBuf,
    pending: PendingSessions,
    index: Option<Index>,
    batch: Vec<PreparedSession>,
    markers: Vec<PendingMarker>,
    batch_size: usize,
    failure: Option<CommandError>,
}

impl Indexer {
    pub(crate) fn new(store: &Path) -> Self {
        Self {
            store: store.to_owned(),
            pending: PendingSessions::new(store),
            index: None,
            batch: Vec::new(),
            markers: Vec::new(),
            batch_size: 0,
            failure: None,
        }
    }

    /// Marks a session as pending before writing it. A failure to mark is ignored.
    pub(crate) fn mark(&self, dir: &SessionDir) -> Option<PendingMarker> {
        self.pending.mark_session(dir).ok()
    }

    /// Queues a session that was parsed during its import.
    pub(crate) fn add_prepared(
        &mut self,
        prepared: PreparedSession,
        marker: Option<PendingMarker>,
    ) {
        self.batch_size += prepared.size_bytes();
        self.batch.push(prepared);
        self.markers.extend(marker);
    }

    /// Returns whether the batch is full.
    pub(crate) fn is_full(&self) -> bool {
        self.batch_size >= MAX_BATCH_BYTES || self.batch.len() >= MAX_BATCH
    }

    /// Drops the batch, as its sessions were not written after all. They stay marked.
    pub(crate) fn discard(&mut self) {
        self.batch_size = 0;
        self.batch.clear();
        self.markers.clear();
    }

    /// Queues a session read from the vault.
    pub(crate) fn add_from_vault(&mut self, dir: &SessionDir, marker: Option<PendingMarker>) {
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
    pub(crate) fn attribute_traffic(
        &mut self,
        vault: &Vault,
        span: MillisecondSpan,
    ) -> Result<(), CommandError> {
        let clock = Clock::system();
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
    pub(crate) fn flush(&mut self) -> Result<(), CommandError> {
        self.write_batch();
        self.index.iter().for_each(Index::checkpoint_log);
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Writes the batch to the index.
    pub(crate) fn write_batch(&mut self) {
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
                let index = Index::open(&self.store)?;
                ProcessEnvironment::boot_id()
                    .map_or(Ok(()), |boot| index.note_first_boot(&boot))?;
                Ok(self.index.insert(index))
            }
        }
    }

    fn handle_error(&mut self, error: IndexError) {
        self.index = None;
        if error.is_corruption() {
            // The next query indexes everything again.
            match Index::rebuild(&self.store, Some(RebuildReason::Damaged)) {
                Ok(index) => self.index = Some(index),
                Err(error) => self.failure = Some(error.into()),
            }
            return;
        }
        self.failure = Some(error.into());
    }
}
