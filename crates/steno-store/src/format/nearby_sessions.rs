//! Finds the session of one file without searching the rest of the tree.
//!
//! The file's path suggests where its whole session may be found. Readers then check the content of each candidate. A
//! candidate without the file is skipped.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{FoundSessions, all_agents, find_sessions_and_failures};
use steno_agents::agent::nearby::NearbyRules;
use steno_agents::reader::FoundSession;
use steno_model::durable::FileError;

/// The sessions that `file`, at or below `root`, belongs to. A search of the whole tree would find the same.
pub fn find_sessions_near(file: &Path, root: &Path) -> Result<Vec<FoundSession>, FileError> {
    for path in candidate_paths(file, root) {
        let FoundSessions { sessions: mut found, failures } = find_sessions_and_failures(&path)?;
        if let Some(failure) = failures.into_iter().find(|failure| failure.path == file) {
            return Err(failure);
        }
        found.retain(|found| found.bundle.main_files().iter().any(|source| source.path() == file));
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Paths at which the file's session may be found whole. The likeliest is first, the file itself last.
fn candidate_paths(file: &Path, root: &Path) -> Vec<PathBuf> {
    let folders = || file.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    let mut paths: Vec<PathBuf> = Vec::new();
    paths.extend(logged_database(file).filter(|path| path.is_file()));
    paths.extend(all_rules().flat_map(|rules| (rules.candidates)(file, root)));
    paths.extend(folders().find_map(whole_session_folder));
    let describes_folder = all_rules().any(|rules| (rules.describes_folder)(file));
    paths.extend(folders().next().filter(|_| describes_folder).map(Path::to_owned));
    paths.push(file.to_owned());
    paths
}

/// The rules of all agents.
fn all_rules() -> impl Iterator<Item = &'static NearbyRules> {
    all_agents().map(|agent| &agent.nearby)
}

/// The database that this file is the write-ahead log of.
fn logged_database(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?.strip_suffix("-wal")?;
    Some(file.with_file_name(name))
}

/// The folder itself or its parent, if it holds a whole session.
fn whole_session_folder(folder: &Path) -> Option<PathBuf> {
    if all_rules().any(|rules| ends_with_any(folder, rules.part_folders)) {
        return folder.parent().map(Path::to_owned);
    }
    all_rules().any(|rules| is_whole_session(folder, rules)).then(|| folder.to_owned())
}

fn is_whole_session(folder: &Path, rules: &NearbyRules) -> bool {
    let name = folder.file_name().map(OsStr::to_string_lossy);
    let own_file = rules.session_folder_file.zip(name).map(|(file_name, name)| file_name(&name));
    ends_with_any(folder, rules.shared_folders)
        || rules.session_folder_files.iter().any(|name| folder.join(name).is_file())
        || own_file.is_some_and(|name| folder.join(name).is_file())
        || rules.part_folders.iter().any(|name| folder.join(name).is_dir())
}

fn ends_with_any(folder: &Path, names: &[&str]) -> bool {
    names.iter().any(|name| folder.ends_with(name))
}
