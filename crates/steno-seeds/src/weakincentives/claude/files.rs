//! Finds Claude Code's session files, both where weakincentives' specification expects them and where they are.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};

use super::{AGENT_NAME, entries_from_line};
use crate::weakincentives::files::list_jsonl_files;
use crate::weakincentives::jsonl;
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE};
use steno_model::numbering::EntryNumbering;
use steno_model::session::{Session, SessionId, Transcript};
use steno_model::timestamp::Timestamp;
use steno_vault::{FormatError, SessionBundle, SessionFile};

/// Finds the sessions of a `.claude` folder: `projects/P/S.jsonl`, or `projects/P/transcripts/S.jsonl`.
///
/// A session's subagents (`projects/P/S/subagents/agent-A.jsonl`) belong to its bundle.
pub fn find_sessions(claude: &Path) -> Result<Vec<SessionBundle>, FileError> {
    let projects = claude.join("projects");
    if !projects.is_dir() {
        return Ok(Vec::new());
    }
    let files = list_jsonl_files(&projects)?;
    let (agents, sessions): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|path| subagent_id(path).is_some());
    Ok(sessions.iter().map(|path| session_bundle(path, &agents)).collect())
}

/// Reads one session, adds tool names to tool results, and counts the tokens of each message once.
///
/// `now` replaces a missing time. Entries are in file order, with the subagents' last.
pub fn read_session(
    bundle: &SessionBundle,
    now: Option<Timestamp>,
) -> Result<Transcript, FormatError> {
    let mut entries = Vec::new();
    let mut problems = Vec::new();
    for source in &bundle.files {
        let agent = subagent_id(Path::new(source.name())).map(|id| format!("subagent:{id}"));
        let found = jsonl::read_objects(source.open_document()?, source.path(), |object| {
            for mut entry in entries_from_line(object, now) {
                if let (PRIMARY_SOURCE, Some(agent)) = (entry.source.as_str(), &agent) {
                    entry.source.clone_from(agent);
                }
                entries.push(entry);
            }
            Ok::<(), Infallible>(())
        })?;
        problems.extend(found.into_problems());
    }
    name_tool_results(&mut entries);
    keep_last_usage(&mut entries);
    let mut transcript = Transcript::new(build_session(bundle, &entries));
    let mut numbering = EntryNumbering::new(AGENT_NAME, transcript.session.id.as_str());
    for mut entry in entries {
        numbering.assign_number(&mut entry);
        transcript.push(entry);
    }
    transcript.problems = problems;
    Ok(transcript)
}

fn session_bundle(session: &Path, agents: &[PathBuf]) -> SessionBundle {
    let folder = session.with_extension("").join("subagents");
    let mut bundle = SessionBundle::from_file(session);
    for agent in agents.iter().filter(|path| path.starts_with(&folder)) {
        let root = steno_model::durable::parent_folder(session);
        let below = agent.strip_prefix(root).unwrap_or(agent);
        let name = below.to_string_lossy().replace('\\', "/");
        bundle.files.push(SessionFile::on_disk(name, agent));
        bundle.root = root.to_owned();
    }
    bundle
}

/// The id of the subagent that a file belongs to.
fn subagent_id(path: &Path) -> Option<&str> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    let folder = path.parent()?.file_name()?;
    stem.strip_prefix("agent-").filter(|_| folder == "subagents")
}

fn build_session(bundle: &SessionBundle, entries: &[Entry]) -> Session {
    let text = |object: Option<&steno_model::json::Object>, key: &str| {
        Some(object?.get(key)?.as_str()?.to_owned())
    };
    let stated = |key: &str| entries.iter().find_map(|entry| text(Some(&entry.extra), key));
    let native_id = entries
        .iter()
        .find_map(|entry| text(entry.metadata.as_ref(), "claude_session_id"))
        .unwrap_or_else(|| bundle.root.display().to_string());
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &native_id), AGENT_NAME);
    session.native_id = Some(native_id);
    session.project = stated("cwd");
    session.branch = stated("gitBranch");
    session
}

fn name_tool_results(entries: &mut [Entry]) {
    let mut names: HashMap<String, Option<String>> = HashMap::new();
    for entry in entries {
        let Some(id) = &entry.tool_call_id else {
            continue;
        };
        match entry.kind {
            EntryKind::ToolCall => drop(names.insert(id.clone(), entry.tool_name.clone())),
            _ if entry.tool_name.is_none() => {
                entry.tool_name = names.get(id).cloned().flatten();
            }
            _ => {}
        }
    }
}

/// Keeps only the last usage of each message. Every line of a message repeats the usage with growing counts.
fn keep_last_usage(entries: &mut [Entry]) {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use steno_model::entry::Usage;

    const NESTED: &str =
        include_str!("../../../tests/fixtures/weakincentives/claude-2.0-nested.jsonl");

    fn in_memory(name: &str, text: &str) -> SessionBundle {
        SessionBundle::new(name, vec![SessionFile::in_memory(name, name, text.into())])
    }

    #[test]
    fn nested_lines_give_one_entry_per_block() {
        let transcript = read_session(&in_memory("s.jsonl", NESTED), None).unwrap();
        let actual: Vec<_> = transcript
            .entries
            .iter()
            .map(|entry| {
                let source = entry.source.strip_prefix("subagent:").unwrap_or("-");
                let message = entry.message_id.as_deref().unwrap_or("-");
                let message = &message[message.len().saturating_sub(2)..];
                format!("{source} {} {} {message}: {}", entry.role, entry.kind, entry.content)
            })
            .collect();
        assert_eq!(
            actual,
            [
                "- system notice -: Review of main.py",
                "- user text 01: Please review",
                "- assistant thinking 01: Read it first.",
                "- assistant text 01: I will read it.",
                "- assistant tool_call 01: {\n  \"path\": \"src/main.py\"\n}",
                "- tool tool_result 04: def main(): ...",
                "abc123 assistant other 02: ",
                "- system compaction -: Conversation compacted",
            ]
        );
    }

    #[test]
    fn ids_names_and_tokens_are_kept_once() {
        let transcript = read_session(&in_memory("s.jsonl", NESTED), None).unwrap();
        let [_, user, thought, text, call, result, ..] = &transcript.entries[..] else {
            panic!("too few entries");
        };
        let own = "5b4f1f5e-0000-4000-8000-000000000002";
        assert_eq!(thought.entry_id.to_string(), own);
        assert_ne!(text.entry_id, thought.entry_id);
        assert_eq!(call.parent_id.as_deref(), Some(own));
        assert_eq!(result.tool_name.as_deref(), Some("Read"));
        assert_eq!(thought.extra["signature"], "c2ln");
        assert_eq!(user.created_at.unwrap().to_string(), "2026-01-05T09:15:32.100Z");
        assert_eq!((thought.usage, text.usage), (None, None));
        let billed =
            Usage { input: 10, cache_read: 5, cache_write: 2, output: 20, ..Usage::default() };
        assert_eq!(call.usage, Some(billed));
        let session = &transcript.session;
        assert_eq!(session.totals.usage, billed);
        assert_eq!(session.id.as_str(), "c0ffee00-0000-4000-8000-000000000001");
        assert_eq!(session.project.as_deref(), Some("/home/ada/project"));
        assert_eq!(session.branch.as_deref(), Some("main"));
        assert_eq!(transcript.problems.len(), 1);
    }

    #[test]
    fn both_places_are_searched_and_subagents_belong_to_their_session() {
        let claude = tempfile::tempdir().unwrap();
        for name in ["p/transcripts/old.jsonl", "p/new.jsonl", "p/new/subagents/agent-a1.jsonl"] {
            let path = claude.path().join("projects").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, r#"{"type":"user","content":"hi"}"#).unwrap();
        }
        let bundles = find_sessions(claude.path()).unwrap();
        let names: Vec<Vec<_>> = bundles
            .iter()
            .map(|bundle| bundle.files.iter().map(SessionFile::name).collect())
            .collect();
        let new = vec!["new.jsonl", "new/subagents/agent-a1.jsonl"];
        assert_eq!(names, [new, vec!["old.jsonl"]]);
        let sources: Vec<_> = read_session(&bundles[0], None).unwrap().entries;
        let sources: Vec<_> = sources.iter().map(|entry| entry.source.as_str()).collect();
        assert_eq!(sources, [PRIMARY_SOURCE, "subagent:a1"]);
    }
}
