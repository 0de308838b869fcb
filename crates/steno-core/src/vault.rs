//! The vault: what agents wrote, kept verbatim.
//!
//! `<root>/<agent>/<session>/` holds one sealed file per source file, and a live log while a session is recorded.
//! A [`SessionDir`] is such a folder; what is in it is told by the files' own headers.

pub(crate) mod attributes;
mod combine;
mod desk;
mod exact;
mod exchanges;
pub(crate) mod frame;
pub mod gap;
pub(crate) mod head;
pub mod keep;
mod last;
pub mod likeness;
pub(crate) mod live;
mod manifest;
pub mod notes;
pub mod original;
mod pointer;
mod read;
pub mod record;
pub mod recorder;
pub mod restore;
mod restore_rows;
pub mod resumable;
pub mod retry;
mod rows;
pub mod sealed;
mod sealing;
pub mod verify;
pub mod wire_lines;

use std::fs;
use std::path::{Path, PathBuf};

use self::frame::{FileHeader, Form};
pub use self::read::UNENDED;
use self::recorder::RECORD;
use crate::durable::{FileError, OnPath};
use crate::session::SessionId;

/// The folder of all kept sessions.
#[derive(Clone, Debug)]
pub struct Vault {
    root: PathBuf,
}

/// The folder of one kept session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDir {
    agent: String,
    id: SessionId,
    path: PathBuf,
}

impl Vault {
    /// The vault at `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where the vault is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a session, there or not.
    pub fn session(&self, agent: &AgentName, id: &SessionId) -> SessionDir {
        let path = self.root.join(agent.as_str()).join(id.as_str());
        SessionDir { agent: agent.as_str().to_owned(), id: id.clone(), path }
    }

    /// Whether any session is kept; the first one that is found answers.
    pub fn has_sessions(&self) -> Result<bool, FileError> {
        for agent in self.agents()? {
            let dir = self.root.join(agent);
            let mut entries = fs::read_dir(&dir).on("read folder", &dir)?.flatten();
            if entries.any(|entry| is_folder(&entry)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The sessions with this very id: at most one of each agent. Other sessions are not looked at.
    pub fn sessions_named(&self, id: &str) -> Result<Vec<SessionDir>, FileError> {
        let Ok(id) = id.parse() else { return Ok(Vec::new()) };
        let agents = self.agents()?;
        let agents = agents.iter().filter_map(|agent| agent.parse().ok());
        Ok(agents.map(|agent| self.session(&agent, &id)).filter(SessionDir::exists).collect())
    }

    /// The sessions whose ids begin with `prefix`, by agent and id.
    pub fn sessions_with_prefix(&self, prefix: &str) -> Result<Vec<SessionDir>, FileError> {
        let mut sessions = Vec::new();
        for agent in self.agents()? {
            let Ok(name) = agent.parse() else { continue };
            let ids = folders_with_prefix(&self.root.join(&agent), prefix)?;
            let ids = ids.iter().filter_map(|id| id.parse().ok());
            sessions.extend(ids.map(|id| self.session(&name, &id)));
        }
        Ok(sessions)
    }

    /// Every kept session, by agent and id.
    pub fn sessions(&self) -> Result<Vec<SessionDir>, FileError> {
        let mut sessions = Vec::new();
        for agent in self.agents()? {
            sessions.extend(self.sessions_of(&agent)?);
        }
        Ok(sessions)
    }

    /// The agents of which sessions are kept.
    pub fn agents(&self) -> Result<Vec<String>, FileError> {
        folders(&self.root)
    }

    /// Every kept session of an agent, by id.
    pub fn sessions_of(&self, agent: &str) -> Result<Vec<SessionDir>, FileError> {
        let Ok(name) = agent.parse() else { return Ok(Vec::new()) };
        let ids = folders(&self.root.join(agent))?;
        let ids = ids.iter().filter_map(|id| id.parse().ok());
        Ok(ids.map(|id| self.session(&name, &id)).collect())
    }
}

/// The name of an agent: like a session's, so that it can be a folder's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentName(SessionId);

/// A text that cannot name an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an agent's name (letters, digits, '.', '_' and '-', at most 128, no '.' in front): {0:?}"
)]
pub struct AgentNameError(String);

impl AgentName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl std::str::FromStr for AgentName {
    type Err = AgentNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| AgentNameError(text.to_owned()))
    }
}

impl SessionDir {
    /// The agent's name.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything is kept.
    pub fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// Whether nothing is kept in it yet.
    pub fn is_empty(&self) -> Result<bool, FileError> {
        Ok(self.kept_files()?.is_empty() && self.live_logs()?.is_empty())
    }

    /// The session of another name in the same vault.
    fn sibling(&self, agent: &AgentName, id: &SessionId) -> SessionDir {
        let root = self.path.ancestors().nth(2).unwrap_or(&self.path);
        Vault::new(root).session(agent, id)
    }

    /// How many bytes the session's sealed files have.
    pub fn stored(&self) -> Result<u64, FileError> {
        let mut stored = 0;
        for (stem, generation) in self.kept_files()? {
            let path = self.kept_path(&stem, generation);
            stored += fs::metadata(&path).on("read", &path)?.len();
        }
        Ok(stored)
    }

    /// How many bytes all of its files have, those being recorded included: it grows with whatever is kept.
    pub fn size(&self) -> Result<u64, FileError> {
        let mut size = self.stored()?;
        for (_, path) in self.live_logs()? {
            // One that was sealed meanwhile counts there.
            size += fs::metadata(&path).map_or(0, |metadata| metadata.len());
        }
        Ok(size)
    }

    /// Whether more may be kept than stands in `files` files now: a source was rewritten or removed since it was first
    /// kept, or something was noted beside it.
    pub fn has_more_than(&self, files: usize) -> Result<bool, FileError> {
        let kept = self.kept_files()?;
        let is_older = kept.iter().any(|(_, generation)| *generation > 0);
        Ok(kept.len() > files || is_older || !self.live_logs()?.is_empty())
    }

    /// Held exclusively for each write.
    fn lock_path(&self) -> PathBuf {
        self.path.join(".lock")
    }

    /// Held shared by whoever records, exclusively by whoever seals.
    fn users_path(&self) -> PathBuf {
        self.path.join(".open")
    }

    /// The sealed part of what was recorded.
    fn record_path(&self) -> PathBuf {
        self.kept_path(RECORD, 0)
    }

    fn kept_path(&self, stem: &str, generation: u32) -> PathBuf {
        self.path.join(match generation {
            0 => format!("{stem}.zst"),
            generation => format!("{stem}@{generation}.zst"),
        })
    }

    /// The live log that begins at byte `base` of the record, and its head.
    fn live_paths(&self, base: u64) -> (PathBuf, PathBuf) {
        let log = format!("{RECORD}.live.{base}");
        (self.path.join(&log), self.path.join(format!("{log}.head")))
    }

    /// The live logs there are, each with where it begins; more than one only after a crash.
    fn live_logs(&self) -> Result<Vec<(u64, PathBuf)>, FileError> {
        let prefix = format!("{RECORD}.live.");
        let mut logs = Vec::new();
        for name in entries(&self.path)? {
            if let Some(base) = name.strip_prefix(&prefix).and_then(|base| base.parse().ok()) {
                logs.push((base, self.path.join(name)));
            }
        }
        logs.sort();
        Ok(logs)
    }

    /// Every sealed file, as the stem of its name and its generation.
    fn kept_files(&self) -> Result<Vec<(String, u32)>, FileError> {
        let names = entries(&self.path)?;
        Ok(names.iter().filter_map(|name| kept_file(name)).collect())
    }

    /// The header of a file of this session, whose source stands at `path` below `root`.
    fn header(&self, name: &str, path: &Path, root: &Path, generation: u32) -> FileHeader {
        FileHeader {
            steno: frame::Tag::Vault,
            version: frame::VERSION,
            agent: self.agent.clone(),
            session: self.id.as_str().to_owned(),
            name: name.to_owned(),
            path: path.to_string_lossy().into_owned(),
            root: root.to_string_lossy().into_owned(),
            generation,
            gone: false,
            key: None,
            form: Form::Bytes,
            bytes: exact::bytes_of(path),
        }
    }
}

/// A source's name as one that any file system takes: other bytes are written `%XX`.
///
/// The name of our own record stays free: a source that has it gets another.
fn file_name(name: &str) -> String {
    if name == RECORD {
        return format!("%{:02X}{}", name.as_bytes()[0], &name[1..]);
    }
    let mut safe = String::new();
    for (at, byte) in name.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || b"_-".contains(&byte) || (byte == b'.' && at > 0) {
            safe.push(char::from(byte));
        } else {
            safe.push_str(&format!("%{byte:02X}"));
        }
    }
    if safe.len() > 200 {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        safe.truncate(180);
        safe.push_str(&format!("~{}", &hash[..16]));
    }
    safe
}

/// Takes the name of a sealed file apart.
fn kept_file(name: &str) -> Option<(String, u32)> {
    let stem = name.strip_suffix(".zst")?;
    match stem.rsplit_once('@') {
        Some((stem, generation)) => Some((stem.to_owned(), generation.parse().ok()?)),
        None => Some((stem.to_owned(), 0)),
    }
}

/// Names of what is in a folder, sorted; none when it is not there.
fn entries(dir: &Path) -> Result<Vec<String>, FileError> {
    let reader = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.on("read folder", dir)?,
    };
    let mut names = Vec::new();
    for entry in reader {
        names.extend(entry.on("read folder", dir)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Names of the folders in a folder, sorted; none when it is not there.
fn folders(dir: &Path) -> Result<Vec<String>, FileError> {
    folders_with_prefix(dir, "")
}

fn folders_with_prefix(dir: &Path, prefix: &str) -> Result<Vec<String>, FileError> {
    let reader = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.on("read folder", dir)?,
    };
    let mut names = Vec::new();
    for entry in reader {
        let entry = entry.on("read folder", dir)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with(prefix) && is_folder(&entry) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether a directory entry is a folder, or a link to one. Only a link costs a system call of its own.
fn is_folder(entry: &fs::DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if !kind.is_symlink() => kind.is_dir(),
        _ => entry.path().is_dir(),
    }
}
