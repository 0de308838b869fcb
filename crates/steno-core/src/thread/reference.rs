//! References from one thread to another, with or without copies of files.

use std::path::Path;

use serde_json::json;

use super::assets::storage_path;
use super::copy::{Origin, shown};
use super::draft::Draft;
use super::error::{ThreadError, Warning};
use super::id::Id;
use super::store::{THREADS, ThreadStore};
use super::words::{Binding, Operator};
use crate::timestamp::Timestamp;

/// A request to add a reference.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The thread that references.
    pub from: String,
    /// The referenced thread.
    pub target: String,
    /// Whether the target's files are copied.
    pub binding: Binding,
    /// Paths to copy; all if empty.
    pub scope: Option<Vec<String>>,
    /// Who requests it.
    pub operator: Operator,
}

/// A reference that was added.
#[derive(Clone, Debug, PartialEq)]
pub struct Referenced {
    /// Its id.
    pub id: String,
    /// When the target's files were copied, if they were.
    pub snapshot: Option<Timestamp>,
    /// The copied files, relative to the project's folder.
    pub copied: Vec<String>,
    /// What was skipped.
    pub warnings: Vec<Warning>,
}

impl ThreadStore {
    /// Adds a reference to a thread. A missing target is only a warning.
    pub fn reference(&self, reference: &Reference) -> Result<Referenced, ThreadError> {
        self.change(|draft| {
            let made = draft.add_reference(reference)?;
            Ok(Referenced { warnings: std::mem::take(&mut draft.warnings), ..made })
        })
    }
}

impl Draft {
    /// Adds a reference. Warnings are collected in the draft.
    pub(super) fn add_reference(
        &mut self,
        reference: &Reference,
    ) -> Result<Referenced, ThreadError> {
        let from = self.thread(&reference.from)?.id.clone();
        let target = self.relations.threads.get(reference.target.as_str());
        let target = target.map(|thread| thread.id.clone());
        let (id, mut snapshot, mut copied) = (self.operation_id("ref")?, None, Vec::new());
        match &target {
            None => self.warnings.push(Warning::TargetNotFound(reference.target.clone())),
            Some(target) => {
                self.link(&from, target)?;
                if reference.binding == Binding::Frozen {
                    copied = self.freeze(&from, target, reference)?;
                    snapshot = Some(self.now);
                }
            }
        }
        let scope = reference.scope.clone().unwrap_or_else(|| vec!["all".to_owned()]);
        let params = [
            ("ref_id", json!(id)),
            ("from_id", json!(reference.from)),
            ("to_id", json!(reference.target)),
            ("scope", json!(scope)),
            ("binding", json!(reference.binding)),
        ];
        self.record("reference", reference.operator, params)?;
        Ok(Referenced { id, snapshot, copied, warnings: Vec::new() })
    }

    fn link(&mut self, from: &Id, target: &Id) -> Result<(), ThreadError> {
        if self.relations.leads_to(target, from) {
            let (from, target) = (from.to_string(), target.to_string());
            return Err(ThreadError::Circular { from, target });
        }
        self.relations.refer(from, target);
        Ok(())
    }

    /// Copies the target's files, and returns their paths.
    fn freeze(
        &mut self,
        from: &Id,
        target: &Id,
        reference: &Reference,
    ) -> Result<Vec<String>, ThreadError> {
        let inherited = Path::new("context/inherited").join(target.as_str());
        let to = Path::new(THREADS).join(from.as_str()).join(inherited);
        self.staging.folder(&to)?;
        let folder = self.folder(target)?;
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let (staging, warnings) = (&self.staging, &mut self.warnings);
        let mut origin = Origin { folder: &folder, staging, warnings };
        let copy = format!("{}/context/inherited/{target}", storage_path(from));
        let scope = reference.scope.as_deref().unwrap_or_default();
        if scope.is_empty() {
            origin.copy_all(&to)?;
            return Ok(vec![copy]);
        }
        let mut copied = Vec::new();
        for path in scope {
            if let Some(path) = origin.copy(path, &to)? {
                copied.push(shown(&Path::new(&copy).join(path)));
            }
        }
        Ok(copied)
    }
}
