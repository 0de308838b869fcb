//! Brings what is kept into the index: some sessions at a time, and never at the cost of keeping them.

use std::path::{Path, PathBuf};

use steno_core::Clock;
use steno_core::index::attribution::TimeSpan;
use steno_core::index::pending::{Marker, Pending};
use steno_core::index::{GATHERED, Healed, Index, IndexError, Prepared};
use steno_core::vault::{SessionDir, Vault};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;

/// Sessions that are gathered before they are put in.
const MAX_BATCH: usize = 256;

/// The way of kept sessions into the index. What it cannot put in stays marked, and is taken in by the next search.
pub(crate) struct Indexer {
    store: PathBuf,
    pending: Pending,
    index: Option<Index>,
    batch: Vec<Prepared>,
    markers: Vec<Marker>,
    batch_size: usize,
    failure: Option<CommandError>,
}

impl Indexer {
    pub(crate) fn new(store: &Path) -> Self {
        Self {
            store: store.to_owned(),
            pending: Pending::new(store),
            index: None,
            batch: Vec::new(),
            markers: Vec::new(),
            batch_size: 0,
            failure: None,
        }
    }

    /// Marks a session before anything of it is kept. That it cannot be marked is no reason not to keep it.
    pub(crate) fn mark(&self, dir: &SessionDir) -> Option<Marker> {
        self.pending.mark(dir).ok()
    }

    /// Takes a session that was read on its way into the vault.
    pub(crate) fn add_prepared(&mut self, prepared: Prepared, marker: Option<Marker>) {
        self.batch_size += prepared.size();
        self.batch.push(prepared);
        self.markers.extend(marker);
    }

    /// Whether so much is gathered that it is to be put in.
    pub(crate) fn is_full(&self) -> bool {
        self.batch_size >= GATHERED || self.batch.len() >= MAX_BATCH
    }

    /// Forgets what was gathered, because it was not kept after all. It stays marked.
    pub(crate) fn discard(&mut self) {
        self.batch_size = 0;
        self.batch.clear();
        self.markers.clear();
    }

    /// Takes a session as it is in the vault.
    pub(crate) fn add_from_vault(&mut self, dir: &SessionDir, marker: Option<Marker>) {
        match self.open_index().and_then(|index| Ok((index.take(dir)?, index.is_in_place()))) {
            Ok((Some(prepared), _)) => self.add_prepared(prepared, marker),
            Ok((None, true)) => marker.into_iter().for_each(Marker::done),
            Ok((None, false)) => self.index = None,
            Err(error) => self.handle_error(error),
        }
    }

    /// Moves traffic that was recorded in a span of time to the sessions of the agents that asked, and puts both into
    /// the index. What fails is tried again after the next sync.
    pub(crate) fn attribute_traffic(
        &mut self,
        vault: &Vault,
        span: TimeSpan,
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

    /// Puts in what was gathered; tells what went wrong since the last time.
    pub(crate) fn flush(&mut self) -> Result<(), CommandError> {
        self.write_batch();
        self.index.iter().for_each(Index::settle);
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Puts in what was gathered.
    pub(crate) fn write_batch(&mut self) {
        self.batch_size = 0;
        let gathered = std::mem::take(&mut self.batch);
        let markers = std::mem::take(&mut self.markers);
        if gathered.is_empty() {
            return;
        }
        match self.open_index().and_then(|index| index.put(&gathered).map(|()| index.is_in_place()))
        {
            Ok(true) => markers.into_iter().for_each(Marker::done),
            // Another process builds a new index, from what is marked too.
            Ok(false) => self.index = None,
            Err(error) => self.handle_error(error),
        }
    }

    fn open_index(&mut self) -> Result<&Index, IndexError> {
        match self.index.take().filter(Index::is_in_place) {
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
        if error.is_damage() {
            // Everything is taken in anew by whoever asks next.
            match Index::anew(&self.store, Some(Healed::Damaged)) {
                Ok(index) => self.index = Some(index),
                Err(error) => self.failure = Some(error.into()),
            }
            return;
        }
        self.failure = Some(error.into());
    }
}
