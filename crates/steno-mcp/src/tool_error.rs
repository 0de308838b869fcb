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
    /// Reading a file of the store failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Reading a session failed.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl ToolError {
    /// An error about the arguments.
    pub(crate) fn arguments(message: impl Into<String>) -> Self {
        Self::Arguments(message.into())
    }
}
