//! Asks the index of a store, whether or not the store can be written.
//!
//! Where it can, the index is brought up to date first. Where it cannot, the index answers as it is. Where there is
//! none to read, one is built in memory from the vault.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Index, IndexError, Pass, Refreshed, WriteObstacle};
use crate::vault::Vault;

/// Tells apart the indexes that this process has in memory.
static MEMORY_INDEXES: AtomicU64 = AtomicU64::new(0);

/// The index of a store, to be asked.
#[derive(Debug)]
pub struct IndexSource {
    store: PathBuf,
    vault: Vault,
    /// Names the time since the machine was started.
    boot: Option<String>,
    /// Keeps the index in memory alive, once one had to be built.
    in_memory: Mutex<Option<MemoryIndex>>,
}

#[derive(Debug)]
struct MemoryIndex {
    name: String,
    obstacle: WriteObstacle,
    _anchor: Index,
}

/// What an index answered.
#[derive(Debug)]
pub struct IndexAnswer<T> {
    /// The index that was asked.
    pub index: Index,
    /// Its answer.
    pub value: T,
    /// How far the answer can be trusted to be complete.
    pub condition: IndexCondition,
}

/// How complete an index is that was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexCondition {
    /// It has everything that is kept.
    #[default]
    Current,
    /// It could not be brought up to date.
    Behind {
        /// Why.
        obstacle: WriteObstacle,
        /// How many sessions it lacks, in whole or in part; nothing if the vault cannot be compared with it.
        missing: Option<usize>,
    },
    /// The store has no index that can be read, so one was built in memory.
    InMemory {
        /// Why none could be written.
        obstacle: WriteObstacle,
    },
}

impl IndexCondition {
    /// What a person should know about the answer; nothing when it is complete and came at once.
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

    /// What to do about it.
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

impl IndexSource {
    /// The index of the store at `store`. `boot` names the time since the machine was started.
    pub fn new(store: &Path, vault: &Vault, boot: Option<String>) -> Self {
        let (store, vault) = (store.to_owned(), vault.clone());
        Self { store, vault, boot, in_memory: Mutex::default() }
    }

    /// Takes into `index` what was kept since it was last brought up to date.
    pub fn catch_up(&self, index: &Index, pass: Pass<'_>) -> Result<Refreshed, IndexError> {
        index.catch_up(&self.vault, self.boot.as_deref(), pass)
    }

    /// Asks the index, after `refresh` has brought it up to date where that is possible.
    pub fn ask<T>(
        &self,
        refresh: &mut dyn FnMut(&Index) -> Result<(), IndexError>,
        ask: &dyn Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<IndexAnswer<T>, IndexError> {
        if self.is_in_memory() {
            return self.ask_in_memory(WriteObstacle::ReadOnly, refresh, ask);
        }
        match Index::answering(&self.store, &mut *refresh, ask) {
            Ok((index, value)) => {
                Ok(IndexAnswer { index, value, condition: IndexCondition::Current })
            }
            Err(error) => match error.write_obstacle() {
                Some(obstacle) => self.ask_as_is(obstacle, refresh, ask),
                None => Err(error),
            },
        }
    }

    /// Asks the index without writing to the store, because `obstacle` prevents that.
    pub fn ask_as_is<T>(
        &self,
        obstacle: WriteObstacle,
        refresh: &mut dyn FnMut(&Index) -> Result<(), IndexError>,
        ask: &dyn Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<IndexAnswer<T>, IndexError> {
        let opened = Index::open_read_only(&self.store);
        match opened.and_then(|index| Ok((ask(&index)?, index))) {
            Ok((value, index)) => {
                let missing = index.count_missing(&self.vault, self.boot.as_deref()).ok();
                let condition = match missing {
                    Some(0) => IndexCondition::Current,
                    missing => IndexCondition::Behind { obstacle, missing },
                };
                Ok(IndexAnswer { index, value, condition })
            }
            Err(error) if error.is_damage() || matches!(error, IndexError::Absent(_)) => {
                self.ask_in_memory(obstacle, refresh, ask)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the index as it is now; it is not brought up to date.
    pub fn open(&self) -> Result<Index, IndexError> {
        let opened = match Index::open(&self.store) {
            Err(error) if error.write_obstacle().is_some() => Index::open_read_only(&self.store),
            other => other,
        };
        match opened {
            // Waits for whoever builds the one in memory.
            Err(IndexError::Absent(path)) => match &*self.lock_memory() {
                Some(memory) => Index::open_in_memory(&memory.name, &self.store),
                None => Err(IndexError::Absent(path)),
            },
            other => other,
        }
    }

    /// Whether the store has no index and one in memory is asked instead.
    pub fn is_in_memory(&self) -> bool {
        self.lock_memory().is_some()
    }

    fn ask_in_memory<T>(
        &self,
        obstacle: WriteObstacle,
        refresh: &mut dyn FnMut(&Index) -> Result<(), IndexError>,
        ask: &dyn Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<IndexAnswer<T>, IndexError> {
        let mut memory = self.lock_memory();
        let (name, obstacle) = match &*memory {
            Some(memory) => (memory.name.clone(), memory.obstacle),
            None => {
                let number = MEMORY_INDEXES.fetch_add(1, Ordering::Relaxed);
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
        Ok(IndexAnswer { index, value, condition: IndexCondition::InMemory { obstacle } })
    }

    fn lock_memory(&self) -> std::sync::MutexGuard<'_, Option<MemoryIndex>> {
        self.in_memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
