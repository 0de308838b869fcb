//! The content of `objectives.json`: the objectives of the threads.

use indexmap::IndexMap;
use serde::Serialize;

use super::fields::{Fields, Invalid};
use super::id::Id;
use super::relations::{Relations, Thread, VERSION};
use super::words::ObjectiveStatus;
use crate::json::{Object, Style, Value};
use crate::timestamp::Timestamp;

/// The content of `objectives.json`. Unknown fields are kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Objectives {
    /// The version of the format.
    pub version: String,
    /// The objectives, in the order of creation.
    pub objectives: IndexMap<Id, Objective>,
    metadata: Metadata,
    #[serde(flatten)]
    extra: Object,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Metadata {
    last_updated: Timestamp,
    objective_count: usize,
    #[serde(flatten)]
    extra: Object,
}

/// One objective.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Objective {
    /// Its id.
    pub id: Id,
    /// The goal.
    pub title: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it or one of its threads last changed.
    pub updated_at: Timestamp,
    /// Completed if all its threads are.
    pub status: ObjectiveStatus,
    /// Its threads, sorted by id.
    pub thread_ids: Vec<Id>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Object,
}

impl Objectives {
    /// Makes a store without objectives.
    pub fn empty(now: Timestamp) -> Self {
        Self {
            version: VERSION.to_owned(),
            objectives: IndexMap::new(),
            metadata: Metadata { last_updated: now, objective_count: 0, extra: Object::new() },
            extra: Object::new(),
        }
    }

    /// Parses the file, and checks everything that leslie's schema checks.
    pub fn from_value(value: Value) -> Result<Self, Invalid> {
        let mut fields = Fields::new(value, "")?;
        let objectives = fields.each("objectives")?.into_iter();
        let mut metadata = fields.fields("metadata")?;
        Ok(Self {
            version: fields.text("version")?,
            objectives: objectives
                .map(|(id, fields)| Objective::take(id, fields))
                .collect::<Result<_, _>>()?,
            metadata: Metadata {
                last_updated: metadata.time("last_updated")?,
                objective_count: metadata.count("objective_count")?,
                extra: metadata.rest(),
            },
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
        self.metadata.objective_count = self.objectives.len();
    }

    /// Updates the threads and the status of every objective from `relations`.
    pub(super) fn agree_with(&mut self, relations: &Relations, now: Timestamp) {
        for objective in self.objectives.values_mut() {
            let threads = relations.threads.values();
            let own: Vec<_> = threads.filter(|thread| thread.objective == objective.id).collect();
            objective.follow(&own, now);
        }
    }
}

impl Objective {
    fn follow(&mut self, threads: &[&Thread], now: Timestamp) {
        let over = !threads.is_empty() && threads.iter().all(|thread| thread.status.is_over());
        let status = if over { ObjectiveStatus::Completed } else { ObjectiveStatus::Active };
        let mut ids: Vec<_> = threads.iter().map(|thread| thread.id.clone()).collect();
        ids.sort();
        if (self.status, &self.thread_ids) != (status, &ids) {
            self.updated_at = now;
        }
        (self.status, self.thread_ids) = (status, ids);
    }

    fn take(key: Id, mut fields: Fields) -> Result<(Id, Self), Invalid> {
        let objective = Self {
            id: fields.parsed("id", "an id")?,
            title: fields.text("title")?,
            created_at: fields.time("created_at")?,
            updated_at: fields.time("updated_at")?,
            status: fields.parsed("status", "active or completed")?,
            thread_ids: fields.ids("thread_ids")?,
            extra: Object::new(),
        };
        if objective.id != key {
            return Err(fields.invalid("id", "the objective's key"));
        }
        Ok((key, Self { extra: fields.rest(), ..objective }))
    }
}
