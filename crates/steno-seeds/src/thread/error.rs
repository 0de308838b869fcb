//! Errors and warnings of thread operations, with leslie's texts and codes.

use std::path::PathBuf;

use serde_json::json;

use super::fields::InvalidField;
use super::vocabulary::ThreadStatus;
use super::worker::WorkerState;
use steno_model::durable::FileError;
use steno_model::json::Value;

/// A failed operation on threads.
///
/// Nothing has changed, with one exception: if a file operation failed after the commit, the next operation finishes
/// the change.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// The thread does not exist.
    #[error("Thread '{0}' not found")]
    ThreadNotFound(String),
    /// The objective does not exist.
    #[error("Objective '{0}' not found")]
    ObjectiveNotFound(String),
    /// The thread's status does not allow the action.
    #[error("Invalid state transition from {from} using action {action}")]
    Transition {
        /// The thread's status.
        from: ThreadStatus,
        /// The requested action, which may be unknown.
        action: String,
    },
    /// The target already references the thread, directly or through others.
    #[error("Circular reference detected ({from} -> {target} -> {from})")]
    Circular {
        /// The thread that would reference the target.
        from: String,
        /// The target.
        target: String,
    },
    /// Another process is working in the thread.
    #[error("Thread '{thread}' is busy: {worker}")]
    Busy {
        /// The thread.
        thread: String,
        /// The state of that process.
        worker: WorkerState,
    },
    /// The path of a thread's folder is not a folder.
    #[error("Not a thread's folder: {0}")]
    NotAFolder(PathBuf),
    /// Two sources of a strict merge differ.
    #[error("Merge conflict detected: {0}")]
    Conflict(String),
    /// Another process is changing the stores.
    #[error("File lock failed: {0}")]
    Locked(PathBuf),
    /// Neither a store nor its backup can be read.
    #[error("JSON parse error: {path}")]
    Unreadable {
        /// The store's path.
        path: PathBuf,
        /// Why it cannot be read.
        #[source]
        source: StoreProblem,
    },
    /// A required text is empty.
    #[error("Missing {0}")]
    Empty(&'static str),
    /// No free id was found.
    #[error("No free id for a new {0}")]
    NoFreeId(&'static str),
    /// The guide's file is a symlink to a missing file.
    #[error("Dangling link: {path} -> {target}")]
    DanglingLink {
        /// The symlink.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// The version of a guide cannot be parsed.
    #[error("Invalid Version: {0}")]
    GuideVersion(String),
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Why a store cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreProblem {
    /// The file is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The file is JSON, but a field is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// The file is missing, and its backup cannot be read.
    #[error("the file is missing")]
    Missing,
}

impl ThreadError {
    /// leslie's error code.
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

    /// Additional fields of leslie's error object.
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

/// A part of a successful operation that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThreadWarning {
    /// The target of a reference does not exist.
    #[error("Reference target '{0}' not found")]
    TargetNotFound(String),
    /// A referenced thread does not exist any more.
    #[error("Referenced thread '{0}' not found")]
    ReferencedNotFound(String),
    /// A path leads outside of the thread's folder and was not copied.
    #[error("Path '{0}' leads out of the thread")]
    LeadsOut(String),
    /// A symlink, pipe or other special file was not copied.
    #[error("'{0}' is neither a file nor a folder and was not copied")]
    NotCopied(String),
}

impl ThreadWarning {
    /// leslie's warning code, or Steno's own where leslie has none.
    pub fn code(&self) -> &'static str {
        match self {
            ThreadWarning::TargetNotFound(_) | ThreadWarning::ReferencedNotFound(_) => "W202",
            ThreadWarning::LeadsOut(_) | ThreadWarning::NotCopied(_) => "W203",
        }
    }

    /// Additional fields of leslie's warning object.
    pub fn context(&self) -> Value {
        match self {
            ThreadWarning::TargetNotFound(id) | ThreadWarning::ReferencedNotFound(id) => {
                json!({ "target": id })
            }
            ThreadWarning::LeadsOut(path) | ThreadWarning::NotCopied(path) => {
                json!({ "path": path })
            }
        }
    }
}
