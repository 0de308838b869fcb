//! What happens to a thread as a whole: its status, who works on it, what it is told.

use std::path::Path;

use serde_json::json;

use super::error::ThreadError;
use super::relations::Thread;
use super::spawn::one_line;
use super::store::{THREADS, ThreadStore};
use super::words::{Action, Direction, Executor, Operator, Status};
use crate::timestamp::Timestamp;

/// A change of a thread's status.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    /// The thread.
    pub thread: String,
    /// What is done with it.
    pub action: Action,
    /// Why.
    pub reason: Option<String>,
    /// Who asks for it.
    pub operator: Operator,
}

/// A thread that is handed to somebody.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The thread.
    pub thread: String,
    /// To whom.
    pub direction: Direction,
    /// What of it.
    pub scope: Vec<String>,
    /// Why.
    pub reason: Option<String>,
    /// Who shall work on it.
    pub executor: Option<Executor>,
    /// Who asks for it.
    pub operator: Operator,
}

/// Something that a thread is told.
#[derive(Clone, Debug)]
pub struct Inject {
    /// The thread.
    pub thread: String,
    /// What it is, such as `constraint`.
    pub kind: String,
    /// The text.
    pub content: String,
    /// Who tells it.
    pub operator: Operator,
}

impl ThreadStore {
    /// Changes a thread's status; its objective follows.
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

    /// Makes a thread active because somebody begins to work in it; one that was completed is opened again.
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

    /// Hands a thread to somebody, whatever its status.
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

    /// Tells a thread something, and gives the time: it stands in the thread's `.meta/injections.log`.
    pub fn inject(&self, inject: &Inject) -> Result<Timestamp, ThreadError> {
        self.change(|draft| {
            let id = draft.thread(&inject.thread)?.id.clone();
            draft.folder(&id)?;
            let place = Path::new(THREADS).join(id.as_str()).join(".meta/injections.log");
            let (kind, content) = (one_line(&inject.kind), one_line(&inject.content));
            draft.append(&place, &format!("{} type={kind} content={content}", draft.now))?;
            let params = [
                ("thread_id", json!(inject.thread)),
                ("type", json!(inject.kind)),
                ("content", json!(inject.content)),
            ];
            draft.record("inject", inject.operator, params)?;
            Ok(draft.now)
        })
    }

    /// Remembers the agent's session, by which the thread can go on.
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
