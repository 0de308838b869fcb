//! Which sessions a server serves: those of one project, or all.

use std::path::{Path, PathBuf};

/// The sessions to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryScope {
    /// The sessions of all projects.
    All,
    /// The sessions in this folder and below.
    Project(PathBuf),
    /// None: the server was started in this folder, which contains the home folder and so all projects.
    Nothing(PathBuf),
}

impl HistoryScope {
    /// The project of a folder: its Git repository, or else the folder itself.
    ///
    /// A repository that contains the home folder, such as one for dotfiles, is not a project.
    pub fn of_folder(folder: &Path, home: &Path) -> Self {
        let is_project = |folder: &&Path| !home.starts_with(folder);
        let candidates = || folder.ancestors().take_while(is_project);
        match candidates().find(|folder| folder.join(".git").exists()).or(candidates().next()) {
            Some(root) => Self::Project(root.to_owned()),
            None => Self::Nothing(folder.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_a_repository_below_the_home_folder() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("ada");
        let folder = home.join("shop/src");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir(home.join(".git")).unwrap();
        let scope = |folder: &Path| HistoryScope::of_folder(folder, &home);
        assert_eq!(scope(&folder), HistoryScope::Project(folder.clone()));
        std::fs::write(home.join("shop/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(scope(&folder), HistoryScope::Project(home.join("shop")));
        assert_eq!(scope(&home), HistoryScope::Nothing(home.clone()));
        assert_eq!(scope(temp.path()), HistoryScope::Nothing(temp.path().to_owned()));
        let elsewhere = Path::new("/srv/shop/src");
        assert_eq!(scope(elsewhere), HistoryScope::Project(elsewhere.to_owned()));
    }
}
