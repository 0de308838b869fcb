//! Where a store is, and what its writers need to know about this machine.

use std::path::PathBuf;

use steno_model::Clock;
use steno_vault::Vault;

use crate::index::{
    EntryFilter, Index, IndexError, SearchHit, SearchOrder, SearchQuery, SearchRequest, StoreIndex,
};
use crate::store_error::StoreError;

/// A store: a folder with a vault and an index. It need not exist yet.
#[derive(Clone, Debug)]
pub struct StoreLocation {
    /// The folder.
    pub folder: PathBuf,
    /// An id of this start of the operating system. After a power failure, the index is compared with the vault.
    pub boot_id: Option<String>,
    /// The source of the current time.
    pub clock: Clock,
}

impl StoreLocation {
    /// A store in a folder, without a boot id.
    pub fn new(folder: impl Into<PathBuf>, clock: Clock) -> Self {
        Self { folder: folder.into(), boot_id: None, clock }
    }

    /// The vault.
    pub fn vault(&self) -> Vault {
        Vault::new(self.folder.join("vault"))
    }

    /// Finds the entries that best match a query, after indexing what is new.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<SearchHit>, StoreError> {
        let query = SearchQuery::parse(query).map_err(IndexError::from)?;
        let request = SearchRequest {
            query: &query,
            filter: EntryFilter::default(),
            order: SearchOrder::Relevance,
            limit,
            now: self.clock.now(),
        };
        let index = self.index();
        let mut refresh = |open: &Index| index.catch_up(open, &mut |_, _| ()).map(drop);
        Ok(index.query(&mut refresh, &|open| open.search(&request))?.value)
    }

    /// The index.
    pub fn index(&self) -> StoreIndex {
        StoreIndex::new(&self.folder, &self.vault(), self.boot_id.clone())
    }
}
