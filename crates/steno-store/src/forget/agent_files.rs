//! The agents' own files that still hold what was forgotten.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::{ForgetError, PlannedRemoval};
use steno_agents::registry::database_schemas;
use steno_model::durable::{self, OnPath};
use steno_vault::forget::mask_text;
use steno_vault::tombstone::Tombstone;

/// What to do with the agents' own files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFileAction {
    /// Leave them as they are.
    Keep,
    /// Mask the forgotten texts in them.
    Scrub,
    /// Delete the files of forgotten sessions.
    Remove,
}

/// What an action did to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFileChange {
    /// Nothing.
    None,
    /// It masked texts.
    Masked,
    /// It deleted the file.
    Deleted,
}

/// A file of an agent that holds something to forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFile {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is a database, which Steno does not change.
    pub is_database: bool,
    /// Index of the removal that it belongs to.
    removal: usize,
}

impl AgentFile {
    /// The files on disk that hold what the removals are about. Call it before anything is removed.
    pub fn find_all(removals: &[PlannedRemoval]) -> Result<Vec<Self>, ForgetError> {
        let mut seen = BTreeSet::new();
        let mut files = Vec::new();
        for (index, removal) in removals.iter().enumerate() {
            let session = removal.session();
            // A damaged session has no known files.
            let originals = session.original_files(database_schemas(session.agent()));
            for original in originals.unwrap_or_default() {
                let path = original.path.clone();
                if !path.is_file() || !seen.insert(path.clone()) {
                    continue;
                }
                let is_database = original.is_database();
                let file = Self { path, is_database, removal: index };
                if is_database || file.mask(removal, None)? {
                    files.push(file);
                }
            }
        }
        Ok(files)
    }

    /// Applies an action. Returns what it did.
    pub fn apply(
        &self,
        action: AgentFileAction,
        removals: &[PlannedRemoval],
        tombstones: &[Tombstone],
    ) -> Result<AgentFileChange, ForgetError> {
        let removal = &removals[self.removal];
        match (action, removal) {
            _ if self.is_database => Ok(AgentFileChange::None),
            (AgentFileAction::Keep, _) | (AgentFileAction::Scrub, PlannedRemoval::Session(_)) => {
                Ok(AgentFileChange::None)
            }
            (AgentFileAction::Remove, PlannedRemoval::Session(_)) => {
                durable::remove_file(&self.path)?;
                Ok(AgentFileChange::Deleted)
            }
            (_, PlannedRemoval::Texts { session, .. }) => {
                let own = |one: &&Tombstone| {
                    one.session.split_once('/').is_some_and(|(agent, id)| {
                        (agent, id) == (session.agent(), session.id().as_str())
                    })
                };
                let tombstone = tombstones.iter().find(own);
                let is_masked = tombstone.map_or(Ok(false), |one| self.mask(removal, Some(one)))?;
                Ok(if is_masked { AgentFileChange::Masked } else { AgentFileChange::None })
            }
        }
    }

    /// Whether the file holds texts of a removal. With a tombstone, they are masked.
    fn mask(
        &self,
        removal: &PlannedRemoval,
        tombstone: Option<&Tombstone>,
    ) -> Result<bool, ForgetError> {
        let PlannedRemoval::Texts { session, finder } = removal else { return Ok(true) };
        let original = fs::read(&self.path).on("read", &self.path)?;
        let mut bytes = original.clone();
        // With all earlier masks, the file has the bytes that the vault has.
        session.mask_forgotten_texts(&mut bytes)?;
        let name = tombstone.map(Tombstone::short_id).unwrap_or_default();
        let count = mask_text(&mut bytes, &|unit| finder.find_parts(unit), &name);
        if tombstone.is_none() || bytes == original {
            return Ok(tombstone.is_none() && count > 0);
        }
        let permissions = fs::metadata(&self.path).on("read", &self.path)?.permissions();
        durable::write_atomic(&self.path, &bytes)?;
        fs::set_permissions(&self.path, permissions).on("write", &self.path)?;
        Ok(true)
    }
}
