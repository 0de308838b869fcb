//! Verifies every byte of a vault: finds changed, missing, outdated and added files.
//!
//! The journal lists what must exist. Remains of interrupted writes are not damage: they follow the listed part of a
//! file, or have names that only unlisted files have.

mod log_check;
mod sealed_check;
mod since_head;
mod tombstone_check;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::log_check::LogCheck;
pub(super) use self::sealed_check::check_file_identity;
use self::sealed_check::check_sealed_bytes;
pub use self::since_head::{JournalHead, JournalHeadError};
use super::faults::{MISSING_FILE, UNLISTED_FILE, UNLISTED_LOG};
use super::journal::{
    FileState, JOURNAL_FILE, JOURNAL_HEAD_FILE, JOURNAL_LOCK_FILE, ListedFile, ListedFiles,
};
use super::live_log::open_lock_file;
use super::manifest::MANIFEST_FILE;
use super::notes::NOTES_FILE;
use super::recorder::RECORD_FILE;
use super::sealed::{MaskSummary, REPLACEMENT_SUFFIX, SealedFile, SealedFileRef};
use super::tombstone::{FORGOTTEN_FILE, FORGOTTEN_HEAD_FILE, FORGOTTEN_LOCK_FILE, Tombstone};
use super::{SessionDir, Vault, frame, list_names, parse_sealed_name};
use crate::line_hash::{FIRST_LINE_HASH, LineHash};
use steno_cipher::store_fs;
use steno_model::durable::{self, FileError, OnPath};
use steno_model::session::SessionId;

/// The files in the vault's folder beside those of its sessions.
const VAULT_FILES: [&str; 6] = [
    JOURNAL_FILE,
    JOURNAL_HEAD_FILE,
    JOURNAL_LOCK_FILE,
    FORGOTTEN_FILE,
    FORGOTTEN_HEAD_FILE,
    FORGOTTEN_LOCK_FILE,
];

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
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
    pub damage: Vec<DamagedFile>,
    /// Whether the journal was once lost, so that its earlier listings are unknown.
    pub is_journal_restarted: bool,
    /// What was forgotten, in order.
    pub forgotten: Vec<Tombstone>,
    /// The masks of each file that has some, by session and name.
    masks: BTreeMap<(String, String), MaskSummary>,
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file.
    pub path: PathBuf,
    /// Offset of the first byte that fails verification.
    pub offset: u64,
    /// What is wrong.
    pub reason: String,
}

impl Vault {
    /// Verifies the whole vault. Calls `progress` before each session.
    pub fn verify(&self, progress: &mut dyn FnMut(&SessionDir)) -> Result<VerifyReport, FileError> {
        let mut report = VerifyReport::default();
        self.journal.clear_cache();
        report.check_journal(self)?;
        let sessions = self.list_sessions()?;
        report.check_folder_names(self.root())?;
        for session in &sessions {
            progress(session);
            report.check_session(session)?;
        }
        for session in self.missing_sessions()? {
            report.add_damage(session.path(), 0, "the session is missing");
        }
        report.check_tombstones(self)?;
        Ok(report)
    }
}

impl SessionDir {
    /// Verifies one session.
    pub fn verify(&self) -> Result<VerifyReport, FileError> {
        let mut report = VerifyReport::default();
        report.check_session(self)?;
        Ok(report)
    }
}

impl VerifyReport {
    fn add_damage(&mut self, path: &Path, offset: u64, reason: impl Into<String>) {
        self.damage.push(DamagedFile { path: path.to_owned(), offset, reason: reason.into() });
    }

    /// Verifies the journal itself.
    fn check_journal(&mut self, vault: &Vault) -> Result<(), FileError> {
        let path = vault.journal.path();
        let Some(state) = vault.journal.read_state()? else {
            return self.check_absent_journal(vault);
        };
        self.is_journal_restarted = state.is_restarted;
        let head = vault.root().join(JOURNAL_HEAD_FILE);
        let listed = ListedFile { state: FileState::Open, length: 0, size: None, link: None };
        LogCheck { path: &path, head: &head, listed: &listed }
            .check_log(Some(FIRST_LINE_HASH), self)?;
        // The journal does not count as a kept file.
        (self.files, self.bytes) = (0, 0);
        for damaged in &state.damaged {
            let is_known = |known: &DamagedFile| known.path == path;
            if !self.damage.iter().any(is_known) {
                self.add_damage(&path, damaged.length, "not a journal line");
            }
        }
        Ok(())
    }

    /// Reports a missing journal if sealed files of its version exist.
    fn check_absent_journal(&mut self, vault: &Vault) -> Result<(), FileError> {
        let path = vault.journal.path();
        let head = super::log_head::LogHeadFile::read(&vault.root().join(JOURNAL_HEAD_FILE));
        let mut is_lost = head.is_ok_and(|head| head.last.is_some_and(|head| head.length > 0));
        for session in vault.list_sessions()? {
            for name in
                list_names(session.path())?.iter().filter(|name| parse_sealed_name(name).is_some())
            {
                let sealed = SealedFile::open(&session.path().join(name));
                is_lost |= sealed.is_ok_and(|sealed| sealed.version() == frame::FORMAT_VERSION);
            }
            if is_lost {
                self.add_damage(&path, 0, MISSING_FILE);
                break;
            }
        }
        Ok(())
    }

    /// Reports unknown files outside the session folders.
    fn check_folder_names(&mut self, root: &Path) -> Result<(), FileError> {
        let is_folder =
            |path: &Path, name: &str| store_fs::is_dir(path) && name.parse::<SessionId>().is_ok();
        for agent in list_names(root)? {
            let dir = root.join(&agent);
            if VAULT_FILES.contains(&agent.as_str()) {
                continue;
            }
            if !is_folder(&dir, &agent) {
                self.add_stray(&dir);
                continue;
            }
            for name in list_names(&dir)? {
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
        let lock = if store_fs::exists(&dir.write_lock_path()) {
            open_lock_file(&dir.write_lock_path()).ok()
        } else {
            None
        };
        if let Some(lock) = &lock {
            lock.lock().on("lock", &dir.write_lock_path())?;
        }
        self.sessions += 1;
        let Some(listed) = dir.listed_files()? else { return self.check_unlisted_session(dir) };
        for (name, file) in listed.iter() {
            self.check_listed_file(dir, name, file)?;
        }
        for name in list_names(dir.path())? {
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
            return self
                .check_sealed_file(dir, &SealedFileRef { path, listed: Some(listed.clone()) });
        }
        if !store_fs::exists(&path) {
            self.add_damage(&path, 0, MISSING_FILE);
            return Ok(());
        }
        let first = match SessionDir::parse_live_log_base(name) {
            Some(base) => last_sealed_hash(dir, base),
            None => Some(FIRST_LINE_HASH),
        };
        let head = super::log_head_path(&path);
        LogCheck { path: &path, head: &head, listed }.check_log(first, self)
    }

    fn check_sealed_file(
        &mut self,
        dir: &SessionDir,
        kept: &SealedFileRef,
    ) -> Result<(), FileError> {
        self.files += 1;
        let new = super::sealed::replacement_path(&kept.path);
        let mut checked = check_sealed_bytes(dir, kept, &kept.path)?;
        if checked.is_err() && store_fs::exists(&new) {
            // Listed, but not renamed yet.
            let renamed = check_sealed_bytes(dir, kept, &new)?;
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
        if sealed.masks.seal.is_some() {
            let name = kept.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.masks.insert((dir.journal_key(), name), sealed.masks);
        }
        if sealed.has_rest {
            self.interrupted.push(kept.path.clone());
        }
        if sealed.is_pointer
            && let Err(error) = dir.resolve_pointer(&kept.open()?)
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
        listed: &ListedFiles,
    ) -> Result<(), FileError> {
        let path = dir.path().join(name);
        let is_listed_head = name.strip_suffix(".head").is_some_and(|log| listed.contains_key(log));
        let is_lock = [dir.write_lock_path(), dir.recording_lock_path()].contains(&path);
        let is_log = SessionDir::parse_live_log_base(name).is_some() || name == NOTES_FILE;
        let is_head = name
            .strip_suffix(".head")
            .is_some_and(|log| SessionDir::parse_live_log_base(log).is_some() || log == NOTES_FILE);
        if is_lock && store_fs::metadata(&path).on("read", &path)?.len() > 0 {
            self.add_damage(&path, 0, "a lock file that is not empty");
        } else if is_lock || is_listed_head || name == MANIFEST_FILE {
            // Checked with its log, or obsolete.
        } else if dir.is_acknowledged_log(name)? {
            self.add_damage(&path, 0, UNLISTED_LOG);
        } else if name.ends_with(REPLACEMENT_SUFFIX)
            || durable::is_leftover(&path)
            || is_log
            || is_head
        {
            if !self.interrupted.contains(&path) {
                self.interrupted.push(path);
            }
        } else if parse_sealed_name(name).is_some() {
            self.add_damage(&path, 0, UNLISTED_FILE);
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
                for path in missing.filter(|path| !store_fs::exists(path)) {
                    self.add_damage(&path, 0, MISSING_FILE);
                }
            }
            Err(error) => self.add_damage(&error.path, 0, error.source.to_string()),
        }
        let nothing_listed =
            ListedFile { state: FileState::Open, length: 0, size: None, link: None };
        for name in list_names(dir.path())? {
            let path = dir.path().join(&name);
            if parse_sealed_name(&name).is_some() {
                self.check_sealed_file(dir, &SealedFileRef { path, listed: None })?;
            } else if SessionDir::parse_live_log_base(&name).is_some() || name == NOTES_FILE {
                self.check_listed_file(dir, &name, &nothing_listed)?;
            } else if !name.ends_with(".head") {
                self.check_unlisted_file(dir, &name, &ListedFiles::default())?;
            }
        }
        Ok(())
    }
}

/// The hash that a live log's first line must follow; `None` if it is unknown.
fn last_sealed_hash(dir: &SessionDir, base: u64) -> Option<LineHash> {
    if base == 0 {
        return Some(FIRST_LINE_HASH);
    }
    let mut sealed = dir.open_sealed(RECORD_FILE, 0).ok()?;
    let (begin, frame) = sealed.frame_at(base - 1).ok()??;
    let sealed = frame.get(..usize::try_from(base - begin).ok()?)?.strip_suffix(b"\n")?;
    let line = sealed.rsplit(|byte| *byte == b'\n').next()?;
    LineHash::split_line(line).map(|(hash, _)| hash)
}
