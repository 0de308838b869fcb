//! Finds subagents' files, which are in `subagents/<session>/` beside the folder of chats. Their records have the id of
//! the session that started them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::reader::file_tree;
use steno_model::durable::FileError;
use steno_vault::{SessionBundle, SessionFile};

pub(super) const SUBAGENTS_FOLDER: &str = "subagents";

/// Adds subagents' files to the sessions that started them. A subagent without its session stays a session of its own.
pub(super) fn group_subagents(
    mut bundles: Vec<SessionBundle>,
) -> Result<Vec<SessionBundle>, FileError> {
    let mut taken: HashSet<PathBuf> = HashSet::new();
    for bundle in &mut bundles {
        let files = list_subagent_files(&bundle.root)?;
        bundle.files.extend(files.iter().filter_map(|file| subagent_file(file)));
        taken.extend(files);
    }
    bundles.retain(|bundle| !taken.contains(&bundle.root));
    Ok(bundles)
}

/// Whether a file of a session is a subagent's log or metadata.
pub(super) fn is_subagent_file(source: &SessionFile) -> bool {
    source.name().split('/').next() == Some(SUBAGENTS_FOLDER)
}

/// The subagent id in the name of its log.
pub(super) fn subagent_id(source: &SessionFile) -> Option<&str> {
    let file = source.name().rsplit('/').next()?;
    file.strip_prefix("agent-")?.strip_suffix(".jsonl")
}

/// Lists the logs and metadata files of the subagents that the session in the file `session` started.
fn list_subagent_files(session: &Path) -> Result<Vec<PathBuf>, FileError> {
    let chats = session.ancestors().find(|folder| folder.ends_with("chats"));
    let folder = chats.zip(session.file_stem()).map(|(chats, id)| {
        let folder = chats.with_file_name(SUBAGENTS_FOLDER);
        folder.join(id)
    });
    match folder.filter(|folder| folder.is_dir()) {
        Some(folder) => file_tree::list_file_paths(&folder),
        None => Ok(Vec::new()),
    }
}

fn subagent_file(file: &Path) -> Option<SessionFile> {
    let name = file.file_name()?.to_string_lossy();
    Some(SessionFile::on_disk(format!("{SUBAGENTS_FOLDER}/{name}"), file))
}
