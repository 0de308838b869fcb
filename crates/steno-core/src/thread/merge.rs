//! Merges the files of several threads into one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::assets::storage_path;
use super::copy::{files, shown};
use super::draft::Draft;
use super::error::{ThreadError, Warning};
use super::id::Id;
use super::store::{THREADS, ThreadStore};
use super::words::{ConflictStrategy, Operator};
use crate::durable::OnPath;

/// A request to merge threads.
#[derive(Clone, Debug)]
pub struct Merge {
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
pub struct Merged {
    /// The merged files, relative to the project's folder, in the order in which they were copied.
    pub files: Vec<String>,
    /// Files that differ between sources, relative to a thread's folder.
    pub conflicts: Vec<String>,
    /// What was skipped.
    pub warnings: Vec<Warning>,
}

impl ThreadStore {
    /// Copies the sources' files into the target.
    ///
    /// A file of the target that is replaced moves to its `.meta/replaced`.
    pub fn merge(&self, merge: &Merge) -> Result<Merged, ThreadError> {
        self.change(|draft| {
            let target = draft.thread(&merge.target)?.id.clone();
            draft.folder(&target)?;
            let mut sources = Vec::new();
            for source in &merge.sources {
                sources.push(draft.thread(source)?.id.clone());
            }
            let merged = draft.take_files(merge, &sources, &target)?;
            let params = [
                ("sources", json!(merge.sources)),
                ("target", json!(merge.target)),
                ("conflict_strategy", json!(merge.strategy)),
                ("conflicts", json!(merged.conflicts)),
            ];
            draft.record("merge", merge.operator, params)?;
            Ok(Merged { warnings: std::mem::take(&mut draft.warnings), ..merged })
        })
    }
}

impl Draft {
    fn take_files(
        &mut self,
        merge: &Merge,
        sources: &[Id],
        target: &Id,
    ) -> Result<Merged, ThreadError> {
        let mut merged = Merged::default();
        let mut first = BTreeMap::<String, PathBuf>::new();
        for source in sources {
            let folder = self.folder(source)?;
            if !folder.exists() {
                continue;
            }
            for file in files(&folder, &mut self.warnings)? {
                let (path, name) = (folder.join(&file), shown(&file));
                if !in_scope(&name, &merge.scope) {
                    continue;
                }
                let before = first.entry(name.clone()).or_insert_with(|| path.clone());
                if differ(before, &path)? {
                    if merge.strategy == ConflictStrategy::Strict {
                        return Err(ThreadError::Conflict(name));
                    }
                    merged.conflicts.push(name.clone());
                }
                let copy = Path::new(THREADS).join(target.as_str()).join(&file);
                self.staging.copy(&path, &copy)?;
                merged.files.push(format!("{}/{name}", storage_path(target)));
            }
        }
        Ok(merged)
    }
}

fn in_scope(name: &str, scope: &[String]) -> bool {
    scope.is_empty() || scope.iter().any(|prefix| name.starts_with(prefix.as_str()))
}

fn differ(first: &Path, second: &Path) -> Result<bool, ThreadError> {
    if first == second {
        return Ok(false);
    }
    Ok(fs::read(first).on("read", first)? != fs::read(second).on("read", second)?)
}
