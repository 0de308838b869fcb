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

use self::files::{digest, is_index, is_part_of_database, parts, place, sources};
pub(crate) use self::files::{log_of, modified};
use crate::error::CommandError;
use crate::keeper::{Keeper, Kept};
use crate::projects::Projects;
use crate::scene::Scene;
use crate::seen::{Seen, Stamp, stamp};
use crate::store::Store;
use crate::ui::{Progress, Ui};

/// For how long after its end a recording is compared with each session that changes.
const RECENT: SignedDuration = SignedDuration::from_mins(10);

/// What was done for one agent.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Row {
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
    pub(crate) unread: ProblemList,
}

/// The folders to look at, each once.
pub(crate) fn roots(scene: &Scene, paths: &[PathBuf], agents: &[String]) -> Vec<PathBuf> {
    let there = wanted(scene, paths, agents).into_iter();
    let there = there.filter(|path| !paths.is_empty() || path.exists());
    there.map(real).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The paths that are named, or the places of all agents that are wanted; there or not.
pub(crate) fn wanted(scene: &Scene, paths: &[PathBuf], agents: &[String]) -> Vec<PathBuf> {
    if !paths.is_empty() {
        return paths.iter().map(|path| scene.cwd.join(path)).collect();
    }
    let wanted = |place: &Place| agents.is_empty() || agents.iter().any(|name| name == place.agent);
    let mut known = places(&scene.home, &Scene::variable);
    let projects = Projects::load(&scene.store).roots();
    known.extend(in_projects(&projects, &scene.home, &Scene::variable));
    known.into_iter().filter(wanted).map(|place| place.path).collect()
}

/// The agents whose sessions can be found.
pub(crate) fn agents() -> PossibleValuesParser {
    PossibleValuesParser::new(format::readers().map(|reader| reader.agent))
}

/// The path without links, so that a session has one name however it is reached.
pub(crate) fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// A look at what agents left.
pub(crate) struct Sweep {
    keeper: Keeper,
    pub(crate) seen: Seen,
    pub(crate) rows: BTreeMap<String, Row>,
    pub(crate) progress: Progress,
    pub(crate) failures: Vec<CommandError>,
    /// What was kept, for who wants to hear of each session.
    pub(crate) news: Option<Vec<News>>,
    /// How often a session was looked for because of one file.
    pub(crate) looks: u64,
    pub(crate) dry_run: bool,
    /// Set by whoever wants no further session to be begun.
    pub(crate) stop: Arc<AtomicBool>,
    /// Files that no session was kept of, as they were then.
    passed: HashMap<PathBuf, Stamp>,
    /// The sessions that files were kept with, until that is noted.
    homes: HashMap<PathBuf, Vec<SessionId>>,
    /// Our own folder: what stands there came from here.
    store: PathBuf,
}

/// The files that have changed, and the folders that could not be listed.
#[derive(Default)]
pub(crate) struct ChangedFiles {
    pub(crate) changed: HashMap<PathBuf, Stamp>,
    pub(crate) failures: Vec<FileError>,
}

/// A session of which something new was kept.
#[derive(Debug, Serialize)]
pub(crate) struct News {
    pub(crate) agent: &'static str,
    pub(crate) session: String,
    pub(crate) title: Option<String>,
    pub(crate) path: PathBuf,
    pub(crate) entries: u64,
    pub(crate) bytes_new: u64,
    pub(crate) problems: u64,
}

/// What a look at everything came to.
pub(crate) struct SweepResult {
    pub(crate) failures: Vec<CommandError>,
    pub(crate) rows: BTreeMap<String, Row>,
}

impl Sweep {
    /// Ends the look, and drops what it knows of every file.
    pub(crate) fn finish(self) -> SweepResult {
        SweepResult { failures: self.failures, rows: self.rows }
    }

    pub(crate) fn new(ui: &Ui, scene: &Scene) -> Result<Self, CommandError> {
        let keeper = Keeper::new(Store::new(scene).vault)?;
        Ok(Self {
            seen: Seen::load(&scene.store, |id| keeper.has(id)),
            keeper,
            rows: BTreeMap::new(),
            progress: ui.progress("keeping"),
            failures: Vec::new(),
            news: None,
            looks: 0,
            dry_run: false,
            stop: Arc::default(),
            passed: HashMap::new(),
            homes: HashMap::new(),
            store: real(scene.store.clone()),
        })
    }

    /// Leaves what is kept to the next search to bring into the index.
    pub(crate) fn leave_out_index(&mut self) {
        self.keeper.is_indexing = false;
    }

    /// Keeps what is new at or below a path.
    pub(crate) fn root(&mut self, root: &Path, agents: &[String]) -> Result<(), CommandError> {
        let ChangedFiles { mut changed, failures } = self.changed(root)?;
        self.failures.extend(failures.into_iter().map(CommandError::from));
        let mut found = Vec::new();
        for folder in parts(root, changed.keys()) {
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
        found.sort_by_cached_key(modified);
        let mut again = HashSet::new();
        // Each is dropped once it is kept: there may be very many.
        for found in found {
            again.extend(self.found(&found, agents, &changed));
        }
        let failed = self.flush(None);
        if !self.dry_run {
            changed.retain(|file, _| !again.contains(file) && !self.is_of(file, &failed));
            changed.into_iter().for_each(|(file, stamp)| self.note(&file, stamp));
        }
        Ok(())
    }

    /// Acknowledges what was kept, brings it into the index and moves traffic to it, but none that was recorded before
    /// `since`; gives the sessions of which keeping failed.
    fn flush(&mut self, since: Option<Instant>) -> HashSet<SessionId> {
        self.failures.extend(self.keeper.flush().err());
        self.failures.extend(self.keeper.attribute_traffic(since).err());
        self.keeper.take_failed()
    }

    /// Whether a file was kept with one of these sessions.
    fn is_of(&self, file: &Path, sessions: &HashSet<SessionId>) -> bool {
        let kept_with = self.homes.get(file).into_iter().flatten();
        kept_with.into_iter().any(|id| sessions.contains(id))
    }

    /// The files at or below a path that are not as they were seen.
    pub(crate) fn changed(&self, root: &Path) -> Result<ChangedFiles, CommandError> {
        let log = Some(log_of(root)).filter(|log| root.is_file() && log.is_file());
        let FileListing { files, failures } = format::list_files(root)?;
        let files = files.into_iter().chain(log).filter(|file| !is_index(file));
        let stamped = files.filter_map(|file| stamp(&file).map(|stamp| (file, stamp)));
        let changed = stamped.filter(|(file, stamp)| self.is_news(file, *stamp)).collect();
        Ok(ChangedFiles { changed, failures })
    }

    /// Keeps the session of one file, if that has changed.
    ///
    /// What is found to be no session's file is only passed over, not noted: a look at the whole root decides.
    pub(crate) fn file(&mut self, file: &Path, root: &Path, agents: &[String]) {
        let Some(at) = stamp(file).filter(|at| self.is_news(file, *at)) else { return };
        self.looks += 1;
        self.passed.insert(file.to_owned(), at);
        let found = match near::find_near(file, root) {
            Ok(found) => found,
            Err(error) => {
                // One that is gone again is nothing to tell about.
                let error = Some(error).filter(|error| !error.is_missing());
                self.failures.extend(error.map(CommandError::from));
                return;
            }
        };
        self.fresh(&found, agents);
    }

    /// Keeps what is new of the sessions that a file belongs to, and gives all of their files.
    ///
    /// Only the place of an agent in which the file stands is looked at, or else its own folder.
    pub(crate) fn sessions_of(
        &mut self,
        file: &Path,
        places: &[PathBuf],
    ) -> Result<Vec<PathBuf>, CommandError> {
        let place = places.iter().find(|place| file.starts_with(place));
        let root = place.map_or_else(|| durable::parent(file), PathBuf::as_path);
        let found = near::find_near(file, root)?;
        self.fresh(&found, &[]);
        self.seen.save()?;
        let sources = found.iter().flat_map(|found| sources(&found.bundle));
        Ok(sources.map(|source| source.path().to_owned()).collect())
    }

    /// Keeps what is new in a folder.
    pub(crate) fn folder(&mut self, folder: &Path) -> Result<(), CommandError> {
        self.root(folder, &[])?;
        Ok(self.seen.save()?)
    }

    /// Keeps sessions as far as their files have changed.
    fn fresh(&mut self, found: &[Found], agents: &[String]) {
        let sources = found.iter().flat_map(|found| sources(&found.bundle));
        let paths = sources.map(|source| source.path().to_owned());
        let stamped = paths.filter_map(|path| stamp(&path).map(|at| (path, at)));
        let mut changed: HashMap<_, _> =
            stamped.filter(|(path, at)| !self.seen.knows(path, *at)).collect();
        self.passed.extend(changed.clone());
        for found in found {
            for again in self.found(found, agents, &changed) {
                changed.remove(&again);
            }
        }
        let failed = self.flush(recently());
        changed.retain(|path, _| !self.is_of(path, &failed));
        for (path, at) in &changed {
            self.passed.remove(path);
            self.note(path, *at);
        }
    }

    /// Whether a file is to be looked at: it has changed, and is not our own.
    fn is_news(&self, file: &Path, stamp: Stamp) -> bool {
        let is_passed = self.passed.get(file) == Some(&stamp);
        !is_passed && !self.seen.knows(file, stamp) && !file.starts_with(&self.store)
    }

    /// Remembers with which session the files of a bundle were kept.
    fn settle(&mut self, bundle: &Bundle, id: &SessionId) {
        let files = sources(bundle).into_iter().map(|source| source.path().to_owned());
        // A session of a database is known by its rows, too.
        let rows = bundle.key.is_some().then(|| place(bundle));
        for file in files.chain(rows) {
            // Nearly all files are one session's.
            let sessions = self.homes.entry(file).or_insert_with(|| Vec::with_capacity(1));
            if !sessions.contains(id) {
                sessions.push(id.clone());
            }
        }
    }

    /// Notes that a file is kept as it is.
    fn note(&mut self, file: &Path, stamp: Stamp) {
        let sessions = self.homes.remove(file).unwrap_or_default();
        self.seen.note(file, stamp, sessions);
    }

    /// Lets what was only passed over be looked at again.
    pub(crate) fn forget_passed(&mut self) {
        self.passed.clear();
    }

    /// Begins anew, for a vault that is gone.
    pub(crate) fn forget_all(&mut self, scene: &Scene) -> Result<(), CommandError> {
        self.keeper = Keeper::new(Store::new(scene).vault)?;
        self.seen = Seen::load(&scene.store, |id| self.keeper.has(id));
        self.passed.clear();
        Ok(())
    }

    /// Keeps a session that was found, if it is wanted and has changed; gives the files that must be looked at again.
    fn found(
        &mut self,
        found: &Found,
        agents: &[String],
        changed: &HashMap<PathBuf, Stamp>,
    ) -> Vec<PathBuf> {
        let wanted = agents.is_empty() || agents.iter().any(|name| name == found.reader.agent);
        let sources = sources(&found.bundle);
        if !sources.iter().any(|source| changed.contains_key(source.path())) {
            return Vec::new();
        }
        let done = wanted && self.in_session(found, &sources, changed);
        let again = sources.iter().filter(|_| !done);
        again.map(|source| source.path().to_owned()).collect()
    }

    /// Keeps a session of which some file has changed; whether that is done for now.
    fn in_session(
        &mut self,
        found: &Found,
        sources: &[Source],
        changed: &HashMap<PathBuf, Stamp>,
    ) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return false;
        }
        self.progress.step(found.bundle.root.display());
        match found.bundle.fingerprint() {
            // Most sessions of a database that has changed have not.
            Ok(Some(print)) => {
                let name = place(&found.bundle);
                let is_beside = |source: &&Source| !is_part_of_database(&found.bundle, source);
                let mut beside = sources.iter().filter(is_beside);
                let has_news_beside = beside.any(|source| changed.contains_key(source.path()));
                if !has_news_beside && self.seen.knows(&name, digest(&print)) {
                    return true;
                }
                let better = self.keeper.better(found).map(|kept| kept.id().clone());
                let done = match better {
                    Some(id) => {
                        self.settle(&found.bundle, &id);
                        true
                    }
                    None => self.session(found, print.bytes),
                };
                if done && !self.dry_run {
                    self.note(&name, digest(&print));
                }
                done
            }
            Ok(None) => {
                let sizes = sources.iter().filter_map(|source| changed.get(source.path()));
                self.session(found, sizes.map(|(size, _)| size).sum())
            }
            Err(error) => {
                self.row(found).problems += 1;
                self.failures.push(error.into());
                false
            }
        }
    }

    fn row(&mut self, found: &Found) -> &mut Row {
        let row = self.rows.entry(found.reader.agent.to_owned()).or_default();
        row.agent = found.reader.agent.to_owned();
        row
    }

    /// Keeps one session, of which `size` bytes may have changed; whether that is done for now.
    fn session(&mut self, found: &Found, size: u64) -> bool {
        let kept = (!self.dry_run).then(|| self.keeper.keep(found));
        if let Some(Ok(kept)) = &kept {
            self.settle(&found.bundle, kept.dir.id());
        }
        let row = self.row(found);
        row.sessions += 1;
        match kept {
            None => row.bytes_new += size,
            Some(Ok(kept)) => {
                row.entries += kept.entries;
                row.bytes_new += kept.added;
                row.bytes_kept += kept.stored;
                row.problems += kept.problems.bad_count() + kept.damage.len() as u64;
                if let Some(news) = self.news.as_mut().filter(|_| kept.added > 0) {
                    news.push(News::of(found, &kept));
                }
                let row = self.row(found);
                row.unread.append(kept.problems);
                kept.damage.into_iter().for_each(|damage| row.unread.push(damage));
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
fn recently() -> Option<Instant> {
    Instant::now().checked_sub(RECENT).ok()
}

impl News {
    fn of(found: &Found, kept: &Kept) -> Self {
        Self {
            agent: found.reader.agent,
            session: kept.dir.id().to_string(),
            title: kept.title.clone(),
            path: found.bundle.root.clone(),
            entries: kept.entries,
            bytes_new: kept.added,
            problems: kept.problems.bad_count(),
        }
    }
}
