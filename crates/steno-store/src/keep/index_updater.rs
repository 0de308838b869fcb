//! Writes batches of sessions to the index, which it opens when it needs it.

use super::indexer::SessionBatch;
use crate::index::attribution::MillisecondSpan;
use crate::index::pending_sessions::{PendingMarker, PendingSessions};
use crate::index::{Index, IndexError, RebuildReason};
use crate::store_error::StoreError;
use crate::store_location::StoreLocation;
use steno_vault::{SessionDir, Vault};

/// An index that is being updated.
pub(super) struct IndexUpdater {
    location: StoreLocation,
    index: Option<Index>,
    /// Sessions read from the vault that are not written yet.
    batch: SessionBatch,
    failure: Option<StoreError>,
}

impl IndexUpdater {
    pub(super) fn new(location: &StoreLocation) -> Self {
        let (index, failure) = (None, None);
        Self { location: location.clone(), index, batch: SessionBatch::default(), failure }
    }

    pub(super) fn has_damage(&mut self, dir: &SessionDir) -> bool {
        self.open_index().and_then(|index| index.has_damage(dir)).unwrap_or(false)
    }

    /// Reads a session from the vault. It is written with the next batch.
    pub(super) fn add_from_vault(&mut self, dir: &SessionDir, marker: Option<PendingMarker>) {
        match self
            .open_index()
            .and_then(|index| Ok((index.read_session(dir)?, index.is_current_file())))
        {
            Ok((Some(prepared), _)) => self.batch.push(prepared, marker),
            Ok((None, true)) => marker.into_iter().for_each(PendingMarker::remove),
            Ok((None, false)) => self.index = None,
            Err(error) => self.handle_error(error),
        }
        if self.batch.is_full() {
            self.write_own_batch();
        }
    }

    pub(super) fn attribute_traffic(
        &mut self,
        vault: &Vault,
        span: MillisecondSpan,
    ) -> Result<(), StoreError> {
        let clock = self.location.clock.clone();
        let changed = self.open_index()?.attribute_traffic(vault, span, &clock)?;
        if changed.is_empty() {
            return Ok(());
        }
        let pending = PendingSessions::new(&self.location.folder);
        for dir in changed {
            let marker = pending.mark_session(&dir).ok();
            self.add_from_vault(&dir, marker);
        }
        self.flush()
    }

    /// Writes what is left. Returns the last error since the previous call.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        self.write_own_batch();
        self.index.iter().for_each(Index::checkpoint_log);
        self.failure.take().map_or(Ok(()), Err)
    }

    fn write_own_batch(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        self.write_batch(batch);
    }

    /// Writes a batch. Its markers are removed, unless it fails.
    pub(super) fn write_batch(&mut self, batch: SessionBatch) {
        if batch.sessions.is_empty() {
            return;
        }
        match self.open_index().and_then(|index| {
            index.write_sessions(&batch.sessions).map(|()| index.is_current_file())
        }) {
            Ok(true) => batch.markers.into_iter().for_each(PendingMarker::remove),
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
