//! The command with which each agent resumes a session, and the path where it then looks for the session file.
//!
//! Only agents with a documented command are listed. This module runs nothing.

use std::fs;
use std::path::{Path, PathBuf};

use steno_model::session::SessionId;

/// How one agent resumes a session.
#[derive(Debug)]
pub struct ResumeCommand {
    /// The agent.
    pub agent: &'static str,
    /// Its program.
    pub program: &'static str,
    /// The arguments. `{id}` is replaced by the agent's session id, `{file}` by the session file.
    argument_templates: &'static [&'static str],
    /// How the path of session files depends on the working folder.
    folder_rule: FolderRule,
}

#[derive(Debug)]
enum FolderRule {
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
pub(super) const PROJECT_ROOT_FILE: &str = ".project_root";

const RESUME_COMMANDS: [ResumeCommand; 14] = [
    resume_command(
        super::claude_code::AGENT,
        "claude",
        &["--resume", "{id}"],
        FolderRule::Named { limit: 200 },
    ),
    resume_command(super::codex::AGENT, "codex", &["resume", "{id}"], FolderRule::Any),
    resume_command(super::gemini::AGENT, "gemini", &["--resume", "{id}"], FolderRule::Marked),
    resume_command(
        super::qwen::AGENT,
        "qwen",
        &["--resume", "{id}"],
        FolderRule::Named { limit: usize::MAX },
    ),
    resume_command(super::copilot::AGENT, "copilot", &["--resume={id}"], FolderRule::Any),
    resume_command(super::amp::AGENT, "amp", &["threads", "continue", "{id}"], FolderRule::Any),
    resume_command(super::pi::AGENT, "pi", &["--session", "{file}"], FolderRule::Any),
    resume_command(super::droid::AGENT, "droid", &["--resume", "{id}"], FolderRule::Own),
    resume_command(super::kimi::AGENT, "kimi", &["--session", "{id}"], FolderRule::Own),
    resume_command(super::aider::AGENT, "aider", &["--restore-chat-history"], FolderRule::Inside),
    resume_command(super::opencode::AGENT, "opencode", &["--session", "{id}"], FolderRule::Own),
    resume_command(super::goose::AGENT, "goose", GOOSE_ARGUMENTS, FolderRule::Any),
    resume_command(super::crush::AGENT, "crush", &["-s", "{id}"], FolderRule::Inside),
    resume_command(super::cursor::AGENT, "cursor-agent", &["--resume", "{id}"], FolderRule::Own),
];

const GOOSE_ARGUMENTS: &[&str] = &["session", "--resume", "--session-id", "{id}"];

const fn resume_command(
    agent: &'static str,
    program: &'static str,
    words: &'static [&'static str],
    folder: FolderRule,
) -> ResumeCommand {
    ResumeCommand { agent, program, argument_templates: words, folder_rule: folder }
}

/// Why an agent would not find a session in another folder.
#[derive(Debug, thiserror::Error)]
pub enum ResumeLocationError {
    /// The agent looks for the session only in its original folder.
    #[error("{agent} can resume the session only in its original folder: {from}")]
    OtherFolder {
        /// The agent.
        agent: &'static str,
        /// The folder of the session.
        from: PathBuf,
    },
    /// The path of the session file does not contain the folder.
    #[error("the path of the session file does not contain the session's folder: {0}")]
    FolderNotInPath(PathBuf),
    /// The agent has no folder for sessions of this working folder yet.
    #[error("{agent} has no sessions for this folder yet: {to}")]
    NoSessionsYet {
        /// The agent.
        agent: &'static str,
        /// The working folder.
        to: PathBuf,
    },
}

/// The folder of a session, before and after.
#[derive(Clone, Copy, Debug)]
pub struct SessionFolderMove<'a> {
    /// The original folder of the session, if known.
    pub from: Option<&'a Path>,
    /// The folder to resume in.
    pub to: &'a Path,
}

impl ResumeCommand {
    /// The resume command of `agent`. `None` if the agent has none.
    pub fn for_agent(agent: &str) -> Option<&'static Self> {
        const { &RESUME_COMMANDS }.iter().find(|resume| resume.agent == agent)
    }

    /// The agents that can resume a session.
    pub fn agents() -> impl Iterator<Item = &'static str> {
        const { &RESUME_COMMANDS }.iter().map(|resume| resume.agent)
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
        self.argument_templates.iter().map(word).collect()
    }

    /// Whether the agent needs the working folder to find a session.
    pub fn needs_folder(&self) -> bool {
        !matches!(self.folder_rule, FolderRule::Any)
    }

    /// The path where the agent, in its new working folder, looks for the session file previously at `file`.
    pub fn locate_file(
        &self,
        file: &Path,
        moved: SessionFolderMove<'_>,
    ) -> Result<PathBuf, ResumeLocationError> {
        let SessionFolderMove { from, to } = moved;
        if from == Some(to) {
            return Ok(file.to_owned());
        }
        match (&self.folder_rule, from) {
            (FolderRule::Any, _) | (FolderRule::Own, None) => Ok(file.to_owned()),
            (FolderRule::Inside, from) => {
                let below = from.and_then(|from| file.strip_prefix(from).ok());
                Ok(below.map_or_else(|| file.to_owned(), |below| to.join(below)))
            }
            (FolderRule::Named { limit }, from) => self.locate_named(file, from, to, *limit),
            (FolderRule::Marked, _) => self.locate_marked(file, to),
            (FolderRule::Own, Some(from)) => {
                Err(ResumeLocationError::OtherFolder { agent: self.agent, from: from.to_owned() })
            }
        }
    }

    fn locate_named(
        &self,
        file: &Path,
        from: Option<&Path>,
        to: &Path,
        limit: usize,
    ) -> Result<PathBuf, ResumeLocationError> {
        let elsewhere = || ResumeLocationError::FolderNotInPath(file.to_owned());
        let old = encode_folder_name(from.ok_or_else(elsewhere)?);
        let is_old = |name: &str| name == old || is_shortened_name(name, &old, limit);
        let is_in_projects =
            |above: &&Path| above.parent().and_then(file_name_str) == Some("projects");
        let folder = file.ancestors().find(|above| file_name_str(above).is_some_and(is_old));
        // A session resumed in another folder has its files there.
        let folder = folder.or_else(|| file.ancestors().find(is_in_projects));
        let folder = folder.ok_or_else(elsewhere)?;
        let below = file.strip_prefix(folder).map_err(|_| elsewhere())?;
        let name = encode_folder_name(to);
        if name.len() <= limit {
            return Ok(folder.with_file_name(name).join(below));
        }
        // Only the agent can compute the hash.
        let existing = sibling_folders(folder).find(|other| {
            file_name_str(other).is_some_and(|existing| is_shortened_name(existing, &name, limit))
        });
        let new = || ResumeLocationError::NoSessionsYet { agent: self.agent, to: to.to_owned() };
        Ok(existing.ok_or_else(new)?.join(below))
    }

    fn locate_marked(&self, file: &Path, to: &Path) -> Result<PathBuf, ResumeLocationError> {
        let elsewhere = || ResumeLocationError::FolderNotInPath(file.to_owned());
        let chats = file.ancestors().find(|above| file_name_str(above) == Some("chats"));
        let folder = chats.unwrap_or(file).parent().ok_or_else(elsewhere)?;
        let below = file.strip_prefix(folder).map_err(|_| elsewhere())?;
        let existing = sibling_folders(folder).find(|other| {
            fs::read_to_string(other.join(PROJECT_ROOT_FILE))
                .is_ok_and(|owner| Path::new(owner.trim()) == to)
        });
        let new = || ResumeLocationError::NoSessionsYet { agent: self.agent, to: to.to_owned() };
        Ok(existing.ok_or_else(new)?.join(below))
    }
}

/// Encodes a folder's path as one name. Agents replace each UTF-16 code unit.
fn encode_folder_name(folder: &Path) -> String {
    let text = folder.to_string_lossy();
    let unit = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    };
    text.encode_utf16().map(unit).collect()
}

/// Whether `name` is a shortened `whole`: its first `limit` characters and a hash.
fn is_shortened_name(name: &str, whole: &str, limit: usize) -> bool {
    let kept = whole.get(..limit).and_then(|kept| name.strip_prefix(kept));
    whole.len() > limit && kept.is_some_and(|hash| hash.starts_with('-'))
}

fn file_name_str(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// All folders in the parent of `folder`, including itself.
fn sibling_folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = folder.parent().and_then(|above| fs::read_dir(above).ok());
    let mut paths: Vec<_> =
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(
        agent: &str,
        file: &str,
        from: &str,
        to: &str,
    ) -> Result<PathBuf, ResumeLocationError> {
        let moved = SessionFolderMove { from: Some(Path::new(from)), to: Path::new(to) };
        ResumeCommand::for_agent(agent).unwrap().locate_file(Path::new(file), moved)
    }

    #[test]
    fn each_agent_has_its_words() {
        let of = |agent, id| {
            ResumeCommand::for_agent(agent).unwrap().arguments(id, Path::new("/s/f.jsonl"))
        };
        let words = |agent| of(agent, "s1").unwrap();
        assert_eq!(words("claude-code"), ["--resume", "s1"]);
        assert_eq!(words("copilot"), ["--resume=s1"]);
        assert_eq!(words("pi"), ["--session", "/s/f.jsonl"]);
        assert!(ResumeCommand::for_agent("zed").is_none());
        for bad in ["", "--yolo", "a b", "../x"] {
            assert_eq!(of("claude-code", bad), None, "{bad:?}");
        }
        assert_eq!(ResumeCommand::agents().count(), RESUME_COMMANDS.len());
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
        let claude = ResumeCommand::for_agent("claude-code").unwrap();
        let to = format!("/{}", "y".repeat(250));
        let moved = SessionFolderMove { from: Some(Path::new(&long)), to: Path::new(&to) };
        assert!(matches!(
            claude.locate_file(&file, moved),
            Err(ResumeLocationError::NoSessionsYet { .. })
        ));
        let new = temp.path().join(format!("-{}-3c4d", "y".repeat(199)));
        fs::create_dir(&new).unwrap();
        assert_eq!(claude.locate_file(&file, moved).unwrap(), new.join("s.jsonl"));
    }

    #[test]
    fn gemini_names_the_owner_of_a_folder_in_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("app/chats/session-1.jsonl");
        let gemini = ResumeCommand::for_agent("gemini").unwrap();
        let moved = SessionFolderMove { from: None, to: Path::new("/v/app") };
        assert!(matches!(
            gemini.locate_file(&file, moved),
            Err(ResumeLocationError::NoSessionsYet { .. })
        ));
        let new = temp.path().join("app-1");
        fs::create_dir(&new).unwrap();
        fs::write(new.join(PROJECT_ROOT_FILE), "/v/app\n").unwrap();
        assert_eq!(gemini.locate_file(&file, moved).unwrap(), new.join("chats/session-1.jsonl"));
        let marker = temp.path().join("app").join(PROJECT_ROOT_FILE);
        assert_eq!(gemini.locate_file(&marker, moved).unwrap(), new.join(PROJECT_ROOT_FILE));
    }
}
