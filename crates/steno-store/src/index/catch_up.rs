//! Queries an index that may be out of date or corrupt.

use std::path::Path;

use super::{Index, IndexError, RebuildReason, RefreshProgress, RefreshSummary};
use steno_vault::Vault;

impl Index {
    /// Opens the index of a store, brings it up to date with `refresh`, and runs `ask`. Rebuilds a corrupt index and
    /// tries once more.
    pub fn open_and_query<T>(
        store: &Path,
        mut refresh: impl FnMut(&Index) -> Result<(), IndexError>,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(Self, T), IndexError> {
        let index = Self::open(store)?;
        match refresh(&index).and_then(|()| ask(&index)) {
            Err(error) if error.is_corruption() => {
                drop(index);
                let index = Self::rebuild(store, Some(RebuildReason::Damaged))?;
                refresh(&index)?;
                let answer = ask(&index)?;
                Ok((index, answer))
            }
            answer => Ok((index, answer?)),
        }
    }

    /// Indexes the sessions kept since the last refresh. `boot` identifies the current boot of the machine; all
    /// sessions are compared with the vault once per boot.
    pub fn catch_up(
        &self,
        vault: &Vault,
        boot: Option<&str>,
        pass: RefreshProgress<'_>,
    ) -> Result<RefreshSummary, IndexError> {
        boot.map_or(Ok(()), |boot| self.verify_after_boot(vault, boot))?;
        self.refresh(vault, pass)
    }
}
