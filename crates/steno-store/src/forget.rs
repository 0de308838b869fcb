//! Forgets sessions and texts: removes them from the vault, and everything derived from them.
//!
//! [`SessionForgetter`] writes the tombstones first. From then on the removal is decided: a process that is killed leaves
//! a tombstone without an end, and [`SessionForgetter::finish_interrupted`] of the next process completes it.
//!
//! # The index
//! Texts in the index are shared by sessions and compressed together, and SQLite keeps deleted bytes in free pages and
//! in its log. So the index is deleted and rebuilt from the vault, which has nothing of what was forgotten.

mod agent_files;
mod retention;
#[cfg(test)]
mod tests;
mod text_finder;

use std::collections::HashSet;

pub use self::agent_files::{AgentFile, AgentFileAction, AgentFileChange};
pub use self::retention::RetentionRules;
pub use self::text_finder::ForgottenTextFinder;
use crate::StoreLocation;
use crate::index::Index;
use crate::store_error::StoreError;
use crate::transcript::{ReadTranscript, traffic_owner};
use steno_cipher::store_fs;
use steno_model::SessionId;
use steno_model::durable;
use steno_vault::forget::{ForgetRequest, MaskPlan};
use steno_vault::tombstone::{ForgottenScope, Tombstone};
use steno_vault::{SessionDir, Vault};

/// Files that are derived from sessions and made again when they are missing.
const CACHE_FILES: [&str; 1] = ["projects.json"];

/// The list of files that were synced. It has a hash over the rows of each session in a database.
const SEEN_FILE: &str = "seen.json";

/// Forgets sessions of one store.
#[derive(Debug)]
pub struct SessionForgetter {
    location: StoreLocation,
    vault: Vault,
}

/// Why a session cannot be forgotten now.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// A recorder has the session open.
    #[error("the session is being recorded: {0}")]
    Recording(SessionId),
    /// A damaged recording cannot be sealed, and so not be masked.
    #[error("the recording of the session is damaged: {0}")]
    Unsealed(SessionId),
    /// The session's file holds other sessions too.
    #[error("the file of session {session} also holds: {}", others.join(", "))]
    Shared {
        /// The session.
        session: SessionId,
        /// The other sessions.
        others: Vec<String>,
    },
    /// The text of an entry was not found as a whole.
    #[error("the text of entry {number} is not kept in one piece: {session}")]
    Scattered {
        /// The session.
        session: SessionId,
        /// The entry.
        number: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<durable::FileError> for ForgetError {
    fn from(error: durable::FileError) -> Self {
        Self::Store(error.into())
    }
}

/// What is removed of one session.
#[derive(Clone, Debug)]
pub enum PlannedRemoval {
    /// The whole session.
    Session(SessionDir),
    /// Texts in it.
    Texts {
        /// The session.
        session: SessionDir,
        /// Finds the texts.
        finder: ForgottenTextFinder,
    },
}

impl PlannedRemoval {
    /// The session.
    pub fn session(&self) -> &SessionDir {
        match self {
            Self::Session(session) | Self::Texts { session, .. } => session,
        }
    }
}

impl SessionForgetter {
    /// Opens no file.
    pub fn new(location: &StoreLocation) -> Self {
        Self { location: location.clone(), vault: location.vault() }
    }

    /// Checks that all removals are possible. Changes nothing. Fails if a session is being recorded, or if its file
    /// holds sessions that are to stay.
    pub fn check_removals(&self, removals: &[PlannedRemoval]) -> Result<(), ForgetError> {
        let whole: HashSet<_> = removals
            .iter()
            .filter(|removal| matches!(removal, PlannedRemoval::Session(_)))
            .map(|removal| removal.session().path().to_owned())
            .collect();
        for removal in removals {
            let session = removal.session();
            if session.is_being_recorded()? {
                return Err(ForgetError::Recording(session.id().clone()));
            }
            if !whole.contains(session.path()) || !session.shares_files()? {
                continue;
            }
            let others = self.sharing_sessions(session)?.into_iter();
            let others = others.filter(|other| !whole.contains(other.path()));
            let others: Vec<_> = others.map(|other| other.id().to_string()).collect();
            if !others.is_empty() {
                return Err(ForgetError::Shared { session: session.id().clone(), others });
            }
        }
        Ok(())
    }

    /// The other sessions that are kept in the same file as this one.
    fn sharing_sessions(&self, session: &SessionDir) -> Result<Vec<SessionDir>, ForgetError> {
        let holder_of = |dir: &SessionDir| -> Result<SessionDir, ForgetError> {
            Ok(dir.holder()?.unwrap_or_else(|| dir.clone()))
        };
        let holder = holder_of(session)?;
        let mut sharing = Vec::new();
        for other in self.vault.list_agent_sessions(session.agent())? {
            if other != *session && other.shares_files()? && holder_of(&other)? == holder {
                sharing.push(other);
            }
        }
        Ok(sharing)
    }

    /// Adds the recordings whose traffic was all moved to one of these sessions: they hold the same texts.
    pub fn add_moved_recordings(
        &self,
        removals: &mut Vec<PlannedRemoval>,
    ) -> Result<(), ForgetError> {
        let whole: HashSet<_> = removals
            .iter()
            .filter(|removal| matches!(removal, PlannedRemoval::Session(_)))
            .map(|removal| removal.session().id().clone())
            .collect();
        if whole.is_empty() {
            return Ok(());
        }
        for session in self.vault.list_sessions()? {
            let is_added = removals.iter().any(|removal| *removal.session() == session);
            if !is_added && traffic_owner(&session)?.is_some_and(|owner| whole.contains(&owner)) {
                removals.push(PlannedRemoval::Session(session));
            }
        }
        Ok(())
    }

    /// The parts that a removal of texts masks. Changes nothing.
    pub fn plan_texts(
        &self,
        session: &SessionDir,
        finder: &ForgottenTextFinder,
    ) -> Result<MaskPlan, ForgetError> {
        Ok(session.plan_masks(&|unit| finder.find_parts(unit))?)
    }

    /// Forgets. Everything is removed when this returns, except from the index, which is empty and must be filled
    /// again. Returns the tombstones.
    pub fn forget(
        &self,
        request: &ForgetRequest,
        removals: &[PlannedRemoval],
    ) -> Result<Vec<Tombstone>, ForgetError> {
        self.finish_interrupted()?;
        self.check_removals(removals)?;
        let mut tombstones = Vec::new();
        for removal in removals {
            match removal {
                PlannedRemoval::Session(session) => {
                    tombstones.push(session.tombstone_for_all(request)?);
                }
                PlannedRemoval::Texts { session, finder } => {
                    tombstones.extend(self.text_tombstone(request, session, finder)?);
                }
            }
        }
        self.vault.add_tombstones(&tombstones)?;
        self.finish_interrupted()?;
        Ok(tombstones)
    }

    fn text_tombstone(
        &self,
        request: &ForgetRequest,
        session: &SessionDir,
        finder: &ForgottenTextFinder,
    ) -> Result<Option<Tombstone>, ForgetError> {
        if session.has_live_logs()? {
            session.seal_live_logs()?;
        }
        let entries = finder.entry_numbers();
        // A recorded stream has the text of an entry in pieces.
        if let Some(number) = entries.first().copied()
            && session.is_recorded()?
            && session.is_wire_recording()?
        {
            return Err(ForgetError::Scattered { session: session.id().clone(), number });
        }
        let plan = self.plan_texts(session, finder)?;
        if plan.has_live_parts() {
            return Err(ForgetError::Unsealed(session.id().clone()));
        }
        if let Some(number) = finder.unfound_entry() {
            return Err(ForgetError::Scattered { session: session.id().clone(), number });
        }
        Ok(session.tombstone_for_parts(request, &plan, entries)?)
    }

    /// The sessions in which a text is still found after it was forgotten: in pieces of a recorded stream, in keys of
    /// fields, or in names that hold records together.
    pub fn find_leftovers(
        &self,
        removals: &[PlannedRemoval],
    ) -> Result<Vec<SessionId>, ForgetError> {
        let mut left = Vec::new();
        for removal in removals {
            let PlannedRemoval::Texts { session, finder } = removal else { continue };
            let transcript = session.read_transcript().map_err(StoreError::from)?;
            if transcript.entries.iter().any(|entry| finder.matches_entry(entry)) {
                left.push(session.id().clone());
            }
        }
        Ok(left)
    }

    /// Completes removals that were interrupted. Returns their tombstones.
    pub fn finish_interrupted(&self) -> Result<Vec<Tombstone>, StoreError> {
        let unfinished = self.vault.unfinished_removals()?;
        if unfinished.is_empty() {
            return Ok(unfinished);
        }
        for tombstone in &unfinished {
            self.vault.remove_forgotten(tombstone)?;
        }
        self.remove_derived(&unfinished)?;
        for tombstone in &unfinished {
            self.vault.complete_removal(tombstone, self.location.clock.now())?;
        }
        Ok(unfinished)
    }

    /// Removes the index and the caches.
    fn remove_derived(&self, tombstones: &[Tombstone]) -> Result<(), StoreError> {
        let store = &self.location.folder;
        if Index::has_files(store) {
            Index::rebuild(store, None)?;
        }
        for name in CACHE_FILES {
            store_fs::remove_file(&store.join(name))?;
        }
        if tombstones.iter().any(has_database_rows) {
            store_fs::remove_file(&store.join(SEEN_FILE))?;
        }
        Ok(())
    }
}

/// Whether a removal was about rows of a database.
fn has_database_rows(tombstone: &Tombstone) -> bool {
    let is_rows = |file: &str| file.contains(".rows.jsonl");
    match &tombstone.scope {
        ForgottenScope::Session(files) => files.iter().any(|file| is_rows(&file.file)),
        ForgottenScope::Parts(parts) => parts.files.iter().any(|file| is_rows(&file.file)),
    }
}
