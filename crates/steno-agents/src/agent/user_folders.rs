//! A user's home folder and environment, from which the locations of sessions follow.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Folder names of VS Code and of editors built from it.
const VSCODE_EDITORS: [&str; 11] = [
    "Code",
    "Code - Insiders",
    "Code - OSS",
    "VSCodium",
    "Cursor",
    "Windsurf",
    "Windsurf - Next",
    "Void",
    "Trae",
    "Kiro",
    "Antigravity",
];

/// A user's home folder and environment variables.
pub struct UserFolders<'a> {
    /// The home folder.
    pub home: &'a Path,
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl UserFolders<'_> {
    /// The path in a variable.
    pub fn path_variable(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).map(PathBuf::from)
    }

    /// The folder in a variable, or else one below the home folder.
    pub fn folder_or_default(&self, variable: &str, usual: &str) -> PathBuf {
        self.first_folder_or_default(&[variable], usual)
    }

    /// The folder in the first of these variables that is set, or else one below the home folder.
    pub fn first_folder_or_default(&self, variables: &[&str], usual: &str) -> PathBuf {
        let named = variables.iter().find_map(|name| (self.variable)(name));
        named.map_or_else(|| self.home.join(usual), PathBuf::from)
    }

    /// The folder for data of programs on macOS.
    pub fn application_support_folder(&self) -> PathBuf {
        self.home.join("Library/Application Support")
    }

    /// The folder for data of programs.
    pub fn data_folder(&self) -> PathBuf {
        self.folder_or_default("XDG_DATA_HOME", ".local/share")
    }

    /// The folder for settings of programs.
    pub fn config_folder(&self) -> PathBuf {
        self.folder_or_default("XDG_CONFIG_HOME", ".config")
    }

    /// The `User` folders of VS Code and related editors.
    pub fn editor_folders(&self) -> Vec<PathBuf> {
        let mut editors = self.editor_folders_named(&VSCODE_EDITORS);
        editors.push(self.home.join(".vscode-server/data/User"));
        editors
    }

    /// The `User` folders of editors with these names.
    pub fn editor_folders_named(&self, names: &[&str]) -> Vec<PathBuf> {
        let bases = [self.home.join(".config"), self.application_support_folder()];
        let users =
            bases.iter().flat_map(|base| names.iter().map(|name| base.join(name).join("User")));
        users.collect()
    }
}
