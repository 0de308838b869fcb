//! Operations on a whole thread: change its status, transfer it, inject a text.

use std::path::Path;

use serde_json::json;

use super::error::ThreadError;
use super::relations::Thread;
use super::spawn::escape_line_breaks;
use super::store::{THREADS_FOLDER, ThreadStore};
use super::vocabulary::{Executor, LifecycleAction, Operator, ThreadStatus, TransferDirection};
use steno_model::timestamp::Timestamp;

/// A request to change a thread's status.
#[derive(Clone, Debug)]
pub struct StatusChange {
    /// The thread's id.
    pub thread: String,
    /// The action.
    pub action: LifecycleAction,
    /// The reason, for the log of operations.
    pub reason: Option<String>,
    /// Who requests it.
    pub operator: Operator,
}

/// A request to transfer a thread.
#[derive(Clone, Debug)]
pub struct ThreadTransfer {
    /// The thread's id.
    pub thread: String,
    /// The direction.
    pub direction: TransferDirection,
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
pub struct ThreadInjection {
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
    pub fn change_status(&self, change: &StatusChange) -> Result<Thread, ThreadError> {
        self.change_stores(|draft| {
            let now = draft.now;
            let thread = draft.thread_mut(&change.thread)?;
            let (from, action) = (thread.status, change.action);
            let refused = || ThreadError::Transition { from, action: action.to_string() };
            thread.status = from.after_action(action).ok_or_else(refused)?;
            thread.updated_at = now;
            let thread = thread.clone();
            draft.touch_objective(&thread.objective);
            let params = [
                ("thread_id", json!(change.thread)),
                ("action", json!(action)),
                ("reason", json!(change.reason)),
            ];
            draft.record_operation("lifecycle", change.operator, params)?;
            Ok(thread)
        })
    }

    /// Activates a thread because work in it begins. A completed thread is reopened.
    pub fn activate_thread(&self, id: &str, operator: Operator) -> Result<Thread, ThreadError> {
        self.change_stores(|draft| {
            let now = draft.now;
            let thread = draft.thread_mut(id)?;
            let from = thread.status;
            if from == ThreadStatus::Active {
                return Ok(thread.clone());
            }
            let is_open = matches!(from, ThreadStatus::Suspended | ThreadStatus::WaitingHuman);
            if !is_open && from != ThreadStatus::Completed {
                let action = LifecycleAction::Resume.to_string();
                return Err(ThreadError::Transition { from, action });
            }
            (thread.status, thread.updated_at) = (ThreadStatus::Active, now);
            let thread = thread.clone();
            draft.touch_objective(&thread.objective);
            let params = [
                ("thread_id", json!(id)),
                ("action", json!(LifecycleAction::Resume)),
                ("reason", json!(null)),
            ];
            draft.record_operation("lifecycle", operator, params)?;
            Ok(thread)
        })
    }

    /// Transfers a thread, regardless of its status.
    pub fn transfer_thread(&self, transfer: &ThreadTransfer) -> Result<Thread, ThreadError> {
        self.change_stores(|draft| {
            let now = draft.now;
            let thread = draft.thread_mut(&transfer.thread)?;
            if transfer.direction == TransferDirection::RequestApproval {
                thread.status = ThreadStatus::WaitingHuman;
            } else {
                thread.executor = transfer.executor.unwrap_or(thread.executor);
                if thread.status == ThreadStatus::WaitingHuman {
                    thread.status = ThreadStatus::Active;
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
            draft.record_operation("transfer", transfer.operator, params)?;
            Ok(thread)
        })
    }

    /// Appends a text to the thread's `.meta/injections.log`, and returns the time.
    pub fn inject_text(&self, inject: &ThreadInjection) -> Result<Timestamp, ThreadError> {
        self.change_stores(|draft| {
            let id = draft.thread_mut(&inject.thread)?.id.clone();
            draft.thread_folder(&id)?;
            let path = Path::new(THREADS_FOLDER).join(id.as_str()).join(".meta/injections.log");
            let (kind, content) =
                (escape_line_breaks(&inject.kind), escape_line_breaks(&inject.content));
            draft.append_line(&path, &format!("{} type={kind} content={content}", draft.now))?;
            let params = [
                ("thread_id", json!(inject.thread)),
                ("type", json!(inject.kind)),
                ("content", json!(inject.content)),
            ];
            draft.record_operation("inject", inject.operator, params)?;
            Ok(draft.now)
        })
    }

    /// Stores the agent's session id, with which the thread can be resumed.
    pub fn set_session(&self, id: &str, session: &str) -> Result<Thread, ThreadError> {
        self.change_stores(|draft| {
            let now = draft.now;
            let thread = draft.thread_mut(id)?;
            if thread.session_id.as_deref() != Some(session) {
                thread.session_id = Some(session.to_owned());
                thread.updated_at = now;
            }
            Ok(thread.clone())
        })
    }
}
