//! Finds subagents' files, which are in `subagents/<session>/` beside the folder of chats. Their records have the id of
//! the session that started them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::durable::FileError;
use crate::format::tree;
use steno_vault::{Bundle, Source};

const FOLDER: &str = "subagents";

/// Adds subagents' files to the sessions that started them. A subagent without its session stays a session of its own.
pub(super) fn grouped(mut bundles: Vec<Bundle>) -> Result<Vec<Bundle>, FileError> {
    let mut taken: HashSet<PathBuf> = HashSet::new();
    for bundle in &mut bundles {
        let files = begun_by(&bundle.root)?;
        bundle.sources.extend(files.iter().filter_map(|file| named(file)));
        taken.extend(files);
    }
    bundles.retain(|bundle| !taken.contains(&bundle.root));
    Ok(bundles)
}

/// Whether a file of a session is a subagent's log or metadata.
pub(super) fn is_beside(source: &Source) -> bool {
    source.name().split('/').next() == Some(FOLDER)
}

/// The subagent id in the name of its log.
pub(super) fn agent(source: &Source) -> Option<&str> {
    let file = source.name().rsplit('/').next()?;
    file.strip_prefix("agent-")?.strip_suffix(".jsonl")
}

/// Lists the logs and metadata files of the subagents that the session in the file `session` started.
fn begun_by(session: &Path) -> Result<Vec<PathBuf>, FileError> {
    let chats = session.ancestors().find(|folder| folder.ends_with("chats"));
    let folder = chats.zip(session.file_stem()).map(|(chats, id)| {
        let folder = chats.with_file_name(FOLDER);
        folder.join(id)
    });
    match folder.filter(|folder| folder.is_dir()) {
        Some(folder) => tree::files(&folder),
        None => Ok(Vec::new()),
    }
}

fn named(file: &Path) -> Option<Source> {
    let name = file.file_name()?.to_string_lossy();
    Some(Source::on_disk(format!("{FOLDER}/{name}"), file))
}
