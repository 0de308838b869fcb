//! The files of one session, as they were found together.

use std::path::{Path, PathBuf};

use crate::database_schema::Origin;
use crate::session_file::Source;

/// What the rows of a session in a database are known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// How many bytes their values have.
    pub bytes: u64,
    /// The sum of all of them.
    pub sum: blake3::Hash,
}

/// What of a session is wanted; readers may always give more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Every word.
    All,
    /// All entries, but of long texts only the beginning.
    Counts,
    /// The entries that state tokens, and what is known of the session.
    Bills,
}

/// All files that make up one session.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The file, or the folder under which the files stand.
    pub root: PathBuf,
    /// The files, each named by its path below the root.
    pub sources: Vec<Source>,
    /// What files that speak of all sessions say of this one: only those lines.
    pub excerpts: Vec<Source>,
    /// What the same files held before their agent rewrote them, oldest first; known only of kept sessions.
    pub earlier: Vec<Source>,
    /// Which session of the files it is, where one file holds several.
    pub key: Option<String>,
    /// What of it is wanted.
    pub wanted: Wanted,
    /// The database that holds it, where it is one.
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

    /// The same session for whom less than all of it will do: a reader may then give less, and faster.
    pub fn wanting(self, wanted: Wanted) -> Self {
        Self { wanted, ..self }
    }

    /// A session that is a single file.
    pub fn file(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Self::new(path, vec![Source::on_disk(name, path)])
    }

    /// The file named `name`, if the session has it.
    pub fn get(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.name() == name)
    }

    /// The files in which the session stands; of one that only another file tells of, that file.
    pub fn files(&self) -> &[Source] {
        if self.is_only_told() { &self.excerpts } else { &self.sources }
    }

    /// Whether it has no file of its own, and is known only by what one that speaks of all sessions says.
    pub fn is_only_told(&self) -> bool {
        self.sources.is_empty() && !self.excerpts.is_empty()
    }

    /// The one file that holds this session and others, where there is one and it is no database.
    pub fn shared_file(&self) -> Option<Source> {
        let is_shared = self.key.is_some() && self.origin.is_none() && !self.is_only_told();
        (is_shared && self.root.is_file()).then(|| Bundle::file(&self.root).sources.remove(0))
    }

    /// The files whose bytes are kept for the session: those that it has, without its database, or the one that it shares.
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
