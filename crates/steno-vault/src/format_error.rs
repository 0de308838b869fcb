//! The error of reading or writing a session as a whole.

use steno_model::durable::FileError;
use steno_model::problem::Problem;

/// A session file that could not be read, or a target that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content does not have this format.
    #[error("{0}")]
    Invalid(Problem),
}

impl FormatError {
    /// Whether the operating system failed to read the file. Its content may be valid.
    pub fn is_system_error(&self) -> bool {
        matches!(self, Self::File(error) if error.source.raw_os_error().is_some())
    }
}
