//! The command with which each agent resumes a session, and the path where it then looks for the session file.
//!
//! This module runs nothing.

use std::fs;
use std::path::{Path, PathBuf};

use steno_model::session::SessionId;

use super::Agent;

/// How one agent resumes a session.
#[derive(Debug)]
pub struct ResumeRule {
    /// The agent's program.
    pub program: &'static str,
    /// The arguments. `{id}` is replaced by the agent's session id, `{file}` by the session file.
    pub arguments: &'static [&'static str],
    /// How the path of session files depends on the working folder.
    pub folder: FolderRule,
}

/// How the path of an agent's session files depends on the working folder.
#[derive(Debug)]
pub enum FolderRule {
    /// It does not: sessions are found from any folder.
    Any,
    /// A folder in the path is named after the working folder, with `-` for every character except letters and
    /// digits. A name longer than the limit is cut and gets a hash.
    Named {
        /// The longest name.
        limit: usize,
    },
    /// A folder in the path has a file of this name with the path of the working folder.
    Marked {
        /// The file.
        file: &'static str,
    },
    /// The session files are inside the working folder.
    Inside,
    /// The agent stores the working folder, or encodes it in an undocumented way. Sessions resume only there.
    Own,
}

/// The command with which an agent resumes a session.
#[derive(Clone, Copy, Debug)]
pub struct ResumeCommand {
    /// The agent.
    pub agent: &'static str,
    rule: &'static ResumeRule,
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
    /// The resume command of an agent. `None` if the agent has none.
    pub fn of_agent(agent: &'static Agent) -> Option<Self> {
        agent.resume.as_ref().map(|rule| Self { agent: agent.name(), rule })
    }

    /// The agent's program.
    pub fn program(&self) -> &'static str {
        self.rule.program
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
        self.rule.arguments.iter().map(word).collect()
    }

    /// Whether the agent needs the working folder to find a session.
    pub fn needs_folder(&self) -> bool {
        !matches!(self.rule.folder, FolderRule::Any)
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
        match (&self.rule.folder, from) {
            (FolderRule::Any, _) | (FolderRule::Own, None) => Ok(file.to_owned()),
            (FolderRule::Inside, from) => {
                let below = from.and_then(|from| file.strip_prefix(from).ok());
                Ok(below.map_or_else(|| file.to_owned(), |below| to.join(below)))
            }
            (FolderRule::Named { limit }, from) => self.locate_named(file, from, to, *limit),
            (FolderRule::Marked { file: marker }, _) => self.locate_marked(file, to, marker),
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
        let projects = folder.parent().ok_or_else(elsewhere)?;
        Ok(named_project_folder(self.agent, projects, to, limit)?.join(below))
    }

    fn locate_marked(
        &self,
        file: &Path,
        to: &Path,
        marker: &str,
    ) -> Result<PathBuf, ResumeLocationError> {
        let elsewhere = || ResumeLocationError::FolderNotInPath(file.to_owned());
        let chats = file.ancestors().find(|above| file_name_str(above) == Some("chats"));
        let folder = chats.unwrap_or(file).parent().ok_or_else(elsewhere)?;
        let below = file.strip_prefix(folder).map_err(|_| elsewhere())?;
        let existing = folder.parent().and_then(|parent| marked_project_folder(parent, to, marker));
        let new = || ResumeLocationError::NoSessionsYet { agent: self.agent, to: to.to_owned() };
        Ok(existing.ok_or_else(new)?.join(below))
    }
}

/// The folder in `projects` for sessions of the working folder `to`, of an agent with [`FolderRule::Named`].
pub(crate) fn named_project_folder(
    agent: &'static str,
    projects: &Path,
    to: &Path,
    limit: usize,
) -> Result<PathBuf, ResumeLocationError> {
    let name = encode_folder_name(to);
    if name.len() <= limit {
        return Ok(projects.join(name));
    }
    // Only the agent can compute the hash.
    let is_wanted = |folder: &PathBuf| {
        file_name_str(folder).is_some_and(|existing| is_shortened_name(existing, &name, limit))
    };
    let found = sibling_folders(&projects.join(&name[..limit])).find(is_wanted);
    found.ok_or_else(|| ResumeLocationError::NoSessionsYet { agent, to: to.to_owned() })
}

/// The folder in `parent` that has the file `marker` with the path of the working folder.
pub(crate) fn marked_project_folder(parent: &Path, to: &Path, marker: &str) -> Option<PathBuf> {
    sibling_folders(&parent.join(marker)).find(|folder| {
        fs::read_to_string(folder.join(marker)).is_ok_and(|owner| Path::new(owner.trim()) == to)
    })
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
