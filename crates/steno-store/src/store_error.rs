//! Why a session could not be kept.

use std::io;

use steno_agents::reader::FormatError;
use steno_model::SessionId;
use steno_model::durable::FileError;
use steno_vault::AgentNameError;

use crate::index::IndexError;

/// Why a session could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A session file could not be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A lock could not be taken.
    #[error(transparent)]
    Lock(#[from] io::Error),
    /// The session was forgotten, so nothing of it is kept.
    #[error("the session was forgotten and is not kept again: {0}")]
    Forgotten(SessionId),
    /// A session names its agent by a name that no folder can have.
    #[error(transparent)]
    AgentName(#[from] AgentNameError),
}
