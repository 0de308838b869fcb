//! Thread operations on a whole project.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use steno_model::timestamp::Clock;

#[cfg(unix)]
mod crash;
#[cfg(unix)]
mod hostile;
mod json;
mod operations;
mod recovery;
#[cfg(unix)]
mod worker;

pub(super) const NOW: &str = "2026-02-22T15:00:00.123Z";

/// A project in a temporary folder, with sequential ids and a fixed clock.
pub(super) struct Project {
    pub(super) store: ThreadStore,
    dir: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        store.init().unwrap();
        Self { store, dir }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Writes an asset of a thread.
    fn asset(&self, thread: &Thread, path: &str, text: &str) {
        let path = self.path(&thread.storage_path).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn objective(&self) -> Objective {
        self.store.create_objective("Build API").unwrap()
    }

    fn spawn(&self, objective: &Objective, intent: &str) -> Thread {
        self.store.spawn_thread(&SpawnRequest::new(intent, objective.id.as_str())).unwrap().thread
    }
}

/// A store at `root` with sequential ids.
pub(super) fn open(root: &Path) -> ThreadStore {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let ids = IdSource::new(|| NEXT.fetch_add(1, Ordering::Relaxed));
    ThreadStore::new(root, Clock::fixed(NOW.parse().unwrap()), ids)
}

/// All files and folders below a folder, sorted; folders end in a slash.
pub(super) fn tree(root: &Path) -> Vec<String> {
    fn walk(root: &Path, dir: &Path, found: &mut Vec<String>) {
        for item in fs::read_dir(dir).unwrap() {
            let path = item.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let is_dir = path.is_dir() && !path.is_symlink();
            found.push(if is_dir { name + "/" } else { name });
            if is_dir {
                walk(root, &path, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort();
    found
}

pub(super) fn reference(from: &Thread, target: &str) -> ReferenceRequest {
    ReferenceRequest {
        from: from.id.to_string(),
        target: target.to_owned(),
        binding: ReferenceBinding::Frozen,
        scope: Some(Vec::new()),
        operator: Operator::User,
    }
}

pub(super) fn lifecycle(thread: &Thread, action: LifecycleAction) -> StatusChange {
    let thread = thread.id.to_string();
    StatusChange { thread, action, reason: None, operator: Operator::User }
}

pub(super) fn merge(sources: &[&Thread], target: &Thread) -> MergeRequest {
    MergeRequest {
        sources: sources.iter().map(|thread| thread.id.to_string()).collect(),
        target: target.id.to_string(),
        scope: Vec::new(),
        strategy: ConflictStrategy::Interactive,
        operator: Operator::User,
    }
}
