//! The watched roots. Each is watched by system events, polled if there are none, or missing.

use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};

use steno_store::sync::{resolve_links, write_ahead_log};

/// All roots and their watcher.
pub(super) struct WatchedRoots {
    watcher: Option<RecommendedWatcher>,
    roots: Vec<WatchedRoot>,
}

struct WatchedRoot {
    /// Path as given.
    given_path: PathBuf,
    /// Path with links resolved.
    path: PathBuf,
    /// Whether the path was not given, but belongs to a given file.
    is_beside: bool,
    state: RootState,
}

#[derive(Clone, Copy, PartialEq)]
enum RootState {
    /// The path does not exist.
    Missing,
    Watched(FolderIdentity),
    Polled,
}

/// Distinguishes a folder from a later one with the same name.
type FolderIdentity = (u64, Option<SystemTime>);

impl WatchedRoots {
    /// Watches nothing until the first [`WatchedRoots::update`].
    pub(super) fn new(named: Vec<PathBuf>, watcher: Option<RecommendedWatcher>) -> Self {
        let mut roots = Vec::new();
        let mut add = |named: PathBuf, is_beside| {
            roots.push(WatchedRoot {
                path: named.clone(),
                given_path: named,
                is_beside,
                state: RootState::Missing,
            });
        };
        for path in named {
            // A JSONL file may have a folder of the same name beside it, and a database its log.
            let folder = Some(path.with_extension("")).filter(|_| path.is_file());
            let is_file = path.extension().is_some() && !path.is_dir();
            let log = Some(write_ahead_log(&path)).filter(|_| is_file);
            add(path, false);
            folder.into_iter().chain(log).for_each(|beside| add(beside, true));
        }
        roots.dedup_by(|later, first| later.given_path == first.given_path);
        Self { watcher, roots }
    }

    /// Watches existing roots. Returns the roots that appeared, and those that must be polled.
    pub(super) fn update(&mut self) -> RootChanges {
        let mut checked = RootChanges::default();
        for at in 0..self.roots.len() {
            let path = resolve_links(self.roots[at].given_path.clone());
            let now = folder_identity(&path);
            match (self.roots[at].state, now) {
                (RootState::Watched(before), Some(now)) if before == now => continue,
                (RootState::Polled, Some(_)) | (RootState::Missing, None) => continue,
                (RootState::Watched(_), _) => self.unwatch(at),
                _ => {}
            }
            self.roots[at].state = RootState::Missing;
            let Some(now) = now.filter(|_| !self.is_covered(&path)) else { continue };
            let state = self.watch(&path, now);
            self.roots[at].state = state;
            self.roots[at].path = path.clone();
            if state == RootState::Polled {
                checked.polled.push(path.clone());
            }
            if state != RootState::Missing {
                checked.appeared.push(path);
            }
        }
        checked
    }

    /// Returns the root that contains a path.
    pub(super) fn root_of(&self, path: &Path) -> Option<&Path> {
        let mut existing = self.roots.iter().filter(|root| root.state != RootState::Missing);
        existing.find(|root| path.starts_with(&root.path)).map(|root| root.path.as_path())
    }

    /// Returns all existing roots.
    pub(super) fn existing_roots(&self) -> Vec<PathBuf> {
        self.roots_in_state(|state| state != RootState::Missing)
    }

    /// Returns the roots without events.
    pub(super) fn polled_roots(&self) -> Vec<PathBuf> {
        self.roots_in_state(|state| state == RootState::Polled)
    }

    /// Returns given paths that do not exist.
    pub(super) fn missing_roots(&self) -> Vec<PathBuf> {
        let missing = self.roots.iter().filter(|root| !root.is_beside && !root.given_path.exists());
        missing.map(|root| root.given_path.clone()).collect()
    }

    /// Watches all roots again, since folders may have been missed. Returns the roots that must be polled from now
    /// on.
    pub(super) fn watch_again(&mut self) -> Vec<PathBuf> {
        let mut polled = Vec::new();
        for at in 0..self.roots.len() {
            if let RootState::Watched(now) = self.roots[at].state {
                let path = self.roots[at].path.clone();
                self.roots[at].state = self.watch(&path, now);
                polled.extend(Some(path).filter(|_| self.roots[at].state == RootState::Polled));
            }
        }
        polled
    }

    /// Marks a root as removed or moved.
    pub(super) fn mark_missing(&mut self, path: &Path) {
        for at in 0..self.roots.len() {
            if self.roots[at].path == path && self.roots[at].state != RootState::Polled {
                self.unwatch(at);
                self.roots[at].state = RootState::Missing;
            }
        }
    }

    /// Polls the root of this path, as it cannot be watched. Returns whether that is new.
    pub(super) fn start_polling(&mut self, path: &Path) -> bool {
        let found = self.roots.iter().position(|root| {
            path.starts_with(&root.path) && matches!(root.state, RootState::Watched(_))
        });
        if let Some(at) = found {
            self.unwatch(at);
            self.roots[at].state = RootState::Polled;
        }
        found.is_some()
    }

    /// Waits until new folders are watched, so that later changes in them cause events.
    pub(super) fn wait_for_watches(&mut self) {
        if let Some(watcher) = self.watcher.as_mut().filter(|_| cfg!(target_os = "linux")) {
            // The reply comes only after all earlier events are processed; its content does not matter.
            let _ = watcher.unwatch(Path::new("/dev/null/nothing"));
        }
    }

    fn roots_in_state(&self, wanted: impl Fn(RootState) -> bool) -> Vec<PathBuf> {
        let those = self.roots.iter().filter(|root| wanted(root.state));
        those.map(|root| root.path.clone()).collect()
    }

    /// Returns whether the path is inside of another root.
    fn is_covered(&self, path: &Path) -> bool {
        let mut existing = self.roots.iter().filter(|root| root.state != RootState::Missing);
        existing.any(|root| path.starts_with(&root.path) && root.path.is_dir())
    }

    /// Watches a path.
    fn watch(&mut self, path: &Path, now: FolderIdentity) -> RootState {
        let Some(watcher) = &mut self.watcher else { return RootState::Polled };
        let (place, mode) = watch_point(path);
        let Err(error) = watcher.watch(place, mode) else { return RootState::Watched(now) };
        // Part of it may already be watched.
        let _ = watcher.unwatch(place);
        match error.kind {
            // Something in it was removed meanwhile; the next check tries again.
            ErrorKind::PathNotFound => RootState::Missing,
            ErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound => RootState::Missing,
            _ => RootState::Polled,
        }
    }

    fn unwatch(&mut self, at: usize) {
        if let Some(watcher) = &mut self.watcher {
            // The system drops watches on removed paths itself.
            let _ = watcher.unwatch(watch_point(&self.roots[at].path).0);
        }
    }
}

/// Result of a check.
#[derive(Default)]
pub(super) struct RootChanges {
    /// Roots that did not exist before.
    pub(super) appeared: Vec<PathBuf>,
    /// Roots that must be polled.
    pub(super) polled: Vec<PathBuf>,
}

/// Returns the path to watch for a root. A file is watched through its folder, since it may be replaced.
fn watch_point(path: &Path) -> (&Path, RecursiveMode) {
    match path.parent() {
        Some(folder) if !path.is_dir() => (folder, RecursiveMode::NonRecursive),
        _ => (path, RecursiveMode::Recursive),
    }
}

/// Returns the identity of the path, if it exists. All files are equal, since a file may be replaced.
fn folder_identity(path: &Path) -> Option<FolderIdentity> {
    let metadata = fs::metadata(path).ok()?;
    if metadata.is_file() {
        return Some((0, None));
    }
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let number = 0;
    Some((number, metadata.created().ok()))
}
