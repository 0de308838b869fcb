//! Opens and reads the threads of one project. The operations that change them are in files of their own.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::draft::StoreDraft;
use super::error::{StoreProblem, ThreadError};
use super::fields::InvalidField;
use super::id::{IdSource, LeslieId};
use super::objectives::{Objective, ObjectiveList};
use super::relations::{Thread, ThreadRelations};
use super::vocabulary::ThreadStatus;
use super::{commit, lock};
use crate::leslie;
use steno_model::durable::{OnPath, create_private_dir, remove_leftovers};
use steno_model::json::Value;
use steno_model::problem::Problem;
use steno_model::session::Transcript;
use steno_model::timestamp::{Clock, Timestamp};

/// The folder in a project that has the stores and the threads.
pub(super) const BASE_FOLDER: &str = ".leslie";
pub(super) const RELATIONS_FILE: &str = "thread_relations.json";
pub(super) const OBJECTIVES_FILE: &str = "objectives.json";
pub(super) const THREADS_FOLDER: &str = "threads";
/// Folder of a thread's transcripts.
pub(super) const TRANSCRIPTS_FOLDER: &str = ".meta/transcripts";

/// The threads of one project, in the `.leslie` folder of `root`.
#[derive(Clone, Debug)]
pub struct ThreadStore {
    root: PathBuf,
    clock: Clock,
    pub(super) ids: IdSource,
}

/// A store's file, parsed.
pub(super) struct LoadedStore<T> {
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
        let base = self.base_folder();
        let is_there = |name: &&str| {
            let path = base.join(name);
            path.exists() || backup_path(&path).exists()
        };
        [RELATIONS_FILE, OBJECTIVES_FILE].iter().any(is_there) || commit::is_commit_pending(&base)
    }

    /// Creates the stores that are missing. Writes nothing if both exist.
    pub fn init(&self) -> Result<(), ThreadError> {
        let base = self.base_folder();
        let exists = [RELATIONS_FILE, OBJECTIVES_FILE, THREADS_FOLDER]
            .iter()
            .all(|name| base.join(name).exists());
        if exists && !commit::is_commit_pending(&base) {
            return Ok(());
        }
        self.change_stores(|draft| Ok(draft.staging.create_folder(Path::new(THREADS_FOLDER))?))
    }

    /// Reads threads, operations and links.
    pub fn load_relations(&self) -> Result<ThreadRelations, ThreadError> {
        self.recover_commit()?;
        let loaded =
            load_store(&self.base_folder().join(RELATIONS_FILE), ThreadRelations::from_value)?;
        Ok(loaded.map_or_else(|| ThreadRelations::new(self.now()), |loaded| loaded.value))
    }

    /// Lists the threads with a status, or all, oldest first.
    pub fn list_threads(&self, status: Option<ThreadStatus>) -> Result<Vec<Thread>, ThreadError> {
        let threads = self.load_relations()?.threads.into_values();
        let has_status = |thread: &Thread| status.is_none_or(|status| status == thread.status);
        let mut threads: Vec<_> = threads.filter(has_status).collect();
        threads.sort_by_key(|thread| thread.created_at.instant());
        Ok(threads)
    }

    /// Returns one thread; an error if it does not exist.
    pub fn thread(&self, id: &str) -> Result<Thread, ThreadError> {
        let thread = self.load_relations()?.threads.shift_remove(id);
        thread.ok_or_else(|| ThreadError::ThreadNotFound(id.to_owned()))
    }

    /// Lists all objectives, oldest first.
    pub fn list_objectives(&self) -> Result<Vec<Objective>, ThreadError> {
        self.recover_commit()?;
        let loaded =
            load_store(&self.base_folder().join(OBJECTIVES_FILE), ObjectiveList::from_value)?;
        let known = loaded.map(|loaded| loaded.value.objectives).unwrap_or_default();
        let mut objectives: Vec<_> = known.into_values().collect();
        objectives.sort_by_key(|objective| objective.created_at.instant());
        Ok(objectives)
    }

    /// Returns one objective; an error if it does not exist.
    pub fn objective(&self, id: &str) -> Result<Objective, ThreadError> {
        let found =
            self.list_objectives()?.into_iter().find(|objective| objective.id.as_str() == id);
        found.ok_or_else(|| ThreadError::ObjectiveNotFound(id.to_owned()))
    }

    /// Problems of stores that were read from their backups because the files cannot be parsed. The next change
    /// repairs them.
    pub fn problems(&self) -> Result<Vec<Problem>, ThreadError> {
        self.recover_commit()?;
        let (threads, objectives) =
            (self.base_folder().join(RELATIONS_FILE), self.base_folder().join(OBJECTIVES_FILE));
        let of_threads =
            load_store(&threads, ThreadRelations::from_value)?.and_then(|it| it.problem);
        let of_objectives =
            load_store(&objectives, ObjectiveList::from_value)?.and_then(|it| it.problem);
        let found = [(threads, of_threads), (objectives, of_objectives)];
        let problems = found.into_iter().filter_map(|(path, problem)| {
            Some(Problem::for_file(&path, format_args!("{}; its backup is used", problem?)))
        });
        Ok(problems.collect())
    }

    /// The folder of a thread's transcripts.
    pub fn transcripts_folder(&self, id: &LeslieId) -> PathBuf {
        self.base_folder().join(THREADS_FOLDER).join(id.as_str()).join(TRANSCRIPTS_FOLDER)
    }

    /// Writes a transcript of a thread, one file per unit, and returns the paths.
    pub fn write_transcript(
        &self,
        id: &str,
        transcript: &Transcript,
    ) -> Result<Vec<PathBuf>, ThreadError> {
        let folder = self.thread_folder(&self.thread(id)?.id)?;
        let transcripts = folder.join(TRANSCRIPTS_FOLDER);
        if !commit::has_real_folders(&folder, TRANSCRIPTS_FOLDER) {
            return Err(ThreadError::NotAFolder(transcripts));
        }
        remove_leftovers(&transcripts);
        Ok(leslie::write_units(transcript, &transcripts, &self.clock)?)
    }

    /// The folder of a thread. It may be missing; an error if it is not a real folder.
    pub fn thread_folder(&self, id: &LeslieId) -> Result<PathBuf, ThreadError> {
        let path = self.base_folder().join(THREADS_FOLDER).join(id.as_str());
        if fs::symlink_metadata(&path).is_ok_and(|data| !data.is_dir()) {
            return Err(ThreadError::NotAFolder(path));
        }
        Ok(path)
    }

    pub(super) fn base_folder(&self) -> PathBuf {
        self.root.join(BASE_FOLDER)
    }

    /// The current time in UTC, in milliseconds, as the stores state it.
    pub(super) fn now(&self) -> Timestamp {
        let now = self.clock.now().instant();
        let whole = jiff::Timestamp::from_millisecond(now.as_millisecond());
        Timestamp::from_instant(whole.unwrap_or(now), 3)
    }

    /// Changes both stores and the threads' folders atomically.
    pub(super) fn change_stores<T>(
        &self,
        work: impl FnOnce(&mut StoreDraft) -> Result<T, ThreadError>,
    ) -> Result<T, ThreadError> {
        let base = self.base_folder();
        create_private_dir(&base)?;
        let _held = lock::lock_stores(&base, &self.clock)?;
        let mut draft = StoreDraft::begin(self)?;
        let result = work(&mut draft)?;
        draft.commit()?;
        Ok(result)
    }

    /// Finishes a change that a crash interrupted.
    fn recover_commit(&self) -> Result<(), ThreadError> {
        let base = self.base_folder();
        if commit::is_commit_pending(&base) {
            let _held = lock::lock_stores(&base, &self.clock)?;
            commit::finish_commit(&base)?;
        }
        Ok(())
    }
}

/// The path of a store's backup.
pub(super) fn backup_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".bak");
    name.into()
}

/// Reads a store, or its backup if the file is missing or invalid; `None` if neither exists.
pub(super) fn load_store<T>(
    path: &Path,
    parse: fn(Value) -> Result<T, InvalidField>,
) -> Result<Option<LoadedStore<T>>, ThreadError> {
    let parse =
        |bytes: &[u8]| -> Result<T, StoreProblem> { Ok(parse(serde_json::from_slice(bytes)?)?) };
    let bytes = read_if_exists(path)?;
    let problem = match bytes.as_deref().map(parse) {
        Some(Ok(value)) => return Ok(Some(LoadedStore { value, problem: None, damaged: None })),
        Some(Err(problem)) => problem,
        None => StoreProblem::Missing,
    };
    match read_if_exists(&backup_path(path))?.as_deref().map(parse) {
        Some(Ok(value)) => Ok(Some(LoadedStore { value, problem: Some(problem), damaged: bytes })),
        None if bytes.is_none() => Ok(None),
        _ => Err(ThreadError::Unreadable { path: path.to_owned(), source: problem }),
    }
}

pub(super) fn read_if_exists(path: &Path) -> Result<Option<Vec<u8>>, ThreadError> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => Ok(Some(other.on("read", path)?)),
    }
}
