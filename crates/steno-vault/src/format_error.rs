//! The error of reading or writing a session as a whole.

use steno_model::durable::FileError;
use steno_model::problem::Problem;

/// A source that could not be read, or a target that could not be written, as a whole.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file system said no.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content is not of this format.
    #[error("{0}")]
    Invalid(Problem),
}

impl FormatError {
    /// Whether the system failed to read the file, whose content may be fine.
    pub fn is_of_system(&self) -> bool {
        matches!(self, Self::File(error) if error.source.raw_os_error().is_some())
    }
}
