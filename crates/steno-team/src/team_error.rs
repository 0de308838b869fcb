//! Errors of remotes. No message contains a password or a text of a session.

use std::path::PathBuf;

use steno_model::durable::FileError;
use steno_store::StoreError;
use steno_store::forget::ForgetError;
use steno_store::index::IndexError;

/// Why a remote cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A session could not be forgotten.
    #[error(transparent)]
    Forget(#[from] ForgetError),
    /// The database could not be reached.
    #[error("could not connect to {remote}: {reason}")]
    Connection {
        /// The URL.
        remote: String,
        /// What failed.
        reason: String,
    },
    /// The database refused a request.
    #[error("{remote}: could not {action}: {reason}")]
    Database {
        /// The URL.
        remote: String,
        /// What was tried.
        action: &'static str,
        /// What the database answered.
        reason: String,
    },
    /// A bucket refused a request, or could not be reached.
    #[error("{remote}: could not {action}: {reason}")]
    Objects {
        /// The URL.
        remote: String,
        /// What was tried.
        action: &'static str,
        /// What the bucket answered.
        reason: String,
    },
    /// No key of this user opens the key of the team.
    #[error("no key of yours opens the remote: {0}")]
    NoKey(String),
    /// The keys of a bucket are elsewhere.
    #[error("these are the keys of another bucket, or the bucket's keys are elsewhere: {0}")]
    OtherKeys(String),
    /// The remote was never initialised.
    #[error("the remote is not initialised: {0}")]
    NotInitialised(String),
    /// The role belongs to no team, so it sees nothing and pushes nothing.
    #[error("{role} is not a member of a team in {remote}")]
    NotMember {
        /// The role that has logged in.
        role: String,
        /// The URL.
        remote: String,
    },
    /// An older version of Steno initialised the remote.
    #[error("the remote has schema {found}, but this version needs {needed}: {remote}")]
    OlderSchema {
        /// The remote.
        remote: String,
        /// Its schema.
        found: i64,
        /// The schema of this version.
        needed: i64,
    },
    /// A newer version of Steno initialised the remote.
    #[error("the remote has schema {found}, but this version knows only {known}: {remote}")]
    NewerSchema {
        /// The remote.
        remote: String,
        /// Its schema.
        found: i64,
        /// The schema of this version.
        known: i64,
    },
    /// The remote cannot remove old sessions.
    #[error("only a database can remove old sessions")]
    RetentionUnsupported,
    /// A session on the remote cannot be read.
    #[error("{session} on the remote is damaged: {reason}")]
    Damaged {
        /// The session.
        session: String,
        /// What is wrong.
        reason: String,
    },
    /// Another machine changed the session again and again while this one pushed it.
    #[error("another machine keeps changing {0} on the remote")]
    Contended(String),
    /// The session was forgotten on the remote.
    #[error("{0} was forgotten on the remote")]
    Forgotten(String),
    /// The copy of a file for the remote could not be read.
    #[error("{path}: {reason}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}
