//! Which sessions and paths belong to a repository.

use std::path::{Component, Path, PathBuf};

use super::git_repository::GitRepository;
use crate::keep::known_projects::KnownProjects;
use crate::repository::GitCheckout;

/// The folders of a repository: its checkouts, those that have moved or are gone, and other clones of the same remote.
#[derive(Clone, Debug)]
pub struct RepositoryScope {
    folders: Vec<PathBuf>,
    /// Whether all sessions and paths belong to it.
    has_everything: bool,
}

impl RepositoryScope {
    /// Finds the folders of a repository. `store` is the folder of the store, which knows the repositories of projects.
    pub fn new(repository: &GitRepository, store: &Path) -> Self {
        let mut folders = repository.worktrees.clone();
        if let Some(checkout) = GitCheckout::at_root(&repository.root) {
            folders.extend(KnownProjects::load(store).roots_of(&checkout));
        }
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.as_os_str().len()));
        folders.dedup();
        Self { folders, has_everything: false }
    }

    /// All sessions and paths, whatever their repository.
    pub(super) fn everything() -> Self {
        Self { folders: Vec::new(), has_everything: true }
    }

    /// Whether a session's project folder is one of the repository.
    pub(super) fn contains_project(&self, project: &str) -> bool {
        let project = Path::new(project);
        let is_inside = |path: &Path| self.folders.iter().any(|folder| path.starts_with(folder));
        self.has_everything
            || is_inside(project)
            || project.canonicalize().is_ok_and(|project| is_inside(&project))
    }

    /// Whether a text names one of the repository's folders.
    pub(super) fn is_named_in(&self, text: &str) -> bool {
        self.has_everything
            || self.folders.iter().any(|folder| text.contains(&*folder.to_string_lossy()))
    }

    /// The path of an edit relative to the repository's root; `None` if it is elsewhere.
    pub(super) fn relative_path(&self, path: &str, project: Option<&str>) -> Option<String> {
        let joined = match project.map(Path::new).filter(|project| project.is_absolute()) {
            Some(project) => project.join(path),
            None => PathBuf::from(path),
        };
        if !joined.is_absolute() {
            return Some(join_components(&joined));
        }
        let clean = remove_dots(&joined);
        let below = |path: &Path| {
            let folder = self.folders.iter().find(|folder| path.starts_with(folder))?;
            path.strip_prefix(folder).ok().map(join_components)
        };
        below(&clean).or_else(|| {
            let folder = clean.parent()?.canonicalize().ok()?;
            below(&folder.join(clean.file_name()?))
        })
    }
}

pub(super) fn remove_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = clean.pop(),
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

fn join_components(path: &Path) -> String {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
    parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_checkout_they_are_in() {
        let folders = vec![PathBuf::from("/p/shop/.trees/x"), PathBuf::from("/p/shop")];
        let scope = RepositoryScope { folders, has_everything: false };
        assert!(scope.contains_project("/p/shop/web") && !scope.contains_project("/p/shop2"));
        let relative = |path, project| scope.relative_path(path, project);
        assert_eq!(relative("/p/shop/.trees/x/a.rs", None).as_deref(), Some("a.rs"));
        assert_eq!(relative("src/../a.rs", Some("/p/shop/web")).as_deref(), Some("web/a.rs"));
        assert_eq!(relative("./a.rs", None).as_deref(), Some("a.rs"));
        assert_eq!(relative("/tmp/a.rs", Some("/p/shop")), None);
    }
}
