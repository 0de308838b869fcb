//! Imports sessions from session files into the vault.

pub mod file_stamp;
mod index_updater;
pub mod indexer;
pub mod known_projects;
mod session_destination;
pub(crate) mod session_reading;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use crate::forget::SessionForgetter;
use crate::format::FoundSession;
use crate::index::attribution::MillisecondSpan;
use crate::index::pending_sessions::PendingMarker;
use jiff::Timestamp as Instant;
use steno_agents::registry;
use steno_model::durable::{self, OnPath};
use steno_model::{Problem, ProblemList, Session, SessionId};
use steno_vault::commit::VaultCommit;
use steno_vault::{AgentName, SessionBundle, SessionDir, Vault};

use self::file_stamp::{FileStamp, file_stamp};
use self::indexer::Indexer;
use self::known_projects::KnownProjects;
use self::session_destination::SessionDestination;
use self::session_reading::{ParsedFiles, ReadSession, file_stamps, is_large_session};
use crate::store_error::StoreError;
use crate::store_location::StoreLocation;

/// Maximum number of sessions per commit.
const MAX_BATCH: usize = 128;

/// Imports sessions, each under its own id.
pub struct SessionImporter {
    vault: Vault,
    /// Agent of each session in the vault. Agents are shared, as there may be very many sessions.
    known_agents: HashMap<SessionId, Arc<AgentName>>,
    /// Agent of the last session; many in a row have the same.
    last_agent: Option<Arc<AgentName>>,
    /// Imported files with several sessions, each with its stamp and the session that holds it.
    shared_files: HashMap<PathBuf, (Option<FileStamp>, SessionDir)>,
    projects: KnownProjects,
    /// Uncommitted writes, and their sessions.
    vault_commit: VaultCommit,
    batch: Vec<SessionId>,
    /// Sessions with a failed commit.
    failed_sessions: HashSet<SessionId>,
    indexer: Indexer,
    /// Whether sessions are indexed at once, rather than by the next search.
    pub is_indexing: bool,
    /// Time of the earliest entry imported since traffic was last attributed.
    first_entry: Option<Instant>,
    /// Lock for assigning session ids; opened at the first import.
    name_lock: Option<File>,
}

/// An imported session.
pub struct ImportedSession {
    /// Its folder in the vault.
    pub dir: SessionDir,
    /// Title, or else the start of its first prompt.
    pub title: Option<String>,
    /// Number of entries.
    pub entries: u64,
    /// New bytes.
    pub bytes_added: u64,
    /// Bytes in the vault.
    pub bytes_stored: u64,
    /// Records that could not be parsed.
    pub problems: ProblemList,
    /// Damage in the vault because of which new generations were started.
    pub damage: Vec<Problem>,
}

impl SessionImporter {
    /// Lists the sessions of the vault, after completing a removal that was interrupted.
    pub fn new(location: &StoreLocation) -> Result<Self, StoreError> {
        // If it fails, nothing that was forgotten is kept again all the same, and `verify` reports it.
        let _ = SessionForgetter::new(location).finish_interrupted();
        let vault = location.vault();
        let mut known_agents = HashMap::new();
        for agent in
            vault.list_agents()?.iter().filter_map(|agent| agent.parse().ok()).map(Arc::new)
        {
            vault.for_each_session_id(&agent, &mut |id| {
                drop(known_agents.insert(id, Arc::clone(&agent)))
            })?;
        }
        let projects = KnownProjects::load(durable::parent_folder(vault.root()));
        let indexer = Indexer::new(location);
        let vault_commit = vault.begin_commit();
        Ok(Self {
            vault,
            known_agents,
            last_agent: None,
            shared_files: HashMap::new(),
            projects,
            vault_commit,
            batch: Vec::new(),
            failed_sessions: HashSet::new(),
            indexer,
            is_indexing: true,
            first_entry: None,
            name_lock: None,
        })
    }

    /// Commits all writes: they are durable when this returns, and are indexed next. After an error, none of them
    /// counts as kept: [`SessionImporter::take_failed`] returns the failed sessions, and nothing of them is indexed.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        let batch = std::mem::take(&mut self.batch);
        if let Err(error) = self.vault_commit.finish() {
            self.failed_sessions.extend(batch);
            self.indexer.discard();
            return Err(error.into());
        }
        Ok(())
    }

    /// Returns the sessions with a failed commit since the last call.
    pub fn take_failed(&mut self) -> HashSet<SessionId> {
        std::mem::take(&mut self.failed_sessions)
    }

    /// Waits until no other process assigns session ids.
    fn lock_names(&mut self) -> Result<(), StoreError> {
        let lock = match self.name_lock.take() {
            Some(lock) => lock,
            None => {
                let path = self.vault.root().with_file_name("keeping.lock");
                durable::create_private_dir(durable::parent_folder(&path))?;
                durable::remove_leftovers(durable::parent_folder(&path));
                let mut options = durable::private_options();
                options.create(true).append(true).open(&path).on("open", &path)?
            }
        };
        if lock.try_lock().is_err() {
            // The process with the lock may wait for one of our sessions.
            self.commit()?;
            lock.lock()?;
        }
        self.name_lock = Some(lock);
        Ok(())
    }

    fn unlock_names(&self) -> Result<(), StoreError> {
        Ok(self.name_lock.as_ref().map_or(Ok(()), File::unlock)?)
    }

    /// Returns whether the vault has a session with this id.
    pub fn has_session(&self, id: &SessionId) -> bool {
        self.known_agents.contains_key(id)
    }

    /// Finds the session with this id, of any agent.
    fn known_session(&self, id: &SessionId) -> Option<SessionDir> {
        self.known_agents.get(id).map(|agent| self.vault.session_dir(agent, id))
    }

    /// Remembers that the vault has the session.
    fn remember_session(&mut self, dir: &SessionDir) -> Result<(), StoreError> {
        if self.known_agents.get(dir.id()).is_none_or(|agent| agent.as_str() != dir.agent()) {
            let same = self.last_agent.take().filter(|agent| agent.as_str() == dir.agent());
            let agent = match same {
                Some(agent) => agent,
                None => Arc::new(dir.agent().parse()?),
            };
            self.last_agent = Some(Arc::clone(&agent));
            self.known_agents.insert(dir.id().clone(), agent);
        }
        Ok(())
    }

    /// Returns the session imported from its own files, if `found` is only a summary in another file.
    pub fn find_better_copy(&self, found: &FoundSession) -> Option<SessionDir> {
        let native_id = found.bundle.key.as_deref().filter(|_| found.bundle.has_only_excerpts())?;
        let kept = self.known_session(&SessionId::for_native(found.reader.agent, native_id))?;
        Some(kept).filter(|kept| kept.has_only_excerpts().is_ok_and(|is_told| !is_told))
    }

    /// Imports what is new of a session. It is durable once [`SessionImporter::commit`] or [`SessionImporter::flush`]
    /// has returned.
    pub fn import(&mut self, found: &FoundSession) -> Result<ImportedSession, StoreError> {
        self.import_parsed(found, None)
    }

    /// As [`SessionImporter::import`], for a session that may be parsed already.
    pub(crate) fn import_parsed(
        &mut self,
        found: &FoundSession,
        parsed: Option<ParsedFiles>,
    ) -> Result<ImportedSession, StoreError> {
        let ParsedFiles { stamps, read } = match parsed {
            Some(parsed) => parsed,
            None => self.parse_files(found)?,
        };
        let ReadSession { session, entries, first_entry, prompt, draft, problems } = read?;
        self.first_entry = self.first_entry.into_iter().chain(first_entry).min();
        // Two processes must not assign the same id to two sessions.
        self.lock_names()?;
        let written = self.write_session(&session, &found.bundle);
        if let Some(folder) = session.project.as_ref().filter(|_| written.is_ok()) {
            // This cache is optional; the import does not depend on it.
            let _ = self.projects.note_repository(folder.as_ref());
        }
        self.unlock_names()?;
        let WrittenSession { dir, marker, damage, bytes_added, is_new, is_more } = written?;
        let bytes_stored = dir.stored_size()?;
        self.remember_session(&dir)?;
        let title = session.title.clone().or(prompt);
        // The vault has a damaged session only in part, even if its files are whole.
        let is_damaged = !damage.is_empty() || (!is_new && self.indexer.has_damage(&dir));
        // The vault has masks in place of forgotten texts.
        let is_masked = self.vault.has_forgotten_texts()?;
        let is_draft_current =
            file_stamps(&found.bundle) == stamps && !is_more && !is_damaged && !is_masked;
        if let Some(draft) = draft.filter(|_| is_draft_current) {
            let named = Session { id: dir.id().clone(), ..session };
            let named = draft.complete_session(named);
            self.indexer.add_prepared(draft.finish(named, Some(bytes_stored)), marker);
        } else if self.is_indexing {
            // More was written than parsed, the vault has more or less than the files, or the session is too large to
            // hold in memory.
            self.commit()?;
            self.indexer.add_from_vault(&dir, marker);
        }
        self.reindex_older_history(found)?;
        self.commit_full_batch()?;
        Ok(ImportedSession { dir, title, entries, bytes_added, bytes_stored, problems, damage })
    }

    /// Parses a session, after making room for a large one.
    fn parse_files(&mut self, found: &FoundSession) -> Result<ParsedFiles, StoreError> {
        let stamps = file_stamps(&found.bundle);
        if is_large_session(&stamps) {
            self.commit()?;
            self.indexer.write_batch();
        }
        Ok(ParsedFiles { stamps, read: ReadSession::parse(found, self.is_indexing) })
    }

    /// Indexes a session again that an earlier version imported as one, since its parts are now separate sessions.
    fn reindex_older_history(&mut self, found: &FoundSession) -> Result<(), StoreError> {
        let agent = registry::agent_named(found.reader.agent).filter(|_| self.is_indexing);
        let earlier_id = agent.and_then(|agent| agent.earlier_session_id);
        let history = earlier_id.and_then(|id| self.known_session(&id(&found.bundle.root)));
        let Some(history) = history else { return Ok(()) };
        self.commit()?;
        let marker = self.indexer.mark(&history);
        self.indexer.add_from_vault(&history, marker);
        Ok(())
    }

    /// Commits and indexes a full batch.
    fn commit_full_batch(&mut self) -> Result<(), StoreError> {
        if self.indexer.is_full() || self.vault_commit.session_count() >= MAX_BATCH {
            self.commit()?;
            self.indexer.write_batch();
        }
        Ok(())
    }

    /// Commits all writes and indexes them; what fails is indexed by the next search.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.commit()?;
        self.indexer.flush()
    }

    /// Moves traffic to the imported sessions it belongs to. `since` skips recordings that ended before.
    pub fn attribute_traffic(&mut self, since: Option<Instant>) -> Result<(), StoreError> {
        let first = self.first_entry.take().filter(|_| self.is_indexing);
        let Some(from) = first.max(first.and(since)) else { return Ok(()) };
        let span = MillisecondSpan { from: from.as_millisecond(), to: i64::MAX };
        self.indexer.attribute_traffic(&self.vault, span)
    }

    /// Writes the files of a session to the vault, at the session's destination.
    fn write_session(
        &mut self,
        session: &Session,
        bundle: &SessionBundle,
    ) -> Result<WrittenSession, StoreError> {
        let SessionDestination { dir, is_complete } =
            self.find_destination(&session.agent, &session.id, bundle)?;
        if dir.is_forgotten()? {
            return Err(StoreError::Forgotten(dir.id().clone()));
        }
        let marker = self.indexer.mark(&dir);
        let damage = dir.find_damaged_beginnings()?;
        let is_new = dir.is_empty()?;
        let bytes_added = if is_complete { 0 } else { self.write_files(&dir, bundle)? };
        self.batch.push(dir.id().clone());
        if !is_new {
            // Comparing with the files needs the list of committed files; and a session that is being recorded must
            // not wait for others.
            self.commit()?;
        }
        let is_more = is_complete || dir.has_more_than(bundle.main_files().len())?;
        Ok(WrittenSession { dir, marker, damage, bytes_added, is_new, is_more })
    }

    /// Writes the session's files. A file with several sessions is stored with the first of them.
    fn write_files(&mut self, dir: &SessionDir, bundle: &SessionBundle) -> Result<u64, StoreError> {
        let Some(file) = bundle.shared_file() else {
            return Ok(dir.keep_session_in(bundle, &mut self.vault_commit)?);
        };
        let now = file_stamp(file.path());
        if let Some((then, holder)) = self.shared_files.get(file.path())
            && *then == now
            && holder != dir
        {
            dir.point_to_holder(holder, bundle, &mut self.vault_commit)?;
            return Ok(0);
        }
        let holder = dir.holder()?.filter(SessionDir::exists);
        let grown = match &holder {
            Some(holder) => holder.grow_shared_file(&file, &mut self.vault_commit)?,
            None => None,
        };
        let (holder, added) = match (holder, grown) {
            (Some(holder), Some(added)) => {
                dir.point_to_holder(&holder, bundle, &mut self.vault_commit)?;
                (holder, added)
            }
            _ => (dir.clone(), dir.keep_session_in(bundle, &mut self.vault_commit)?),
        };
        self.shared_files.insert(file.path().to_owned(), (now, holder));
        Ok(added)
    }
}

/// A session with written files.
struct WrittenSession {
    dir: SessionDir,
    marker: Option<PendingMarker>,
    damage: Vec<Problem>,
    /// New bytes.
    bytes_added: u64,
    /// Whether the vault did not have the session before.
    is_new: bool,
    /// Whether the vault has more than the files.
    is_more: bool,
}
