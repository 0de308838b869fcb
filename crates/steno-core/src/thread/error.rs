//! What can go wrong with threads, in leslie's words and with leslie's codes.

use std::path::PathBuf;

use serde_json::json;

use super::fields::Invalid;
use super::words::Status;
use super::worker::WorkerState;
use crate::durable::FileError;
use crate::json::Value;

/// An operation on threads that failed. Nothing has changed; only where the file system failed at the very end,
/// the next operation finishes this one.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// There is no such thread.
    #[error("Thread '{0}' not found")]
    ThreadNotFound(String),
    /// There is no such objective.
    #[error("Objective '{0}' not found")]
    ObjectiveNotFound(String),
    /// The thread's status does not allow that.
    #[error("Invalid state transition from {from} using action {action}")]
    Transition {
        /// Where the thread stands.
        from: Status,
        /// What was asked for, be it an action or not.
        action: String,
    },
    /// The target refers, directly or not, to the thread that should refer to it.
    #[error("Circular reference detected ({from} -> {target} -> {from})")]
    Circular {
        /// The thread that should refer.
        from: String,
        /// The thread that should be referred to.
        target: String,
    },
    /// Another process works in the thread.
    #[error("Thread '{thread}' is busy: {worker}")]
    Busy {
        /// The thread.
        thread: String,
        /// Who works there.
        worker: WorkerState,
    },
    /// Where a thread's folder should be, something else is.
    #[error("Not a thread's folder: {0}")]
    NotAFolder(PathBuf),
    /// Two sources of a strict merge differ.
    #[error("Merge conflict detected: {0}")]
    Conflict(String),
    /// Somebody else is changing the stores.
    #[error("File lock failed: {0}")]
    Locked(PathBuf),
    /// A store cannot be read, and neither can its backup.
    #[error("JSON parse error: {path}")]
    Unreadable {
        /// The store.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: StoreProblem,
    },
    /// A text that must say something is empty.
    #[error("Missing {0}")]
    Empty(&'static str),
    /// Every id that was drawn is taken.
    #[error("No free id for a new {0}")]
    NoFreeId(&'static str),
    /// The guide's file is a link that leads nowhere.
    #[error("Dangling link: {path} -> {target}")]
    DanglingLink {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// A guide's version is none.
    #[error("Invalid Version: {0}")]
    GuideVersion(String),
    /// The file system said no.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Why a store cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreProblem {
    /// It is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It is JSON, but something in it is not as it must be.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// It is not there, and its backup cannot be read.
    #[error("the file is missing")]
    Missing,
}

impl ThreadError {
    /// leslie's code for this error.
    pub fn code(&self) -> &'static str {
        match self {
            ThreadError::ThreadNotFound(_) => "T101",
            ThreadError::Transition { .. } => "T102",
            ThreadError::Circular { .. } => "T201",
            ThreadError::NotAFolder(_) => "T202",
            ThreadError::Conflict(_) => "T301",
            ThreadError::Locked(_) | ThreadError::Busy { .. } => "T501",
            ThreadError::Unreadable { .. } => "T502",
            ThreadError::ObjectiveNotFound(_) => "T601",
            ThreadError::NoFreeId(_) => "T901",
            ThreadError::Empty(_)
            | ThreadError::DanglingLink { .. }
            | ThreadError::GuideVersion(_)
            | ThreadError::File(_) => "T902",
        }
    }

    /// What leslie tells besides the message.
    pub fn details(&self) -> Option<Value> {
        match self {
            ThreadError::ThreadNotFound(id) => Some(json!({ "threadId": id })),
            ThreadError::ObjectiveNotFound(id) => Some(json!({ "objectiveId": id })),
            ThreadError::Transition { from, action } => {
                Some(json!({ "from": from, "action": action }))
            }
            ThreadError::Circular { from, target } => {
                Some(json!({ "from": from, "target": target }))
            }
            ThreadError::Busy { thread, worker } => {
                let WorkerState { pid, since, .. } = worker;
                Some(json!({ "threadId": thread, "pid": pid, "since": since }))
            }
            ThreadError::Conflict(file) => Some(json!({ "file": file })),
            ThreadError::Locked(path) => {
                Some(json!({ "filePath": path, "cause": "Lock file is already being held" }))
            }
            ThreadError::Unreadable { path, source } => {
                Some(json!({ "filePath": path, "cause": source.to_string() }))
            }
            _ => None,
        }
    }
}

/// Something that was left out of an operation that succeeded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// A reference points to a thread that does not exist.
    #[error("Reference target '{0}' not found")]
    TargetNotFound(String),
    /// A thread that is referred to does not exist any more.
    #[error("Referenced thread '{0}' not found")]
    ReferencedNotFound(String),
    /// A path leads out of the thread's folder; nothing of it was copied.
    #[error("Path '{0}' leads out of the thread")]
    LeadsOut(String),
    /// A link, pipe or the like was not copied.
    #[error("'{0}' is neither a file nor a folder and was not copied")]
    NotCopied(String),
}

impl Warning {
    /// leslie's code for this warning; ours for those that leslie has not.
    pub fn code(&self) -> &'static str {
        match self {
            Warning::TargetNotFound(_) | Warning::ReferencedNotFound(_) => "W202",
            Warning::LeadsOut(_) | Warning::NotCopied(_) => "W203",
        }
    }

    /// What leslie tells besides the message.
    pub fn context(&self) -> Value {
        match self {
            Warning::TargetNotFound(id) | Warning::ReferencedNotFound(id) => {
                json!({ "target": id })
            }
            Warning::LeadsOut(path) | Warning::NotCopied(path) => json!({ "path": path }),
        }
    }
}
