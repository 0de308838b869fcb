//! Stores which agent works on a thread, so that the thread can continue with the same one.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::ThreadError;
use super::store::{THREADS, ThreadStore, read};
use crate::json::Style;

/// Path of the file in a thread's folder.
const RUN: &str = ".meta/run.json";

#[derive(Serialize, Deserialize)]
struct Run {
    agent: String,
}

impl ThreadStore {
    /// The name or command that last started the thread's agent.
    pub fn agent(&self, id: &str) -> Result<Option<String>, ThreadError> {
        let folder = self.folder(&self.thread(id)?.id)?;
        let run = read(&folder.join(RUN))?;
        let run: Option<Run> = run.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(run.map(|run| run.agent))
    }

    /// Stores the name or command that starts the thread's agent.
    pub fn set_agent(&self, id: &str, agent: &str) -> Result<(), ThreadError> {
        if self.agent(id)?.as_deref() == Some(agent) {
            return Ok(());
        }
        self.change(|draft| {
            let id = draft.thread(id)?.id.clone();
            draft.folder(&id)?;
            let path = Path::new(THREADS).join(id.as_str()).join(RUN);
            let run = Style::PRETTY.print(&Run { agent: agent.to_owned() }) + "\n";
            Ok(draft.staging.write(&path, run.as_bytes())?)
        })
    }
}
