//! Operations on a whole thread: change its status, transfer it, inject a text.

use std::path::Path;

use serde_json::json;

use super::error::ThreadError;
use super::relations::Thread;
use super::spawn::one_line;
use super::store::{THREADS, ThreadStore};
use super::words::{Action, Direction, Executor, Operator, Status};
use crate::timestamp::Timestamp;

/// A request to change a thread's status.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    /// The thread's id.
    pub thread: String,
    /// The action.
    pub action: Action,
    /// The reason, for the log of operations.
    pub reason: Option<String>,
    /// Who requests it.
    pub operator: Operator,
}

/// A request to transfer a thread.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The thread's id.
    pub thread: String,
    /// The direction.
    pub direction: Direction,
    /// The parts to transfer.
    pub scope: Vec<String>,
    /// The reason, for the log of operations.
    pub reason: Option<String>,
    /// The new executor.
    pub executor: Option<Executor>,
    /// Who requests it.
    pub operator: Operator,
}

/// A request to inject a text into a thread.
#[derive(Clone, Debug)]
pub struct Inject {
    /// The thread's id.
    pub thread: String,
    /// The kind of text, such as `constraint`.
    pub kind: String,
    /// The text.
    pub content: String,
    /// Who requests it.
    pub operator: Operator,
}

impl ThreadStore {
    /// Changes a thread's status, and updates the status of its objective.
    pub fn lifecycle(&self, change: &Lifecycle) -> Result<Thread, ThreadError> {
        self.change(|draft| {
            let now = draft.now;
            let thread = draft.thread(&change.thread)?;
            let (from, action) = (thread.status, change.action);
            let refused = || ThreadError::Transition { from, action: action.to_string() };
            thread.status = from.after(action).ok_or_else(refused)?;
            thread.updated_at = now;
            let thread = thread.clone();
            draft.touch_objective(&thread.objective);
            let params = [
                ("thread_id", json!(change.thread)),
                ("action", json!(action)),
                ("reason", json!(change.reason)),
            ];
            draft.record("lifecycle", change.operator, params)?;
            Ok(thread)
        })
    }

    /// Activates a thread because work in it begins. A completed thread is reopened.
    pub fn activate(&self, id: &str, operator: Operator) -> Result<Thread, ThreadError> {
        self.change(|draft| {
            let now = draft.now;
            let thread = draft.thread(id)?;
            let from = thread.status;
            if from == Status::Active {
                return Ok(thread.clone());
            }
            let is_open = matches!(from, Status::Suspended | Status::WaitingHuman);
            if !is_open && from != Status::Completed {
                let action = Action::Resume.to_string();
                return Err(ThreadError::Transition { from, action });
            }
            (thread.status, thread.updated_at) = (Status::Active, now);
            let thread = thread.clone();
            draft.touch_objective(&thread.objective);
            let params = [
                ("thread_id", json!(id)),
                ("action", json!(Action::Resume)),
                ("reason", json!(null)),
            ];
            draft.record("lifecycle", operator, params)?;
            Ok(thread)
        })
    }

    /// Transfers a thread, regardless of its status.
    pub fn transfer(&self, transfer: &Transfer) -> Result<Thread, ThreadError> {
        self.change(|draft| {
            let now = draft.now;
            let thread = draft.thread(&transfer.thread)?;
            if transfer.direction == Direction::RequestApproval {
                thread.status = Status::WaitingHuman;
            } else {
                thread.executor = transfer.executor.unwrap_or(thread.executor);
                if thread.status == Status::WaitingHuman {
                    thread.status = Status::Active;
                }
            }
            thread.updated_at = now;
            let thread = thread.clone();
            let params = [
                ("thread_id", json!(transfer.thread)),
                ("direction", json!(transfer.direction)),
                ("scope", json!(transfer.scope)),
                ("reason", json!(transfer.reason)),
                ("target_executor", json!(transfer.executor)),
            ];
            draft.record("transfer", transfer.operator, params)?;
            Ok(thread)
        })
    }

    /// Appends a text to the thread's `.meta/injections.log`, and returns the time.
    pub fn inject(&self, inject: &Inject) -> Result<Timestamp, ThreadError> {
        self.change(|draft| {
            let id = draft.thread(&inject.thread)?.id.clone();
            draft.folder(&id)?;
            let path = Path::new(THREADS).join(id.as_str()).join(".meta/injections.log");
            let (kind, content) = (one_line(&inject.kind), one_line(&inject.content));
            draft.append(&path, &format!("{} type={kind} content={content}", draft.now))?;
            let params = [
                ("thread_id", json!(inject.thread)),
                ("type", json!(inject.kind)),
                ("content", json!(inject.content)),
            ];
            draft.record("inject", inject.operator, params)?;
            Ok(draft.now)
        })
    }

    /// Stores the agent's session id, with which the thread can be resumed.
    pub fn set_session(&self, id: &str, session: &str) -> Result<Thread, ThreadError> {
        self.change(|draft| {
            let now = draft.now;
            let thread = draft.thread(id)?;
            if thread.session_id.as_deref() != Some(session) {
                thread.session_id = Some(session.to_owned());
                thread.updated_at = now;
            }
            Ok(thread.clone())
        })
    }
}
