//! Verifies every byte of a vault: finds changed, missing, outdated and added files.
//!
//! The journal lists what must exist. Remains of interrupted writes are not damage: they follow the listed part of a
//! file, or have names that only unlisted files have.

mod log;
mod sealed;
mod since;

use std::fs;
use std::path::{Path, PathBuf};

use self::log::LogCheck;
pub(super) use self::sealed::check_header;
use self::sealed::check_sealed;
pub use self::since::{JournalHead, JournalHeadError};
use super::faults::{MISSING, UNLISTED};
use super::journal::{FileState, JOURNAL, JOURNAL_HEAD, JOURNAL_LOCK, ListedFile, SessionFiles};
use super::live::{FIRST_SUM, Sum, open_lock};
use super::manifest::MANIFEST;
use super::notes::NOTES;
use super::recorder::RECORD;
use super::sealed::{KeptFile, NEW_SUFFIX, Sealed};
use super::{SessionDir, Vault, entries, frame, kept_file};
use crate::durable::{self, FileError, OnPath};
use crate::session::SessionId;

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of checked sessions.
    pub sessions: u64,
    /// Number of sealed files and logs.
    pub files: u64,
    /// Number of intact bytes of session files.
    pub bytes: u64,
    /// Remains of interrupted writes. None was acknowledged, and the next write removes them.
    pub interrupted: Vec<PathBuf>,
    /// Files once found damaged or missing, and kept again since.
    pub replaced: Vec<PathBuf>,
    /// Damaged, missing and unknown files.
    pub damage: Vec<Damage>,
    /// Whether the journal was once lost, so that its earlier listings are unknown.
    pub is_journal_restarted: bool,
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Offset of the first byte that fails verification.
    pub offset: u64,
    /// What is wrong.
    pub reason: String,
}

impl Vault {
    /// Verifies the whole vault. Calls `progress` before each session.
    pub fn verify(&self, progress: &mut dyn FnMut(&SessionDir)) -> Result<Report, FileError> {
        let mut report = Report::default();
        self.journal.forget_cache();
        report.check_journal(self)?;
        let sessions = self.sessions()?;
        report.check_names(self.root())?;
        for session in &sessions {
            progress(session);
            report.check_session(session)?;
        }
        for session in self.missing_sessions()? {
            report.add_damage(session.path(), 0, "the session is missing");
        }
        Ok(report)
    }
}

impl SessionDir {
    /// Verifies one session.
    pub fn verify(&self) -> Result<Report, FileError> {
        let mut report = Report::default();
        report.check_session(self)?;
        Ok(report)
    }
}

impl Report {
    fn add_damage(&mut self, path: &Path, offset: u64, reason: impl Into<String>) {
        self.damage.push(Damage { path: path.to_owned(), offset, reason: reason.into() });
    }

    /// Verifies the journal itself.
    fn check_journal(&mut self, vault: &Vault) -> Result<(), FileError> {
        let path = vault.journal.path();
        let Some(state) = vault.journal.state()? else {
            return self.check_absent_journal(vault);
        };
        self.is_journal_restarted = state.is_restarted;
        let head = vault.root().join(JOURNAL_HEAD);
        let listed = ListedFile { state: FileState::Open, length: 0, size: None, link: None };
        LogCheck { path: &path, head: &head, listed: &listed }.run(Some(FIRST_SUM), self)?;
        // The journal does not count as a kept file.
        (self.files, self.bytes) = (0, 0);
        for damaged in &state.damaged {
            let is_known = |known: &Damage| known.path == path;
            if !self.damage.iter().any(is_known) {
                self.add_damage(&path, damaged.length, "not a journal line");
            }
        }
        Ok(())
    }

    /// Reports a missing journal if sealed files of its version exist.
    fn check_absent_journal(&mut self, vault: &Vault) -> Result<(), FileError> {
        let path = vault.journal.path();
        let head = super::head::HeadFile::read(&vault.root().join(JOURNAL_HEAD));
        let mut is_lost = head.is_ok_and(|head| head.last.is_some_and(|head| head.length > 0));
        for session in vault.sessions()? {
            for name in entries(session.path())?.iter().filter(|name| kept_file(name).is_some()) {
                let sealed = Sealed::open(&session.path().join(name));
                is_lost |= sealed.is_ok_and(|sealed| sealed.version() == frame::VERSION);
            }
            if is_lost {
                self.add_damage(&path, 0, MISSING);
                break;
            }
        }
        Ok(())
    }

    /// Reports unknown files outside the session folders.
    fn check_names(&mut self, root: &Path) -> Result<(), FileError> {
        let is_folder =
            |path: &Path, name: &str| path.is_dir() && name.parse::<SessionId>().is_ok();
        for agent in entries(root)? {
            let dir = root.join(&agent);
            if [JOURNAL, JOURNAL_HEAD, JOURNAL_LOCK].contains(&agent.as_str()) {
                continue;
            }
            if !is_folder(&dir, &agent) {
                self.add_stray(&dir);
                continue;
            }
            for name in entries(&dir)? {
                let path = dir.join(&name);
                if !is_folder(&path, &name) {
                    self.add_stray(&path);
                }
            }
        }
        Ok(())
    }

    fn add_stray(&mut self, path: &Path) {
        if durable::is_leftover(path) {
            self.interrupted.push(path.to_owned());
        } else {
            self.add_damage(path, 0, "not a file of the vault");
        }
    }

    fn check_session(&mut self, dir: &SessionDir) -> Result<(), FileError> {
        // The lock keeps writers out. If it cannot be opened, nobody can write either.
        let lock = if dir.lock_path().exists() { open_lock(&dir.lock_path()).ok() } else { None };
        if let Some(lock) = &lock {
            lock.lock().on("lock", &dir.lock_path())?;
        }
        self.sessions += 1;
        let Some(listed) = dir.listed()? else { return self.check_unlisted_session(dir) };
        for (name, file) in listed.iter() {
            self.check_listed_file(dir, name, file)?;
        }
        for name in entries(dir.path())? {
            if !listed.contains_key(&name) {
                self.check_unlisted_file(dir, &name, &listed)?;
            }
        }
        Ok(())
    }

    fn check_listed_file(
        &mut self,
        dir: &SessionDir,
        name: &str,
        listed: &ListedFile,
    ) -> Result<(), FileError> {
        let path = dir.path().join(name);
        if listed.state == FileState::Replaced {
            self.replaced.push(path);
            return Ok(());
        }
        if listed.state == FileState::Kept {
            return self.check_sealed_file(dir, &KeptFile { path, listed: Some(listed.clone()) });
        }
        if !path.exists() {
            self.add_damage(&path, 0, MISSING);
            return Ok(());
        }
        let first = match SessionDir::live_base(name) {
            Some(base) => last_sealed_sum(dir, base),
            None => Some(FIRST_SUM),
        };
        let head = super::head_path(&path);
        LogCheck { path: &path, head: &head, listed }.run(first, self)
    }

    fn check_sealed_file(&mut self, dir: &SessionDir, kept: &KeptFile) -> Result<(), FileError> {
        self.files += 1;
        let new = super::sealed::new_path(&kept.path);
        let mut checked = check_sealed(dir, kept, &kept.path)?;
        if checked.is_err() && new.exists() {
            // Listed, but not renamed yet.
            let renamed = check_sealed(dir, kept, &new)?;
            if renamed.is_ok() {
                checked = renamed;
                self.interrupted.push(new);
            }
        }
        let sealed = match checked {
            Ok(checked) => checked,
            Err(damage) => {
                self.damage.push(damage);
                return Ok(());
            }
        };
        self.bytes += sealed.length;
        if sealed.has_rest {
            self.interrupted.push(kept.path.clone());
        }
        if sealed.is_pointer
            && let Err(error) = dir.pointed_to(&kept.open()?)
        {
            self.add_damage(&kept.path, 0, error.source.to_string());
        }
        Ok(())
    }

    /// Checks a file that the journal does not list.
    fn check_unlisted_file(
        &mut self,
        dir: &SessionDir,
        name: &str,
        listed: &SessionFiles,
    ) -> Result<(), FileError> {
        let path = dir.path().join(name);
        let is_listed_head = name.strip_suffix(".head").is_some_and(|log| listed.contains_key(log));
        let is_lock = [dir.lock_path(), dir.users_path()].contains(&path);
        let is_log = SessionDir::live_base(name).is_some() || name == NOTES;
        let is_head = name
            .strip_suffix(".head")
            .is_some_and(|log| SessionDir::live_base(log).is_some() || log == NOTES);
        if is_lock && fs::metadata(&path).on("read", &path)?.len() > 0 {
            self.add_damage(&path, 0, "a lock file that is not empty");
        } else if is_lock || is_listed_head || name == MANIFEST {
            // Checked with its log, or obsolete.
        } else if name.ends_with(NEW_SUFFIX) || durable::is_leftover(&path) || is_log || is_head {
            if !self.interrupted.contains(&path) {
                self.interrupted.push(path);
            }
        } else if kept_file(name).is_some() {
            self.add_damage(&path, 0, UNLISTED);
        } else {
            self.add_damage(&path, 0, "not a file of the vault");
        }
        Ok(())
    }

    /// Verifies a session of a vault without a journal.
    fn check_unlisted_session(&mut self, dir: &SessionDir) -> Result<(), FileError> {
        match dir.listed_by_manifest() {
            Ok(names) => {
                let missing = names.iter().map(|name| dir.path().join(name));
                for path in missing.filter(|path| !path.exists()) {
                    self.add_damage(&path, 0, MISSING);
                }
            }
            Err(error) => self.add_damage(&error.path, 0, error.source.to_string()),
        }
        let nothing_listed =
            ListedFile { state: FileState::Open, length: 0, size: None, link: None };
        for name in entries(dir.path())? {
            let path = dir.path().join(&name);
            if kept_file(&name).is_some() {
                self.check_sealed_file(dir, &KeptFile { path, listed: None })?;
            } else if SessionDir::live_base(&name).is_some() || name == NOTES {
                self.check_listed_file(dir, &name, &nothing_listed)?;
            } else if !name.ends_with(".head") {
                self.check_unlisted_file(dir, &name, &SessionFiles::default())?;
            }
        }
        Ok(())
    }
}

/// The hash that a live log's first line must follow; `None` if it is unknown.
fn last_sealed_sum(dir: &SessionDir, base: u64) -> Option<Sum> {
    if base == 0 {
        return Some(FIRST_SUM);
    }
    let mut sealed = dir.open_kept(RECORD, 0).ok()?;
    let (begin, frame) = sealed.frame_at(base - 1).ok()??;
    let sealed = frame.get(..usize::try_from(base - begin).ok()?)?.strip_suffix(b"\n")?;
    let line = sealed.rsplit(|byte| *byte == b'\n').next()?;
    Sum::split(line).map(|(hash, _)| hash)
}
