//! Creates objectives and threads.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::assets::{ASSET_PATHS, storage_path};
use super::draft::StoreDraft;
use super::error::{ThreadError, ThreadWarning};
use super::file_copy::ThreadCopier;
use super::id::LeslieId;
use super::objectives::Objective;
use super::reference::ReferenceRequest;
use super::relations::Thread;
use super::store::{THREADS_FOLDER, TRANSCRIPTS_FOLDER, ThreadStore};
use super::vocabulary::{
    Executor, Inheritance, ObjectiveStatus, Operator, ReferenceBinding, ThreadStatus,
};
use steno_model::json::Object;

/// A request to spawn a thread.
#[derive(Clone, Debug)]
pub struct SpawnRequest {
    /// The goal.
    pub intent: String,
    /// The objective's id.
    pub objective: String,
    /// The parent thread.
    pub parent: Option<String>,
    /// What it inherits from its parent.
    pub inherit: Inheritance,
    /// The paths that it inherits if `inherit` is partial.
    pub scope: Vec<String>,
    /// The threads that it references.
    pub references: Vec<String>,
    /// Tags.
    pub tags: Option<Vec<String>>,
    /// Who will work on it.
    pub executor: Executor,
    /// Who requests it.
    pub operator: Operator,
}

/// A thread that was spawned.
#[derive(Clone, Debug, PartialEq)]
pub struct SpawnedThread {
    /// The thread.
    pub thread: Thread,
    /// What was skipped.
    pub warnings: Vec<ThreadWarning>,
}

impl SpawnRequest {
    /// A request by the user for a thread without a parent, to be worked on by an agent.
    pub fn new(intent: impl Into<String>, objective: impl Into<String>) -> Self {
        Self {
            intent: intent.into(),
            objective: objective.into(),
            parent: None,
            inherit: Inheritance::None,
            scope: Vec::new(),
            references: Vec::new(),
            tags: Some(Vec::new()),
            executor: Executor::Agent,
            operator: Operator::User,
        }
    }
}

impl ThreadStore {
    /// Creates an objective and its log.
    pub fn create_objective(&self, title: &str) -> Result<Objective, ThreadError> {
        if title.is_empty() {
            return Err(ThreadError::Empty("title"));
        }
        self.change_stores(|draft| {
            let objective = Objective {
                id: draft.new_item_id("obj")?,
                title: title.to_owned(),
                created_at: draft.now,
                updated_at: draft.now,
                status: ObjectiveStatus::Active,
                thread_ids: Vec::new(),
                extra: Object::new(),
            };
            let log = Path::new("logs").join(objective.id.as_str()).join("objective.log");
            draft.append_line(&log, &created_line(&objective))?;
            draft.objectives.objectives.insert(objective.id.clone(), objective.clone());
            Ok(objective)
        })
    }

    /// The folder of an objective's logs.
    pub fn log_folder(&self, objective: &LeslieId) -> PathBuf {
        self.base_folder().join("logs").join(objective.as_str())
    }

    /// Spawns a thread, creates its folder, and copies what it inherits and references.
    pub fn spawn_thread(&self, spawn: &SpawnRequest) -> Result<SpawnedThread, ThreadError> {
        if spawn.intent.is_empty() {
            return Err(ThreadError::Empty("intent"));
        }
        self.change_stores(|draft| {
            let thread = draft.add_thread(spawn)?;
            draft.create_thread_folder(spawn, &thread)?;
            for target in &spawn.references {
                draft.add_reference(&ReferenceRequest {
                    from: thread.id.to_string(),
                    target: target.clone(),
                    binding: ReferenceBinding::Frozen,
                    scope: None,
                    operator: spawn.operator,
                })?;
            }
            Ok(SpawnedThread { thread, warnings: std::mem::take(&mut draft.warnings) })
        })
    }
}

impl StoreDraft {
    fn add_thread(&mut self, spawn: &SpawnRequest) -> Result<Thread, ThreadError> {
        let unknown = || ThreadError::ObjectiveNotFound(spawn.objective.clone());
        let objective = self.objectives.objectives.get(spawn.objective.as_str());
        let objective = objective.ok_or_else(unknown)?.id.clone();
        let parent = match &spawn.parent {
            Some(parent) => Some(self.thread_mut(parent)?.id.clone()),
            None => None,
        };
        let id = self.new_item_id("thread")?;
        let thread = Thread {
            id: id.clone(),
            title: spawn.intent.clone(),
            objective: objective.clone(),
            created_at: self.now,
            status: ThreadStatus::Active,
            tags: spawn.tags.clone(),
            parent_id: parent.clone(),
            storage_path: storage_path(&id),
            executor: spawn.executor,
            updated_at: self.now,
            session_id: None,
            extra: Object::new(),
        };
        self.relations.threads.insert(id.clone(), thread.clone());
        self.relations.links_mut(&id);
        if let Some(parent) = &parent {
            self.relations.add_child(&id, parent);
        }
        self.touch_objective(&objective);
        let params = [
            ("thread_id", json!(thread.id)),
            ("parent_id", json!(parent)),
            ("intent", json!(spawn.intent)),
            ("objective", json!(objective)),
            ("inherit", json!(spawn.inherit)),
            ("inherit_scope", json!(spawn.scope)),
        ];
        self.record_operation("spawn", spawn.operator, params)?;
        Ok(thread)
    }

    fn create_thread_folder(
        &mut self,
        spawn: &SpawnRequest,
        thread: &Thread,
    ) -> Result<(), ThreadError> {
        let to = Path::new(THREADS_FOLDER).join(thread.id.as_str());
        for folder in ["context/inherited", "context/live", TRANSCRIPTS_FOLDER] {
            self.staging.create_folder(&to.join(folder))?;
        }
        let Some(parent) = &thread.parent_id else {
            return Ok(());
        };
        let folder = self.thread_folder(parent)?;
        let (staging, warnings) = (&self.staging, &mut self.warnings);
        let mut origin = ThreadCopier { folder: &folder, staging, warnings };
        match spawn.inherit {
            Inheritance::None => {}
            Inheritance::Full => {
                for (path, _) in ASSET_PATHS {
                    origin.copy_path(path, &to)?;
                }
            }
            Inheritance::Partial => {
                for path in &spawn.scope {
                    origin.copy_path(path, &to)?;
                }
            }
        }
        Ok(())
    }
}

/// The first line of an objective's log.
fn created_line(objective: &Objective) -> String {
    format!(
        "level=info msg=\"Objective created\" objectiveId={} threadId=objective time={} title={}",
        objective.id,
        objective.created_at,
        quote_log_value(&objective.title)
    )
}

/// Formats a value for a log line: quoted if it has spaces or `=`, always on one line.
fn quote_log_value(text: &str) -> String {
    if !text.contains(|c: char| c.is_whitespace() || c == '=') {
        return text.to_owned();
    }
    format!("\"{}\"", escape_line_breaks(&text.replace('"', "\\\"")))
}

/// Replaces line breaks with `\n` and `\r` escapes.
pub(super) fn escape_line_breaks(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r")
}
