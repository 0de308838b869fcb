//! What the store can say no to, in devflow's words and with the run's name.

use super::run_id::{RunId, RunIdError};
use crate::durable::FileError;
use crate::problem::Problem;
use steno_vault::FormatError;

/// An operation on a run that failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such run.
    #[error("run not found: {0}")]
    NotFound(RunId),
    /// There is such a run already, on disk or being recorded.
    #[error("run already exists: {0}")]
    AlreadyExists(RunId),
    /// Nobody has started this run.
    #[error("run not started: {0}")]
    NotStarted(RunId),
    /// The run is over; nothing more can be recorded.
    #[error("run already ended: {0}")]
    AlreadyEnded(RunId),
    /// A tool call needs a turn to stand in.
    #[error("no turns to add tool call to: {0}")]
    NoTurns(RunId),
    /// Somebody is recording the run, so it cannot be moved or removed.
    #[error("run is being recorded: {0}")]
    Recording(RunId),
    /// The run is there but none of its files can be read.
    #[error("run is corrupt: {id}")]
    Corrupt {
        /// The run.
        id: RunId,
        /// What is wrong with it.
        #[source]
        source: FormatError,
    },
    /// The run has no such artifact.
    #[error("artifact not found: {name} of {id}")]
    ArtifactNotFound {
        /// The run.
        id: RunId,
        /// The artifact.
        name: String,
    },
    /// The artifact is there but cannot be unpacked.
    #[error("artifact is corrupt: {problem}")]
    CorruptArtifact {
        /// The run.
        id: RunId,
        /// What is wrong with it.
        problem: Problem,
    },
    /// There is no archive of such a run.
    #[error("archive not found: {0}")]
    ArchiveNotFound(RunId),
    /// An archive, or a run folder, holds something that must not be unpacked or packed.
    #[error("{what} in {path}: {name:?}")]
    Unsafe {
        /// What it is.
        what: &'static str,
        /// The archive or folder.
        path: std::path::PathBuf,
        /// Its name there.
        name: String,
    },
    /// A cost that is not a number.
    #[error("not a cost: {0}")]
    Cost(f64),
    /// A name that cannot be a run's.
    #[error(transparent)]
    Id(#[from] RunIdError),
    /// The file system said no.
    #[error(transparent)]
    File(#[from] FileError),
}

impl StoreError {
    /// A run whose files could not be read.
    pub(super) fn unreadable(id: RunId, error: FormatError) -> Self {
        match error {
            FormatError::File(error) => StoreError::File(error),
            source @ FormatError::Invalid(_) => StoreError::Corrupt { id, source },
        }
    }
}

impl StoreError {
    /// A run that could not be read, reported beside those that could.
    pub(super) fn problem(self, folder: &std::path::Path) -> Problem {
        match self {
            StoreError::Corrupt { source: FormatError::Invalid(problem), .. } => problem,
            StoreError::Corrupt { source: FormatError::File(error), .. }
            | StoreError::File(error) => file_problem(&error),
            other => Problem::of(folder, other),
        }
    }
}

/// A file that could not be used, told beside what could.
pub(super) fn file_problem(error: &FileError) -> Problem {
    let FileError { action, path, source } = error;
    Problem::of(path, format_args!("could not {action}: {source}"))
}
