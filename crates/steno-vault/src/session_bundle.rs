//! The files of one session, as they were found together.

use std::path::{Path, PathBuf};

use crate::database_schema::Origin;
use crate::session_file::Source;

/// What the rows of a session in a database are known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Total length of the hashed values.
    pub bytes: u64,
    /// Hash of all values.
    pub sum: blake3::Hash,
}

/// What of a session is wanted; readers may always give more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Everything.
    All,
    /// All entries, but long texts may be cut to a prefix.
    Counts,
    /// Session fields, and only the entries with token usage.
    Bills,
}

/// All session files of one session, as found.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The session's only file, or the folder that contains its files.
    pub root: PathBuf,
    /// The session files, named by their paths relative to the root.
    pub sources: Vec<Source>,
    /// Lines about this session from files shared by all sessions, such as a prompt history.
    pub excerpts: Vec<Source>,
    /// Contents of the same files before the agent rewrote them, oldest first. Empty unless the session comes from
    /// the vault.
    pub earlier: Vec<Source>,
    /// Selects the session where one file holds several.
    pub key: Option<String>,
    /// How much of the session the reader must return.
    pub wanted: Wanted,
    /// The database that holds the session, if any.
    pub origin: Option<Origin>,
}

impl Bundle {
    /// A session of several files below `root`.
    pub fn new(root: impl Into<PathBuf>, sources: Vec<Source>) -> Self {
        Self {
            root: root.into(),
            sources,
            excerpts: Vec::new(),
            earlier: Vec::new(),
            key: None,
            wanted: Wanted::All,
            origin: None,
        }
    }

    /// Lets readers return less than everything, which is faster.
    pub fn wanting(self, wanted: Wanted) -> Self {
        Self { wanted, ..self }
    }

    /// A session in a single file.
    pub fn file(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Self::new(path, vec![Source::on_disk(name, path)])
    }

    /// The file with this name.
    pub fn get(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.name() == name)
    }

    /// The session's own files, or the excerpts if it has none.
    pub fn files(&self) -> &[Source] {
        if self.is_only_told() { &self.excerpts } else { &self.sources }
    }

    /// Whether the session has no file of its own and is known only from excerpts of shared files.
    pub fn is_only_told(&self) -> bool {
        self.sources.is_empty() && !self.excerpts.is_empty()
    }

    /// The file that holds this session and others, unless it is a database.
    pub fn shared_file(&self) -> Option<Source> {
        let is_shared = self.key.is_some() && self.origin.is_none() && !self.is_only_told();
        (is_shared && self.root.is_file()).then(|| Bundle::file(&self.root).sources.remove(0))
    }

    /// The files to copy into the vault: the session's own files without its database, or the shared file.
    pub fn kept_sources(&self) -> Vec<Source> {
        if let Some(file) = self.shared_file() {
            return vec![file];
        }
        let database = self.sources.first().filter(|_| self.origin.is_some()).map(Source::name);
        let is_database = |source: &&Source| {
            database.is_some_and(|name| {
                source.name().strip_suffix("-wal").unwrap_or(source.name()) == name
            })
        };
        self.sources.iter().filter(|source| !is_database(source)).cloned().collect()
    }
}
