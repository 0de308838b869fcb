//! Files of subagents: they stand in `subagents/<session>/`, beside the folder of chats, and name the session that began
//! them as their own.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::durable::FileError;
use crate::format::tree;
use steno_vault::{Bundle, Source};

const FOLDER: &str = "subagents";

/// Puts subagents to the sessions that began them; one whose session was not found stays alone.
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

/// Whether a file of a session is a subagent's, or tells about one.
pub(super) fn is_beside(source: &Source) -> bool {
    source.name().split('/').next() == Some(FOLDER)
}

/// The subagent whose log this is.
pub(super) fn agent(source: &Source) -> Option<&str> {
    let file = source.name().rsplit('/').next()?;
    file.strip_prefix("agent-")?.strip_suffix(".jsonl")
}

/// The files of the subagents that the session in `session` began, and what is told about them.
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
