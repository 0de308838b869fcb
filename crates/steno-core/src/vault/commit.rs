//! Commits changes of kept files: syncs them to disk, then lists them in the journal.
//!
//! # Durability
//! Files are synced before the journal lists them, and the journal is synced before a new file replaces an old one.
//! Many files are synced by one call for the whole file system.
//!
//! # Locking
//! Session locks are held until the journal lists the changes; another writer would overwrite them. A writer that
//! finds a session locked first commits its own changes, so two writers never deadlock.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SessionDir;
use super::journal::{FileState, Journal, JournalLine};
use super::live::open_lock;
use super::sealed::{WrittenFile, new_path};
use crate::durable::{self, FileError, OnPath};

/// From this number of files on, the whole file system is synced at once.
const MANY_FILES: usize = 8;

/// Written but not yet acknowledged changes of kept files. Dropping it discards them.
#[derive(Debug)]
pub struct VaultCommit {
    journal: Arc<Journal>,
    root: PathBuf,
    lines: Vec<JournalLine>,
    written: Vec<WrittenFile>,
    /// Folders with new names, which need a sync.
    folders: BTreeSet<PathBuf>,
    /// Locks of the sessions in this commit.
    sessions: Vec<(String, File)>,
    /// The vault's folder, opened before the first change so that `syncfs` reports write errors.
    vault: Option<File>,
}

impl VaultCommit {
    pub(super) fn new(journal: Arc<Journal>, root: PathBuf) -> Self {
        let (lines, written, folders) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { journal, root, lines, written, folders, sessions: Vec::new(), vault: None }
    }

    /// Number of sessions with unacknowledged changes.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Whether a session has unacknowledged changes.
    pub(super) fn holds(&self, dir: &SessionDir) -> bool {
        self.sessions.iter().any(|(session, _)| *session == dir.key())
    }

    /// Creates the folder of a session and takes its lock.
    pub(super) fn lock_session(&mut self, dir: &SessionDir) -> Result<(), FileError> {
        if self.holds(dir) {
            // The journal must list the session's earlier changes first.
            self.finish()?;
        }
        self.journal.begin()?;
        if self.vault.is_none() {
            durable::create_private_dir(&self.root)?;
            self.vault = Some(File::open(&self.root).on("open", &self.root)?);
        }
        self.folders.extend(durable::make_private_dir(dir.path())?);
        let path = dir.lock_path();
        let lock = open_lock(&path)?;
        if lock.try_lock().is_err() {
            self.finish()?;
            lock.lock().on("lock", &path)?;
        }
        self.sessions.push((dir.key(), lock));
        Ok(())
    }

    /// Adds a written file.
    pub(super) fn add_file(&mut self, dir: &SessionDir, written: WrittenFile) {
        let file = written.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let line = JournalLine {
            file,
            length: written.length,
            size: Some(written.size),
            link: Some(written.chain.into()),
            ..dir.journal_line(FileState::Kept)
        };
        self.add_line(dir, line);
        if written.is_new {
            // An interrupted process may have created the folder without syncing it.
            self.folders.extend(dir.path().ancestors().take(3).map(Path::to_owned));
        }
        self.written.push(written);
    }

    /// Adds another journal line.
    pub(super) fn add_line(&mut self, dir: &SessionDir, line: JournalLine) {
        debug_assert_eq!(line.session, dir.key());
        self.lines.push(line);
    }

    /// Acknowledges all changes: they are on disk when this returns.
    pub fn finish(&mut self) -> Result<(), FileError> {
        let result = self.finish_locked();
        self.sessions.clear();
        self.vault = None;
        result
    }

    /// Like [`VaultCommit::finish`], but keeps the session locks.
    pub(super) fn finish_locked(&mut self) -> Result<(), FileError> {
        let result = self.sync_and_list();
        // After a failure nothing is acknowledged; a retry writes everything again.
        self.lines.clear();
        self.written.clear();
        self.folders.clear();
        result
    }

    fn sync_and_list(&mut self) -> Result<(), FileError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let is_synced = self.written.len() >= MANY_FILES && self.sync_file_system()?;
        if !is_synced {
            for written in &self.written {
                let path = written.current_path();
                File::open(&path).and_then(|file| file.sync_data()).on("sync", &path)?;
            }
            self.folders.iter().try_for_each(|folder| durable::sync_dir(folder))?;
        }
        self.journal.append(&self.lines)?;
        for written in self.written.iter().filter(|written| written.is_new) {
            fs::rename(new_path(&written.path), &written.path).on("replace", &written.path)?;
        }
        Ok(())
    }

    /// Syncs the whole file system, where the operating system supports it.
    fn sync_file_system(&self) -> Result<bool, FileError> {
        #[cfg(target_os = "linux")]
        if let Some(vault) = &self.vault {
            let synced = rustix::fs::syncfs(vault).map_err(std::io::Error::from);
            return synced.on("sync", &self.root).map(|()| true);
        }
        Ok(false)
    }
}
