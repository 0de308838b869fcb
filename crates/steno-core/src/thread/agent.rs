//! Which agent works on a thread, so that it can go on with the same one.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::ThreadError;
use super::store::{THREADS, ThreadStore, read};
use crate::json::Style;

/// The file that says so, in a thread's folder.
const RUN: &str = ".meta/run.json";

#[derive(Serialize, Deserialize)]
struct Run {
    agent: String,
}

impl ThreadStore {
    /// By which name or command the thread's agent was last called.
    pub fn agent(&self, id: &str) -> Result<Option<String>, ThreadError> {
        let folder = self.folder(&self.thread(id)?.id)?;
        let run = read(&folder.join(RUN))?;
        let run: Option<Run> = run.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(run.map(|run| run.agent))
    }

    /// Remembers by which name or command the thread's agent is called.
    pub fn set_agent(&self, id: &str, agent: &str) -> Result<(), ThreadError> {
        if self.agent(id)?.as_deref() == Some(agent) {
            return Ok(());
        }
        self.change(|draft| {
            let id = draft.thread(id)?.id.clone();
            draft.folder(&id)?;
            let place = Path::new(THREADS).join(id.as_str()).join(RUN);
            let run = Style::PRETTY.print(&Run { agent: agent.to_owned() }) + "\n";
            Ok(draft.staging.write(&place, run.as_bytes())?)
        })
    }
}
