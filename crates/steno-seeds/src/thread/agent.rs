//! Stores which agent works on a thread, so that the thread can continue with the same one.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::ThreadError;
use super::store::{THREADS_FOLDER, ThreadStore, read_if_exists};
use steno_model::json::JsonStyle;

/// Path of the file in a thread's folder.
const RUN_FILE: &str = ".meta/run.json";

#[derive(Serialize, Deserialize)]
struct ThreadAgentFile {
    agent: String,
}

impl ThreadStore {
    /// The name or command that last started the thread's agent.
    pub fn agent(&self, id: &str) -> Result<Option<String>, ThreadError> {
        let folder = self.thread_folder(&self.thread(id)?.id)?;
        let run = read_if_exists(&folder.join(RUN_FILE))?;
        let run: Option<ThreadAgentFile> =
            run.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(run.map(|run| run.agent))
    }

    /// Stores the name or command that starts the thread's agent.
    pub fn set_agent(&self, id: &str, agent: &str) -> Result<(), ThreadError> {
        if self.agent(id)?.as_deref() == Some(agent) {
            return Ok(());
        }
        self.change_stores(|draft| {
            let id = draft.thread_mut(id)?.id.clone();
            draft.thread_folder(&id)?;
            let path = Path::new(THREADS_FOLDER).join(id.as_str()).join(RUN_FILE);
            let run = JsonStyle::PRETTY.print(&ThreadAgentFile { agent: agent.to_owned() }) + "\n";
            Ok(draft.staging.write_file(&path, run.as_bytes())?)
        })
    }
}
