//! Finds changed session files on this machine and imports them; shared by `sync`, `watch` and hooks.

mod files;
mod newest_sessions;
mod read_ahead;
pub mod seen_files;
pub mod session_roots;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::format::{self, FileListing, FoundSession, nearby_sessions};
use jiff::{SignedDuration, Timestamp as Instant};
use serde::Serialize;
use steno_model::durable::{self, FileError};
use steno_model::{ProblemList, SessionId};
use steno_vault::{SessionBundle, SessionFile};

use self::files::{
    database_session_name, fingerprint_stamp, folders_to_read, is_part_of_database,
    is_shared_memory, session_files,
};
pub use self::files::{last_modified, write_ahead_log};
use self::read_ahead::import_with_read_ahead;
use self::seen_files::SeenFiles;
pub use self::session_roots::{SessionRoots, existing_place, resolve_links};
use crate::keep::file_stamp::{FileStamp, file_stamp};
use crate::keep::session_reading::ParsedFiles;
use crate::keep::{ImportedSession, SessionImporter};
use crate::store_error::StoreError;
use crate::store_location::StoreLocation;

/// A recording is compared with changed sessions for this long after its end.
const RECENT_DURATION: SignedDuration = SignedDuration::from_mins(10);

/// Result for one agent.
#[derive(Debug, Default, Serialize)]
pub struct AgentSyncRow {
    /// The agent's name.
    pub agent: String,
    /// Sessions with something new.
    pub sessions: u64,
    /// Their entries.
    pub entries: u64,
    /// New bytes.
    pub bytes_new: u64,
    /// Size of these sessions in the vault.
    pub bytes_kept: u64,
    /// Number of records that could not be parsed, and of files that could not be read.
    pub problems: u64,
    /// Records that could not be parsed, with their locations.
    #[serde(skip)]
    pub problem_list: ProblemList,
}

/// Called with the path of each session before it is imported, and the size of its changed files. The sessions of a
/// database have the size 0, as they share its file.
pub type OnSession = Box<dyn FnMut(&Path, u64)>;

/// Imports changed sessions.
pub struct SessionSyncer {
    location: StoreLocation,
    importer: SessionImporter,
    /// Files that are unchanged since their import.
    pub seen: SeenFiles,
    /// What was imported, per agent.
    pub rows: BTreeMap<String, AgentSyncRow>,
    on_session: OnSession,
    /// What could not be imported.
    pub failures: Vec<StoreError>,
    /// Imported sessions, if the caller wants each reported.
    pub synced: Option<Vec<SyncedSession>>,
    /// Number of lookups of a session by one file.
    pub lookup_count: u64,
    /// Only count what would be imported.
    pub dry_run: bool,
    /// Set to stop before the next session.
    pub stop: Arc<AtomicBool>,
    /// Files without a session, with their stamps.
    skipped_files: HashMap<PathBuf, FileStamp>,
    /// Sessions of each imported file, until the file is recorded as seen.
    sessions_by_file: HashMap<PathBuf, Vec<SessionId>>,
    /// Our own store, which is never imported.
    store: PathBuf,
}

/// Changed files, and folders that could not be listed.
#[derive(Default)]
pub struct ChangedFiles {
    /// The changed files.
    pub changed: HashMap<PathBuf, FileStamp>,
    /// Folders that could not be listed.
    pub failures: Vec<FileError>,
}

/// A session with new bytes.
#[derive(Debug, Serialize)]
pub struct SyncedSession {
    /// The agent's name.
    pub agent: &'static str,
    /// The session's id.
    pub session: SessionId,
    /// Title, or else the start of its first prompt.
    pub title: Option<String>,
    /// Its file or folder.
    pub path: PathBuf,
    /// Number of entries.
    pub entries: u64,
    /// New bytes.
    pub bytes_new: u64,
    /// Number of records that could not be parsed.
    pub problems: u64,
}

/// Result of a sync.
pub struct SyncResult {
    /// What could not be imported.
    pub failures: Vec<StoreError>,
    /// What was imported, per agent.
    pub rows: BTreeMap<String, AgentSyncRow>,
}

impl SessionSyncer {
    /// Returns the result and frees the caches.
    pub fn finish(self) -> SyncResult {
        SyncResult { failures: self.failures, rows: self.rows }
    }

    /// Reads what the store has seen.
    pub fn new(location: StoreLocation) -> Result<Self, StoreError> {
        let importer = SessionImporter::new(&location)?;
        Ok(Self {
            seen: SeenFiles::load(&location.folder, |id| importer.has_session(id)),
            importer,
            rows: BTreeMap::new(),
            on_session: Box::new(|_, _| ()),
            failures: Vec::new(),
            synced: None,
            lookup_count: 0,
            dry_run: false,
            stop: Arc::default(),
            skipped_files: HashMap::new(),
            sessions_by_file: HashMap::new(),
            store: resolve_links(location.folder.clone()),
            location,
        })
    }

    /// Calls `on_session` with the path of each session before it is imported.
    #[must_use]
    pub fn with_progress(self, on_session: OnSession) -> Self {
        Self { on_session, ..self }
    }

    /// Reports no further sessions.
    pub fn end_progress(&mut self) {
        self.on_session = Box::new(|_, _| ());
    }

    /// Leaves the index to the next search.
    pub fn disable_index(&mut self) {
        self.importer.is_indexing = false;
    }

    /// Imports what is new at or below a path. Files and folders that cannot be read are errors of the result; it fails
    /// only if the store does.
    pub fn sync_root(&mut self, root: &Path, agents: &[String]) -> Result<(), StoreError> {
        let ChangedFiles { mut changed, failures } = match self.changed_files(root) {
            // The other roots may be readable.
            Err(StoreError::File(error)) if error.source.kind() == ErrorKind::PermissionDenied => {
                self.failures.push(error.into());
                return Ok(());
            }
            found => found?,
        };
        self.failures.extend(failures.into_iter().map(StoreError::from));
        let mut found = Vec::new();
        for folder in folders_to_read(root, changed.keys()) {
            let failures = match format::find_sessions_and_failures(&folder) {
                Ok(look) => {
                    found.extend(look.sessions);
                    look.failures
                }
                Err(error) => vec![error],
            };
            for error in failures {
                changed.retain(|file, _| !file.starts_with(&error.path));
                self.failures.push(error.into());
            }
        }
        // The index numbers texts by time.
        found.sort_by_cached_key(last_modified);
        let mut again = HashSet::new();
        let (stop, dry_run) = (Arc::clone(&self.stop), self.dry_run);
        let should_read = |found: &FoundSession| {
            let is_wanted = is_selected(found, agents) && has_changed(found, &changed);
            // Most sessions of a changed database have not changed.
            let is_known = found.bundle.key.is_none();
            is_wanted && is_known && !dry_run && !stop.load(Ordering::Relaxed)
        };
        let is_indexing = self.importer.is_indexing;
        import_with_read_ahead(found, is_indexing, should_read, |found, parsed| {
            again.extend(self.sync_found(found, parsed, agents, &changed));
        });
        let failed = self.flush_imports(None);
        if !self.dry_run {
            changed.retain(|file, _| !again.contains(file) && !self.belongs_to(file, &failed));
            changed.into_iter().for_each(|(file, stamp)| self.mark_seen(&file, stamp));
        }
        Ok(())
    }

    /// Commits and indexes the imports, and moves traffic to them, except for recordings that ended before `since`.
    /// Returns the sessions with a failed commit.
    fn flush_imports(&mut self, since: Option<Instant>) -> HashSet<SessionId> {
        self.failures.extend(self.importer.flush().err());
        self.failures.extend(self.importer.attribute_traffic(since).err());
        let failed = self.importer.take_failed();
        if let Some(synced) = &mut self.synced {
            synced.retain(|session| !failed.contains(&session.session));
        }
        failed
    }

    /// Returns whether a file was imported with one of these sessions.
    fn belongs_to(&self, file: &Path, sessions: &HashSet<SessionId>) -> bool {
        let kept_with = self.sessions_by_file.get(file).into_iter().flatten();
        kept_with.into_iter().any(|id| sessions.contains(id))
    }

    /// Returns the files at or below a path that have changed.
    pub fn changed_files(&self, root: &Path) -> Result<ChangedFiles, StoreError> {
        let log = Some(write_ahead_log(root)).filter(|log| root.is_file() && log.is_file());
        let FileListing { files, failures } = format::list_files(root)?;
        let files = files.into_iter().chain(log).filter(|file| !is_shared_memory(file));
        let stamped = files.filter_map(|file| file_stamp(&file).map(|stamp| (file, stamp)));
        let changed = stamped.filter(|(file, stamp)| self.is_new(file, *stamp)).collect();
        Ok(ChangedFiles { changed, failures })
    }

    /// Imports the session of one file, if the file has changed.
    ///
    /// A file without a session is only skipped, not recorded as seen: a sync of the whole root decides.
    pub fn sync_file(&mut self, file: &Path, root: &Path, agents: &[String]) {
        let Some(at) = file_stamp(file).filter(|at| self.is_new(file, *at)) else { return };
        self.lookup_count += 1;
        self.skipped_files.insert(file.to_owned(), at);
        let found = match nearby_sessions::find_sessions_near(file, root) {
            Ok(found) => found,
            Err(error) => {
                // A file that was deleted meanwhile is not an error.
                let error = Some(error).filter(|error| !error.is_missing());
                self.failures.extend(error.map(StoreError::from));
                return;
            }
        };
        self.sync_changed(&found, agents);
    }

    /// Imports what is new of the sessions that a file belongs to. Returns all their files.
    ///
    /// Reads only the agent's session folder that contains the file, else the file's own folder.
    pub fn sync_sessions_of(
        &mut self,
        file: &Path,
        places: &[PathBuf],
    ) -> Result<Vec<PathBuf>, StoreError> {
        let place = places.iter().find(|place| file.starts_with(place));
        let root = place.map_or_else(|| durable::parent_folder(file), PathBuf::as_path);
        let found = nearby_sessions::find_sessions_near(file, root)?;
        self.sync_changed(&found, &[]);
        self.seen.save()?;
        let sources = found.iter().flat_map(|found| session_files(&found.bundle));
        Ok(sources.map(|source| source.path().to_owned()).collect())
    }

    /// Imports what is new in a folder.
    pub fn sync_folder(&mut self, folder: &Path) -> Result<(), StoreError> {
        self.sync_root(folder, &[])?;
        Ok(self.seen.save()?)
    }

    /// Imports sessions with changed files.
    fn sync_changed(&mut self, found: &[FoundSession], agents: &[String]) {
        let sources = found.iter().flat_map(|found| session_files(&found.bundle));
        let paths = sources.map(|source| source.path().to_owned());
        let stamped = paths.filter_map(|path| file_stamp(&path).map(|at| (path, at)));
        let mut changed: HashMap<_, _> =
            stamped.filter(|(path, at)| !self.seen.is_unchanged(path, *at)).collect();
        self.skipped_files.extend(changed.clone());
        for found in found {
            for again in self.sync_found(found, None, agents, &changed) {
                changed.remove(&again);
            }
        }
        let failed = self.flush_imports(self.recent_start());
        changed.retain(|path, _| !self.belongs_to(path, &failed));
        for (path, at) in &changed {
            self.skipped_files.remove(path);
            self.mark_seen(path, *at);
        }
    }

    /// Returns whether a file has changed and is not our own.
    fn is_new(&self, file: &Path, stamp: FileStamp) -> bool {
        let is_passed = self.skipped_files.get(file) == Some(&stamp);
        !is_passed && !self.seen.is_unchanged(file, stamp) && !file.starts_with(&self.store)
    }

    /// Remembers the session of a bundle's files.
    fn remember_sessions(&mut self, bundle: &SessionBundle, id: &SessionId) {
        let files = session_files(bundle).into_iter().map(|source| source.path().to_owned());
        // A database session is also known by its rows.
        let rows = bundle.key.is_some().then(|| database_session_name(bundle));
        for file in files.chain(rows) {
            // Nearly all files contain one session.
            let sessions =
                self.sessions_by_file.entry(file).or_insert_with(|| Vec::with_capacity(1));
            if !sessions.contains(id) {
                sessions.push(id.clone());
            }
        }
    }

    /// Records a file as seen.
    fn mark_seen(&mut self, file: &Path, stamp: FileStamp) {
        let sessions = self.sessions_by_file.remove(file).unwrap_or_default();
        self.seen.record_file(file, stamp, sessions);
    }

    /// Clears the list of skipped files.
    pub fn clear_skipped(&mut self) {
        self.skipped_files.clear();
    }

    /// Starts again after the vault was deleted.
    pub fn reset(&mut self) -> Result<(), StoreError> {
        self.importer = SessionImporter::new(&self.location)?;
        self.seen = SeenFiles::load(&self.location.folder, |id| self.importer.has_session(id));
        self.skipped_files.clear();
        Ok(())
    }

    /// Imports a session if it is selected and has changed. Returns the files that must be read again.
    fn sync_found(
        &mut self,
        found: &FoundSession,
        parsed: Option<ParsedFiles>,
        agents: &[String],
        changed: &HashMap<PathBuf, FileStamp>,
    ) -> Vec<PathBuf> {
        if !has_changed(found, changed) {
            return Vec::new();
        }
        let sources = session_files(&found.bundle);
        let done = is_selected(found, agents)
            && self.sync_changed_session(found, parsed, &sources, changed);
        let again = sources.iter().filter(|_| !done);
        again.map(|source| source.path().to_owned()).collect()
    }

    /// Imports a session with a changed file. Returns whether it is done for now.
    fn sync_changed_session(
        &mut self,
        found: &FoundSession,
        parsed: Option<ParsedFiles>,
        sources: &[SessionFile],
        changed: &HashMap<PathBuf, FileStamp>,
    ) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return false;
        }
        let sizes = sources.iter().filter_map(|source| changed.get(source.path()));
        let size = sizes.filter(|_| found.bundle.key.is_none()).map(|(size, _)| size).sum();
        (self.on_session)(&found.bundle.root, size);
        match found.bundle.fingerprint() {
            // Most sessions of a changed database have not changed.
            Ok(Some(print)) => {
                let name = database_session_name(&found.bundle);
                let is_beside = |source: &&SessionFile| !is_part_of_database(&found.bundle, source);
                let mut beside = sources.iter().filter(is_beside);
                let has_news_beside = beside.any(|source| changed.contains_key(source.path()));
                if !has_news_beside && self.seen.is_unchanged(&name, fingerprint_stamp(&print)) {
                    return true;
                }
                let better =
                    self.importer.find_better_copy(found).map(|imported| imported.id().clone());
                let done = match better {
                    Some(id) => {
                        self.remember_sessions(&found.bundle, &id);
                        true
                    }
                    None => self.import_session(found, parsed, print.bytes),
                };
                if done && !self.dry_run {
                    self.mark_seen(&name, fingerprint_stamp(&print));
                }
                done
            }
            Ok(None) => {
                let sizes = sources.iter().filter_map(|source| changed.get(source.path()));
                self.import_session(found, parsed, sizes.map(|(size, _)| size).sum())
            }
            Err(error) => {
                self.agent_row(found).problems += 1;
                self.failures.push(error.into());
                false
            }
        }
    }

    /// Returns the time some minutes ago; older recordings are left to the next sync.
    fn recent_start(&self) -> Option<Instant> {
        self.location.clock.now().instant().checked_sub(RECENT_DURATION).ok()
    }

    fn agent_row(&mut self, found: &FoundSession) -> &mut AgentSyncRow {
        let row = self.rows.entry(found.reader.agent.to_owned()).or_default();
        row.agent = found.reader.agent.to_owned();
        row
    }

    /// Imports one session, of which `size` bytes may have changed. Returns whether it is done for now.
    fn import_session(
        &mut self,
        found: &FoundSession,
        parsed: Option<ParsedFiles>,
        size: u64,
    ) -> bool {
        let imported = (!self.dry_run).then(|| self.importer.import_parsed(found, parsed));
        if let Some(Ok(imported)) = &imported {
            self.remember_sessions(&found.bundle, imported.dir.id());
        }
        if matches!(imported, Some(Err(StoreError::Forgotten(_)))) {
            return true;
        }
        let row = self.agent_row(found);
        row.sessions += 1;
        match imported {
            None => row.bytes_new += size,
            Some(Ok(imported)) => {
                row.entries += imported.entries;
                row.bytes_new += imported.bytes_added;
                row.bytes_kept += imported.bytes_stored;
                row.problems += imported.problems.bad_count() + imported.damage.len() as u64;
                if let Some(news) = self.synced.as_mut().filter(|_| imported.bytes_added > 0) {
                    news.push(SyncedSession::from_import(found, &imported));
                }
                let row = self.agent_row(found);
                row.problem_list.append(imported.problems);
                imported.damage.into_iter().for_each(|damage| row.problem_list.push(damage));
            }
            Some(Err(error)) => {
                row.problems += 1;
                self.failures.push(error);
                return false;
            }
        }
        true
    }
}

/// Returns whether a session is of one of these agents; without any, of all.
fn is_selected(found: &FoundSession, agents: &[String]) -> bool {
    agents.is_empty() || agents.iter().any(|name| name == found.reader.agent)
}

fn has_changed(found: &FoundSession, changed: &HashMap<PathBuf, FileStamp>) -> bool {
    session_files(&found.bundle).iter().any(|source| changed.contains_key(source.path()))
}

impl SyncedSession {
    fn from_import(found: &FoundSession, imported: &ImportedSession) -> Self {
        Self {
            agent: found.reader.agent,
            session: imported.dir.id().clone(),
            title: imported.title.clone(),
            path: found.bundle.root.clone(),
            entries: imported.entries,
            bytes_new: imported.bytes_added,
            problems: imported.problems.bad_count(),
        }
    }
}
