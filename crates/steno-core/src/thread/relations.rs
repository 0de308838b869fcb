//! The content of `thread_relations.json`: threads, the log of operations, and links.

use indexmap::IndexMap;
use serde::Serialize;

use super::fields::{Fields, Invalid};
use super::id::Id;
use super::links::Links;
use super::words::{Executor, Operator, Status};
use crate::json::{Object, Style, Value};
use crate::timestamp::Timestamp;

/// The version that is written to both stores.
pub(super) const VERSION: &str = "1.0";

/// The content of `thread_relations.json`. Unknown fields are kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Relations {
    /// The version of the format.
    pub version: String,
    metadata: Metadata,
    /// The threads, in the order of creation.
    pub threads: IndexMap<Id, Thread>,
    /// The operations, oldest first.
    pub operations: Vec<Operation>,
    /// The links of each thread.
    #[serde(rename = "relations")]
    pub links: IndexMap<Id, Links>,
    #[serde(flatten)]
    extra: Object,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Metadata {
    last_updated: Timestamp,
    thread_count: usize,
    #[serde(flatten)]
    extra: Object,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Thread {
    /// Its id.
    pub id: Id,
    /// The goal.
    pub title: String,
    /// The objective's id.
    pub objective: Id,
    /// When it was spawned.
    pub created_at: Timestamp,
    /// The current status.
    pub status: Status,
    /// Tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The thread that this one was spawned from.
    pub parent_id: Option<Id>,
    /// The thread's folder as leslie states it. Steno derives the folder from the id and ignores this field.
    pub storage_path: String,
    /// Who works on it.
    pub executor: Executor,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The agent's session id, with which the thread can be resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Object,
}

/// One operation on threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operation {
    /// Its id.
    pub id: String,
    /// When it was done.
    pub timestamp: Timestamp,
    /// The command's name.
    pub command: String,
    /// Who requested it.
    pub operator: Operator,
    /// The parameters.
    pub params: Object,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Object,
}

impl Relations {
    /// Makes a store without threads.
    pub fn empty(now: Timestamp) -> Self {
        let metadata = Metadata { last_updated: now, thread_count: 0, extra: Object::new() };
        Self {
            version: VERSION.to_owned(),
            metadata,
            threads: IndexMap::new(),
            operations: Vec::new(),
            links: IndexMap::new(),
            extra: Object::new(),
        }
    }

    /// Parses the file, and checks everything that leslie's schema checks.
    pub fn from_value(value: Value) -> Result<Self, Invalid> {
        let mut fields = Fields::new(value, "")?;
        let mut metadata = fields.fields("metadata")?;
        let threads = fields.each("threads")?.into_iter();
        let operations = fields.list("operations")?.into_iter().enumerate();
        let links = fields.each("relations")?.into_iter();
        Ok(Self {
            version: fields.text("version")?,
            metadata: Metadata {
                last_updated: metadata.time("last_updated")?,
                thread_count: metadata.count("thread_count")?,
                extra: metadata.rest(),
            },
            threads: threads
                .map(|(id, fields)| Thread::take(id, fields))
                .collect::<Result<_, _>>()?,
            operations: operations
                .map(|(index, value)| Operation::take(index, value))
                .collect::<Result<_, _>>()?,
            links: links.map(|(id, fields)| Links::take(id, fields)).collect::<Result<_, _>>()?,
            extra: fields.rest(),
        })
    }

    /// Renders the file.
    pub fn print(&self) -> String {
        Style::PRETTY.print(self) + "\n"
    }

    /// Updates the time and the count in the metadata.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.metadata.last_updated = now;
        self.metadata.thread_count = self.threads.len();
    }
}

impl Thread {
    fn take(key: Id, mut fields: Fields) -> Result<(Id, Self), Invalid> {
        let thread = Self {
            id: fields.parsed("id", "an id")?,
            title: fields.text("title")?,
            objective: fields.parsed("objective", "an id")?,
            created_at: fields.time("created_at")?,
            status: fields.status()?,
            tags: fields.optional_texts("tags")?,
            parent_id: fields.optional_id("parent_id")?,
            storage_path: fields.text("storage_path")?,
            executor: fields.parsed("executor", "human, agent or system")?,
            updated_at: fields.time("updated_at")?,
            session_id: fields.optional_text("session_id")?,
            extra: Object::new(),
        };
        if thread.id != key {
            return Err(fields.invalid("id", "the thread's key"));
        }
        Ok((key, Self { extra: fields.rest(), ..thread }))
    }
}

impl Operation {
    fn take(index: usize, value: Value) -> Result<Self, Invalid> {
        let mut fields = Fields::new(value, format!("operations[{index}]"))?;
        Ok(Self {
            id: fields.text("id")?,
            timestamp: fields.time("timestamp")?,
            command: fields.text("command")?,
            operator: fields.parsed("operator", "user, system or agent")?,
            params: fields.fields("params")?.rest(),
            extra: fields.rest(),
        })
    }
}

impl Fields {
    /// Takes a thread's status. `pending`, an old name, is active.
    fn status(&mut self) -> Result<Status, Invalid> {
        let text = self.text("status")?;
        match text.as_str() {
            "pending" => Ok(Status::Active),
            other => other.parse().map_err(|_| self.invalid("status", "a status")),
        }
    }
}
