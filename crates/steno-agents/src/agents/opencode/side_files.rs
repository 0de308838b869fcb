//! Finds the other files of a session in the tree: parts outside of message folders, todos, diffs, and the project's
//! files.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

use crate::decoding::json_fields::nonempty_text;
use steno_model::json::Value;

/// Folders that hold one file for each session.
const PER_SESSION_FOLDERS: [&str; 2] = ["session_diff", "todo"];

/// The file with the version of the tree's last migration.
const MIGRATION_FILE: &str = "migration";

/// Caches folder listings, so that each folder is listed once.
#[derive(Default)]
pub(super) struct OpenCodeSideFiles {
    /// Parts directly in a `part` folder, by that folder and the session.
    flat_parts: HashMap<PathBuf, HashMap<String, Vec<PathBuf>>>,
    /// The first and last name in each folder.
    end_names: HashMap<PathBuf, Option<(OsString, OsString)>>,
}

impl OpenCodeSideFiles {
    /// The parts of a session directly in the folder `parts`.
    pub(super) fn flat_parts(&mut self, parts: &Path, session: &str) -> Vec<PathBuf> {
        if !self.flat_parts.contains_key(parts) {
            self.flat_parts.insert(parts.to_owned(), group_by_session(parts));
        }
        self.flat_parts[parts].get(session).cloned().unwrap_or_default()
    }

    /// The other files of the session `id` with the session file `file`, in the tree at `base`.
    ///
    /// A file that several sessions share goes to the session with the last name. Names sort from newest to oldest, so
    /// this is the oldest session, which stays the same until it is deleted.
    pub(super) fn list_session_files(
        &mut self,
        base: &Path,
        file: &Path,
        id: &str,
    ) -> Vec<PathBuf> {
        let name = format!("{id}.json");
        let mut others: Vec<_> =
            PER_SESSION_FOLDERS.iter().map(|folder| base.join(folder).join(&name)).collect();
        let project = file.parent().filter(|project| *project != base.join("info"));
        if let Some(project) = project.filter(|project| self.is_last_in(project, file)) {
            let name = project.file_name().unwrap_or_default().to_string_lossy();
            others.push(base.join("project").join(format!("{name}.json")));
            if self.is_first_in(&base.join("session"), project) {
                others.push(base.join(MIGRATION_FILE));
            }
        }
        others.retain(|file| file.is_file());
        others
    }

    fn is_last_in(&mut self, folder: &Path, item: &Path) -> bool {
        self.first_and_last_name(folder).is_some_and(|(_, last)| item.file_name() == Some(last))
    }

    fn is_first_in(&mut self, folder: &Path, item: &Path) -> bool {
        self.first_and_last_name(folder).is_some_and(|(first, _)| item.file_name() == Some(first))
    }

    fn first_and_last_name(&mut self, folder: &Path) -> Option<&(OsString, OsString)> {
        let list_ends = || {
            let names: Vec<_> = list_folder(folder).map(|item| item.file_name()).collect();
            Some((names.iter().min()?.clone(), names.iter().max()?.clone()))
        };
        self.end_names.entry(folder.to_owned()).or_insert_with(list_ends).as_ref()
    }
}

/// Reads the text of a field from the record in a file.
pub(super) fn read_text_field(file: &Path, field: &str) -> Option<String> {
    let record: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    nonempty_text(&record, field).map(str::to_owned)
}

fn group_by_session(parts: &Path) -> HashMap<String, Vec<PathBuf>> {
    let mut sessions: HashMap<String, Vec<PathBuf>> = HashMap::new();
    let mut files: Vec<_> = list_folder(parts)
        .filter(|item| item.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|item| item.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    for file in files {
        if let Some(session) = read_text_field(&file, "sessionID") {
            sessions.entry(session).or_default().push(file);
        }
    }
    sessions
}

fn list_folder(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}
