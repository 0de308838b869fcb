//! Why a tool has no answer. The agent reads these messages, so they say how to call the tool.

use steno_model::durable::FileError;
use steno_store::index::IndexError;
use steno_vault::FormatError;

/// Why a tool has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// The arguments are wrong.
    #[error("{0}")]
    Arguments(String),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A file of the store could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A session could not be read.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl ToolError {
    /// An error about the arguments.
    pub(crate) fn arguments(message: impl Into<String>) -> Self {
        Self::Arguments(message.into())
    }
}
