//! Opens and reads the threads of one project. The operations that change them are in files of their own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::commit;
use super::draft::Draft;
use super::error::{StoreProblem, ThreadError};
use super::fields::Invalid;
use super::id::{Id, IdSource};
use super::lock;
use super::objectives::{Objective, Objectives};
use super::relations::{Relations, Thread};
use super::words::Status;
use crate::durable::{OnPath, create_private_dir, remove_leftovers};
use crate::format::leslie;
use crate::json::Value;
use crate::problem::Problem;
use crate::session::Transcript;
use crate::timestamp::{Clock, Timestamp};

/// The folder in a project that has the stores and the threads.
pub(super) const BASE: &str = ".leslie";
pub(super) const RELATIONS: &str = "thread_relations.json";
pub(super) const OBJECTIVES: &str = "objectives.json";
pub(super) const THREADS: &str = "threads";
/// Folder of a thread's transcripts.
pub(super) const TRANSCRIPTS: &str = ".meta/transcripts";

/// The threads of one project, in the `.leslie` folder of `root`.
#[derive(Clone, Debug)]
pub struct ThreadStore {
    root: PathBuf,
    clock: Clock,
    pub(super) ids: IdSource,
}

/// A store's file, parsed.
pub(super) struct Loaded<T> {
    pub(super) value: T,
    /// Why the backup was used instead of the file.
    pub(super) problem: Option<StoreProblem>,
    /// The bytes of a file that cannot be parsed.
    pub(super) damaged: Option<Vec<u8>>,
}

impl ThreadStore {
    /// Opens the threads of the project at `root`. Reads and creates nothing yet.
    pub fn new(root: &Path, clock: Clock, ids: IdSource) -> Self {
        Self { root: root.to_owned(), clock, ids }
    }

    /// The project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a store or a backup of one exists.
    pub fn exists(&self) -> bool {
        let base = self.base();
        let is_there = |name: &&str| {
            let path = base.join(name);
            path.exists() || backup(&path).exists()
        };
        [RELATIONS, OBJECTIVES].iter().any(is_there) || commit::is_pending(&base)
    }

    /// Creates the stores that are missing. Writes nothing if both exist.
    pub fn init(&self) -> Result<(), ThreadError> {
        let base = self.base();
        let exists = [RELATIONS, OBJECTIVES, THREADS].iter().all(|name| base.join(name).exists());
        if exists && !commit::is_pending(&base) {
            return Ok(());
        }
        self.change(|draft| Ok(draft.staging.folder(Path::new(THREADS))?))
    }

    /// Reads threads, operations and links.
    pub fn relations(&self) -> Result<Relations, ThreadError> {
        self.recover()?;
        let loaded = load(&self.base().join(RELATIONS), Relations::from_value)?;
        Ok(loaded.map_or_else(|| Relations::empty(self.now()), |loaded| loaded.value))
    }

    /// Lists the threads with a status, or all, oldest first.
    pub fn threads(&self, status: Option<Status>) -> Result<Vec<Thread>, ThreadError> {
        let threads = self.relations()?.threads.into_values();
        let has_status = |thread: &Thread| status.is_none_or(|status| status == thread.status);
        let mut threads: Vec<_> = threads.filter(has_status).collect();
        threads.sort_by_key(|thread| thread.created_at.instant());
        Ok(threads)
    }

    /// Returns one thread; an error if it does not exist.
    pub fn thread(&self, id: &str) -> Result<Thread, ThreadError> {
        let thread = self.relations()?.threads.shift_remove(id);
        thread.ok_or_else(|| ThreadError::ThreadNotFound(id.to_owned()))
    }

    /// Lists all objectives, oldest first.
    pub fn objectives(&self) -> Result<Vec<Objective>, ThreadError> {
        self.recover()?;
        let loaded = load(&self.base().join(OBJECTIVES), Objectives::from_value)?;
        let known = loaded.map(|loaded| loaded.value.objectives).unwrap_or_default();
        let mut objectives: Vec<_> = known.into_values().collect();
        objectives.sort_by_key(|objective| objective.created_at.instant());
        Ok(objectives)
    }

    /// Returns one objective; an error if it does not exist.
    pub fn objective(&self, id: &str) -> Result<Objective, ThreadError> {
        let found = self.objectives()?.into_iter().find(|objective| objective.id.as_str() == id);
        found.ok_or_else(|| ThreadError::ObjectiveNotFound(id.to_owned()))
    }

    /// Problems of stores that were read from their backups because the files cannot be parsed. The next change
    /// repairs them.
    pub fn problems(&self) -> Result<Vec<Problem>, ThreadError> {
        self.recover()?;
        let (threads, objectives) = (self.base().join(RELATIONS), self.base().join(OBJECTIVES));
        let of_threads = load(&threads, Relations::from_value)?.and_then(|it| it.problem);
        let of_objectives = load(&objectives, Objectives::from_value)?.and_then(|it| it.problem);
        let found = [(threads, of_threads), (objectives, of_objectives)];
        let problems = found.into_iter().filter_map(|(path, problem)| {
            Some(Problem::of(&path, format_args!("{}; its backup is used", problem?)))
        });
        Ok(problems.collect())
    }

    /// The folder of a thread's transcripts.
    pub fn transcripts(&self, id: &Id) -> PathBuf {
        self.base().join(THREADS).join(id.as_str()).join(TRANSCRIPTS)
    }

    /// Writes a transcript of a thread, one file per unit, and returns the paths.
    pub fn write_transcript(
        &self,
        id: &str,
        transcript: &Transcript,
    ) -> Result<Vec<PathBuf>, ThreadError> {
        let folder = self.folder(&self.thread(id)?.id)?;
        let transcripts = folder.join(TRANSCRIPTS);
        if !commit::has_real_folders(&folder, TRANSCRIPTS) {
            return Err(ThreadError::NotAFolder(transcripts));
        }
        remove_leftovers(&transcripts);
        Ok(leslie::write(transcript, &transcripts, &self.clock)?)
    }

    /// The folder of a thread. It may be missing; an error if it is not a real folder.
    pub fn folder(&self, id: &Id) -> Result<PathBuf, ThreadError> {
        let path = self.base().join(THREADS).join(id.as_str());
        if fs::symlink_metadata(&path).is_ok_and(|data| !data.is_dir()) {
            return Err(ThreadError::NotAFolder(path));
        }
        Ok(path)
    }

    pub(super) fn base(&self) -> PathBuf {
        self.root.join(BASE)
    }

    /// The current time in UTC, in milliseconds, as the stores state it.
    pub(super) fn now(&self) -> Timestamp {
        let now = self.clock.now().instant();
        let whole = jiff::Timestamp::from_millisecond(now.as_millisecond());
        Timestamp::from_instant(whole.unwrap_or(now), 3)
    }

    /// Changes both stores and the threads' folders atomically.
    pub(super) fn change<T>(
        &self,
        work: impl FnOnce(&mut Draft) -> Result<T, ThreadError>,
    ) -> Result<T, ThreadError> {
        let base = self.base();
        create_private_dir(&base)?;
        let _held = lock::take(&base, &self.clock)?;
        let mut draft = Draft::begin(self)?;
        let result = work(&mut draft)?;
        draft.commit()?;
        Ok(result)
    }

    /// Finishes a change that a crash interrupted.
    fn recover(&self) -> Result<(), ThreadError> {
        let base = self.base();
        if commit::is_pending(&base) {
            let _held = lock::take(&base, &self.clock)?;
            commit::finish(&base)?;
        }
        Ok(())
    }
}

/// The path of a store's backup.
pub(super) fn backup(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".bak");
    name.into()
}

/// Reads a store, or its backup if the file is missing or invalid; `None` if neither exists.
pub(super) fn load<T>(
    path: &Path,
    parse: fn(Value) -> Result<T, Invalid>,
) -> Result<Option<Loaded<T>>, ThreadError> {
    let parse =
        |bytes: &[u8]| -> Result<T, StoreProblem> { Ok(parse(serde_json::from_slice(bytes)?)?) };
    let bytes = read(path)?;
    let problem = match bytes.as_deref().map(parse) {
        Some(Ok(value)) => return Ok(Some(Loaded { value, problem: None, damaged: None })),
        Some(Err(problem)) => problem,
        None => StoreProblem::Missing,
    };
    match read(&backup(path))?.as_deref().map(parse) {
        Some(Ok(value)) => Ok(Some(Loaded { value, problem: Some(problem), damaged: bytes })),
        None if bytes.is_none() => Ok(None),
        _ => Err(ThreadError::Unreadable { path: path.to_owned(), source: problem }),
    }
}

pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, ThreadError> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => Ok(Some(other.on("read", path)?)),
    }
}
