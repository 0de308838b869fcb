//! The content of `thread_relations.json`: threads, the log of operations, and links.

use indexmap::IndexMap;
use serde::Serialize;

use super::fields::{InvalidField, StrictFields};
use super::id::LeslieId;
use super::links::ThreadLinks;
use super::vocabulary::{Executor, Operator, ThreadStatus};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::timestamp::Timestamp;

/// The version that is written to both stores.
pub(super) const STORE_VERSION: &str = "1.0";

/// The content of `thread_relations.json`. Unknown fields are kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadRelations {
    /// The version of the format.
    pub version: String,
    metadata: RelationsMetadata,
    /// The threads, in the order of creation.
    pub threads: IndexMap<LeslieId, Thread>,
    /// The operations, oldest first.
    pub operations: Vec<ThreadOperation>,
    /// The links of each thread.
    #[serde(rename = "relations")]
    pub links: IndexMap<LeslieId, ThreadLinks>,
    #[serde(flatten)]
    extra: Object,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct RelationsMetadata {
    last_updated: Timestamp,
    thread_count: usize,
    #[serde(flatten)]
    extra: Object,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Thread {
    /// Its id.
    pub id: LeslieId,
    /// The goal.
    pub title: String,
    /// The objective's id.
    pub objective: LeslieId,
    /// When it was spawned.
    pub created_at: Timestamp,
    /// The current status.
    pub status: ThreadStatus,
    /// Tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The thread that this one was spawned from.
    pub parent_id: Option<LeslieId>,
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
pub struct ThreadOperation {
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

impl ThreadRelations {
    /// Makes a store without threads.
    pub fn new(now: Timestamp) -> Self {
        let metadata =
            RelationsMetadata { last_updated: now, thread_count: 0, extra: Object::new() };
        Self {
            version: STORE_VERSION.to_owned(),
            metadata,
            threads: IndexMap::new(),
            operations: Vec::new(),
            links: IndexMap::new(),
            extra: Object::new(),
        }
    }

    /// Parses the file, and checks everything that leslie's schema checks.
    pub fn from_value(value: Value) -> Result<Self, InvalidField> {
        let mut fields = StrictFields::new(value, "")?;
        let mut metadata = fields.take_fields("metadata")?;
        let threads = fields.take_each("threads")?.into_iter();
        let operations = fields.take_list("operations")?.into_iter().enumerate();
        let links = fields.take_each("relations")?.into_iter();
        Ok(Self {
            version: fields.take_text("version")?,
            metadata: RelationsMetadata {
                last_updated: metadata.take_time("last_updated")?,
                thread_count: metadata.take_count("thread_count")?,
                extra: metadata.into_rest(),
            },
            threads: threads
                .map(|(id, fields)| Thread::from_fields(id, fields))
                .collect::<Result<_, _>>()?,
            operations: operations
                .map(|(index, value)| ThreadOperation::from_item(index, value))
                .collect::<Result<_, _>>()?,
            links: links
                .map(|(id, fields)| ThreadLinks::from_fields(id, fields))
                .collect::<Result<_, _>>()?,
            extra: fields.into_rest(),
        })
    }

    /// Renders the file.
    pub fn to_json(&self) -> String {
        JsonStyle::PRETTY.print(self) + "\n"
    }

    /// Updates the time and the count in the metadata.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.metadata.last_updated = now;
        self.metadata.thread_count = self.threads.len();
    }
}

impl Thread {
    fn from_fields(
        key: LeslieId,
        mut fields: StrictFields,
    ) -> Result<(LeslieId, Self), InvalidField> {
        let thread = Self {
            id: fields.take_parsed("id", "an id")?,
            title: fields.take_text("title")?,
            objective: fields.take_parsed("objective", "an id")?,
            created_at: fields.take_time("created_at")?,
            status: fields.take_status()?,
            tags: fields.take_optional_texts("tags")?,
            parent_id: fields.take_optional_id("parent_id")?,
            storage_path: fields.take_text("storage_path")?,
            executor: fields.take_parsed("executor", "human, agent or system")?,
            updated_at: fields.take_time("updated_at")?,
            session_id: fields.take_optional_text("session_id")?,
            extra: Object::new(),
        };
        if thread.id != key {
            return Err(fields.invalid_field("id", "the thread's key"));
        }
        Ok((key, Self { extra: fields.into_rest(), ..thread }))
    }
}

impl ThreadOperation {
    fn from_item(index: usize, value: Value) -> Result<Self, InvalidField> {
        let mut fields = StrictFields::new(value, format!("operations[{index}]"))?;
        Ok(Self {
            id: fields.take_text("id")?,
            timestamp: fields.take_time("timestamp")?,
            command: fields.take_text("command")?,
            operator: fields.take_parsed("operator", "user, system or agent")?,
            params: fields.take_fields("params")?.into_rest(),
            extra: fields.into_rest(),
        })
    }
}

impl StrictFields {
    /// Takes a thread's status. `pending`, an old name, is active.
    fn take_status(&mut self) -> Result<ThreadStatus, InvalidField> {
        let text = self.take_text("status")?;
        match text.as_str() {
            "pending" => Ok(ThreadStatus::Active),
            other => other.parse().map_err(|_| self.invalid_field("status", "a status")),
        }
    }
}
