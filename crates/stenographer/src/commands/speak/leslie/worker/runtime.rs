//! The folder in which leslie's `run` notes what happens, for whoever looks on.

use std::path::PathBuf;

use serde_json::{Value, json};
use steno_core::durable::{self, FileError};
use steno_core::thread::{Objective, Thread};

use super::super::answer::{Failure, with_causes};
use super::{Desk, Report};

/// The folder of one run.
pub(super) struct Runtime {
    pub(super) folder: PathBuf,
}

impl Runtime {
    /// Makes the folder, with the places where leslie leaves questions and answers.
    pub(super) fn begin(desk: &Desk<'_>, objective: &Objective) -> Result<Self, Failure> {
        let moment = desk.now().instant().as_millisecond();
        let name = format!(".leslie/runtime/{}-{moment}", objective.id);
        let folder = desk.store.root().join(name);
        for place in ["approvals/requests", "approvals/responses"] {
            durable::create_private_dir(&folder.join(place)).map_err(failed)?;
        }
        Ok(Self { folder })
    }

    /// Notes that an agent begins.
    pub(super) fn started(&self, desk: &Desk<'_>, thread: &Thread) -> Result<(), Failure> {
        self.note(desk, thread, json!({ "type": "thread_started", "source": "run" }))
    }

    /// Notes what an agent said, and that it has ended.
    pub(super) fn ended(
        &self,
        desk: &Desk<'_>,
        thread: &Thread,
        report: &Report,
    ) -> Result<(), Failure> {
        if !report.said.is_empty() {
            self.note(desk, thread, json!({ "type": "assistant_text", "text": report.said }))?;
        }
        let success = report.failure.is_none();
        self.note(desk, thread, json!({ "type": "worker_exit", "success": success }))
    }

    fn note(&self, desk: &Desk<'_>, thread: &Thread, event: Value) -> Result<(), Failure> {
        super::note(desk, thread, &self.folder.join("events.ndjson"), event)
    }
}

fn failed(error: FileError) -> Failure {
    Failure::unknown(with_causes(&error))
}
