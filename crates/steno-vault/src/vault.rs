//! The vault: verbatim copies of the files that agents wrote.
//!
//! `<root>/<agent>/<session>/` holds one sealed file per session file, and a live log while a session is recorded. A
//! [`SessionDir`] is such a folder. `<root>/journal.jsonl` lists the files of all sessions.

mod append_queue;
mod combiner;
pub mod commit;
pub mod comparison;
mod exact_path;
mod faults;
pub mod forget;
pub(crate) mod frame;
pub mod gap;
pub(crate) mod journal;
pub mod keep;
mod last_generation;
pub(crate) mod live_log;
pub(crate) mod log_head;
mod log_scan;
mod manifest;
pub mod notes;
pub mod original_file;
mod pointer;
mod read;
pub mod record;
pub mod record_batch;
pub mod record_cursor;
pub mod recorded_file;
pub mod recorder;
pub mod restore;
mod restore_rows;
pub mod resumable;
pub mod retry;
mod rows;
pub mod sealed;
mod sealing;
mod text_mask;
pub mod tombstone;
pub mod transfer;
pub mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use self::commit::VaultCommit;
use self::frame::{ContentForm, SealedFileHeader};
use self::journal::{FileState, JOURNAL_FILE, Journal, JournalLine, ListedFiles};
use self::recorder::RECORD_FILE;
use self::sealed::{REPLACEMENT_SUFFIX, SealedFile, SealedFileRef};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};
use steno_model::session::SessionId;

/// The root folder of all kept sessions.
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
    /// Creates a handle for the vault at `root`. The folder need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let journal = Arc::new(Journal::new(&root));
        Self { root, journal }
    }

    /// Starts a commit: changes acknowledged together.
    pub fn begin_commit(&self) -> VaultCommit {
        VaultCommit::new(Arc::clone(&self.journal), self.root.clone())
    }

    /// Lists the files of a vault in a new journal, if it has lost its own or is of version 0.1. Returns whether it did.
    pub fn restore_journal(&self) -> Result<bool, FileError> {
        if !self.has_sessions()? || self.journal.exists() {
            return Ok(false);
        }
        self.journal.create_if_absent()?;
        Ok(self.journal.exists())
    }

    /// Length and time of the journal, which changes with every kept file, note and removal; `None` without one.
    pub fn journal_stamp(&self) -> Option<(u64, SystemTime)> {
        let metadata = store_fs::metadata(&self.root.join(JOURNAL_FILE)).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    }

    /// The vault's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a session, which may not exist yet.
    pub fn session_dir(&self, agent: &AgentName, id: &SessionId) -> SessionDir {
        let path = self.root.join(agent.as_str()).join(id.as_str());
        let journal = Arc::clone(&self.journal);
        SessionDir { agent: agent.as_str().to_owned(), id: id.clone(), path, journal }
    }

    /// Whether a session is a recording without entries, such as a connection without a request.
    pub fn is_empty_recording(&self, agent: &str, id: &SessionId, entries: u64) -> bool {
        let is_recording = |agent| self.session_dir(&agent, id).is_imported().is_ok_and(|is| !is);
        entries == 0 && agent.parse().is_ok_and(is_recording)
    }

    /// Whether the vault holds at least one session. Stops at the first.
    pub fn has_sessions(&self) -> Result<bool, FileError> {
        for agent in self.list_agents()? {
            let dir = self.root.join(agent);
            let mut entries = store_fs::read_dir(&dir).on("read folder", &dir)?.flatten();
            if entries.any(|entry| is_folder(&entry.entry)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The sessions with exactly this id: at most one per agent. Does not list other sessions.
    pub fn sessions_with_id(&self, id: &str) -> Result<Vec<SessionDir>, FileError> {
        let Ok(id) = id.parse() else { return Ok(Vec::new()) };
        let agents = self.list_agents()?;
        let agents = agents.iter().filter_map(|agent| agent.parse().ok());
        Ok(agents.map(|agent| self.session_dir(&agent, &id)).filter(SessionDir::exists).collect())
    }

    /// The sessions with an id that starts with `prefix`, sorted by agent and id.
    pub fn sessions_with_prefix(&self, prefix: &str) -> Result<Vec<SessionDir>, FileError> {
        let mut sessions = Vec::new();
        for agent in self.list_agents()? {
            let Ok(name) = agent.parse() else { continue };
            let ids = list_folders_with_prefix(&self.root.join(&agent), prefix)?;
            let ids = ids.iter().filter_map(|id| id.parse().ok());
            sessions.extend(ids.map(|id| self.session_dir(&name, &id)));
        }
        Ok(sessions)
    }

    /// The sessions that the journal lists but that have no folder any more, sorted by agent and id.
    pub fn missing_sessions(&self) -> Result<Vec<SessionDir>, FileError> {
        let mut missing = Vec::new();
        let tombstones = self.journal.tombstones.read()?;
        self.journal.for_each_session(&mut |key, files| {
            // With a damaged journal, a forgotten session may still be listed.
            let is_forgotten = tombstones.of_session(key).is_some();
            if !files.is_empty() && !is_forgotten && !store_fs::is_dir(&self.root.join(key)) {
                missing.extend(self.session_for_key(key));
            }
        })?;
        missing.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(missing)
    }

    /// The sessions that have notes, or had some, sorted by agent and id.
    pub fn sessions_with_notes(&self) -> Result<Vec<SessionDir>, FileError> {
        if !store_fs::exists(&self.journal.path()) {
            let mut all = self.list_sessions()?;
            all.retain(|session| session.notes_size() > 0);
            return Ok(all);
        }
        let mut noted = Vec::new();
        self.journal.for_each_session(&mut |key, files| {
            if files.contains_key(notes::NOTES_FILE) {
                noted.extend(self.session_for_key(key));
            }
        })?;
        noted.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(noted)
    }

    /// Parses a session key of the journal, `AGENT/ID`.
    fn session_for_key(&self, key: &str) -> Option<SessionDir> {
        let (agent, id) = key.split_once('/')?;
        Some(self.session_dir(&agent.parse().ok()?, &id.parse().ok()?))
    }

    /// All kept sessions, sorted by agent and id.
    pub fn list_sessions(&self) -> Result<Vec<SessionDir>, FileError> {
        let mut sessions = Vec::new();
        for agent in self.list_agents()? {
            sessions.extend(self.list_agent_sessions(&agent)?);
        }
        Ok(sessions)
    }

    /// The names of all agents with kept sessions.
    pub fn list_agents(&self) -> Result<Vec<String>, FileError> {
        list_folders(&self.root)
    }

    /// Calls `take` with the id of each kept session of an agent, in no particular order. Does not collect the ids.
    pub fn for_each_session_id(
        &self,
        agent: &AgentName,
        take: &mut dyn FnMut(SessionId),
    ) -> Result<(), FileError> {
        for_each_folder(&self.root.join(agent.as_str()), &mut |name| {
            name.parse().into_iter().for_each(&mut *take);
        })
    }

    /// All kept sessions of an agent, sorted by id.
    pub fn list_agent_sessions(&self, agent: &str) -> Result<Vec<SessionDir>, FileError> {
        let Ok(name) = agent.parse() else { return Ok(Vec::new()) };
        let ids = list_folders(&self.root.join(agent))?;
        let ids = ids.iter().filter_map(|id| id.parse().ok());
        Ok(ids.map(|id| self.session_dir(&name, &id)).collect())
    }
}

/// The name of an agent. It follows the rules of a session id, so it is a valid folder name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentName(SessionId);

/// An invalid agent name.
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

    /// Whether the folder exists.
    pub fn exists(&self) -> bool {
        store_fs::is_dir(&self.path)
    }

    /// Whether the session has neither sealed files nor live logs.
    pub fn is_empty(&self) -> Result<bool, FileError> {
        let listed = self.listed_files()?.unwrap_or_default();
        let mut logs = listed.iter().filter(|(name, _)| Self::parse_live_log_base(name).is_some());
        Ok(self.sealed_files()?.is_empty() && logs.next().is_none() && self.live_logs()?.is_empty())
    }

    /// Another session in the same vault.
    pub fn sibling_session(&self, agent: &AgentName, id: &SessionId) -> SessionDir {
        let (root, journal) = (self.vault_root().to_owned(), Arc::clone(&self.journal));
        Vault { root, journal }.session_dir(agent, id)
    }

    /// The root folder of the vault.
    fn vault_root(&self) -> &Path {
        self.path.ancestors().nth(2).unwrap_or(&self.path)
    }

    /// The session's key in the journal: `AGENT/ID`.
    pub(crate) fn journal_key(&self) -> String {
        format!("{}/{}", self.agent, self.id)
    }

    /// A journal line about a file of this session; the caller fills in the file name.
    fn new_journal_line(&self, state: FileState) -> JournalLine {
        let (session, file) = (self.journal_key(), String::new());
        JournalLine { session, file, state, length: 0, size: None, link: None }
    }

    /// The session's files as the journal lists them; `None` for a vault without a journal.
    fn listed_files(&self) -> Result<Option<ListedFiles>, FileError> {
        self.journal.files_of_session(&self.journal_key())
    }

    /// Starts a commit of this session alone.
    fn begin_commit(&self) -> VaultCommit {
        VaultCommit::new(Arc::clone(&self.journal), self.vault_root().to_owned())
    }

    /// Size of all files in bytes, live logs included. It changes with every kept byte.
    ///
    /// Bytes after the listed size of a sealed file do not count: an interrupted write left them, and the next one may
    /// leave a file of the same size with them.
    pub fn stored_size(&self) -> Result<u64, FileError> {
        let mut size = 0;
        let names = list_names(&self.path)?;
        let listed = self.listed_files()?.unwrap_or_default();
        for name in &names {
            let is_log = Self::parse_live_log_base(name).is_some();
            let new = format!("{name}{REPLACEMENT_SUFFIX}");
            let kept_name = name.strip_suffix(REPLACEMENT_SUFFIX).unwrap_or(name);
            let is_sealed = parse_sealed_name(kept_name).is_some();
            // While a file is being replaced, only the new one counts.
            if is_log || (is_sealed && names.binary_search(&new).is_err()) {
                // A file sealed or renamed in the meantime counts under its new name.
                let found = store_fs::file_length(&self.path.join(name)).unwrap_or(0);
                let listed = listed.get(kept_name).and_then(|file| file.size);
                size += listed.map_or(found, |listed| listed.min(found));
            }
        }
        Ok(size)
    }

    /// A hash over names, sizes, times and inodes of the session's files, and the faults of the journal. It differs
    /// after a file was changed or replaced, even by one of the same size.
    pub fn files_stamp(&self) -> Result<i64, FileError> {
        let mut hasher = blake3::Hasher::new();
        for fault in self.find_journal_faults()? {
            hasher.update(fault.to_string().as_bytes());
        }
        for name in list_names(&self.path)? {
            let Ok(metadata) = store_fs::metadata(&self.path.join(&name)) else { continue };
            hasher.update(name.as_bytes());
            hash_metadata(&mut hasher, &metadata);
        }
        // Without its key, a session cannot be read either.
        if let Some(key) = store_fs::session_key_metadata(&self.path) {
            hash_metadata(&mut hasher, &key);
        }
        let first = hasher.finalize().as_bytes()[..8].try_into().expect("a hash is longer");
        Ok(i64::from_le_bytes(first))
    }

    /// Whether the vault may hold more than the current content of `files` session files: an earlier generation, a
    /// removed file, or a recording.
    pub fn has_more_than(&self, files: usize) -> Result<bool, FileError> {
        let kept = self.sealed_files()?;
        let is_more = |(stem, generation): &(String, u32)| *generation > 0 || stem == RECORD_FILE;
        Ok(kept.len() > files || kept.iter().any(is_more) || !self.live_logs()?.is_empty())
    }

    /// The lock file that every writer holds exclusively.
    fn write_lock_path(&self) -> PathBuf {
        self.path.join(".lock")
    }

    /// The lock file that recorders hold shared and that sealing holds exclusively.
    fn recording_lock_path(&self) -> PathBuf {
        self.path.join(".open")
    }

    /// The sealed part of the recording.
    fn sealed_record_path(&self) -> PathBuf {
        self.sealed_path(RECORD_FILE, 0)
    }

    fn sealed_path(&self, stem: &str, generation: u32) -> PathBuf {
        self.path.join(match generation {
            0 => format!("{stem}.zst"),
            generation => format!("{stem}@{generation}.zst"),
        })
    }

    /// Paths of the live log that starts at offset `base` of the record, and of its head file.
    fn live_log_paths(&self, base: u64) -> (PathBuf, PathBuf) {
        let log = format!("{RECORD_FILE}.live.{base}");
        (self.path.join(&log), self.path.join(format!("{log}.head")))
    }

    /// All live logs with their start offsets. More than one exists only after a crash.
    fn live_logs(&self) -> Result<Vec<(u64, PathBuf)>, FileError> {
        let mut logs = Vec::new();
        for name in list_names(&self.path)? {
            if let Some(base) = Self::parse_live_log_base(&name) {
                logs.push((base, self.path.join(name)));
            }
        }
        logs.sort();
        Ok(logs)
    }

    /// The start offset in the name of a live log; `None` for other files.
    pub(crate) fn parse_live_log_base(name: &str) -> Option<u64> {
        name.strip_prefix(RECORD_FILE)?.strip_prefix(".live.")?.parse().ok()
    }

    /// All sealed files that the journal lists, as name stem and generation.
    fn sealed_files(&self) -> Result<Vec<(String, u32)>, FileError> {
        let Some(listed) = self.listed_files()? else {
            let names = list_names(&self.path)?;
            return Ok(names.iter().filter_map(|name| parse_sealed_name(name)).collect());
        };
        let kept = listed.iter().filter(|(_, file)| file.state == FileState::Kept);
        Ok(kept.filter_map(|(name, _)| parse_sealed_name(name)).collect())
    }

    /// A reference to a sealed file, with its journal listing.
    fn sealed_file_ref(&self, stem: &str, generation: u32) -> Result<SealedFileRef, FileError> {
        let path = self.sealed_path(stem, generation);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let listed = match self.listed_files()? {
            None => None,
            Some(listed) => match listed.get(&name) {
                Some(file) => Some(file.clone()),
                None => return Err(io::ErrorKind::NotFound.into()).on("open", &path),
            },
        };
        Ok(SealedFileRef { path, listed })
    }

    /// Opens a sealed file up to its listed size.
    fn open_sealed(&self, stem: &str, generation: u32) -> Result<SealedFile, FileError> {
        self.sealed_file_ref(stem, generation)?.open()
    }

    /// A file header for a session file found at `path` below `root`.
    fn new_file_header(
        &self,
        name: &str,
        path: &Path,
        root: &Path,
        generation: u32,
    ) -> SealedFileHeader {
        SealedFileHeader {
            steno: frame::VaultTag::Vault,
            version: frame::FORMAT_VERSION,
            agent: self.agent.clone(),
            session: self.id.as_str().to_owned(),
            name: name.to_owned(),
            path: path.to_string_lossy().into_owned(),
            root: root.to_string_lossy().into_owned(),
            generation,
            gone: false,
            key: None,
            form: ContentForm::Bytes,
            bytes: exact_path::encode_path_bytes(path),
            upgraded: None,
        }
    }
}

fn hash_metadata(hasher: &mut blake3::Hasher, metadata: &fs::Metadata) {
    hasher.update(&metadata.len().to_le_bytes());
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    hasher.update(&modified.map_or(0, |at| at.as_nanos()).to_le_bytes());
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (inode, changed) = (metadata.ino(), (metadata.ctime(), metadata.ctime_nsec()));
        hasher.update(&inode.to_le_bytes());
        hasher.update(&changed.0.to_le_bytes());
        hasher.update(&changed.1.to_le_bytes());
    }
}

/// The head file of the log at `path`.
fn log_head_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".head");
    PathBuf::from(name)
}

/// Encodes the name of a session file so that every file system accepts it: other bytes become `%XX`.
///
/// The name of Steno's own record is reserved, so a session file of that name is escaped too.
fn encode_file_name(name: &str) -> String {
    if name == RECORD_FILE {
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

/// Splits the name of a sealed file into stem and generation.
fn parse_sealed_name(name: &str) -> Option<(String, u32)> {
    let stem = name.strip_suffix(".zst")?;
    match stem.rsplit_once('@') {
        Some((stem, generation)) => Some((stem.to_owned(), generation.parse().ok()?)),
        None => Some((stem.to_owned(), 0)),
    }
}

/// The sorted names of all entries in a folder; empty if the folder does not exist.
fn list_names(dir: &Path) -> Result<Vec<String>, FileError> {
    let reader = match store_fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.on("read folder", dir)?,
    };
    let mut names = Vec::new();
    for entry in reader {
        names.extend(entry.on("read folder", dir)?.name.into_string());
    }
    names.sort();
    Ok(names)
}

/// The sorted names of all subfolders; empty if the folder does not exist.
fn list_folders(dir: &Path) -> Result<Vec<String>, FileError> {
    list_folders_with_prefix(dir, "")
}

fn list_folders_with_prefix(dir: &Path, prefix: &str) -> Result<Vec<String>, FileError> {
    let mut names = Vec::new();
    for_each_folder(dir, &mut |name| {
        if name.starts_with(prefix) {
            names.push(name.to_owned());
        }
    })?;
    names.sort_unstable();
    Ok(names)
}

/// Calls `take` with the name of each subfolder, in no particular order. A missing folder has none.
fn for_each_folder(dir: &Path, take: &mut dyn FnMut(&str)) -> Result<(), FileError> {
    let reader = match store_fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.on("read folder", dir)?,
    };
    for entry in reader {
        let entry = entry.on("read folder", dir)?;
        match entry.name.to_str() {
            Some(name) if is_folder(&entry.entry) => take(name),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a directory entry is a folder or a link to one. Only a link needs an extra system call.
fn is_folder(entry: &fs::DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if !kind.is_symlink() => kind.is_dir(),
        _ => entry.path().is_dir(),
    }
}
