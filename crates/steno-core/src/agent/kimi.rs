//! Reads Kimi Code's sessions: one wire log per agent, and a file with the session's metadata.
//!
//! A log has each prompt twice, as typed and as sent to the model; it is emitted once. The older Kimi CLI has
//! another log format, with one log per session.

mod older;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::wire::Wire;
use super::fields;
use super::head::Head;
use super::record;
use super::telling::Telling;
use crate::durable::FileError;
use crate::entry::PRIMARY;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Object;
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "kimi";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// The file with a session's metadata.
const STATE: &str = "state.json";

/// The subfolder of a session's folder with one folder per agent.
const AGENTS: &str = "agents";

/// The agent that talks to the user.
const MAIN: &str = "main";

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let logs = record::candidates(tree, recognises)?;
    let mut bundles = Vec::new();
    let mut sessions: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for log in logs {
        let folder = session_folder(&log.root).or_else(|| older_folder(&log));
        match folder.filter(|folder| folder.starts_with(tree.root())) {
            Some(folder) => sessions.entry(folder).or_default().push(log.root),
            None => bundles.push(log),
        }
    }
    bundles.extend(sessions.into_iter().map(|(folder, logs)| bundle(folder, logs)));
    Ok(bundles)
}

/// Whether a file starts like a log of any version.
pub(crate) fn recognises(head: &Head) -> bool {
    let fields = head.fields();
    let is_metadata = fields::text(&fields, "type") == Some("metadata");
    let has_header = fields.contains_key("protocol_version") && fields.contains_key("created_at");
    (is_metadata && has_header) || older::recognises(head)
}

/// The session folder of a log in an `agents` folder.
fn session_folder(log: &Path) -> Option<PathBuf> {
    let agents = log.parent()?.parent()?;
    agents.ends_with(AGENTS).then(|| agents.parent().map(Path::to_owned))?
}

/// Like [`session_folder`], for a log of the older CLI.
fn older_folder(log: &Bundle) -> Option<PathBuf> {
    let folder = older::session_folder(&log.root)?;
    older::is_older(log).ok()?.then_some(folder)
}

fn bundle(folder: PathBuf, mut logs: Vec<PathBuf>) -> Bundle {
    logs.sort_by_key(|log| !log.parent().is_some_and(|agent| agent.ends_with(MAIN)));
    let state = Some(folder.join(STATE)).filter(|state| state.is_file());
    let sources = logs.into_iter().chain(state).map(|path| {
        let below = path.strip_prefix(&folder).unwrap_or(&path);
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        Source::on_disk(parts.join("/"), &path)
    });
    let sources = sources.collect();
    Bundle::new(folder, sources)
}

fn no_log(bundle: &Bundle) -> FormatError {
    FormatError::Invalid(Problem::of(&bundle.root, "no log in it"))
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    if older::is_older(bundle)? {
        return older::read(bundle, emit);
    }
    let (states, mut logs): (Vec<_>, Vec<_>) =
        bundle.sources.iter().partition(|source| source.name() == STATE);
    logs.sort_by_key(|source| agent_name(source).is_some_and(|name| name != MAIN));
    let Some(first) = logs.first() else { return Err(no_log(bundle)) };
    let folder = bundle.root.file_name().map(|name| name.to_string_lossy().into_owned());
    let id = folder.filter(|_| agent_name(first).is_some());
    let id = id.unwrap_or_else(|| record::stem(first).to_owned());
    let mut emitter = Telling::new(AGENT, &id, emit);
    for state in states {
        match record::document(state)? {
            Ok(state) => describe(&mut emitter.session, &state),
            Err(problem) => emitter.problem(problem),
        }
    }
    for (index, log) in logs.iter().enumerate() {
        emitter.speaker = match agent_name(log) {
            Some(name) if index > 0 => format!("subagent:{name}"),
            _ => PRIMARY.to_owned(),
        };
        emitter.session.subagent_files += u64::from(index > 0);
        Wire::new(&mut emitter).read(log)?;
    }
    Ok(emitter.session)
}

/// The agent of a log in an `agents` folder.
fn agent_name(source: &Source) -> Option<&str> {
    source.name().strip_prefix(AGENTS)?.strip_prefix('/')?.split('/').next()
}

/// Fills in the session from `state.json`. The older CLI has other field names.
fn describe(session: &mut Session, state: &Object) {
    let first = |names: &[&str]| {
        let mut texts = names.iter().filter_map(|name| fields::text(state, name));
        texts.find(|text| !text.is_empty()).map(str::to_owned)
    };
    session.title = first(&["title", "custom_title"]);
    session.project = first(&["workDir", "cwd", "work_dir", "worktree_path"]);
}
