//! Looks at what agents left on this machine and keeps what is new; what `sync` and `watch` share.

mod files;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::PossibleValuesParser;
use jiff::{SignedDuration, Timestamp as Instant};
use serde::Serialize;
use steno_core::agent::near;
use steno_core::agent::places::{Place, in_projects, places};
use steno_core::durable::{self, FileError};
use steno_core::format::{self, FileListing, Found};
use steno_core::{Bundle, ProblemList, SessionId, Source};

use self::files::{
    database_session_name, fingerprint_stamp, folders_to_read, is_part_of_database,
    is_shared_memory, session_files,
};
pub(crate) use self::files::{last_modified, write_ahead_log};
use crate::error::CommandError;
use crate::known_projects::KnownProjects;
use crate::process_environment::ProcessEnvironment;
use crate::seen_files::{FileStamp, SeenFiles, file_stamp};
use crate::session_importer::{ImportedSession, SessionImporter};
use crate::session_store::SessionStore;
use crate::ui::{ProgressLine, Ui};

/// For how long after its end a recording is compared with each session that changes.
const RECENT_DURATION: SignedDuration = SignedDuration::from_mins(10);

/// What was done for one agent.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AgentSyncRow {
    pub(crate) agent: String,
    /// Sessions that were looked at because something in them is new.
    pub(crate) sessions: u64,
    pub(crate) entries: u64,
    pub(crate) bytes_new: u64,
    /// Bytes that these sessions take in the vault.
    pub(crate) bytes_kept: u64,
    pub(crate) problems: u64,
    /// Records that could not be read, and where they stand.
    #[serde(skip)]
    pub(crate) problem_list: ProblemList,
}

/// The folders to look at, each once.
pub(crate) fn existing_roots(
    env: &ProcessEnvironment,
    paths: &[PathBuf],
    agents: &[String],
) -> Vec<PathBuf> {
    let there = session_roots(env, paths, agents).into_iter();
    let there = there.filter(|path| !paths.is_empty() || path.exists());
    there.map(resolve_links).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The paths that are named, or the places of all agents that are wanted; there or not.
pub(crate) fn session_roots(
    env: &ProcessEnvironment,
    paths: &[PathBuf],
    agents: &[String],
) -> Vec<PathBuf> {
    if !paths.is_empty() {
        return paths.iter().map(|path| env.cwd.join(path)).collect();
    }
    let wanted = |place: &Place| agents.is_empty() || agents.iter().any(|name| name == place.agent);
    let mut known = places(&env.home, &ProcessEnvironment::variable);
    let projects = KnownProjects::load(&env.store).folders_and_roots();
    known.extend(in_projects(&projects, &env.home, &ProcessEnvironment::variable));
    known.into_iter().filter(wanted).map(|place| place.path).collect()
}

/// The agents whose sessions can be found.
pub(crate) fn agent_name_parser() -> PossibleValuesParser {
    PossibleValuesParser::new(format::readers().map(|reader| reader.agent))
}

/// The path without links, so that a session has one name however it is reached.
pub(crate) fn resolve_links(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// A look at what agents left.
pub(crate) struct SessionSyncer {
    keeper: SessionImporter,
    pub(crate) seen: SeenFiles,
    pub(crate) rows: BTreeMap<String, AgentSyncRow>,
    pub(crate) progress: ProgressLine,
    pub(crate) failures: Vec<CommandError>,
    /// What was kept, for who wants to hear of each session.
    pub(crate) synced: Option<Vec<SyncedSession>>,
    /// How often a session was looked for because of one file.
    pub(crate) lookup_count: u64,
    pub(crate) dry_run: bool,
    /// Set by whoever wants no further session to be begun.
    pub(crate) stop: Arc<AtomicBool>,
    /// Files that no session was kept of, as they were then.
    skipped_files: HashMap<PathBuf, FileStamp>,
    /// The sessions that files were kept with, until that is noted.
    sessions_by_file: HashMap<PathBuf, Vec<SessionId>>,
    /// Our own folder: what stands there came from here.
    store: PathBuf,
}

/// The files that have changed, and the folders that could not be listed.
#[derive(Default)]
pub(crate) struct ChangedFiles {
    pub(crate) changed: HashMap<PathBuf, FileStamp>,
    pub(crate) failures: Vec<FileError>,
}

/// A session of which something new was kept.
#[derive(Debug, Serialize)]
pub(crate) struct SyncedSession {
    pub(crate) agent: &'static str,
    pub(crate) session: String,
    pub(crate) title: Option<String>,
    pub(crate) path: PathBuf,
    pub(crate) entries: u64,
    pub(crate) bytes_new: u64,
    pub(crate) problems: u64,
}

/// What a look at everything came to.
pub(crate) struct SyncResult {
    pub(crate) failures: Vec<CommandError>,
    pub(crate) rows: BTreeMap<String, AgentSyncRow>,
}

impl SessionSyncer {
    /// Ends the look, and drops what it knows of every file.
    pub(crate) fn finish(self) -> SyncResult {
        SyncResult { failures: self.failures, rows: self.rows }
    }

    pub(crate) fn new(ui: &Ui, env: &ProcessEnvironment) -> Result<Self, CommandError> {
        let keeper = SessionImporter::new(SessionStore::new(env).vault)?;
        Ok(Self {
            seen: SeenFiles::load(&env.store, |id| keeper.has_session(id)),
            keeper,
            rows: BTreeMap::new(),
            progress: ui.start_progress("keeping"),
            failures: Vec::new(),
            synced: None,
            lookup_count: 0,
            dry_run: false,
            stop: Arc::default(),
            skipped_files: HashMap::new(),
            sessions_by_file: HashMap::new(),
            store: resolve_links(env.store.clone()),
        })
    }

    /// Leaves what is kept to the next search to bring into the index.
    pub(crate) fn disable_index(&mut self) {
        self.keeper.is_indexing = false;
    }

    /// Keeps what is new at or below a path.
    pub(crate) fn sync_root(&mut self, root: &Path, agents: &[String]) -> Result<(), CommandError> {
        let ChangedFiles { mut changed, failures } = self.changed_files(root)?;
        self.failures.extend(failures.into_iter().map(CommandError::from));
        let mut found = Vec::new();
        for folder in folders_to_read(root, changed.keys()) {
            let failures = match format::look(&folder) {
                Ok(look) => {
                    found.extend(look.found);
                    look.failures
                }
                Err(error) => vec![error],
            };
            for error in failures {
                changed.retain(|file, _| !file.starts_with(&error.path));
                self.failures.push(error.into());
            }
        }
        // The index gives later numbers to later texts.
        found.sort_by_cached_key(last_modified);
        let mut again = HashSet::new();
        // Each is dropped once it is kept: there may be very many.
        for found in found {
            again.extend(self.sync_found(&found, agents, &changed));
        }
        let failed = self.flush_imports(None);
        if !self.dry_run {
            changed.retain(|file, _| !again.contains(file) && !self.belongs_to(file, &failed));
            changed.into_iter().for_each(|(file, stamp)| self.mark_seen(&file, stamp));
        }
        Ok(())
    }

    /// Acknowledges what was kept, brings it into the index and moves traffic to it, but none that was recorded before
    /// `since`; gives the sessions of which keeping failed.
    fn flush_imports(&mut self, since: Option<Instant>) -> HashSet<SessionId> {
        self.failures.extend(self.keeper.flush().err());
        self.failures.extend(self.keeper.attribute_traffic(since).err());
        self.keeper.take_failed()
    }

    /// Whether a file was kept with one of these sessions.
    fn belongs_to(&self, file: &Path, sessions: &HashSet<SessionId>) -> bool {
        let kept_with = self.sessions_by_file.get(file).into_iter().flatten();
        kept_with.into_iter().any(|id| sessions.contains(id))
    }

    /// The files at or below a path that are not as they were seen.
    pub(crate) fn changed_files(&self, root: &Path) -> Result<ChangedFiles, CommandError> {
        let log = Some(write_ahead_log(root)).filter(|log| root.is_file() && log.is_file());
        let FileListing { files, failures } = format::list_files(root)?;
        let files = files.into_iter().chain(log).filter(|file| !is_shared_memory(file));
        let stamped = files.filter_map(|file| file_stamp(&file).map(|stamp| (file, stamp)));
        let changed = stamped.filter(|(file, stamp)| self.is_new(file, *stamp)).collect();
        Ok(ChangedFiles { changed, failures })
    }

    /// Keeps the session of one file, if that has changed.
    ///
    /// What is found to be no session's file is only passed over, not noted: a look at the whole root decides.
    pub(crate) fn sync_file(&mut self, file: &Path, root: &Path, agents: &[String]) {
        let Some(at) = file_stamp(file).filter(|at| self.is_new(file, *at)) else { return };
        self.lookup_count += 1;
        self.skipped_files.insert(file.to_owned(), at);
        let found = match near::find_near(file, root) {
            Ok(found) => found,
            Err(error) => {
                // One that is gone again is nothing to tell about.
                let error = Some(error).filter(|error| !error.is_missing());
                self.failures.extend(error.map(CommandError::from));
                return;
            }
        };
        self.sync_changed(&found, agents);
    }

    /// Keeps what is new of the sessions that a file belongs to, and gives all of their files.
    ///
    /// Only the place of an agent in which the file stands is looked at, or else its own folder.
    pub(crate) fn sync_sessions_of(
        &mut self,
        file: &Path,
        places: &[PathBuf],
    ) -> Result<Vec<PathBuf>, CommandError> {
        let place = places.iter().find(|place| file.starts_with(place));
        let root = place.map_or_else(|| durable::parent(file), PathBuf::as_path);
        let found = near::find_near(file, root)?;
        self.sync_changed(&found, &[]);
        self.seen.save()?;
        let sources = found.iter().flat_map(|found| session_files(&found.bundle));
        Ok(sources.map(|source| source.path().to_owned()).collect())
    }

    /// Keeps what is new in a folder.
    pub(crate) fn sync_folder(&mut self, folder: &Path) -> Result<(), CommandError> {
        self.sync_root(folder, &[])?;
        Ok(self.seen.save()?)
    }

    /// Keeps sessions as far as their files have changed.
    fn sync_changed(&mut self, found: &[Found], agents: &[String]) {
        let sources = found.iter().flat_map(|found| session_files(&found.bundle));
        let paths = sources.map(|source| source.path().to_owned());
        let stamped = paths.filter_map(|path| file_stamp(&path).map(|at| (path, at)));
        let mut changed: HashMap<_, _> =
            stamped.filter(|(path, at)| !self.seen.is_unchanged(path, *at)).collect();
        self.skipped_files.extend(changed.clone());
        for found in found {
            for again in self.sync_found(found, agents, &changed) {
                changed.remove(&again);
            }
        }
        let failed = self.flush_imports(recent_start());
        changed.retain(|path, _| !self.belongs_to(path, &failed));
        for (path, at) in &changed {
            self.skipped_files.remove(path);
            self.mark_seen(path, *at);
        }
    }

    /// Whether a file is to be looked at: it has changed, and is not our own.
    fn is_new(&self, file: &Path, stamp: FileStamp) -> bool {
        let is_passed = self.skipped_files.get(file) == Some(&stamp);
        !is_passed && !self.seen.is_unchanged(file, stamp) && !file.starts_with(&self.store)
    }

    /// Remembers with which session the files of a bundle were kept.
    fn remember_sessions(&mut self, bundle: &Bundle, id: &SessionId) {
        let files = session_files(bundle).into_iter().map(|source| source.path().to_owned());
        // A session of a database is known by its rows, too.
        let rows = bundle.key.is_some().then(|| database_session_name(bundle));
        for file in files.chain(rows) {
            // Nearly all files are one session's.
            let sessions =
                self.sessions_by_file.entry(file).or_insert_with(|| Vec::with_capacity(1));
            if !sessions.contains(id) {
                sessions.push(id.clone());
            }
        }
    }

    /// Notes that a file is kept as it is.
    fn mark_seen(&mut self, file: &Path, stamp: FileStamp) {
        let sessions = self.sessions_by_file.remove(file).unwrap_or_default();
        self.seen.record_file(file, stamp, sessions);
    }

    /// Lets what was only passed over be looked at again.
    pub(crate) fn clear_skipped(&mut self) {
        self.skipped_files.clear();
    }

    /// Begins anew, for a vault that is gone.
    pub(crate) fn reset(&mut self, env: &ProcessEnvironment) -> Result<(), CommandError> {
        self.keeper = SessionImporter::new(SessionStore::new(env).vault)?;
        self.seen = SeenFiles::load(&env.store, |id| self.keeper.has_session(id));
        self.skipped_files.clear();
        Ok(())
    }

    /// Keeps a session that was found, if it is wanted and has changed; gives the files that must be looked at again.
    fn sync_found(
        &mut self,
        found: &Found,
        agents: &[String],
        changed: &HashMap<PathBuf, FileStamp>,
    ) -> Vec<PathBuf> {
        let wanted = agents.is_empty() || agents.iter().any(|name| name == found.reader.agent);
        let sources = session_files(&found.bundle);
        if !sources.iter().any(|source| changed.contains_key(source.path())) {
            return Vec::new();
        }
        let done = wanted && self.sync_changed_session(found, &sources, changed);
        let again = sources.iter().filter(|_| !done);
        again.map(|source| source.path().to_owned()).collect()
    }

    /// Keeps a session of which some file has changed; whether that is done for now.
    fn sync_changed_session(
        &mut self,
        found: &Found,
        sources: &[Source],
        changed: &HashMap<PathBuf, FileStamp>,
    ) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return false;
        }
        self.progress.step(found.bundle.root.display());
        match found.bundle.fingerprint() {
            // Most sessions of a database that has changed have not.
            Ok(Some(print)) => {
                let name = database_session_name(&found.bundle);
                let is_beside = |source: &&Source| !is_part_of_database(&found.bundle, source);
                let mut beside = sources.iter().filter(is_beside);
                let has_news_beside = beside.any(|source| changed.contains_key(source.path()));
                if !has_news_beside && self.seen.is_unchanged(&name, fingerprint_stamp(&print)) {
                    return true;
                }
                let better = self.keeper.find_better_copy(found).map(|kept| kept.id().clone());
                let done = match better {
                    Some(id) => {
                        self.remember_sessions(&found.bundle, &id);
                        true
                    }
                    None => self.import_session(found, print.bytes),
                };
                if done && !self.dry_run {
                    self.mark_seen(&name, fingerprint_stamp(&print));
                }
                done
            }
            Ok(None) => {
                let sizes = sources.iter().filter_map(|source| changed.get(source.path()));
                self.import_session(found, sizes.map(|(size, _)| size).sum())
            }
            Err(error) => {
                self.agent_row(found).problems += 1;
                self.failures.push(error.into());
                false
            }
        }
    }

    fn agent_row(&mut self, found: &Found) -> &mut AgentSyncRow {
        let row = self.rows.entry(found.reader.agent.to_owned()).or_default();
        row.agent = found.reader.agent.to_owned();
        row
    }

    /// Keeps one session, of which `size` bytes may have changed; whether that is done for now.
    fn import_session(&mut self, found: &Found, size: u64) -> bool {
        let kept = (!self.dry_run).then(|| self.keeper.import(found));
        if let Some(Ok(kept)) = &kept {
            self.remember_sessions(&found.bundle, kept.dir.id());
        }
        let row = self.agent_row(found);
        row.sessions += 1;
        match kept {
            None => row.bytes_new += size,
            Some(Ok(kept)) => {
                row.entries += kept.entries;
                row.bytes_new += kept.bytes_added;
                row.bytes_kept += kept.bytes_stored;
                row.problems += kept.problems.bad_count() + kept.damage.len() as u64;
                if let Some(news) = self.synced.as_mut().filter(|_| kept.bytes_added > 0) {
                    news.push(SyncedSession::from_import(found, &kept));
                }
                let row = self.agent_row(found);
                row.problem_list.append(kept.problems);
                kept.damage.into_iter().for_each(|damage| row.problem_list.push(damage));
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

/// Some minutes ago: what ended before is looked at by the next sync.
fn recent_start() -> Option<Instant> {
    Instant::now().checked_sub(RECENT_DURATION).ok()
}

impl SyncedSession {
    fn from_import(found: &Found, kept: &ImportedSession) -> Self {
        Self {
            agent: found.reader.agent,
            session: kept.dir.id().to_string(),
            title: kept.title.clone(),
            path: found.bundle.root.clone(),
            entries: kept.entries,
            bytes_new: kept.bytes_added,
            problems: kept.problems.bad_count(),
        }
    }
}
