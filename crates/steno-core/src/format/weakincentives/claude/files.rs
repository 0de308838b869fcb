//! Claude Code's files: where the seed looked for them, and where they are.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};

use super::{AGENT, convert};
use crate::durable::FileError;
use crate::entry::{Entry, Kind, Numbering, PRIMARY};
use crate::format::FormatError;
use crate::format::weakincentives::{files::jsonl_files, jsonl};
use crate::session::{Session, SessionId, Transcript};
use crate::source::{Bundle, Source};
use crate::timestamp::Timestamp;

/// The sessions of a `.claude` folder: `projects/P/S.jsonl`, or `projects/P/transcripts/S.jsonl` as the seed has it.
///
/// A session's subagents (`projects/P/S/subagents/agent-A.jsonl`) belong to its bundle.
pub fn find(claude: &Path) -> Result<Vec<Bundle>, FileError> {
    let projects = claude.join("projects");
    if !projects.is_dir() {
        return Ok(Vec::new());
    }
    let files = jsonl_files(&projects)?;
    let (agents, sessions): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|path| agent_of(path).is_some());
    Ok(sessions.iter().map(|path| bundle(path, &agents)).collect())
}

/// Reads one session; each tool result gets the name of its tool, each message's tokens count once.
///
/// `now` stands for a time that a line does not state. Entries are in the order of the files, the subagents' last.
pub fn read(bundle: &Bundle, now: Option<Timestamp>) -> Result<Transcript, FormatError> {
    let mut entries = Vec::new();
    let mut problems = Vec::new();
    for source in &bundle.sources {
        let agent = agent_of(Path::new(source.name())).map(|id| format!("subagent:{id}"));
        let found = jsonl::read_objects(source.open()?, source.path(), |object| {
            for mut entry in convert(object, now) {
                if let (PRIMARY, Some(agent)) = (entry.source.as_str(), &agent) {
                    entry.source.clone_from(agent);
                }
                entries.push(entry);
            }
            Ok::<(), Infallible>(())
        })?;
        problems.extend(found);
    }
    name_results(&mut entries);
    count_once(&mut entries);
    let mut transcript = Transcript::new(session(bundle, &entries));
    let mut numbering = Numbering::new(AGENT, transcript.session.id.as_str());
    for mut entry in entries {
        numbering.assign(&mut entry);
        transcript.push(entry);
    }
    transcript.problems = problems;
    Ok(transcript)
}

fn bundle(session: &Path, agents: &[PathBuf]) -> Bundle {
    let folder = session.with_extension("").join("subagents");
    let mut bundle = Bundle::file(session);
    for agent in agents.iter().filter(|path| path.starts_with(&folder)) {
        let root = crate::durable::parent(session);
        let below = agent.strip_prefix(root).unwrap_or(agent);
        let name = below.to_string_lossy().replace('\\', "/");
        bundle.sources.push(Source::on_disk(name, agent));
        bundle.root = root.to_owned();
    }
    bundle
}

/// The subagent whose file this is.
fn agent_of(path: &Path) -> Option<&str> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    let folder = path.parent()?.file_name()?;
    stem.strip_prefix("agent-")
        .filter(|_| folder == "subagents")
}

fn session(bundle: &Bundle, entries: &[Entry]) -> Session {
    let text = |object: Option<&crate::json::Object>, key: &str| {
        Some(object?.get(key)?.as_str()?.to_owned())
    };
    let stated = |key: &str| {
        entries
            .iter()
            .find_map(|entry| text(Some(&entry.extra), key))
    };
    let native_id = entries
        .iter()
        .find_map(|entry| text(entry.metadata.as_ref(), "claude_session_id"))
        .unwrap_or_else(|| bundle.root.display().to_string());
    let mut session = Session::new(SessionId::for_native(AGENT, &native_id), AGENT);
    session.native_id = Some(native_id);
    session.project = stated("cwd");
    session.branch = stated("gitBranch");
    session
}

fn name_results(entries: &mut [Entry]) {
    let mut names: HashMap<String, Option<String>> = HashMap::new();
    for entry in entries {
        let Some(id) = &entry.tool_call_id else {
            continue;
        };
        match entry.kind {
            Kind::ToolCall => drop(names.insert(id.clone(), entry.tool_name.clone())),
            _ if entry.tool_name.is_none() => {
                entry.tool_name = names.get(id).cloned().flatten();
            }
            _ => {}
        }
    }
}

/// A message's tokens are repeated in each of its lines, growing; only the last count stays.
fn count_once(entries: &mut [Entry]) {
    let mut counted: HashMap<String, usize> = HashMap::new();
    for index in 0..entries.len() {
        let Some(id) = entries[index].message_id.clone() else {
            continue;
        };
        if entries[index].usage.is_some()
            && let Some(earlier) = counted.insert(id, index)
        {
            entries[earlier].usage = None;
        }
    }
}
