//! The roots that are watched: each by the system's events, by polling where those are not to be had, or awaited.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::session_syncer::{resolve_links, write_ahead_log};

/// All roots and what tells of changes in them.
pub(super) struct WatchedRoots {
    watcher: Option<RecommendedWatcher>,
    roots: Vec<WatchedRoot>,
}

struct WatchedRoot {
    /// As it was named.
    given_path: PathBuf,
    /// Without links.
    path: PathBuf,
    /// Whether it was not named, but would belong to a file that was.
    is_beside: bool,
    state: RootState,
}

#[derive(Clone, Copy, PartialEq)]
enum RootState {
    /// It is not there.
    Missing,
    Watched(FolderIdentity),
    Polled,
}

/// What tells a folder from one that was made later under the same name.
type FolderIdentity = (u64, Option<SystemTime>);

impl WatchedRoots {
    /// Nothing is watched before the first [`Roots::check`].
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
            // What belongs to a file of lines stands in the folder of its name, what belongs to a database in its log.
            let folder = Some(path.with_extension("")).filter(|_| path.is_file());
            let is_file = path.extension().is_some() && !path.is_dir();
            let log = Some(write_ahead_log(&path)).filter(|_| is_file);
            add(path, false);
            folder.into_iter().chain(log).for_each(|beside| add(beside, true));
        }
        roots.dedup_by(|later, first| later.given_path == first.given_path);
        Self { watcher, roots }
    }

    /// Watches what is there now; gives the roots that came, or came back, and those that have to be polled from now on.
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

    /// The root at or below which a path stands.
    pub(super) fn root_of(&self, path: &Path) -> Option<&Path> {
        let mut there = self.roots.iter().filter(|root| root.state != RootState::Missing);
        there.find(|root| path.starts_with(&root.path)).map(|root| root.path.as_path())
    }

    /// All that are there.
    pub(super) fn existing_roots(&self) -> Vec<PathBuf> {
        self.roots_in_state(|state| state != RootState::Missing)
    }

    /// Those of which no events come.
    pub(super) fn polled_roots(&self) -> Vec<PathBuf> {
        self.roots_in_state(|state| state == RootState::Polled)
    }

    /// Named paths that are not there.
    pub(super) fn missing_roots(&self) -> Vec<PathBuf> {
        let missing = self.roots.iter().filter(|root| !root.is_beside && !root.given_path.exists());
        missing.map(|root| root.given_path.clone()).collect()
    }

    /// Asks once more for the events of all: folders may have come of which nothing was told. Gives those that have
    /// to be polled from now on.
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

    /// The root itself was removed or moved away.
    pub(super) fn mark_missing(&mut self, path: &Path) {
        for at in 0..self.roots.len() {
            if self.roots[at].path == path && self.roots[at].state != RootState::Polled {
                self.unwatch(at);
                self.roots[at].state = RootState::Missing;
            }
        }
    }

    /// No more can be watched at or below this path: its root is polled from now on. Whether that is new.
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

    /// Waits until folders whose creation was told of are watched themselves: what comes into them later is told.
    pub(super) fn wait_for_watches(&mut self) {
        if let Some(watcher) = self.watcher.as_mut().filter(|_| cfg!(target_os = "linux")) {
            // Answered only after the events before it are dealt with, whatever the answer.
            let _ = watcher.unwatch(Path::new("/dev/null/nothing"));
        }
    }

    fn roots_in_state(&self, wanted: impl Fn(RootState) -> bool) -> Vec<PathBuf> {
        let those = self.roots.iter().filter(|root| wanted(root.state));
        those.map(|root| root.path.clone()).collect()
    }

    /// Whether the path stands in a folder that is a root itself.
    fn is_covered(&self, path: &Path) -> bool {
        let mut there = self.roots.iter().filter(|root| root.state != RootState::Missing);
        there.any(|root| path.starts_with(&root.path) && root.path.is_dir())
    }

    /// Asks for the events of a path.
    fn watch(&mut self, path: &Path, now: FolderIdentity) -> RootState {
        let Some(watcher) = &mut self.watcher else { return RootState::Polled };
        let (place, mode) = watch_point(path);
        let Err(error) = watcher.watch(place, mode) else { return RootState::Watched(now) };
        // Part of it may be watched already.
        let _ = watcher.unwatch(place);
        match error.kind {
            // Something in it went away meanwhile: the next check asks again.
            ErrorKind::PathNotFound => RootState::Missing,
            ErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound => RootState::Missing,
            _ => RootState::Polled,
        }
    }

    fn unwatch(&mut self, at: usize) {
        if let Some(watcher) = &mut self.watcher {
            // The system has forgotten what is gone.
            let _ = watcher.unwatch(watch_point(&self.roots[at].path).0);
        }
    }
}

/// What a check found.
#[derive(Default)]
pub(super) struct RootChanges {
    /// Roots that are there now and were not before.
    pub(super) appeared: Vec<PathBuf>,
    /// Those of them of which no events will come.
    pub(super) polled: Vec<PathBuf>,
}

/// What to watch for a root. A file is watched by its folder, since it may be replaced.
fn watch_point(path: &Path) -> (&Path, RecursiveMode) {
    match path.parent() {
        Some(folder) if !path.is_dir() => (folder, RecursiveMode::NonRecursive),
        _ => (path, RecursiveMode::Recursive),
    }
}

/// What is at the path now, if anything. A file may be replaced under its name: it is any file.
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
