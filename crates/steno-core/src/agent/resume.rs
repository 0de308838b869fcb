//! The command with which each agent resumes a session, and the path where it then looks for the session file.
//!
//! Only agents with a documented command are listed. This module runs nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::session::SessionId;

/// How one agent resumes a session.
#[derive(Debug)]
pub struct Resume {
    /// The agent.
    pub agent: &'static str,
    /// Its program.
    pub program: &'static str,
    /// The arguments. `{id}` is replaced by the agent's session id, `{file}` by the session file.
    words: &'static [&'static str],
    /// How the path of session files depends on the working folder.
    folder: Folder,
}

#[derive(Debug)]
enum Folder {
    /// It does not: sessions are found from any folder.
    Any,
    /// A folder in the path is named after the working folder, with `-` for every character except letters and
    /// digits. A name longer than the limit is cut and gets a hash.
    Named { limit: usize },
    /// A folder in the path has a file that names the working folder.
    Marked,
    /// The session files are inside the working folder.
    Inside,
    /// The agent stores the working folder, or encodes it in an undocumented way. Sessions resume only there.
    Own,
}

/// The file in which Gemini CLI names the working folder.
pub(super) const MARKER: &str = ".project_root";

const ALL: [Resume; 14] = [
    row(super::claude_code::AGENT, "claude", &["--resume", "{id}"], Folder::Named { limit: 200 }),
    row(super::codex::AGENT, "codex", &["resume", "{id}"], Folder::Any),
    row(super::gemini::AGENT, "gemini", &["--resume", "{id}"], Folder::Marked),
    row(super::qwen::AGENT, "qwen", &["--resume", "{id}"], Folder::Named { limit: usize::MAX }),
    row(super::copilot::AGENT, "copilot", &["--resume={id}"], Folder::Any),
    row(super::amp::AGENT, "amp", &["threads", "continue", "{id}"], Folder::Any),
    row(super::pi::AGENT, "pi", &["--session", "{file}"], Folder::Any),
    row(super::droid::AGENT, "droid", &["--resume", "{id}"], Folder::Own),
    row(super::kimi::AGENT, "kimi", &["--session", "{id}"], Folder::Own),
    row(super::aider::AGENT, "aider", &["--restore-chat-history"], Folder::Inside),
    row(super::opencode::AGENT, "opencode", &["--session", "{id}"], Folder::Own),
    row(super::goose::AGENT, "goose", GOOSE, Folder::Any),
    row(super::crush::AGENT, "crush", &["-s", "{id}"], Folder::Inside),
    row(super::cursor::AGENT, "cursor-agent", &["--resume", "{id}"], Folder::Own),
];

const GOOSE: &[&str] = &["session", "--resume", "--session-id", "{id}"];

const fn row(
    agent: &'static str,
    program: &'static str,
    words: &'static [&'static str],
    folder: Folder,
) -> Resume {
    Resume { agent, program, words, folder }
}

/// Why an agent would not find a session in another folder.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The agent looks for the session only in its original folder.
    #[error("{agent} can resume the session only in its original folder: {from}")]
    Own {
        /// The agent.
        agent: &'static str,
        /// The folder of the session.
        from: PathBuf,
    },
    /// The path of the session file does not contain the folder.
    #[error("the path of the session file does not contain the session's folder: {0}")]
    Elsewhere(PathBuf),
    /// The agent has no folder for sessions of this working folder yet.
    #[error("{agent} has no sessions for this folder yet: {to}")]
    New {
        /// The agent.
        agent: &'static str,
        /// The working folder.
        to: PathBuf,
    },
}

/// The folder of a session, before and after.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// The original folder of the session, if known.
    pub from: Option<&'a Path>,
    /// The folder to resume in.
    pub to: &'a Path,
}

impl Resume {
    /// The resume command of `agent`. `None` if the agent has none.
    pub fn of(agent: &str) -> Option<&'static Self> {
        const { &ALL }.iter().find(|resume| resume.agent == agent)
    }

    /// The agents that can resume a session.
    pub fn agents() -> impl Iterator<Item = &'static str> {
        const { &ALL }.iter().map(|resume| resume.agent)
    }

    /// The arguments to resume the session with this id and file. `None` for an id that no agent generates: ids come
    /// from files and must not be taken for an option.
    pub fn arguments(&self, id: &str, file: &Path) -> Option<Vec<String>> {
        let is_plain = !id.starts_with('-') && id.parse::<SessionId>().is_ok();
        let file = file.to_string_lossy();
        let word = |word: &&str| match *word {
            word if word.contains("{id}") => is_plain.then(|| word.replace("{id}", id)),
            word => Some(word.replace("{file}", &file)),
        };
        self.words.iter().map(word).collect()
    }

    /// Whether the agent needs the working folder to find a session.
    pub fn needs_folder(&self) -> bool {
        !matches!(self.folder, Folder::Any)
    }

    /// The path where the agent, in its new working folder, looks for the session file previously at `file`.
    pub fn place(&self, file: &Path, moved: Move<'_>) -> Result<PathBuf, PlaceError> {
        let Move { from, to } = moved;
        if from == Some(to) {
            return Ok(file.to_owned());
        }
        match (&self.folder, from) {
            (Folder::Any, _) | (Folder::Own, None) => Ok(file.to_owned()),
            (Folder::Inside, from) => {
                let below = from.and_then(|from| file.strip_prefix(from).ok());
                Ok(below.map_or_else(|| file.to_owned(), |below| to.join(below)))
            }
            (Folder::Named { limit }, from) => self.named(file, from, to, *limit),
            (Folder::Marked, _) => self.marked(file, to),
            (Folder::Own, Some(from)) => {
                Err(PlaceError::Own { agent: self.agent, from: from.to_owned() })
            }
        }
    }

    fn named(
        &self,
        file: &Path,
        from: Option<&Path>,
        to: &Path,
        limit: usize,
    ) -> Result<PathBuf, PlaceError> {
        let elsewhere = || PlaceError::Elsewhere(file.to_owned());
        let old = name_of(from.ok_or_else(elsewhere)?);
        let is_old = |name: &str| name == old || is_cut(name, &old, limit);
        let is_in_projects = |above: &&Path| above.parent().and_then(file_name) == Some("projects");
        let folder = file.ancestors().find(|above| file_name(above).is_some_and(is_old));
        // A session resumed in another folder has its files there.
        let folder = folder.or_else(|| file.ancestors().find(is_in_projects));
        let folder = folder.ok_or_else(elsewhere)?;
        let below = file.strip_prefix(folder).map_err(|_| elsewhere())?;
        let name = name_of(to);
        if name.len() <= limit {
            return Ok(folder.with_file_name(name).join(below));
        }
        // Only the agent can compute the hash.
        let existing = beside(folder)
            .find(|other| file_name(other).is_some_and(|existing| is_cut(existing, &name, limit)));
        let new = || PlaceError::New { agent: self.agent, to: to.to_owned() };
        Ok(existing.ok_or_else(new)?.join(below))
    }

    fn marked(&self, file: &Path, to: &Path) -> Result<PathBuf, PlaceError> {
        let elsewhere = || PlaceError::Elsewhere(file.to_owned());
        let chats = file.ancestors().find(|above| file_name(above) == Some("chats"));
        let folder = chats.unwrap_or(file).parent().ok_or_else(elsewhere)?;
        let below = file.strip_prefix(folder).map_err(|_| elsewhere())?;
        let existing = beside(folder).find(|other| {
            fs::read_to_string(other.join(MARKER)).is_ok_and(|owner| Path::new(owner.trim()) == to)
        });
        let new = || PlaceError::New { agent: self.agent, to: to.to_owned() };
        Ok(existing.ok_or_else(new)?.join(below))
    }
}

/// Encodes a folder's path as one name. Agents replace each UTF-16 code unit.
fn name_of(folder: &Path) -> String {
    let text = folder.to_string_lossy();
    let unit = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    };
    text.encode_utf16().map(unit).collect()
}

/// Whether `name` is a shortened `whole`: its first `limit` characters and a hash.
fn is_cut(name: &str, whole: &str, limit: usize) -> bool {
    let kept = whole.get(..limit).and_then(|kept| name.strip_prefix(kept));
    whole.len() > limit && kept.is_some_and(|hash| hash.starts_with('-'))
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// All folders in the parent of `folder`, including itself.
fn beside(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = folder.parent().and_then(|above| fs::read_dir(above).ok());
    let mut paths: Vec<_> =
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(agent: &str, file: &str, from: &str, to: &str) -> Result<PathBuf, PlaceError> {
        let moved = Move { from: Some(Path::new(from)), to: Path::new(to) };
        Resume::of(agent).unwrap().place(Path::new(file), moved)
    }

    #[test]
    fn each_agent_has_its_words() {
        let of = |agent, id| Resume::of(agent).unwrap().arguments(id, Path::new("/s/f.jsonl"));
        let words = |agent| of(agent, "s1").unwrap();
        assert_eq!(words("claude-code"), ["--resume", "s1"]);
        assert_eq!(words("copilot"), ["--resume=s1"]);
        assert_eq!(words("pi"), ["--session", "/s/f.jsonl"]);
        assert!(Resume::of("zed").is_none());
        for bad in ["", "--yolo", "a b", "../x"] {
            assert_eq!(of("claude-code", bad), None, "{bad:?}");
        }
        assert_eq!(Resume::agents().count(), ALL.len());
    }

    #[test]
    fn files_follow_a_folder_that_moved() {
        let claude = "/h/.claude/projects/-w-my-app/s/subagents/agent-1.jsonl";
        let moved = place("claude-code", claude, "/w/my.app", "/v/ä𝄞").unwrap();
        assert_eq!(moved, Path::new("/h/.claude/projects/-v----/s/subagents/agent-1.jsonl"));
        let stays = place("claude-code", claude, "/w/my.app", "/w/my.app").unwrap();
        assert_eq!(stays, Path::new(claude));
        let again = place("claude-code", claude, "/other", "/v").unwrap();
        assert_eq!(again, Path::new("/h/.claude/projects/-v/s/subagents/agent-1.jsonl"));
        assert!(place("claude-code", "/backup/s.jsonl", "/w/my.app", "/v").is_err());
        let qwen = place("qwen", "/h/.qwen/projects/-w/chats/s.jsonl", "/w", "/v").unwrap();
        assert_eq!(qwen, Path::new("/h/.qwen/projects/-v/chats/s.jsonl"));
        let aider = place("aider", "/w/.aider.chat.history.md", "/w", "/v").unwrap();
        assert_eq!(aider, Path::new("/v/.aider.chat.history.md"));
        let codex = place("codex", "/h/.codex/sessions/r.jsonl", "/w", "/v").unwrap();
        assert_eq!(codex, Path::new("/h/.codex/sessions/r.jsonl"));
        let error = place("droid", "/h/.factory/sessions/-w/s.jsonl", "/w", "/v").unwrap_err();
        assert!(error.to_string().ends_with("original folder: /w"), "{error}");
    }

    #[test]
    fn a_name_that_is_cut_is_found_by_its_beginning() {
        let temp = tempfile::tempdir().unwrap();
        let long = format!("/{}", "x".repeat(250));
        let old = temp.path().join(format!("-{}-1a2b", "x".repeat(199)));
        let file = old.join("s.jsonl");
        let claude = Resume::of("claude-code").unwrap();
        let to = format!("/{}", "y".repeat(250));
        let moved = Move { from: Some(Path::new(&long)), to: Path::new(&to) };
        assert!(matches!(claude.place(&file, moved), Err(PlaceError::New { .. })));
        let new = temp.path().join(format!("-{}-3c4d", "y".repeat(199)));
        fs::create_dir(&new).unwrap();
        assert_eq!(claude.place(&file, moved).unwrap(), new.join("s.jsonl"));
    }

    #[test]
    fn gemini_says_by_a_file_whose_a_folder_is() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("app/chats/session-1.jsonl");
        let gemini = Resume::of("gemini").unwrap();
        let moved = Move { from: None, to: Path::new("/v/app") };
        assert!(matches!(gemini.place(&file, moved), Err(PlaceError::New { .. })));
        let new = temp.path().join("app-1");
        fs::create_dir(&new).unwrap();
        fs::write(new.join(MARKER), "/v/app\n").unwrap();
        assert_eq!(gemini.place(&file, moved).unwrap(), new.join("chats/session-1.jsonl"));
        let marker = temp.path().join("app").join(MARKER);
        assert_eq!(gemini.place(&marker, moved).unwrap(), new.join(MARKER));
    }
}
