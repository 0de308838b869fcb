//! Errors of the store, with devflow's texts and the run's name.

use super::run_id::{RunId, RunIdError};
use steno_model::durable::FileError;
use steno_model::problem::Problem;
use steno_vault::FormatError;

/// A failed operation on a run.
#[derive(Debug, thiserror::Error)]
pub enum RunStoreError {
    /// The run does not exist.
    #[error("run not found: {0}")]
    NotFound(RunId),
    /// The run exists already, on disk or being recorded.
    #[error("run already exists: {0}")]
    AlreadyExists(RunId),
    /// The run was not started.
    #[error("run not started: {0}")]
    NotStarted(RunId),
    /// The run has ended and cannot be recorded any more.
    #[error("run already ended: {0}")]
    AlreadyEnded(RunId),
    /// A tool call needs a turn to belong to.
    #[error("no turns to add tool call to: {0}")]
    NoTurns(RunId),
    /// A process is recording the run, so it cannot be moved or removed.
    #[error("run is being recorded: {0}")]
    Recording(RunId),
    /// The run exists, but none of its files can be read.
    #[error("run is corrupt: {id}")]
    Corrupt {
        /// The run.
        id: RunId,
        /// The error.
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
    /// The artifact exists but cannot be decompressed.
    #[error("artifact is corrupt: {problem}")]
    CorruptArtifact {
        /// The run.
        id: RunId,
        /// The problem.
        problem: Problem,
    },
    /// The run has no archive.
    #[error("archive not found: {0}")]
    ArchiveNotFound(RunId),
    /// An archive or run folder has an entry that must not be unpacked or packed.
    #[error("{what} in {path}: {name:?}")]
    Unsafe {
        /// The kind of entry.
        what: &'static str,
        /// The archive or folder.
        path: std::path::PathBuf,
        /// The entry's name.
        name: String,
    },
    /// A cost that is not a finite number.
    #[error("cost is not a finite number: {0}")]
    Cost(f64),
    /// The name is not a valid run id.
    #[error(transparent)]
    Id(#[from] RunIdError),
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
}

impl RunStoreError {
    /// Converts an error of reading a run's files.
    pub(super) fn from_format_error(id: RunId, error: FormatError) -> Self {
        match error {
            FormatError::File(error) => RunStoreError::File(error),
            source @ FormatError::Invalid(_) => RunStoreError::Corrupt { id, source },
        }
    }
}

impl RunStoreError {
    /// Converts the error to a problem, so that other runs can still be listed.
    pub(super) fn problem(self, folder: &std::path::Path) -> Problem {
        match self {
            RunStoreError::Corrupt { source: FormatError::Invalid(problem), .. } => problem,
            RunStoreError::Corrupt { source: FormatError::File(error), .. }
            | RunStoreError::File(error) => file_problem(&error),
            other => Problem::for_file(folder, other),
        }
    }
}

/// Converts a file error to a problem, so that other files can still be used.
pub(super) fn file_problem(error: &FileError) -> Problem {
    let FileError { action, path, source } = error;
    Problem::for_file(path, format_args!("could not {action}: {source}"))
}
