//! The content of `objectives.json`: the objectives of the threads.

use indexmap::IndexMap;
use serde::Serialize;

use super::fields::{InvalidField, StrictFields};
use super::id::LeslieId;
use super::relations::{STORE_VERSION, Thread, ThreadRelations};
use super::vocabulary::ObjectiveStatus;
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::timestamp::Timestamp;

/// The content of `objectives.json`. Unknown fields are kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectiveList {
    /// The version of the format.
    pub version: String,
    /// The objectives, in the order of creation.
    pub objectives: IndexMap<LeslieId, Objective>,
    metadata: ObjectiveListMetadata,
    #[serde(flatten)]
    extra: Object,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ObjectiveListMetadata {
    last_updated: Timestamp,
    objective_count: usize,
    #[serde(flatten)]
    extra: Object,
}

/// One objective.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Objective {
    /// Its id.
    pub id: LeslieId,
    /// The goal.
    pub title: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it or one of its threads last changed.
    pub updated_at: Timestamp,
    /// Completed if all its threads are.
    pub status: ObjectiveStatus,
    /// Its threads, sorted by id.
    pub thread_ids: Vec<LeslieId>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Object,
}

impl ObjectiveList {
    /// Makes a store without objectives.
    pub fn new(now: Timestamp) -> Self {
        Self {
            version: STORE_VERSION.to_owned(),
            objectives: IndexMap::new(),
            metadata: ObjectiveListMetadata {
                last_updated: now,
                objective_count: 0,
                extra: Object::new(),
            },
            extra: Object::new(),
        }
    }

    /// Parses the file, and checks everything that leslie's schema checks.
    pub fn from_value(value: Value) -> Result<Self, InvalidField> {
        let mut fields = StrictFields::new(value, "")?;
        let objectives = fields.take_each("objectives")?.into_iter();
        let mut metadata = fields.take_fields("metadata")?;
        Ok(Self {
            version: fields.take_text("version")?,
            objectives: objectives
                .map(|(id, fields)| Objective::from_fields(id, fields))
                .collect::<Result<_, _>>()?,
            metadata: ObjectiveListMetadata {
                last_updated: metadata.take_time("last_updated")?,
                objective_count: metadata.take_count("objective_count")?,
                extra: metadata.into_rest(),
            },
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
        self.metadata.objective_count = self.objectives.len();
    }

    /// Updates the threads and the status of every objective from `relations`.
    pub(super) fn sync_with(&mut self, relations: &ThreadRelations, now: Timestamp) {
        for objective in self.objectives.values_mut() {
            let threads = relations.threads.values();
            let own: Vec<_> = threads.filter(|thread| thread.objective == objective.id).collect();
            objective.follow_threads(&own, now);
        }
    }
}

impl Objective {
    fn follow_threads(&mut self, threads: &[&Thread], now: Timestamp) {
        let over = !threads.is_empty() && threads.iter().all(|thread| thread.status.is_over());
        let status = if over { ObjectiveStatus::Completed } else { ObjectiveStatus::Active };
        let mut ids: Vec<_> = threads.iter().map(|thread| thread.id.clone()).collect();
        ids.sort();
        if (self.status, &self.thread_ids) != (status, &ids) {
            self.updated_at = now;
        }
        (self.status, self.thread_ids) = (status, ids);
    }

    fn from_fields(
        key: LeslieId,
        mut fields: StrictFields,
    ) -> Result<(LeslieId, Self), InvalidField> {
        let objective = Self {
            id: fields.take_parsed("id", "an id")?,
            title: fields.take_text("title")?,
            created_at: fields.take_time("created_at")?,
            updated_at: fields.take_time("updated_at")?,
            status: fields.take_parsed("status", "active or completed")?,
            thread_ids: fields.take_ids("thread_ids")?,
            extra: Object::new(),
        };
        if objective.id != key {
            return Err(fields.invalid_field("id", "the objective's key"));
        }
        Ok((key, Self { extra: fields.into_rest(), ..objective }))
    }
}
