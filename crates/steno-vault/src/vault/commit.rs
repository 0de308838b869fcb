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
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use super::SessionDir;
use super::journal::{FileState, Journal, JournalLine};
use super::live_log::open_lock_file;
use super::sealed::{WrittenFile, replacement_path};
use steno_cipher::store_fs;
use steno_model::durable::{self, FileError, OnPath};

/// From this number of files on, the whole file system is synced at once.
const SYNC_ALL_THRESHOLD: usize = 8;

/// Written but not yet acknowledged changes of kept files. Dropping it discards them.
#[derive(Debug)]
pub struct VaultCommit {
    journal: Arc<Journal>,
    root: PathBuf,
    lines: Vec<JournalLine>,
    written: Vec<WrittenFile>,
    /// Folders with new names, which need a sync.
    folders: BTreeSet<PathBuf>,
    /// New keys of sessions in an encrypted store, which need a sync.
    keys: BTreeSet<PathBuf>,
    /// Locks of the sessions in this commit.
    session_locks: Vec<(String, File)>,
    /// The vault's folder, opened before the first change so that `syncfs` reports write errors.
    vault_folder: Option<File>,
}

impl VaultCommit {
    pub(super) fn new(journal: Arc<Journal>, root: PathBuf) -> Self {
        let (lines, written, folders) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self {
            journal,
            root,
            lines,
            written,
            folders,
            keys: BTreeSet::new(),
            session_locks: Vec::new(),
            vault_folder: None,
        }
    }

    /// Number of sessions with unacknowledged changes.
    pub fn session_count(&self) -> usize {
        self.session_locks.len()
    }

    /// Whether a session has unacknowledged changes.
    pub(super) fn holds_session(&self, dir: &SessionDir) -> bool {
        self.session_locks.iter().any(|(session, _)| *session == dir.journal_key())
    }

    /// Creates the folder of a session and takes its lock.
    pub(super) fn lock_session(&mut self, dir: &SessionDir) -> Result<(), FileError> {
        if self.holds_session(dir) {
            // The journal must list the session's earlier changes first.
            self.finish()?;
        }
        self.journal.create_if_absent()?;
        if self.vault_folder.is_none() {
            store_fs::create_private_dir(&self.root)?;
            let folder = store_fs::physical_path(&self.root);
            self.vault_folder = Some(File::open(folder).on("open", &self.root)?);
        }
        self.folders.extend(store_fs::make_private_dir(dir.path())?);
        let key = store_fs::prepare_session_key(dir.path()).on("lock", dir.path())?;
        self.keys.extend(key);
        let path = dir.write_lock_path();
        let lock = open_lock_file(&path)?;
        if lock.try_lock().is_err() {
            self.finish()?;
            lock.lock().on("lock", &path)?;
        }
        self.session_locks.push((dir.journal_key(), lock));
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
            ..dir.new_journal_line(FileState::Kept)
        };
        self.add_line(dir, line);
        if written.is_new {
            // An interrupted process may have created the folder without syncing it.
            self.folders.extend(dir.path().ancestors().take(3).map(store_fs::physical_path));
            self.keys.extend(store_fs::session_key_path(dir.path()));
        }
        self.written.push(written);
    }

    /// Adds another journal line.
    pub(super) fn add_line(&mut self, dir: &SessionDir, line: JournalLine) {
        debug_assert_eq!(line.session, dir.journal_key());
        self.lines.push(line);
    }

    /// Acknowledges all changes: they are on disk when this returns.
    pub fn finish(&mut self) -> Result<(), FileError> {
        let result = self.finish_locked();
        self.session_locks.clear();
        self.vault_folder = None;
        result
    }

    /// Like [`VaultCommit::finish`], but keeps the session locks.
    pub(super) fn finish_locked(&mut self) -> Result<(), FileError> {
        let result = self.sync_and_list();
        // After a failure nothing is acknowledged; a retry writes everything again.
        self.lines.clear();
        self.written.clear();
        self.folders.clear();
        self.keys.clear();
        result
    }

    fn sync_and_list(&mut self) -> Result<(), FileError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let is_synced = self.written.len() >= SYNC_ALL_THRESHOLD && self.sync_file_system()?;
        if !is_synced {
            for written in &self.written {
                let path = written.current_path();
                store_fs::sync_file(&path)?;
            }
            for key in &self.keys {
                store_fs::sync_session_key(key)?;
            }
            self.folders.iter().try_for_each(|folder| durable::sync_dir(folder))?;
        }
        self.journal.append_lines(&self.lines)?;
        for written in self.written.iter().filter(|written| written.is_new) {
            store_fs::rename(&replacement_path(&written.path), &written.path)
                .on("replace", &written.path)?;
        }
        Ok(())
    }

    /// Syncs the whole file system, where the operating system supports it.
    fn sync_file_system(&self) -> Result<bool, FileError> {
        #[cfg(target_os = "linux")]
        if let Some(vault) = &self.vault_folder {
            let synced = rustix::fs::syncfs(vault).map_err(std::io::Error::from);
            return synced.on("sync", &self.root).map(|()| true);
        }
        Ok(false)
    }
}
