//! The files of one session, as they were found together.

use std::path::{Path, PathBuf};

use crate::database_schema::DatabaseOrigin;
use crate::session_file::SessionFile;

/// What the rows of a session in a database are known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionFingerprint {
    /// Total length of the hashed values.
    pub bytes: u64,
    /// Hash of all values.
    pub hash: blake3::Hash,
}

/// What of a session is wanted; readers may always give more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadDetail {
    /// Everything.
    Full,
    /// All entries, but long texts may be cut to a prefix.
    ShortTexts,
    /// Session fields, and only the entries with token usage.
    UsageOnly,
}

/// All session files of one session, as found.
#[derive(Clone, Debug)]
pub struct SessionBundle {
    /// The session's main file, or the folder that contains its files.
    pub root: PathBuf,
    /// The session files, named by their paths relative to the root.
    pub files: Vec<SessionFile>,
    /// Lines about this session from files shared by all sessions, such as a prompt history.
    pub excerpts: Vec<SessionFile>,
    /// Contents of the same files before the agent rewrote them, oldest first. Empty unless the session comes from
    /// the vault.
    pub earlier_files: Vec<SessionFile>,
    /// Selects the session where one file holds several.
    pub key: Option<String>,
    /// How much of the session the reader must return.
    pub detail: ReadDetail,
    /// The database that holds the session, if any.
    pub origin: Option<DatabaseOrigin>,
}

impl SessionBundle {
    /// A session of several files below `root`.
    pub fn new(root: impl Into<PathBuf>, sources: Vec<SessionFile>) -> Self {
        Self {
            root: root.into(),
            files: sources,
            excerpts: Vec::new(),
            earlier_files: Vec::new(),
            key: None,
            detail: ReadDetail::Full,
            origin: None,
        }
    }

    /// Lets readers return less than everything, which is faster.
    pub fn with_detail(self, wanted: ReadDetail) -> Self {
        Self { detail: wanted, ..self }
    }

    /// A session in a single file.
    pub fn from_file(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Self::new(path, vec![SessionFile::on_disk(name, path)])
    }

    /// The file with this name.
    pub fn file_named(&self, name: &str) -> Option<&SessionFile> {
        self.files.iter().find(|source| source.name() == name)
    }

    /// The session's own files, or the excerpts if it has none.
    pub fn main_files(&self) -> &[SessionFile] {
        if self.has_only_excerpts() { &self.excerpts } else { &self.files }
    }

    /// Whether the session has no file of its own and is known only from excerpts of shared files.
    pub fn has_only_excerpts(&self) -> bool {
        self.files.is_empty() && !self.excerpts.is_empty()
    }

    /// The file that holds this session and others, unless it is a database.
    pub fn shared_file(&self) -> Option<SessionFile> {
        let is_shared = self.key.is_some() && self.origin.is_none() && !self.has_only_excerpts();
        (is_shared && self.root.is_file())
            .then(|| SessionBundle::from_file(&self.root).files.remove(0))
    }

    /// The files to copy into the vault: the session's own files without its database, or the shared file.
    pub fn files_to_keep(&self) -> Vec<SessionFile> {
        if let Some(file) = self.shared_file() {
            return vec![file];
        }
        let database = self.files.first().filter(|_| self.origin.is_some()).map(SessionFile::name);
        let is_database = |source: &&SessionFile| {
            database.is_some_and(|name| {
                source.name().strip_suffix("-wal").unwrap_or(source.name()) == name
            })
        };
        self.files.iter().filter(|source| !is_database(source)).cloned().collect()
    }
}
