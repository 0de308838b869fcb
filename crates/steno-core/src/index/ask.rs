//! Asks an index that may be behind, or damaged.

use std::path::Path;

use super::{Healed, Index, IndexError, Pass, Refreshed};
use crate::vault::Vault;

impl Index {
    /// The index of a store and what it answers, once `refresh` has brought it up to date. One that is damaged is
    /// built anew first.
    pub fn answering<T>(
        store: &Path,
        mut refresh: impl FnMut(&Index) -> Result<(), IndexError>,
        ask: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(Self, T), IndexError> {
        let index = Self::open(store)?;
        match refresh(&index).and_then(|()| ask(&index)) {
            Err(error) if error.is_damage() => {
                drop(index);
                let index = Self::anew(store, Some(Healed::Damaged))?;
                refresh(&index)?;
                let answer = ask(&index)?;
                Ok((index, answer))
            }
            answer => Ok((index, answer?)),
        }
    }

    /// Takes in what was kept since the index was last looked after; `boot` names the time since the machine was
    /// started, after which all sessions are compared once.
    pub fn catch_up(
        &self,
        vault: &Vault,
        boot: Option<&str>,
        pass: Pass<'_>,
    ) -> Result<Refreshed, IndexError> {
        boot.map_or(Ok(()), |boot| self.doubt(vault, boot))?;
        self.refresh(vault, pass)
    }
}
