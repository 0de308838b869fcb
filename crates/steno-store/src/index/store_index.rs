//! Queries the index of a store, whether or not the store can be written.
//!
//! If it can be written, the index is brought up to date first. Otherwise the index is queried as it is. If there is no
//! readable index, one is built in memory from the vault.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Index, IndexError, RefreshProgress, RefreshSummary, WriteObstacle};
use crate::cost::charge::ChargeTable;
use steno_cipher::store_fs;
use steno_model::session::Session;
use steno_vault::Vault;

/// Numbers the indexes in this process's memory.
static NEXT_MEMORY_INDEX: AtomicU64 = AtomicU64::new(0);

/// The index of a store, opened for each query.
#[derive(Debug)]
pub struct StoreIndex {
    store: PathBuf,
    vault: Vault,
    /// Identifies the current boot of the machine.
    boot: Option<String>,
    /// The index in memory, once one was needed.
    in_memory: Mutex<Option<MemoryIndex>>,
}

#[derive(Debug)]
struct MemoryIndex {
    name: String,
    obstacle: WriteObstacle,
    _anchor: Index,
}

/// The result of a query.
#[derive(Debug)]
pub struct IndexQueryResult<T> {
    /// The index that was queried.
    pub index: Index,
    /// The result.
    pub value: T,
    /// Whether the result is complete.
    pub condition: IndexCondition,
}

/// How complete an index is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexCondition {
    /// It has all kept sessions.
    #[default]
    Current,
    /// It could not be brought up to date.
    Behind {
        /// The reason.
        obstacle: WriteObstacle,
        /// How many sessions are missing or incomplete; `None` if the comparison with the vault failed.
        missing: Option<usize>,
    },
    /// The store has no readable index, so one was built in memory.
    InMemory {
        /// Why none could be written.
        obstacle: WriteObstacle,
    },
}

impl IndexCondition {
    /// A notice for the user, or `None` if the index is current.
    pub fn notice(&self) -> Option<String> {
        Some(match self {
            Self::Current => return None,
            Self::Behind { obstacle, missing: Some(1) } => {
                format!("{obstacle}: 1 session is missing from the index or incomplete in it")
            }
            Self::Behind { obstacle, missing: Some(missing) } => format!(
                "{obstacle}: {missing} sessions are missing from the index or incomplete in it"
            ),
            Self::Behind { obstacle, missing: None } => {
                format!("{obstacle}: the index may be out of date")
            }
            Self::InMemory { obstacle } => {
                format!("{obstacle} and there is no usable index; built a temporary one in memory")
            }
        })
    }

    /// A hint for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Current => None,
            Self::Behind { obstacle, .. } | Self::InMemory { obstacle } => Some(match obstacle {
                WriteObstacle::ReadOnly => {
                    "run `steno list` where the store can be written to update its index"
                }
                WriteObstacle::DiskFull => "free some space; the next command updates the index",
            }),
        }
    }
}

impl StoreIndex {
    /// The index of the store at `store`. `boot` identifies the current boot of the machine.
    pub fn new(store: &Path, vault: &Vault, boot: Option<String>) -> Self {
        let (store, vault) = (store.to_owned(), vault.clone());
        Self { store, vault, boot, in_memory: Mutex::default() }
    }

    /// Indexes the sessions kept since the last refresh.
    pub fn catch_up(
        &self,
        index: &Index,
        pass: RefreshProgress<'_>,
    ) -> Result<RefreshSummary, IndexError> {
        index.catch_up(&self.vault, self.boot.as_deref(), pass)
    }

    /// Runs a query, after `refresh` has brought the index up to date if possible.
    pub fn query<T>(
        &self,
        refresh: &mut dyn FnMut(&Index) -> Result<(), IndexError>,
        ask: &dyn Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<IndexQueryResult<T>, IndexError> {
        if self.is_in_memory() {
            return self.query_in_memory(WriteObstacle::ReadOnly, refresh, ask);
        }
        match Index::open_and_query(&self.store, &mut *refresh, ask) {
            Ok((index, value)) => {
                Ok(IndexQueryResult { index, value, condition: IndexCondition::Current })
            }
            Err(error) => match error.write_obstacle() {
                Some(obstacle) => self.query_read_only(obstacle, refresh, ask),
                None => Err(error),
            },
        }
    }

    /// Runs a query without writing to the store, which `obstacle` prevents.
    pub fn query_read_only<T>(
        &self,
        obstacle: WriteObstacle,
        refresh: &mut dyn FnMut(&Index) -> Result<(), IndexError>,
        ask: &dyn Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<IndexQueryResult<T>, IndexError> {
        let opened = Index::open_read_only(&self.store);
        match opened.and_then(|index| Ok((ask(&index)?, index))) {
            Ok((value, index)) => {
                let missing = index.count_missing(&self.vault, self.boot.as_deref()).ok();
                let condition = match missing {
                    Some(0) => IndexCondition::Current,
                    missing => IndexCondition::Behind { obstacle, missing },
                };
                Ok(IndexQueryResult { index, value, condition })
            }
            Err(error) if error.is_corruption() || matches!(error, IndexError::Absent(_)) => {
                self.query_in_memory(obstacle, refresh, ask)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the index as it is, without a refresh.
    pub fn open(&self) -> Result<Index, IndexError> {
        let opened = match Index::open(&self.store) {
            Err(error) if error.write_obstacle().is_some() => Index::open_read_only(&self.store),
            other => other,
        };
        match opened {
            // The lock waits for a thread that builds the index in memory.
            Err(IndexError::Absent(path)) => match &*self.lock_memory() {
                Some(memory) => Index::open_in_memory(&memory.name, &self.store),
                None => Err(IndexError::Absent(path)),
            },
            other => other,
        }
    }

    /// The charges of a session, if there is an index that has exactly this number of its entries.
    pub fn load_session_charges(&self, session: &Session) -> Option<ChargeTable> {
        if !store_fs::exists(&self.store.join("index.db")) {
            return None;
        }
        self.open().ok()?.load_session_charges(session).ok().flatten()
    }

    /// Whether queries use an index in memory, because the store has none.
    pub fn is_in_memory(&self) -> bool {
        self.lock_memory().is_some()
    }

    fn query_in_memory<T>(
        &self,
        obstacle: WriteObstacle,
        refresh: &mut dyn FnMut(&Index) -> Result<(), IndexError>,
        ask: &dyn Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<IndexQueryResult<T>, IndexError> {
        let mut memory = self.lock_memory();
        let (name, obstacle) = match &*memory {
            Some(memory) => (memory.name.clone(), memory.obstacle),
            None => {
                let number = NEXT_MEMORY_INDEX.fetch_add(1, Ordering::Relaxed);
                (format!("steno-index-{number}"), obstacle)
            }
        };
        let index = Index::open_in_memory(&name, &self.store)?;
        refresh(&index).map_err(|error| match error {
            IndexError::Database { .. } if error.write_obstacle().is_some() => {
                IndexError::TooLarge { store: self.store.clone(), obstacle }
            }
            error => error,
        })?;
        if memory.is_none() {
            let _anchor = Index::open_in_memory(&name, &self.store)?;
            *memory = Some(MemoryIndex { name, obstacle, _anchor });
        }
        drop(memory);
        let value = ask(&index)?;
        Ok(IndexQueryResult { index, value, condition: IndexCondition::InMemory { obstacle } })
    }

    fn lock_memory(&self) -> std::sync::MutexGuard<'_, Option<MemoryIndex>> {
        self.in_memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
