//! Creates objectives and threads.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::assets::{PLACES, storage_path};
use super::copy::Origin;
use super::draft::Draft;
use super::error::{ThreadError, Warning};
use super::id::Id;
use super::objectives::Objective;
use super::reference::Reference;
use super::relations::Thread;
use super::store::{THREADS, TRANSCRIPTS, ThreadStore};
use super::words::{Binding, Executor, Inherit, ObjectiveStatus, Operator, Status};
use crate::json::Object;

/// A request to spawn a thread.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// The goal.
    pub intent: String,
    /// The objective's id.
    pub objective: String,
    /// The parent thread.
    pub parent: Option<String>,
    /// What it inherits from its parent.
    pub inherit: Inherit,
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
pub struct Spawned {
    /// The thread.
    pub thread: Thread,
    /// What was skipped.
    pub warnings: Vec<Warning>,
}

impl Spawn {
    /// A request by the user for a thread without a parent, to be worked on by an agent.
    pub fn new(intent: impl Into<String>, objective: impl Into<String>) -> Self {
        Self {
            intent: intent.into(),
            objective: objective.into(),
            parent: None,
            inherit: Inherit::None,
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
        self.change(|draft| {
            let objective = Objective {
                id: draft.item_id("obj")?,
                title: title.to_owned(),
                created_at: draft.now,
                updated_at: draft.now,
                status: ObjectiveStatus::Active,
                thread_ids: Vec::new(),
                extra: Object::new(),
            };
            let log = Path::new("logs").join(objective.id.as_str()).join("objective.log");
            draft.append(&log, &created_line(&objective))?;
            draft.objectives.objectives.insert(objective.id.clone(), objective.clone());
            Ok(objective)
        })
    }

    /// The folder of an objective's logs.
    pub fn log_folder(&self, objective: &Id) -> PathBuf {
        self.base().join("logs").join(objective.as_str())
    }

    /// Spawns a thread, creates its folder, and copies what it inherits and references.
    pub fn spawn(&self, spawn: &Spawn) -> Result<Spawned, ThreadError> {
        if spawn.intent.is_empty() {
            return Err(ThreadError::Empty("intent"));
        }
        self.change(|draft| {
            let thread = draft.add_thread(spawn)?;
            draft.make_folder(spawn, &thread)?;
            for target in &spawn.references {
                draft.add_reference(&Reference {
                    from: thread.id.to_string(),
                    target: target.clone(),
                    binding: Binding::Frozen,
                    scope: None,
                    operator: spawn.operator,
                })?;
            }
            Ok(Spawned { thread, warnings: std::mem::take(&mut draft.warnings) })
        })
    }
}

impl Draft {
    fn add_thread(&mut self, spawn: &Spawn) -> Result<Thread, ThreadError> {
        let unknown = || ThreadError::ObjectiveNotFound(spawn.objective.clone());
        let objective = self.objectives.objectives.get(spawn.objective.as_str());
        let objective = objective.ok_or_else(unknown)?.id.clone();
        let parent = match &spawn.parent {
            Some(parent) => Some(self.thread(parent)?.id.clone()),
            None => None,
        };
        let id = self.item_id("thread")?;
        let thread = Thread {
            id: id.clone(),
            title: spawn.intent.clone(),
            objective: objective.clone(),
            created_at: self.now,
            status: Status::Active,
            tags: spawn.tags.clone(),
            parent_id: parent.clone(),
            storage_path: storage_path(&id),
            executor: spawn.executor,
            updated_at: self.now,
            session_id: None,
            extra: Object::new(),
        };
        self.relations.threads.insert(id.clone(), thread.clone());
        self.relations.links_of(&id);
        if let Some(parent) = &parent {
            self.relations.descend(&id, parent);
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
        self.record("spawn", spawn.operator, params)?;
        Ok(thread)
    }

    fn make_folder(&mut self, spawn: &Spawn, thread: &Thread) -> Result<(), ThreadError> {
        let to = Path::new(THREADS).join(thread.id.as_str());
        for folder in ["context/inherited", "context/live", TRANSCRIPTS] {
            self.staging.folder(&to.join(folder))?;
        }
        let Some(parent) = &thread.parent_id else {
            return Ok(());
        };
        let folder = self.folder(parent)?;
        let (staging, warnings) = (&self.staging, &mut self.warnings);
        let mut origin = Origin { folder: &folder, staging, warnings };
        match spawn.inherit {
            Inherit::None => {}
            Inherit::Full => {
                for (path, _) in PLACES {
                    origin.copy(path, &to)?;
                }
            }
            Inherit::Partial => {
                for path in &spawn.scope {
                    origin.copy(path, &to)?;
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
        log_value(&objective.title)
    )
}

/// Formats a value for a log line: quoted if it has spaces or `=`, always on one line.
fn log_value(text: &str) -> String {
    if !text.contains(|c: char| c.is_whitespace() || c == '=') {
        return text.to_owned();
    }
    format!("\"{}\"", one_line(&text.replace('"', "\\\"")))
}

/// Replaces line breaks with `\n` and `\r` escapes.
pub(super) fn one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r")
}
