//! The roots that are watched: each by the system's events, by polling where those are not to be had, or awaited.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::sweep::{log_of, real};

/// All roots and what tells of changes in them.
pub(super) struct Roots {
    watcher: Option<RecommendedWatcher>,
    roots: Vec<Root>,
}

struct Root {
    /// As it was named.
    named: PathBuf,
    /// Without links.
    path: PathBuf,
    /// Whether it was not named, but would belong to a file that was.
    is_beside: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// It is not there.
    Awaited,
    Watched(Identity),
    Polled,
}

/// What tells a folder from one that was made later under the same name.
type Identity = (u64, Option<SystemTime>);

impl Roots {
    /// Nothing is watched before the first [`Roots::check`].
    pub(super) fn new(named: Vec<PathBuf>, watcher: Option<RecommendedWatcher>) -> Self {
        let mut roots = Vec::new();
        let mut add = |named: PathBuf, is_beside| {
            roots.push(Root { path: named.clone(), named, is_beside, state: State::Awaited });
        };
        for path in named {
            // What belongs to a file of lines stands in the folder of its name, what belongs to a database in its log.
            let folder = Some(path.with_extension("")).filter(|_| path.is_file());
            let is_file = path.extension().is_some() && !path.is_dir();
            let log = Some(log_of(&path)).filter(|_| is_file);
            add(path, false);
            folder.into_iter().chain(log).for_each(|beside| add(beside, true));
        }
        roots.dedup_by(|later, first| later.named == first.named);
        Self { watcher, roots }
    }

    /// Watches what is there now; gives the roots that came, or came back, and those that have to be polled from now on.
    pub(super) fn check(&mut self) -> Checked {
        let mut checked = Checked::default();
        for at in 0..self.roots.len() {
            let path = real(self.roots[at].named.clone());
            let now = identity(&path);
            match (self.roots[at].state, now) {
                (State::Watched(before), Some(now)) if before == now => continue,
                (State::Polled, Some(_)) | (State::Awaited, None) => continue,
                (State::Watched(_), _) => self.unwatch(at),
                _ => {}
            }
            self.roots[at].state = State::Awaited;
            let Some(now) = now.filter(|_| !self.is_covered(&path)) else { continue };
            let state = self.watch(&path, now);
            self.roots[at].state = state;
            self.roots[at].path = path.clone();
            if state == State::Polled {
                checked.polled.push(path.clone());
            }
            if state != State::Awaited {
                checked.came.push(path);
            }
        }
        checked
    }

    /// The root at or below which a path stands.
    pub(super) fn root_of(&self, path: &Path) -> Option<&Path> {
        let mut there = self.roots.iter().filter(|root| root.state != State::Awaited);
        there.find(|root| path.starts_with(&root.path)).map(|root| root.path.as_path())
    }

    /// All that are there.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        self.those(|state| state != State::Awaited)
    }

    /// Those of which no events come.
    pub(super) fn polled(&self) -> Vec<PathBuf> {
        self.those(|state| state == State::Polled)
    }

    /// Named paths that are not there.
    pub(super) fn awaited(&self) -> Vec<PathBuf> {
        let missing = self.roots.iter().filter(|root| !root.is_beside && !root.named.exists());
        missing.map(|root| root.named.clone()).collect()
    }

    /// Asks once more for the events of all: folders may have come of which nothing was told. Gives those that have
    /// to be polled from now on.
    pub(super) fn renew(&mut self) -> Vec<PathBuf> {
        let mut polled = Vec::new();
        for at in 0..self.roots.len() {
            if let State::Watched(now) = self.roots[at].state {
                let path = self.roots[at].path.clone();
                self.roots[at].state = self.watch(&path, now);
                polled.extend(Some(path).filter(|_| self.roots[at].state == State::Polled));
            }
        }
        polled
    }

    /// The root itself was removed or moved away.
    pub(super) fn lost(&mut self, path: &Path) {
        for at in 0..self.roots.len() {
            if self.roots[at].path == path && self.roots[at].state != State::Polled {
                self.unwatch(at);
                self.roots[at].state = State::Awaited;
            }
        }
    }

    /// No more can be watched at or below this path: its root is polled from now on. Whether that is new.
    pub(super) fn poll(&mut self, path: &Path) -> bool {
        let found = self.roots.iter().position(|root| {
            path.starts_with(&root.path) && matches!(root.state, State::Watched(_))
        });
        if let Some(at) = found {
            self.unwatch(at);
            self.roots[at].state = State::Polled;
        }
        found.is_some()
    }

    /// Waits until folders whose creation was told of are watched themselves: what comes into them later is told.
    pub(super) fn settle(&mut self) {
        if let Some(watcher) = self.watcher.as_mut().filter(|_| cfg!(target_os = "linux")) {
            // Answered only after the events before it are dealt with, whatever the answer.
            let _ = watcher.unwatch(Path::new("/dev/null/nothing"));
        }
    }

    fn those(&self, wanted: impl Fn(State) -> bool) -> Vec<PathBuf> {
        let those = self.roots.iter().filter(|root| wanted(root.state));
        those.map(|root| root.path.clone()).collect()
    }

    /// Whether the path stands in a folder that is a root itself.
    fn is_covered(&self, path: &Path) -> bool {
        let mut there = self.roots.iter().filter(|root| root.state != State::Awaited);
        there.any(|root| path.starts_with(&root.path) && root.path.is_dir())
    }

    /// Asks for the events of a path.
    fn watch(&mut self, path: &Path, now: Identity) -> State {
        let Some(watcher) = &mut self.watcher else { return State::Polled };
        let (place, mode) = watch_point(path);
        let Err(error) = watcher.watch(place, mode) else { return State::Watched(now) };
        // Part of it may be watched already.
        let _ = watcher.unwatch(place);
        match error.kind {
            // Something in it went away meanwhile: the next check asks again.
            ErrorKind::PathNotFound => State::Awaited,
            ErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound => State::Awaited,
            _ => State::Polled,
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
pub(super) struct Checked {
    /// Roots that are there now and were not before.
    pub(super) came: Vec<PathBuf>,
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
fn identity(path: &Path) -> Option<Identity> {
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
