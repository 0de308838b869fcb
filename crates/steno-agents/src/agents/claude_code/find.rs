//! Finds sessions and the files of each: subagents, large tool results, workflows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::probe::{ClaudeFileKind, probe_file};
use super::purged_sessions;
use crate::reader::file_tree::{self, FileTree};
use steno_model::durable::{self, FileError};
use steno_vault::{SessionBundle, SessionFile};

/// The subfolders of a session's folder with files of the session.
const SIDE_FOLDERS: [&str; 3] = ["subagents", "tool-results", "workflows"];

/// Finds the sessions at or below a path.
///
/// Subagent files without their session's main file form a bundle under the main file's path. A subagent file that
/// is the path itself is a session of its own.
pub(super) fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let is_given = !tree.is_folder();
    let files = tree.files().iter().filter(|file| is_given || is_candidate(file));
    let (agents, others): (Vec<_>, Vec<_>) =
        files.partition(|file| subagent_id(&file.to_string_lossy()).is_some());
    let mut flat = FlatSubagents::default();
    let mut bundles = Vec::new();
    for file in others {
        let Some(kind) = probe_path(file, is_given)? else { continue };
        let purged = if kind == ClaudeFileKind::History {
            purged_sessions::find_purged_sessions(file)?
        } else {
            None
        };
        match purged {
            Some(sessions) => bundles.extend(sessions),
            None => bundles.push(bundle_session(file, &kind, &mut flat)?),
        }
    }
    let taken: HashSet<PathBuf> = bundles.iter().flat_map(side_files).collect();
    // A saved tool result may look like a session.
    bundles.retain(|bundle| !taken.contains(&bundle.root));
    let mut orphans: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for file in agents.into_iter().filter(|file| !taken.contains(*file)) {
        let Some(kind) = probe_path(file, is_given)? else { continue };
        match parent_session_path(file, &kind).filter(|_| !is_given) {
            Some(session) => orphans.entry(session).or_default().push(file.clone()),
            None => bundles.push(bundle_with_meta(file)),
        }
    }
    for (session, agents) in orphans {
        bundles.push(bundle_orphans(&session, &agents, &mut flat)?);
    }
    bundles.sort_by(|a, b| a.root.cmp(&b.root));
    Ok(bundles)
}

/// The files of a session except its main file.
fn side_files(bundle: &SessionBundle) -> Vec<PathBuf> {
    let paths = bundle.files.iter().map(|source| source.path().to_owned());
    paths.filter(|path| *path != bundle.root).collect()
}

fn is_candidate(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "jsonl" || extension == "json")
}

/// The kind of a file. An unreadable file is an error only if the user named it, and is skipped otherwise.
fn probe_path(file: &Path, is_given: bool) -> Result<Option<ClaudeFileKind>, FileError> {
    let kind = probe_file(&SessionBundle::from_file(file).files[0]);
    if is_given { kind } else { Ok(kind.unwrap_or_default()) }
}

/// The main file of a session. None if Claude Code has not written it yet.
pub(super) fn main_session_file(bundle: &SessionBundle) -> Option<&SessionFile> {
    let is_main = |source: &&SessionFile| {
        let name = source.name();
        !name.contains('/') && subagent_id(name).is_none() && !is_sidecar(name, bundle)
    };
    let first = || bundle.files.first().filter(|first| bundle.root.ends_with(first.name()));
    bundle.files.iter().find(is_main).or_else(first)
}

/// The agent's id of a session: the file name if it is an id, otherwise the id in the records.
pub(super) fn native_id(name: &str, kind: Option<&ClaudeFileKind>) -> String {
    let stem = file_stem(name);
    match kind {
        Some(ClaudeFileKind::Session(Some(id))) if !is_session_name(name) => id.clone(),
        _ => stem.to_owned(),
    }
}

/// Whether Claude Code names session or subagent files like this.
pub(super) fn is_session_name(name: &str) -> bool {
    subagent_id(name).is_some() || Uuid::try_parse(file_stem(name)).is_ok()
}

/// The subagent id in a file name.
pub(super) fn subagent_id(name: &str) -> Option<&str> {
    file_name(name).strip_prefix("agent-")?.strip_suffix(".jsonl")
}

/// Whether a file holds only metadata of its session: a subagent's `.meta.json`, Claude Desktop's `local_….json`.
pub(super) fn is_sidecar(name: &str, bundle: &SessionBundle) -> bool {
    let is_desktop = file_name(name).starts_with("local_") && name.ends_with(".json");
    let is_meta = name.ends_with(".meta.json");
    bundle.files.len() > 1 && !name.contains('/') && (is_desktop || is_meta)
}

fn file_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

fn file_stem(name: &str) -> &str {
    let name = file_name(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn bundle_session(
    session: &Path,
    kind: &ClaudeFileKind,
    flat: &mut FlatSubagents,
) -> Result<SessionBundle, FileError> {
    let mut bundle = bundle_with_meta(session);
    let ClaudeFileKind::Session(record_id) = kind else { return Ok(bundle) };
    let folder = durable::parent_folder(session);
    bundle.files.extend(list_side_files(session)?);
    let name = file_stem(&session.to_string_lossy()).to_owned();
    // Subagents go to the file that has the session's name, not to one that only names the session in its first
    // records, such as a resumed copy.
    let is_other = |id: &&String| !session.with_file_name(format!("{id}.jsonl")).is_file();
    let ids = [Some(&name), record_id.as_ref().filter(is_other)];
    for id in ids.into_iter().flatten() {
        // A subagent file may name itself as its session.
        let agents = flat.take_session(folder, id).into_iter().filter(|agent| agent != session);
        bundle.files.extend(agents.map(|agent| file_relative_to(folder, &agent)));
    }
    if let Some(id) = record_id {
        bundle.files.extend(desktop_sidecar(session, id));
    }
    Ok(bundle)
}

/// Lists the files in the subfolders of a session's folder.
fn list_side_files(session: &Path) -> Result<Vec<SessionFile>, FileError> {
    let mut sources = Vec::new();
    for side in SIDE_FOLDERS.map(|name| session.with_extension("").join(name)) {
        if side.is_dir() {
            let files = file_tree::list_file_paths(&side)?;
            sources.extend(
                files.iter().map(|file| file_relative_to(durable::parent_folder(session), file)),
            );
        }
    }
    Ok(sources)
}

/// The path of the main file of a subagent's session, from the subagent's folder or records. The file may not exist.
fn parent_session_path(agent: &Path, kind: &ClaudeFileKind) -> Option<PathBuf> {
    let own_folder = agent.ancestors().find(|folder| folder.ends_with(SIDE_FOLDERS[0]));
    if let Some(folder) = own_folder.and_then(Path::parent) {
        return Some(folder.with_file_name(format!("{}.jsonl", folder.file_name()?.to_str()?)));
    }
    let ClaudeFileKind::Session(Some(id)) = kind else { return None };
    let is_plain = !id.contains(['/', '\\', '\0']) && !id.starts_with('.') && !id.is_empty();
    is_plain.then(|| agent.with_file_name(format!("{id}.jsonl")))
}

/// Bundles a session of which only subagent files were found.
fn bundle_orphans(
    session: &Path,
    agents: &[PathBuf],
    flat: &mut FlatSubagents,
) -> Result<SessionBundle, FileError> {
    // The main file may be outside the searched path.
    if let Some(kind) = probe_path(session, false)?.filter(|_| session.is_file()) {
        return bundle_session(session, &kind, flat);
    }
    let mut orphaned = SessionBundle::new(session, list_side_files(session)?);
    let is_flat =
        |agent: &&PathBuf| durable::parent_folder(agent) == durable::parent_folder(session);
    for agent in agents.iter().filter(is_flat) {
        orphaned.files.extend(bundle_with_meta(agent).files);
    }
    Ok(orphaned)
}

/// Bundles a file with the `.meta.json` that subagents have.
fn bundle_with_meta(file: &Path) -> SessionBundle {
    let mut bundle = SessionBundle::from_file(file);
    let meta = file.with_extension("meta.json");
    if meta.is_file() {
        bundle.files.push(file_relative_to(durable::parent_folder(file), &meta));
    }
    bundle
}

fn file_relative_to(folder: &Path, file: &Path) -> SessionFile {
    let name = file.strip_prefix(folder).unwrap_or(file).to_string_lossy().replace('\\', "/");
    SessionFile::on_disk(name, file)
}

/// The file with Claude Desktop's title of a session, if its `cliSessionId` is this session's.
fn desktop_sidecar(session: &Path, id: &str) -> Option<SessionFile> {
    let home = session.ancestors().find(|folder| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("local_"))
    })?;
    let name = format!("{}.json", home.file_name()?.to_string_lossy());
    let source = SessionFile::on_disk(name.clone(), home.with_file_name(name));
    let fields: serde_json::Value = serde_json::from_slice(&source.read_bytes().ok()?).ok()?;
    (fields.get("cliSessionId")?.as_str()? == id).then_some(source)
}

/// Subagent files in the same folder as their sessions, by folder. Each file goes to one session only.
#[derive(Default)]
struct FlatSubagents(HashMap<PathBuf, Vec<(String, PathBuf)>>);

impl FlatSubagents {
    fn take_session(&mut self, folder: &Path, session: &str) -> Vec<PathBuf> {
        let agents = self.0.entry(folder.to_owned()).or_insert_with(|| list_subagents(folder));
        agents.extract_if(.., |(id, _)| id == session).map(|(_, agent)| agent).collect()
    }
}

fn list_subagents(folder: &Path) -> Vec<(String, PathBuf)> {
    let items = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut agents: Vec<_> = items
        .filter(|item| subagent_id(&item.file_name().to_string_lossy()).is_some())
        .filter_map(|item| match probe_path(&item.path(), false) {
            Ok(Some(ClaudeFileKind::Session(Some(session)))) => Some((session, item.path())),
            _ => None,
        })
        .collect();
    agents.sort();
    agents
}
