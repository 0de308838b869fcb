//! Brings what is kept into the index: some sessions at a time, and never at the cost of keeping them.

use std::path::{Path, PathBuf};

use steno_core::Clock;
use steno_core::index::attribution::TimeSpan;
use steno_core::index::pending::{Marker, Pending};
use steno_core::index::{GATHERED, Healed, Index, IndexError, Prepared};
use steno_core::vault::{SessionDir, Vault};

use crate::error::CommandError;
use crate::scene::Scene;

/// Sessions that are gathered before they are put in.
const MOST: usize = 256;

/// The way of kept sessions into the index. What it cannot put in stays marked, and is taken in by the next search.
pub(crate) struct Indexer {
    store: PathBuf,
    pending: Pending,
    index: Option<Index>,
    gathered: Vec<Prepared>,
    markers: Vec<Marker>,
    size: usize,
    failure: Option<CommandError>,
}

impl Indexer {
    pub(crate) fn new(store: &Path) -> Self {
        Self {
            store: store.to_owned(),
            pending: Pending::new(store),
            index: None,
            gathered: Vec::new(),
            markers: Vec::new(),
            size: 0,
            failure: None,
        }
    }

    /// Marks a session before anything of it is kept. That it cannot be marked is no reason not to keep it.
    pub(crate) fn mark(&self, dir: &SessionDir) -> Option<Marker> {
        self.pending.mark(dir).ok()
    }

    /// Takes a session that was read on its way into the vault.
    pub(crate) fn add(&mut self, prepared: Prepared, marker: Option<Marker>) {
        self.size += prepared.size();
        self.gathered.push(prepared);
        self.markers.extend(marker);
    }

    /// Whether so much is gathered that it is to be put in.
    pub(crate) fn is_full(&self) -> bool {
        self.size >= GATHERED || self.gathered.len() >= MOST
    }

    /// Forgets what was gathered, because it was not kept after all. It stays marked.
    pub(crate) fn discard(&mut self) {
        self.size = 0;
        self.gathered.clear();
        self.markers.clear();
    }

    /// Takes a session as it is in the vault.
    pub(crate) fn add_kept(&mut self, dir: &SessionDir, marker: Option<Marker>) {
        match self.open().and_then(|index| Ok((index.take(dir)?, index.is_in_place()))) {
            Ok((Some(prepared), _)) => self.add(prepared, marker),
            Ok((None, true)) => marker.into_iter().for_each(Marker::done),
            Ok((None, false)) => self.index = None,
            Err(error) => self.failed(error),
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
        let changed = self.open()?.attribute_traffic(vault, span, &clock)?;
        if changed.is_empty() {
            return Ok(());
        }
        for dir in changed {
            let marker = self.mark(&dir);
            self.add_kept(&dir, marker);
        }
        self.flush()
    }

    /// Puts in what was gathered; tells what went wrong since the last time.
    pub(crate) fn flush(&mut self) -> Result<(), CommandError> {
        self.put();
        self.index.iter().for_each(Index::settle);
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Puts in what was gathered.
    pub(crate) fn put(&mut self) {
        self.size = 0;
        let gathered = std::mem::take(&mut self.gathered);
        let markers = std::mem::take(&mut self.markers);
        if gathered.is_empty() {
            return;
        }
        match self.open().and_then(|index| index.put(&gathered).map(|()| index.is_in_place())) {
            Ok(true) => markers.into_iter().for_each(Marker::done),
            // Another process builds a new index, from what is marked too.
            Ok(false) => self.index = None,
            Err(error) => self.failed(error),
        }
    }

    fn open(&mut self) -> Result<&Index, IndexError> {
        match self.index.take().filter(Index::is_in_place) {
            Some(index) => Ok(self.index.insert(index)),
            None => {
                let index = Index::open(&self.store)?;
                Scene::boot().map_or(Ok(()), |boot| index.note_first_boot(&boot))?;
                Ok(self.index.insert(index))
            }
        }
    }

    fn failed(&mut self, error: IndexError) {
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
