//! The folder in which leslie's `run` records events and approval requests.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use steno_model::durable::{self, FileError};
use steno_seeds::thread::{Objective, Thread};

use super::super::response::{LeslieFailure, join_causes};
use super::LeslieContext;
use crate::process_environment::ProcessEnvironment;

/// Variable that tells a worker its run.
pub(super) const RUNTIME_VARIABLE: &str = "LESLIE_RUNTIME_DIR";

/// The folder of one run.
pub(super) struct RuntimeFolder {
    pub(super) folder: PathBuf,
}

impl RuntimeFolder {
    /// Creates the folder and its subfolders for approvals.
    pub(super) fn create(
        context: &LeslieContext<'_>,
        objective: &Objective,
    ) -> Result<Self, LeslieFailure> {
        let moment = context.now().instant().as_millisecond();
        let name = format!(".leslie/runtime/{}-{moment}", objective.id);
        let runtime = Self { folder: context.store.root().join(name) };
        for place in [runtime.requests_folder(), runtime.responses_folder()] {
            durable::create_private_dir(&place).map_err(to_failure)?;
        }
        durable::append_lines(&runtime.events_file(), b"").map_err(to_failure)?;
        Ok(runtime)
    }

    /// Returns the run that this process is part of.
    pub(super) fn from_environment() -> Option<Self> {
        let folder = PathBuf::from(ProcessEnvironment::variable(RUNTIME_VARIABLE)?);
        folder.join("events.ndjson").is_file().then_some(Self { folder })
    }

    /// Returns the variable that passes the run on to a child process.
    pub(super) fn environment_variable(&self) -> (&'static str, OsString) {
        (RUNTIME_VARIABLE, self.folder.clone().into_os_string())
    }

    pub(super) fn requests_folder(&self) -> PathBuf {
        self.folder.join("approvals/requests")
    }

    pub(super) fn responses_folder(&self) -> PathBuf {
        self.folder.join("approvals/responses")
    }

    fn events_file(&self) -> PathBuf {
        self.folder.join("events.ndjson")
    }

    /// Returns whether the caller may start the thread's first worker. Both its spawner and the run see a new thread;
    /// only one of them gets the claim.
    pub(super) fn claim_thread(&self, thread: &Thread) -> Result<bool, LeslieFailure> {
        let claims = self.folder.join("claims");
        durable::create_private_dir(&claims).map_err(to_failure)?;
        durable::create_atomic(&claims.join(thread.id.as_str()), b"").map_err(to_failure)
    }

    /// Appends an event of a thread.
    pub(super) fn append_event(
        &self,
        context: &LeslieContext<'_>,
        thread: &Thread,
        kind: &str,
        fields: Value,
    ) -> Result<(), LeslieFailure> {
        let mut event = json!({ "type": kind, "threadId": thread.id });
        for (name, value) in fields.as_object().into_iter().flatten() {
            event[name] = value.clone();
        }
        event["timestamp"] = json!(context.now());
        durable::append_lines(&self.events_file(), format!("{event}\n").as_bytes())
            .map_err(to_failure)
    }

    /// Returns the state of each thread that has or had a worker.
    pub(super) fn worker_states(&self) -> HashMap<String, LeslieWorkerState> {
        let text = fs::read_to_string(self.events_file()).unwrap_or_default();
        let mut states = HashMap::new();
        for event in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let state = match event["type"].as_str() {
                Some("thread_started") => LeslieWorkerState::Busy(event["pid"].as_u64()),
                Some("worker_exit") => {
                    LeslieWorkerState::Over { went_well: event["success"] == true }
                }
                _ => continue,
            };
            states.insert(event["threadId"].as_str().unwrap_or_default().to_owned(), state);
        }
        states
    }
}

/// State of a thread's worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeslieWorkerState {
    /// Running, with this process id.
    Busy(Option<u64>),
    /// Ended.
    Over { went_well: bool },
}

pub(super) fn to_failure(error: FileError) -> LeslieFailure {
    LeslieFailure::without_code(join_causes(&error))
}
