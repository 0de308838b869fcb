//! Merges the files of several threads into one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::assets::storage_path;
use super::draft::StoreDraft;
use super::error::{ThreadError, ThreadWarning};
use super::file_copy::{list_thread_files, slash_path};
use super::id::LeslieId;
use super::store::{THREADS_FOLDER, ThreadStore};
use super::vocabulary::{ConflictStrategy, Operator};
use steno_model::durable::OnPath;

/// A request to merge threads.
#[derive(Clone, Debug)]
pub struct MergeRequest {
    /// The source threads. If several have a file of the same name, the last one wins.
    pub sources: Vec<String>,
    /// The target thread.
    pub target: String,
    /// Path prefixes of the files to merge; all files if empty.
    pub scope: Vec<String>,
    /// What to do if two sources differ.
    pub strategy: ConflictStrategy,
    /// Who requests it.
    pub operator: Operator,
}

/// The result of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeOutcome {
    /// The merged files, relative to the project's folder, in the order in which they were copied.
    pub files: Vec<String>,
    /// Files that differ between sources, relative to a thread's folder.
    pub conflicts: Vec<String>,
    /// What was skipped.
    pub warnings: Vec<ThreadWarning>,
}

impl ThreadStore {
    /// Copies the sources' files into the target.
    ///
    /// A file of the target that is replaced moves to its `.meta/replaced`.
    pub fn merge_threads(&self, merge: &MergeRequest) -> Result<MergeOutcome, ThreadError> {
        self.change_stores(|draft| {
            let target = draft.thread_mut(&merge.target)?.id.clone();
            draft.thread_folder(&target)?;
            let mut sources = Vec::new();
            for source in &merge.sources {
                sources.push(draft.thread_mut(source)?.id.clone());
            }
            let merged = draft.merge_files(merge, &sources, &target)?;
            let params = [
                ("sources", json!(merge.sources)),
                ("target", json!(merge.target)),
                ("conflict_strategy", json!(merge.strategy)),
                ("conflicts", json!(merged.conflicts)),
            ];
            draft.record_operation("merge", merge.operator, params)?;
            Ok(MergeOutcome { warnings: std::mem::take(&mut draft.warnings), ..merged })
        })
    }
}

impl StoreDraft {
    fn merge_files(
        &mut self,
        merge: &MergeRequest,
        sources: &[LeslieId],
        target: &LeslieId,
    ) -> Result<MergeOutcome, ThreadError> {
        let mut merged = MergeOutcome::default();
        let mut first = BTreeMap::<String, PathBuf>::new();
        for source in sources {
            let folder = self.thread_folder(source)?;
            if !folder.exists() {
                continue;
            }
            for file in list_thread_files(&folder, &mut self.warnings)? {
                let (path, name) = (folder.join(&file), slash_path(&file));
                if !is_in_scope(&name, &merge.scope) {
                    continue;
                }
                let before = first.entry(name.clone()).or_insert_with(|| path.clone());
                if files_differ(before, &path)? {
                    if merge.strategy == ConflictStrategy::Strict {
                        return Err(ThreadError::Conflict(name));
                    }
                    merged.conflicts.push(name.clone());
                }
                let copy = Path::new(THREADS_FOLDER).join(target.as_str()).join(&file);
                self.staging.copy_file(&path, &copy)?;
                merged.files.push(format!("{}/{name}", storage_path(target)));
            }
        }
        Ok(merged)
    }
}

fn is_in_scope(name: &str, scope: &[String]) -> bool {
    scope.is_empty() || scope.iter().any(|prefix| name.starts_with(prefix.as_str()))
}

fn files_differ(first: &Path, second: &Path) -> Result<bool, ThreadError> {
    if first == second {
        return Ok(false);
    }
    Ok(fs::read(first).on("read", first)? != fs::read(second).on("read", second)?)
}
