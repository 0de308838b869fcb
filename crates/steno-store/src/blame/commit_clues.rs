//! What other tools noted about a commit: git-ai in notes below `refs/notes/ai`, Entire in a trailer.

use std::collections::HashMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::git_repository::GitRepository;
use crate::index::{Index, IndexError};

/// How many commits are asked for at once.
const MAX_COMMITS: usize = 200;

/// The ref of git-ai's notes.
const GIT_AI_NOTES_REF: &str = "refs/notes/ai";

/// The branch in which Entire keeps its checkpoints.
const CHECKPOINT_BRANCH: &str = "entire/checkpoints/v1";

/// What other tools noted about a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommitClues {
    pub(super) note: Option<AuthorshipNote>,
    /// The sessions, as their agents name them, of the checkpoint that the commit belongs to.
    pub(super) checkpoint_sessions: Vec<String>,
}

/// A note in the format `authorship/3`: keys of sessions with the lines that they wrote, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AuthorshipNote {
    ranges: Vec<NotedRange>,
    /// The agent's own session id for each key, where the note has it.
    native_ids: HashMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NotedRange {
    path: String,
    key: String,
    first: usize,
    last: usize,
}

/// Who wrote a line according to a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotedWriter {
    /// A person.
    Human,
    /// A session with this key.
    Session { key: String, native_id: Option<String> },
}

/// Reads what is noted about commits.
pub(super) fn read_commit_clues(
    repository: &GitRepository,
    commits: &[String],
) -> HashMap<String, CommitClues> {
    let format =
        "--format=%x1e%H%x1f%N%x1f%(trailers:key=Entire-Checkpoint,valueonly,separator=%x2c)";
    let mut clues = HashMap::new();
    let refs = [GIT_AI_NOTES_REF.to_owned(), format!("refs/heads/{CHECKPOINT_BRANCH}")];
    if !refs.iter().any(|name| repository.may_have_ref(name)) {
        return clues;
    }
    for commits in commits.chunks(MAX_COMMITS) {
        let mut args = vec!["log", "--no-walk=unsorted", "--notes=ai", format];
        args.extend(commits.iter().map(String::as_str));
        let text = repository.try_text(&args).unwrap_or_default();
        for record in text.split('\u{1e}').skip(1) {
            let mut fields = record.split('\u{1f}').map(str::trim);
            let [commit, note, checkpoints] = [(); 3].map(|()| fields.next().unwrap_or_default());
            let ids = checkpoints.split(',').map(str::trim).filter(|id| !id.is_empty());
            let found = CommitClues {
                note: AuthorshipNote::parse(note),
                checkpoint_sessions: ids
                    .flat_map(|id| read_checkpoint_sessions(repository, id))
                    .collect(),
            };
            clues.insert(commit.to_owned(), found);
        }
    }
    clues.retain(|_, clue| *clue != CommitClues::default());
    clues
}

/// The session ids in the metadata of a checkpoint.
fn read_checkpoint_sessions(repository: &GitRepository, id: &str) -> Vec<String> {
    if id.len() < 3 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Vec::new();
    }
    let folder = format!("{}/{}/", &id[..2], &id[2..]);
    let args =
        ["grep", "-h", "-o", "-E", r#""session_id": *"[^"]+""#, CHECKPOINT_BRANCH, "--", &folder];
    let text = repository.try_text(&args).unwrap_or_default();
    let mut ids: Vec<String> =
        text.lines().filter_map(|line| Some(line.rsplit('"').nth(1)?.to_owned())).collect();
    ids.sort();
    ids.dedup();
    ids
}

impl AuthorshipNote {
    /// Parses a note; `None` if it has another format.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (ranges, metadata) = text
            .split_once("\n---\n")
            .or_else(|| text.strip_prefix("---\n").map(|metadata| ("", metadata)))?;
        let metadata: Value = serde_json::from_str(metadata).ok()?;
        metadata.get("schema_version")?.as_str()?.strip_prefix("authorship/3")?;
        let mut note = Self::default();
        let mut path = String::new();
        for line in ranges.lines() {
            match line.strip_prefix("  ") {
                None => path = line.trim_matches('"').to_owned(),
                Some(entry) => note.add_ranges(&path, entry),
            }
        }
        for table in ["sessions", "prompts"] {
            for (key, record) in
                metadata.get(table).and_then(Value::as_object).into_iter().flatten()
            {
                if let Some(id) = record.pointer("/agent_id/id").and_then(Value::as_str) {
                    note.native_ids.insert(key.clone(), id.to_owned());
                }
            }
        }
        Some(note)
    }

    fn add_ranges(&mut self, path: &str, entry: &str) {
        let Some((key, ranges)) = entry.split_once(' ') else { return };
        for range in ranges.split(',') {
            let (first, last) =
                range.trim().split_once('-').unwrap_or((range.trim(), range.trim()));
            if let (Ok(first), Ok(last)) = (first.parse(), last.parse()) {
                self.ranges.push(NotedRange {
                    path: path.to_owned(),
                    key: key.to_owned(),
                    first,
                    last,
                });
            }
        }
    }

    /// Who wrote a line of the commit. The last range that has it holds.
    pub(super) fn writer_of(&self, path: &str, number: usize) -> Option<NotedWriter> {
        let has_line = |range: &&NotedRange| {
            range.path == path && (range.first..=range.last).contains(&number)
        };
        let key = &self.ranges.iter().rev().find(has_line)?.key;
        if key.starts_with("h_") {
            return Some(NotedWriter::Human);
        }
        let session = key.split("::").next().unwrap_or(key);
        let native_id = self.native_ids.get(key).or_else(|| self.native_ids.get(session));
        Some(NotedWriter::Session { key: session.to_owned(), native_id: native_id.cloned() })
    }
}

impl NotedWriter {
    /// The rows of the kept sessions that the note means. The key is a hash of the agent and the session's id.
    pub(super) fn find_sessions(&self, index: &Index) -> Result<Vec<i64>, IndexError> {
        let Self::Session { key, native_id } = self else { return Ok(Vec::new()) };
        if let Some(id) = native_id {
            return index.sessions_with_native_id(id);
        }
        let mut found = Vec::new();
        for (agent, tool) in GIT_AI_TOOLS {
            for row in index.sessions_of_agent(agent)? {
                let session = index.session_at_row(row)?;
                let native_id = session.and_then(|session| session.native_id);
                if native_id.is_some_and(|id| is_session_key(key, tool, &id)) {
                    found.push(row);
                }
            }
        }
        Ok(found)
    }
}

/// The names that git-ai has for agents.
const GIT_AI_TOOLS: [(&str, &str); 11] = [
    ("claude-code", "claude"),
    ("codex", "codex"),
    ("gemini", "gemini"),
    ("opencode", "opencode"),
    ("cursor", "cursor"),
    ("copilot", "github-copilot-cli"),
    ("amp", "amp"),
    ("droid", "droid"),
    ("pi", "pi"),
    ("cline", "cline"),
    ("vscode-chat", "github-copilot"),
];

/// Whether `key` is git-ai's key of a session: the hash of its tool and id, in the current form or the older one.
fn is_session_key(key: &str, tool: &str, native_id: &str) -> bool {
    let hash = Sha256::digest(format!("{tool}:{native_id}").as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    match key.strip_prefix("s_") {
        Some(key) => hex[..14] == *key,
        None => hex[..16] == *key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "src/a.rs\n  s_0123456789abcd::t_1 1-3,7\n  h_aaaaaaaaaaaaaa 9\n\"my file.rs\"\n  0123456789abcdef 2\n---\n{\"schema_version\": \"authorship/3.0.0\", \"base_commit_sha\": \"x\", \"prompts\": {\"0123456789abcdef\": {\"agent_id\": {\"tool\": \"codex\", \"id\": \"c1\"}}}}";

    #[test]
    fn a_note_names_the_writer_of_a_line() {
        let note = AuthorshipNote::parse(NOTE).unwrap();
        let session = |key: &str, id: Option<&str>| NotedWriter::Session {
            key: key.to_owned(),
            native_id: id.map(str::to_owned),
        };
        assert_eq!(note.writer_of("src/a.rs", 7), Some(session("s_0123456789abcd", None)));
        assert_eq!(note.writer_of("src/a.rs", 9), Some(NotedWriter::Human));
        assert_eq!(note.writer_of("my file.rs", 2), Some(session("0123456789abcdef", Some("c1"))));
        assert_eq!(note.writer_of("src/a.rs", 4), None);
        assert_eq!(AuthorshipNote::parse("just a note"), None);
    }

    #[test]
    fn tools_of_git_ai_are_agents_that_steno_reads() {
        for (agent, tool) in GIT_AI_TOOLS {
            assert!(steno_agents::registry::agent_named(agent).is_some(), "{agent} for {tool}");
        }
    }

    #[test]
    fn a_key_is_the_hash_of_tool_and_session() {
        // The output of `printf claude:abc | sha256sum`.
        let hex = "2ce06946efc0323c1ef8f0b68a17064d";
        assert!(is_session_key(&format!("s_{}", &hex[..14]), "claude", "abc"));
        assert!(is_session_key(&hex[..16], "claude", "abc"));
        assert!(!is_session_key(&hex[..16], "codex", "abc"));
    }
}
