//! The vault: what agents wrote, kept verbatim.
//!
//! `<root>/<agent>/<session>/` holds one sealed file per source file, and a live log while a session is recorded.
//! A [`SessionDir`] is such a folder. `<root>/journal.jsonl` lists the files of all sessions.

mod combine;
pub mod commit;
#[cfg(test)]
mod database_rows_tests;
mod desk;
mod exact;
mod exchanges;
mod faults;
pub(crate) mod frame;
pub mod gap;
pub(crate) mod head;
pub(crate) mod journal;
pub mod keep;
mod last;
pub mod likeness;
pub(crate) mod live;
mod log_scan;
mod manifest;
mod moved_traffic;
pub mod notes;
pub mod original;
mod pointer;
mod read;
pub mod record;
mod recorded_file;
mod recorded_runs;
pub mod recorder;
pub mod restore;
mod restore_rows;
pub mod resumable;
pub mod retry;
mod rows;
pub(crate) mod run_reading;
pub mod sealed;
mod sealing;
pub mod verify;
pub mod wire_lines;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::commit::VaultCommit;
use self::frame::{FileHeader, Form};
use self::journal::{FileState, Journal, JournalLine, SessionFiles};
pub use self::read::UNENDED;
use self::recorder::RECORD;
use self::sealed::{KeptFile, NEW_SUFFIX, Sealed};
use crate::durable::{FileError, OnPath};
use crate::session::SessionId;

/// The folder of all kept sessions.
#[derive(Clone, Debug)]
pub struct Vault {
    root: PathBuf,
    journal: Arc<Journal>,
}

/// The folder of one kept session.
#[derive(Clone, Debug)]
pub struct SessionDir {
    agent: String,
    id: SessionId,
    path: PathBuf,
    journal: Arc<Journal>,
}

impl PartialEq for SessionDir {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for SessionDir {}

impl Vault {
    /// The vault at `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let journal = Arc::new(Journal::new(&root));
        Self { root, journal }
    }

    /// Begins changes that are acknowledged together.
    pub fn commit(&self) -> VaultCommit {
        VaultCommit::new(Arc::clone(&self.journal), self.root.clone())
    }

    /// Where the vault is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a session, there or not.
    pub fn session(&self, agent: &AgentName, id: &SessionId) -> SessionDir {
        let path = self.root.join(agent.as_str()).join(id.as_str());
        let journal = Arc::clone(&self.journal);
        SessionDir { agent: agent.as_str().to_owned(), id: id.clone(), path, journal }
    }

    /// Whether a session with so many entries is only a recording that got nothing, such as a connection over which nothing
    /// was asked.
    pub fn is_empty_recording(&self, agent: &str, id: &SessionId, entries: u64) -> bool {
        let is_recording = |agent| self.session(&agent, id).is_imported().is_ok_and(|is| !is);
        entries == 0 && agent.parse().is_ok_and(is_recording)
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

    /// The sessions that the journal lists and whose folders are gone, by agent and id.
    pub fn missing_sessions(&self) -> Result<Vec<SessionDir>, FileError> {
        let mut missing = Vec::new();
        self.journal.each_session(&mut |key, files| {
            if !files.is_empty() && !self.root.join(key).is_dir() {
                missing.extend(self.session_of_key(key));
            }
        })?;
        missing.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(missing)
    }

    /// The session of a name in the journal.
    fn session_of_key(&self, key: &str) -> Option<SessionDir> {
        let (agent, id) = key.split_once('/')?;
        Some(self.session(&agent.parse().ok()?, &id.parse().ok()?))
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

    /// Gives the id of each kept session of an agent to `take`, in any order and without holding them all.
    pub fn each_session_id(
        &self,
        agent: &AgentName,
        take: &mut dyn FnMut(SessionId),
    ) -> Result<(), FileError> {
        each_folder(&self.root.join(agent.as_str()), &mut |name| {
            name.parse().into_iter().for_each(&mut *take);
        })
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
        let listed = self.listed()?.unwrap_or_default();
        let mut logs = listed.iter().filter(|(name, _)| Self::live_base(name).is_some());
        Ok(self.kept_files()?.is_empty() && logs.next().is_none() && self.live_logs()?.is_empty())
    }

    /// The session of another name in the same vault.
    fn sibling(&self, agent: &AgentName, id: &SessionId) -> SessionDir {
        let (root, journal) = (self.root().to_owned(), Arc::clone(&self.journal));
        Vault { root, journal }.session(agent, id)
    }

    /// The vault that holds the session.
    fn root(&self) -> &Path {
        self.path.ancestors().nth(2).unwrap_or(&self.path)
    }

    /// The session's name in the journal.
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.agent, self.id)
    }

    /// A line of the journal about a file of this session, whose name is to be filled in.
    fn journal_line(&self, state: FileState) -> JournalLine {
        let (session, file) = (self.key(), String::new());
        JournalLine { session, file, state, length: 0, size: None, link: None }
    }

    /// What the journal says of the session's files; nothing for a vault without one.
    fn listed(&self) -> Result<Option<SessionFiles>, FileError> {
        self.journal.files_of(&self.key())
    }

    /// Begins a change of this session alone.
    fn begin_commit(&self) -> VaultCommit {
        VaultCommit::new(Arc::clone(&self.journal), self.root().to_owned())
    }

    /// How many bytes its files have, those being recorded included: it grows with whatever is kept.
    pub fn size(&self) -> Result<u64, FileError> {
        let mut size = 0;
        let names = entries(&self.path)?;
        for name in &names {
            let is_log = Self::live_base(name).is_some();
            let new = format!("{name}{NEW_SUFFIX}");
            let is_sealed = kept_file(name.strip_suffix(NEW_SUFFIX).unwrap_or(name)).is_some();
            // Of a file that is being replaced, only the new one counts.
            if is_log || (is_sealed && names.binary_search(&new).is_err()) {
                // One that was sealed or renamed meanwhile counts there.
                size += fs::metadata(self.path.join(name)).map_or(0, |metadata| metadata.len());
            }
        }
        Ok(size)
    }

    /// Whether more may be kept than stands in `files` files now: a source was rewritten or removed since it was first
    /// kept, or something was noted beside it.
    pub fn has_more_than(&self, files: usize) -> Result<bool, FileError> {
        let kept = self.kept_files()?;
        let is_more = |(stem, generation): &(String, u32)| *generation > 0 || stem == RECORD;
        Ok(kept.len() > files || kept.iter().any(is_more) || !self.live_logs()?.is_empty())
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
        let mut logs = Vec::new();
        for name in entries(&self.path)? {
            if let Some(base) = Self::live_base(&name) {
                logs.push((base, self.path.join(name)));
            }
        }
        logs.sort();
        Ok(logs)
    }

    /// Where the live log of this name begins; nothing for any other file.
    pub(crate) fn live_base(name: &str) -> Option<u64> {
        name.strip_prefix(RECORD)?.strip_prefix(".live.")?.parse().ok()
    }

    /// Every sealed file that the journal lists, as the stem of its name and its generation.
    fn kept_files(&self) -> Result<Vec<(String, u32)>, FileError> {
        let Some(listed) = self.listed()? else {
            let names = entries(&self.path)?;
            return Ok(names.iter().filter_map(|name| kept_file(name)).collect());
        };
        let kept = listed.iter().filter(|(_, file)| file.state == FileState::Kept);
        Ok(kept.filter_map(|(name, _)| kept_file(name)).collect())
    }

    /// A sealed file as the journal lists it.
    fn kept(&self, stem: &str, generation: u32) -> Result<KeptFile, FileError> {
        let path = self.kept_path(stem, generation);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let listed = match self.listed()? {
            None => None,
            Some(listed) => match listed.get(&name) {
                Some(file) => Some(file.clone()),
                None => return Err(io::ErrorKind::NotFound.into()).on("open", &path),
            },
        };
        Ok(KeptFile { path, listed })
    }

    /// Opens a sealed file as far as the journal lists it.
    fn open_kept(&self, stem: &str, generation: u32) -> Result<Sealed, FileError> {
        self.kept(stem, generation)?.open()
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
            upgraded: None,
        }
    }
}

/// The head of the log at `path`.
fn head_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".head");
    PathBuf::from(name)
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
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
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
    let mut names = Vec::new();
    each_folder(dir, &mut |name| {
        if name.starts_with(prefix) {
            names.push(name.to_owned());
        }
    })?;
    names.sort_unstable();
    Ok(names)
}

/// Gives the name of each folder in a folder to `take`, in any order; none when it is not there.
fn each_folder(dir: &Path, take: &mut dyn FnMut(&str)) -> Result<(), FileError> {
    let reader = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.on("read folder", dir)?,
    };
    for entry in reader {
        let entry = entry.on("read folder", dir)?;
        match entry.file_name().to_str() {
            Some(name) if is_folder(&entry) => take(name),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a directory entry is a folder, or a link to one. Only a link costs a system call of its own.
fn is_folder(entry: &fs::DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if !kind.is_symlink() => kind.is_dir(),
        _ => entry.path().is_dir(),
    }
}
