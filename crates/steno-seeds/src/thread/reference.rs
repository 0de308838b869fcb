//! References from one thread to another, with or without copies of files.

use std::path::Path;

use serde_json::json;

use super::assets::storage_path;
use super::draft::StoreDraft;
use super::error::{ThreadError, ThreadWarning};
use super::file_copy::{ThreadCopier, slash_path};
use super::id::LeslieId;
use super::store::{THREADS_FOLDER, ThreadStore};
use super::vocabulary::{Operator, ReferenceBinding};
use steno_model::timestamp::Timestamp;

/// A request to add a reference.
#[derive(Clone, Debug)]
pub struct ReferenceRequest {
    /// The thread that references.
    pub from: String,
    /// The referenced thread.
    pub target: String,
    /// Whether the target's files are copied.
    pub binding: ReferenceBinding,
    /// Paths to copy; all if empty.
    pub scope: Option<Vec<String>>,
    /// Who requests it.
    pub operator: Operator,
}

/// A reference that was added.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedReference {
    /// Its id.
    pub id: String,
    /// When the target's files were copied, if they were.
    pub snapshot: Option<Timestamp>,
    /// The copied files, relative to the project's folder.
    pub copied: Vec<String>,
    /// What was skipped.
    pub warnings: Vec<ThreadWarning>,
}

impl ThreadStore {
    /// Adds a reference to a thread. A missing target is only a warning.
    pub fn add_reference(
        &self,
        reference: &ReferenceRequest,
    ) -> Result<AddedReference, ThreadError> {
        self.change_stores(|draft| {
            let made = draft.add_reference(reference)?;
            Ok(AddedReference { warnings: std::mem::take(&mut draft.warnings), ..made })
        })
    }
}

impl StoreDraft {
    /// Adds a reference. Warnings are collected in the draft.
    pub(super) fn add_reference(
        &mut self,
        reference: &ReferenceRequest,
    ) -> Result<AddedReference, ThreadError> {
        let from = self.thread_mut(&reference.from)?.id.clone();
        let target = self.relations.threads.get(reference.target.as_str());
        let target = target.map(|thread| thread.id.clone());
        let (id, mut snapshot, mut copied) = (self.new_operation_id("ref")?, None, Vec::new());
        match &target {
            None => self.warnings.push(ThreadWarning::TargetNotFound(reference.target.clone())),
            Some(target) => {
                self.link_threads(&from, target)?;
                if reference.binding == ReferenceBinding::Frozen {
                    copied = self.copy_target_files(&from, target, reference)?;
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
        self.record_operation("reference", reference.operator, params)?;
        Ok(AddedReference { id, snapshot, copied, warnings: Vec::new() })
    }

    fn link_threads(&mut self, from: &LeslieId, target: &LeslieId) -> Result<(), ThreadError> {
        if self.relations.leads_to(target, from) {
            let (from, target) = (from.to_string(), target.to_string());
            return Err(ThreadError::Circular { from, target });
        }
        self.relations.add_reference(from, target);
        Ok(())
    }

    /// Copies the target's files, and returns their paths.
    fn copy_target_files(
        &mut self,
        from: &LeslieId,
        target: &LeslieId,
        reference: &ReferenceRequest,
    ) -> Result<Vec<String>, ThreadError> {
        let inherited = Path::new("context/inherited").join(target.as_str());
        let to = Path::new(THREADS_FOLDER).join(from.as_str()).join(inherited);
        self.staging.create_folder(&to)?;
        let folder = self.thread_folder(target)?;
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let (staging, warnings) = (&self.staging, &mut self.warnings);
        let mut origin = ThreadCopier { folder: &folder, staging, warnings };
        let copy = format!("{}/context/inherited/{target}", storage_path(from));
        let scope = reference.scope.as_deref().unwrap_or_default();
        if scope.is_empty() {
            origin.copy_all(&to)?;
            return Ok(vec![copy]);
        }
        let mut copied = Vec::new();
        for path in scope {
            if let Some(path) = origin.copy_path(path, &to)? {
                copied.push(slash_path(&Path::new(&copy).join(path)));
            }
        }
        Ok(copied)
    }
}
